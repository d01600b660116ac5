"""A builder that reaches for what a plugin does not have, for tests of the host. The setting `how` says for what."""

import os
import random
import socket
import sys
import time

import wit_world
from wit_world import Built
from wit_world.imports.output import File
from wit_world.imports.types import Job


class WitWorld(wit_world.WitWorld):
    def build(self, job: Job, output: File) -> Built:
        match next(setting.value for setting in job.settings if setting.name == "how"):
            case "raise":
                {}["missing"]
            case "print":
                print("said aloud")
                print("said in anger", file=sys.stderr)
            case "clock":
                output.write(str(time.time()).encode())
            case "sleep":
                time.sleep(1)
            case "file":
                open("/etc/passwd").read()
            case "socket":
                socket.socket(socket.AF_INET, socket.SOCK_STREAM).connect(("127.0.0.1", 1))
            case "environment":
                output.write(repr(dict(os.environ)).encode())
            case "random":
                output.write(os.urandom(8).hex().encode())
                output.write(random.randbytes(8).hex().encode())
        return Built(0)
