"""AsyncSSH's SFTP server on loopback, as a partner would run it: one account, one folder, nothing configured beside it."""

import asyncio
import os
import sys

import asyncssh


class Partner(asyncssh.SSHServer):
    def begin_auth(self, username):
        return True

    def password_auth_supported(self):
        return True

    def validate_password(self, username, password):
        return (username, password) == (os.environ["PARTNER_USER"], os.environ["PARTNER_PASSWORD"])


async def serve(port, host_key, files):
    acceptor = await asyncssh.listen(
        "127.0.0.1",
        port,
        server_factory=Partner,
        server_host_keys=[host_key],
        sftp_factory=lambda channel: asyncssh.SFTPServer(channel, chroot=files.encode()),
    )
    await acceptor.wait_closed()


asyncio.run(serve(int(sys.argv[1]), sys.argv[2], sys.argv[3]))
