// A builder that writes CSV files as RFC 4180 describes them, in UTF-8.
//
// It exports what the world `builder` of ../wit demands: one function. The host hands it the job and the file under
// construction, and calls it in a fresh instance each time, so nothing that is kept in a variable outlives a call.
//
// | setting               | meaning                                                                           | default                |
// | --------------------- | --------------------------------------------------------------------------------- | ---------------------- |
// | query                 | name of the query                                                                 | rows                   |
// | parameters            | names of the scope's entries that are the query's parameters, between commas      | all of the scope       |
// | columns               | `column=Header text` or `column`, one a line or between commas; quote what has a comma | all, as they come |
// | header                | yes or no: a first line with the headers                                          | yes                    |
// | delimiter             | one ASCII character, or the word tab                                              | ,                      |
// | quote                 | necessary or always                                                               | necessary              |
// | line_ending           | crlf or lf                                                                        | crlf                   |
// | encoding              | utf-8, and nothing else                                                           | utf-8                  |
// | compress              | none, and nothing else                                                             | none                   |
// | null, true, false     | the texts of a missing value and of booleans                                      | empty, true, false     |

import { open } from 'waybill:partner/source@0.2.0';
import { write as log } from 'waybill:partner/log@0.2.0';

/** Rows that are fetched in one call: fewer cost more calls, more are no faster. */
const BATCH = 500;
/** Bytes that are written in one call. */
const CHUNK = 65536;

export function build(job, output) {
  return told(() => {
    // Everything that a setting can get wrong shows before the first byte is written.
    const options = readOptions(job);
    const rows = open(options.query, options.parameters);
    const columns = pick(options.columns, rows.columns(), options.query);

    if (options.header) {
      write(output, line(columns.map((column) => column.header), options));
    }
    let count = 0n;
    for (;;) {
      const batch = rows.next(BATCH);
      if (batch.length === 0) {
        return { rows: count };
      }
      const lines = batch.map((row) => line(columns.map((column) => text(row[column.index], options)), options));
      write(output, lines.join(''));
      count += BigInt(batch.length);
    }
  });
}

// From values to text.

