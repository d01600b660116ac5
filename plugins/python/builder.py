"""A builder that writes CSV files as RFC 4180 describes them, in UTF-8.

It implements what the world `builder` of ../wit demands: one function. The host hands it the job and the file under
construction, and calls it in a fresh instance each time, so nothing that is kept in a module's variable outlives a call.
There is no file, no socket, no environment and no clock.

| setting           | meaning                                                                                | default            |
| ----------------- | -------------------------------------------------------------------------------------- | ------------------ |
| query             | name of the query                                                                      | rows               |
| parameters        | names of the scope's entries that are the query's parameters, between commas           | all of the scope   |
| columns           | `column=Header text` or `column`, one a line or between commas; quote what has a comma | all, as they come  |
| header            | yes or no: a first line with the headers                                               | yes                |
| delimiter         | one ASCII character, or the word tab                                                   | ,                  |
| quote             | necessary or always                                                                    | necessary          |
| line_ending       | crlf or lf                                                                             | crlf               |
| encoding          | utf-8, and nothing else                                                                | utf-8              |
| compress          | none, and nothing else                                                                 | none               |
| null, true, false | the texts of a missing value and of booleans                                           | empty, true, false |
"""

import math
from dataclasses import dataclass
from typing import TypeVar

import wit_world
from componentize_py_types import Err
from wit_world import Built
from wit_world.imports import source
from wit_world.imports.output import File
from wit_world.imports.source import (
    Column,
    Value,
    Value_Boolean,
    Value_Bytes,
    Value_Float,
    Value_Integer,
    Value_Null,
    Value_Text,
)
from wit_world.imports.types import Failure_Invalid, Job, Setting

# Rows that are fetched in one call: fewer cost more calls, more are no faster.
BATCH = 500
# Bytes that are written in one call.
CHUNK = 65536

T = TypeVar("T")


class WitWorld(wit_world.WitWorld):
    """The host looks for a class of this name."""

    def build(self, job: Job, output: File) -> Built:
        # Everything that a setting can get wrong shows before the first byte is written.
        options = Options.read(job)
        rows = source.open(options.query, options.parameters)
        columns = pick(options.columns, rows.columns(), options.query)

        if options.header:
            write(output, line([header for _, header in columns], options))
        count = 0
        # An exception that is raised in here and not caught is told to the operators with its traceback. The host's own
        # failures are exceptions too (`Err`), and pass unchanged: they carry their kind.
        while batch := rows.next(BATCH):
            lines = [line([text(row[index], options) for index, _ in columns], options) for row in batch]
            write(output, "".join(lines))
            count += len(batch)
        return Built(count)


@dataclass
class Options:
    query: str
    parameters: list[Setting]
    columns: list[tuple[str, str]]
    header: bool
    delimiter: str
    quote_always: bool
    line_ending: str
    null: str
    true: str
    false: str

    @staticmethod
    def read(job: Job) -> "Options":
        one_of(job, "encoding", ["utf-8"])
        one_of(job, "compress", ["none"])
        return Options(
            query=setting(job, "query", "rows"),
            parameters=parameters(job),
            columns=parse_columns(setting(job, "columns", "")),
            header=one_of(job, "header", ["yes", "no", "true", "false"]) in ("yes", "true"),
            delimiter=delimiter(setting(job, "delimiter", ",")),
            quote_always=one_of(job, "quote", ["necessary", "always"]) == "always",
            line_ending="\n" if one_of(job, "line_ending", ["crlf", "lf"]) == "lf" else "\r\n",
            null=setting(job, "null", ""),
            true=setting(job, "true", "true"),
            false=setting(job, "false", "false"),
        )


# From values to text.


def line(fields: list[str], options: Options) -> str:
    """One line of the file. A lone empty field is quoted: it would be an empty line otherwise, which readers skip."""

    def quoted(field: str) -> str:
        must = options.quote_always or any(mark in field for mark in (options.delimiter, '"', "\r", "\n"))
        return '"' + field.replace('"', '""') + '"' if must else field

    joined = options.delimiter.join(quoted(field) for field in fields)
    return ('""' if fields == [""] else joined) + options.line_ending


