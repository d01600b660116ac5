#!/bin/sh
# Lints openpgp-builder, which is a workspace of its own, as the guest that it is; the others are linted with the host.
#
# Its hundred crates are checked once, in a minute and a half, which is too much for CI, where nothing is kept: there it is left out.
set -eu
cd "$(dirname "$0")/.."
target=wasm32-unknown-unknown

if [ -n "${CI:-}" ]; then
    echo "lint: openpgp-builder is left to 'make lint' before it gets here" >&2
elif ! rustup target list --installed 2>/dev/null | grep -qx "$target"; then
    echo "lint: openpgp-builder is not linted: that needs 'rustup target add $target'" >&2
else
    # The profile and directory of plugins/build.sh: compilers' plugins and build scripts are shared with it.
    cargo clippy --quiet --manifest-path plugins/openpgp-builder/Cargo.toml --locked --profile guest --target "$target" \
        --target-dir target/guests -- -D warnings
fi