/** One line of the file. A lone empty field is quoted: it would be an empty line otherwise, which readers skip. */
function line(fields, { delimiter, quoteAlways, lineEnding }) {
  const quoted = fields.map((field) => {
    const must = quoteAlways || field.includes(delimiter) || /["\r\n]/.test(field);
    return must ? `"${field.replaceAll('"', '""')}"` : field;
  });
  return (quoted.length === 1 && quoted[0] === '' ? '""' : quoted.join(delimiter)) + lineEnding;
}

/** One value as the text of a field: numbers with a decimal point and without an exponent, bytes in lower-case hex. */
function text(value, words) {
  switch (value.tag) {
    case 'null':
      return words.null;
    case 'boolean':
      return value.val ? words.true : words.false;
    case 'integer': // A BigInt: all 64 bits are there.
      return value.val.toString();
    case 'float':
      return float(value.val);
    case 'text':
      return value.val;
    case 'bytes':
      return Array.from(value.val, (byte) => byte.toString(16).padStart(2, '0')).join('');
    default:
      throw failure('other', `a value is of the kind "${value.tag}", which this builder does not know`);
  }
}

/** The shortest decimal text that reads back as the same number: `0.0000001`, where JavaScript says `1e-7`. */
function float(number) {
  if (!Number.isFinite(number)) {
    return String(number); // NaN, Infinity, -Infinity, as PostgreSQL writes them.
  }
  const sign = number < 0 || Object.is(number, -0) ? '-' : '';
  const [digits, exponent] = Math.abs(number).toExponential().split('e');
  const [whole, fraction = ''] = digits.split('.');
  const all = whole + fraction;
  const point = 1 + Number(exponent);
  if (point <= 0) {
    return number === 0 ? `${sign}0` : `${sign}0.${'0'.repeat(-point)}${all}`;
  }
  const before = all.slice(0, point).padEnd(point, '0');
  const after = all.slice(point);
  return sign + (after === '' ? before : `${before}.${after}`);
}

/** Writes text in chunks that the host takes in one call. */
function write(output, whole) {
  const bytes = new TextEncoder().encode(whole);
  for (let at = 0; at < bytes.length; at += CHUNK) {
    output.write(bytes.subarray(at, at + CHUNK));
  }
}

// Settings and columns.

function readOptions(job) {
  oneOf(job, 'encoding', ['utf-8']);
  oneOf(job, 'compress', ['none']);
  const given = (name, otherwise) => setting(job, name) ?? otherwise;
  return {
    query: given('query', 'rows'),
    parameters: parameters(job),
    columns: parseColumns(given('columns', '')),
    header: oneOf(job, 'header', ['yes', 'no', 'true', 'false']) in { yes: 1, true: 1 },
    delimiter: delimiter(given('delimiter', ',')),
    quoteAlways: oneOf(job, 'quote', ['necessary', 'always']) === 'always',
    lineEnding: oneOf(job, 'line_ending', ['crlf', 'lf']) === 'lf' ? '\n' : '\r\n',
    null: given('null', ''),
    true: given('true', 'true'),
    false: given('false', 'false'),
  };
}

function parameters(job) {
  const names = setting(job, 'parameters');
  if (names === undefined) {
    return job.scope;
  }
  const wanted = names.split(',').map((name) => name.trim()).filter((name) => name !== '');
  return wanted.map((name) => {
    const entry = job.scope.find((entry) => entry.name === name);
    if (entry === undefined) {
      throw failure('invalid', `the setting "parameters" names "${name}", which the job's scope does not have: create the job with it`);
    }
    return entry;
  });
}

function delimiter(given) {
  if (given === 'tab' || given === '\\t') {
    return '\t';
  }
  if (!/^[\x00-\x7f]$/.test(given) || /["\r\n]/.test(given)) {
    throw failure('invalid', `the setting "delimiter" is "${given}": use one ASCII character (not a quote or a line break), or the word tab`);
  }
  return given;
}

/** Reads entries, one a line or between commas; between quotes a comma is text, and a doubled quote is one quote. */
function parseColumns(given) {
  const entries = [''];
  let quoted = false;
  for (let at = 0; at < given.length; at += 1) {
    const character = given[at];
    if (character === '"' && quoted && given[at + 1] === '"') {
      entries[entries.length - 1] += '"';
      at += 1;
    } else if (character === '"') {
      quoted = !quoted;
    } else if ((character === ',' || character === '\n') && !quoted) {
      entries.push('');
    } else {
      entries[entries.length - 1] += character;
    }
  }
  if (quoted) {
    throw failure('invalid', 'the setting "columns" has a quote that is not closed');
  }
  return entries.filter((entry) => entry.trim() !== '').map((entry) => {
    const at = entry.indexOf('=');
    const column = (at < 0 ? entry : entry.slice(0, at)).trim();
    if (column === '') {
      throw failure('invalid', `the setting "columns" has the entry "${entry}" without a column: write column=Header text`);
    }
    return { column, header: (at < 0 ? entry : entry.slice(at + 1)).trim() };
  });
}

/** Finds the wanted columns in the query's result. None wanted: all, under their own names. */
function pick(wanted, present, query) {
  const names = present.map((column) => column.name);
  if (wanted.length === 0) {
    return names.map((name, index) => ({ index, header: name }));
  }
  return wanted.map(({ column, header }) => {
    const index = names.indexOf(column);
    if (index < 0) {
      throw failure('invalid', `the setting "columns" names "${column}", which the query "${query}" does not return; it returns: ${names.join(', ')}`);
    }
    return { index, header };
  });
}

function setting(job, name) {
  return job.settings.find((setting) => setting.name === name)?.value;
}

/** A setting that is one of some words. The first is what an absent setting means. */
function oneOf(job, name, words) {
  const given = (setting(job, name) ?? words[0]).trim();
  const word = words.find((word) => word === given.toLowerCase());
  if (word === undefined) {
    throw failure('invalid', `the setting "${name}" is "${given}": use one of: ${words.join(', ')}`);
  }
  return word;
}

// Failures.

/** A failure of the contract, to be thrown: stopped, forbidden, refused, unknown, invalid or other. Never a person's data. */
function failure(tag, val) {
  return { tag, val };
}

/**
 * Runs a call. The contract's failures pass unchanged, the host's too: they carry their kind. Anything else that is thrown
 * is a mistake in this file, and ends the call; without this line the operators would not learn where.
 */
function told(call) {
  try {
    return call();
  } catch (thrown) {
    if (thrown instanceof Error && !('payload' in thrown)) {
      log('error', `${thrown}\n${thrown.stack}`);
    }
    throw thrown;
  }
}