def text(value: Value, words: Options) -> str:
    """One value as the text of a field: numbers with a decimal point and without an exponent, bytes in lower-case hex."""
    match value:
        case Value_Null():
            return words.null
        case Value_Boolean(true):
            return words.true if true else words.false
        case Value_Integer(number):
            return str(number)
        case Value_Float(number):
            return decimal(number)
        case Value_Text(characters):
            return characters
        case Value_Bytes(octets):
            return octets.hex()


def decimal(number: float) -> str:
    """The shortest decimal text that reads back as the same number: `0.0000001`, where Python says `1e-07`."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"  # As PostgreSQL writes them.
    sign = "-" if math.copysign(1, number) < 0 else ""
    digits, _, exponent = repr(abs(number)).partition("e")
    whole, _, fraction = digits.partition(".")
    if exponent:
        shift = int(exponent)
        if shift >= 0:
            whole, fraction = whole + fraction[:shift].ljust(shift, "0"), fraction[shift:]
        else:
            whole, fraction = "0", "0" * (-shift - len(whole)) + whole + fraction
    fraction = fraction.rstrip("0")
    return f"{sign}{whole}.{fraction}" if fraction else sign + whole


def write(output: File, whole: str) -> None:
    """Writes text in chunks that the host takes in one call."""
    octets = whole.encode()
    for at in range(0, len(octets), CHUNK):
        output.write(octets[at : at + CHUNK])


# Settings and columns.


def parameters(job: Job) -> list[Setting]:
    names = setting(job, "parameters", None)
    if names is None:
        return job.scope
    scope = {entry.name: entry for entry in job.scope}
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    for name in wanted:
        if name not in scope:
            raise invalid(
                f'the setting "parameters" names "{name}", which the job\'s scope does not have: create the job with it'
            )
    return [scope[name] for name in wanted]


def delimiter(given: str) -> str:
    if given in ("tab", "\\t"):
        return "\t"
    if len(given) != 1 or not given.isascii() or given in '"\r\n':
        raise invalid(
            f'the setting "delimiter" is "{given}": use one ASCII character (not a quote or a line break), or the word tab'
        )
    return given


def parse_columns(given: str) -> list[tuple[str, str]]:
    """Reads entries, one a line or between commas; between quotes a comma is text, and a doubled quote is one quote."""
    entries = [""]
    quoted = False
    at = 0
    while at < len(given):
        character = given[at]
        if character == '"' and quoted and given[at + 1 : at + 2] == '"':
            entries[-1] += '"'
            at += 1
        elif character == '"':
            quoted = not quoted
        elif character in ",\n" and not quoted:
            entries.append("")
        else:
            entries[-1] += character
        at += 1
    if quoted:
        raise invalid('the setting "columns" has a quote that is not closed')

    columns = []
    for entry in entries:
        if not entry.strip():
            continue
        column, equals, header = entry.partition("=")
        if not column.strip():
            raise invalid(f'the setting "columns" has the entry "{entry}" without a column: write column=Header text')
        columns.append((column.strip(), (header if equals else column).strip()))
    return columns


def pick(wanted: list[tuple[str, str]], present: list[Column], query: str) -> list[tuple[int, str]]:
    """Each wanted column's place in a row, and its header. None wanted: all, under their own names."""
    places = {column.name: index for index, column in enumerate(present)}
    for column, _ in wanted:
        if column not in places:
            raise invalid(
                f'the setting "columns" names "{column}", which the query "{query}" does not return; '
                f"it returns: {', '.join(places)}"
            )
    if not wanted:
        return [(index, name) for name, index in places.items()]
    return [(places[column], header) for column, header in wanted]


def setting(job: Job, name: str, otherwise: T) -> str | T:
    return next((setting.value for setting in job.settings if setting.name == name), otherwise)


def one_of(job: Job, name: str, words: list[str]) -> str:
    """A setting that is one of some words. The first is what an absent setting means."""
    given = setting(job, name, words[0]).strip()
    if given.lower() not in words:
        raise invalid(f'the setting "{name}" is "{given}": use one of: {", ".join(words)}')
    return given.lower()


def invalid(why: str) -> Err:
    """A failure of the contract, to be raised. Its text is shown to the operators: never write a person's data into it."""
    return Err(Failure_Invalid(why))
