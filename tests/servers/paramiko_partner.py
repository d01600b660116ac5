"""Paramiko's stub SFTP server on loopback. The package's own program serves one connection after the other; partners do not."""

import os
import socket
import sys
import threading

import paramiko
from sftpserver.stub_sftp import StubServer, StubSFTPServer


class Partner(StubServer):
    def check_auth_password(self, username, password):
        known = (username, password) == (os.environ["PARTNER_USER"], os.environ["PARTNER_PASSWORD"])
        return paramiko.AUTH_SUCCESSFUL if known else paramiko.AUTH_FAILED

    def check_auth_publickey(self, username, key):
        return paramiko.AUTH_FAILED


def serve(connection, host_key):
    transport = paramiko.Transport(connection)
    transport.add_server_key(host_key)
    transport.set_subsystem_handler("sftp", paramiko.SFTPServer, StubSFTPServer)
    try:
        transport.start_server(server=Partner())
        transport.join()
    except (paramiko.SSHException, EOFError, OSError) as error:
        print(f"a connection ended: {error!r}", file=sys.stderr)
    finally:
        transport.close()


def main(port, host_key, files):
    StubSFTPServer.ROOT = files
    host_key = paramiko.Ed25519Key(filename=host_key)
    listener = socket.create_server(("127.0.0.1", port), backlog=20)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(connection, host_key), daemon=True).start()


main(int(sys.argv[1]), sys.argv[2], sys.argv[3])
