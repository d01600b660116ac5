"""A destination for partners who want a file under an agreed name, and perhaps a done-file beside it.

It implements what the world `destination` of ../wit demands: four functions. Each call is made in a fresh instance, so
nothing that is kept in a module's variable outlives it. What this plugin returns is a report: the host looks by itself,
and concludes from what it saw.

| setting            | meaning                                                                       | default              |
| ------------------ | ----------------------------------------------------------------------------- | -------------------- |
| name               | the final name, over {key}, {date} (20260302) and {tenant}                    | none: it must be set |
| done_file          | the done-file's name, over {final}, {final.stem}, {final.extension} and {key} | no done-file         |
| done_content       | empty, or sha256: one line as sha256sum writes and checks it                  | empty                |
| look_again_seconds | when a later look is worth it                                                 | the host's intervals |
"""

import re

import wit_world
from componentize_py_types import Err
from wit_world.imports import log
from wit_world.imports.evidence import Listing, Observation, Receipt
from wit_world.imports.remote import Found_Present, Reader, Writer
from wit_world.imports.types import (
    Failure_Invalid,
    Failure_Stopped,
    FileFacts,
    Job,
    Setting,
)


class WitWorld(wit_world.WitWorld):
    """The host looks for a class of this name.

    An exception that is not caught is told to the operators with its traceback, and ends the call. The host's failures are
    exceptions too (`Err`), and pass unchanged: they carry their kind.
    """

    def final_name(self, job: Job) -> str:
        """The same for every attempt of a job, so it is made of what never changes."""
        date = f"{job.created.year:04}{job.created.month:02}{job.created.day:02}"
        return fill("name", required(job, "name"), {"key": job.delivery_key, "date": date, "tenant": job.tenant})

    def baseline(self, job: Job, final_name: str, look: Reader) -> Listing:
        """What is under the final name before anything is sent. `look` reads, and cannot write."""
        return listing(look, final_name)

    def deliver(
        self, job: Job, expected: FileFacts, before: Listing, auxiliary: list[str], look: Reader, send: Writer
    ) -> Receipt:
        """Sends, publishes, adds the done-file, looks. Called once an attempt; `send` is the only handle that writes."""
        # Everything that a setting can get wrong shows before the first byte is sent.
        done = done_file(job, expected)

        send.send()
        # A present file reaches this call only where the host found an agreement to overwrite it, and the host checks again.
        if isinstance(before.found, Found_Present):
            send.publish_over()
        else:
            send.publish()

        # The file is published: from here on a failure is worth a note, and the look is worth more.
        written: list[str] = []
        extra: list[Setting] = []
        if done is not None:
            name, content = done
            try:
                send.put(name, content)
                written.append(name)
            except Err as failed:
                if isinstance(failed.value, Failure_Stopped):
                    raise
                log.write(log.Level.WARN, f"the done-file was not written: {told(failed)}")
                extra.append(Setting("done_file", told(failed)))
        return Receipt(listing(look, expected.name), acknowledgment=None, auxiliary=written, extra=extra)

    def observe(
        self, job: Job, expected: FileFacts, before: Listing | None, auxiliary: list[str], look: Reader
    ) -> Observation:
        """Looks again, for recovery and for late questions. It may be called at any time, in any process."""
        return Observation(
            listing=listing(look, expected.name),
            acknowledgment=None,
            again_after_seconds=look_again(job),
            extra=[],
        )


def listing(look: Reader, name: str) -> Listing:
    """A look at one name. The host reads files back and hashes them by itself."""
    return Listing(name, look.stat(name), sha256=None, extra=[])


def done_file(job: Job, expected: FileFacts) -> tuple[str, bytes] | None:
    """The done-file's name and bytes, where the settings want one."""
    content = one_of(job, "done_content", ["empty", "sha256"])
    pattern = setting(job, "done_file", "")
    if not pattern:
        return None
    base = expected.name.rpartition("/")[2]
    # A name whose only dot is its first character has no extension.
    stem, _, extension = base.rpartition(".")
    if stem:
        stem = expected.name.removesuffix("." + extension)
    else:
        stem, extension = expected.name, ""
    known = {"final": expected.name, "final.stem": stem, "final.extension": extension, "key": job.delivery_key}
    name = fill("done_file", pattern, known)
    if name == expected.name:
        raise invalid(f'the setting "done_file" is "{pattern}": that is the file itself')
    line = f"{expected.sha256.hex()}  {base}\n" if content == "sha256" else ""
    return name, line.encode()


# Settings.


def look_again(job: Job) -> int | None:
    given = setting(job, "look_again_seconds", "")
    if not given:
        return None
    if not re.fullmatch("[0-9]+", given.strip()) or int(given) >= 2**32:
        raise invalid(f'the setting "look_again_seconds" is "{given}": use a whole number of seconds')
    return int(given)


def fill(name: str, pattern: str, known: dict[str, str]) -> str:
    """A name made from a pattern: each {placeholder} is replaced by its value, and one that is not known is refused."""

    def wrong(why: str) -> Err:
        return invalid(f'the setting "{name}" is "{pattern}": {why}')

    def value(placeholder: re.Match[str]) -> str:
        if placeholder[1] not in known:
            raise wrong(f"there is no placeholder {placeholder[0]}; known are {{{'}, {'.join(known)}}}")
        return known[placeholder[1]]

    if re.search(r"\{[^}]*$", pattern):
        raise wrong("a brace is not closed")
    return re.sub(r"\{([^}]*)\}", value, pattern)


def setting(job: Job, name: str, otherwise: str) -> str:
    return next((setting.value for setting in job.settings if setting.name == name), otherwise)


def required(job: Job, name: str) -> str:
    value = setting(job, name, "")
    if not value:
        raise invalid(
            f'the setting "{name}" is missing: set it in the manifest\'s [options] or in the destination\'s settings'
        )
    return value


def one_of(job: Job, name: str, words: list[str]) -> str:
    """A setting that is one of some words. The first is what an absent setting means."""
    given = setting(job, name, words[0]).strip()
    if given.lower() not in words:
        raise invalid(f'the setting "{name}" is "{given}": use one of: {", ".join(words)}')
    return given.lower()


def invalid(why: str) -> Err:
    """A failure of the contract, to be raised. Its text is shown to the operators: never write a person's data into it."""
    return Err(Failure_Invalid(why))


def told(failed: Err) -> str:
    """A failure in words: its kind, and its text."""
    kind = type(failed.value).__name__.removeprefix("Failure_").lower()
    return f"{kind}: {failed.value.value}"
