// A destination for partners who want a file under an agreed name, and perhaps a done-file beside it.
//
// It exports what the world `destination` of ../wit demands: four functions. Each call is made in a fresh instance, so
// nothing that is kept in a variable outlives it. What this plugin returns is a report: the host looks by itself, and
// concludes from what it saw.
//
// | setting            | meaning                                                                                    | default              |
// | ------------------ | ------------------------------------------------------------------------------------------ | -------------------- |
// | name               | the final name, over {key}, {date} (20260302) and {tenant}                                  | none: it must be set |
// | done_file          | the done-file's name, over {final}, {final.stem}, {final.extension} and {key}               | no done-file         |
// | done_content       | empty, or sha256: one line as sha256sum writes and checks it                                | empty                |
// | look_again_seconds | when a later look is worth it                                                               | the host's intervals |

import { write as log } from 'waybill:partner/log@0.2.0';

/** The final name: the same for every attempt of a job, so it is made of what never changes. */
export function finalName(job) {
  return told(() => {
    const { year, month, day } = job.created;
    const two = (number) => String(number).padStart(2, '0');
    const date = String(year).padStart(4, '0') + two(month) + two(day);
    return fill('name', required(job, 'name'), { key: job.deliveryKey, date, tenant: job.tenant });
  });
}

/** What is under the final name before anything is sent. `look` reads, and cannot write. */
export function baseline(job, name, look) {
  return told(() => list(look, name));
}

/** Sends, publishes, adds the done-file, looks. Called once an attempt; `send` is the only handle that writes. */
export function deliver(job, expected, before, auxiliary, look, send) {
  return told(() => {
    // Everything that a setting can get wrong shows before the first byte is sent.
    const done = doneFile(job, expected);

    send.send();
    // A present file reaches this call only where the host found an agreement to overwrite it, and the host checks again.
    if (before.found.tag === 'present') {
      send.publishOver();
    } else {
      send.publish();
    }

    // The file is published: from here on a failure is worth a note, and the look is worth more.
    const written = [];
    const extra = [];
    if (done !== undefined) {
      try {
        send.put(done.name, done.bytes);
        written.push(done.name);
      } catch (thrown) {
        const { tag, val } = thrown.payload ?? thrown;
        if (tag === undefined || tag === 'stopped') {
          throw thrown;
        }
        log('warn', `the done-file was not written: ${tag}: ${val}`);
        extra.push({ name: 'done_file', value: `${tag}: ${val}` });
      }
    }
    return { listing: list(look, expected.name), acknowledgment: undefined, auxiliary: written, extra };
  });
}

/** Looks again, for recovery and for late questions. It may be called at any time, in any process. */
export function observe(job, expected, before, auxiliary, look) {
  return told(() => ({
    listing: list(look, expected.name),
    acknowledgment: undefined,
    againAfterSeconds: lookAgain(job),
    extra: [],
  }));
}

/** A look at one name. The host reads files back and hashes them by itself. */
function list(look, name) {
  return { name, found: look.stat(name), sha256: undefined, extra: [] };
}

/** The done-file's name and bytes, where the settings want one. */
function doneFile(job, expected) {
  const content = oneOf(job, 'done_content', ['empty', 'sha256']);
  const pattern = setting(job, 'done_file') ?? '';
  if (pattern === '') {
    return undefined;
  }
  const base = expected.name.slice(expected.name.lastIndexOf('/') + 1);
  // A name whose only dot is its first character has no extension.
  const dot = base.lastIndexOf('.');
  const extension = dot > 0 ? base.slice(dot + 1) : '';
  const stem = dot > 0 ? expected.name.slice(0, -extension.length - 1) : expected.name;
  const known = { final: expected.name, 'final.stem': stem, 'final.extension': extension, key: job.deliveryKey };
  const name = fill('done_file', pattern, known);
  if (name === expected.name) {
    throw failure('invalid', `the setting "done_file" is "${pattern}": that is the file itself`);
  }
  const hex = Array.from(expected.sha256, (byte) => byte.toString(16).padStart(2, '0')).join('');
  const line = content === 'sha256' ? `${hex}  ${base}\n` : '';
  return { name, bytes: new TextEncoder().encode(line) };
}

// Settings.

function lookAgain(job) {
  const given = setting(job, 'look_again_seconds')?.trim();
  if (given !== undefined && !(/^[0-9]+$/.test(given) && Number(given) < 2 ** 32)) {
    throw failure('invalid', `the setting "look_again_seconds" is "${given}": use a whole number of seconds`);
  }
  return given === undefined ? undefined : Number(given);
}

/** A name made from a pattern: each {placeholder} is replaced by its value, and one that is not known is refused. */
function fill(name, pattern, known) {
  const wrong = (why) => failure('invalid', `the setting "${name}" is "${pattern}": ${why}`);
  const filled = pattern.replaceAll(/\{([^}]*)\}/g, (_, placeholder) => {
    if (!Object.hasOwn(known, placeholder)) {
      throw wrong(`there is no placeholder {${placeholder}}; known are {${Object.keys(known).join('}, {')}}`);
    }
    return known[placeholder];
  });
  if (/\{[^}]*$/.test(pattern)) {
    throw wrong('a brace is not closed');
  }
  return filled;
}

function setting(job, name) {
  return job.settings.find((setting) => setting.name === name)?.value;
}

function required(job, name) {
  const value = setting(job, name) ?? '';
  if (value === '') {
    throw failure('invalid', `the setting "${name}" is missing: set it in the manifest's [options] or in the destination's settings`);
  }
  return value;
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
