"""Moto's S3 server on loopback, as a partner would run a store: over TLS, one bucket, and one account that may do what
docs/operators.md asks for and nothing more. Moto checks each request's signature, with botocore's code, and each action.

Prints the port that the machine chose, once it listens there.
"""

import json
import os
import sys

from moto import settings
from moto.core import DEFAULT_ACCOUNT_ID
from moto.iam.models import iam_backends
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from moto.s3.models import s3_backends
from werkzeug.serving import make_server

USER = "partner"


def what_the_account_may_do(bucket):
    objects = {"Action": ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"], "Resource": f"arn:aws:s3:::{bucket}/*"}
    listing = {"Action": ["s3:ListBucket"], "Resource": f"arn:aws:s3:::{bucket}"}
    statements = [{"Effect": "Allow", **statement} for statement in (objects, listing)]
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


def main(bucket, region, certificate, key):
    s3_backends[DEFAULT_ACCOUNT_ID]["aws"].create_bucket(bucket, region)
    accounts = iam_backends[DEFAULT_ACCOUNT_ID]["aws"]
    accounts.create_user(region, USER)
    accounts.put_user_policy(USER, "deliveries", what_the_account_may_do(bucket))
    # It would make up the keys.
    keys = accounts.create_access_key(USER)
    keys.access_key_id, keys.secret_access_key = os.environ["PARTNER_USER"], os.environ["PARTNER_PASSWORD"]
    # Without this it believes every request.
    settings.INITIAL_NO_AUTH_ACTION_COUNT = 0

    server = make_server(
        "127.0.0.1",
        0,
        DomainDispatcherApplication(create_backend_app),
        threaded=True,
        request_handler=MotoRequestHandler,
        ssl_context=(certificate, key),
    )
    print(server.server_port, flush=True)
    server.serve_forever()


main(*sys.argv[1:])
