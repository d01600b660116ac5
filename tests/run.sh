#!/usr/bin/env bash
# `make test`: set-up, services, all tests; what it started is stopped at the end, also on Ctrl-C.
set -euo pipefail
cd "$(dirname "$0")/.."

tests/setup.sh
# Plugins are built by tests, too, with the Node.js that their compiler needs (plugins/build-interpreted.sh).
if [ -x target/node/node ]; then export PATH=$PWD/target/node:$PATH; fi
tests/setup.sh services
trap 'tests/setup.sh stop' EXIT
trap 'exit 130' INT TERM

profile=default
if [ -n "${CI:-}" ]; then profile=ci; fi
if cargo nextest --version >/dev/null 2>&1; then
    cargo nextest run --workspace --profile "$profile" "$@" </dev/null
    # nextest runs no documentation tests.
    cargo test --workspace --doc --quiet </dev/null
else
    echo "test: cargo-nextest is not installed; cargo test serves" >&2
    cargo test --workspace --quiet "$@" </dev/null
fi
