#!/bin/sh
# Builds the plugins of this repository: build.sh OUTDIR makes OUTDIR/<crate>.wasm, a core module for each. The host makes
# components of them when it loads them, so nothing but a compiler is needed.
#
# It compiles with rustup's target wasm32-unknown-unknown, which it adds if it can, or else with Debian's rustc-web, whose
# standard library is built from source. It installs no packages; where neither is there it says what to install.
# GUEST_COMPILER=rustup or GUEST_COMPILER=debian takes only that one.
set -eu

builders="csv-builder fixed-width-builder json-lines-builder xml-builder misbehaving-builder earlier-builder"
destinations="sftp-destination misbehaving-destination earlier-destination"
# Workspaces of their own, for crates that must not be united with the others'.
alone="openpgp-builder"
target=wasm32-unknown-unknown

if [ $# -ne 1 ]; then
    echo "usage: $0 OUTDIR" >&2
    exit 2
fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
build=$(pwd)/target/guests

has_rustup_target() {
    [ "${GUEST_COMPILER:-rustup}" = rustup ] && command -v rustup >/dev/null 2>&1 || return 1
    rustup target list --installed 2>/dev/null | grep -qx "$target" && return 0
    # Where rustup's server was out of reach and Debian's compiler served, it is not asked again at every build.
    [ -e "$build/without-rustup" ] && has_debian_compiler && return 1
    echo "guests: asking rustup for $target, for a minute at most"
    timeout 60 rustup target add "$target" >/dev/null 2>&1
}

has_debian_compiler() {
    [ "${GUEST_COMPILER:-debian}" = debian ] && [ -x /usr/bin/cargo ] && [ -x /usr/bin/rustc ] && command -v wasm-ld >/dev/null 2>&1 &&
        [ -d "$(/usr/bin/rustc --print sysroot)/lib/rustlib/src/rust/library/std" ]
}

# Builds with the cargo of the arguments. Builders and destinations apart: one call of cargo unites the features of the SDK.
build_all() {
    for kind in "$builders" "$destinations"; do
        packages=""
        for plugin in $kind; do packages="$packages -p $plugin"; done
        # shellcheck disable=SC2086
        "$@" --quiet --profile guest --target "$target" --target-dir "$build" $packages
    done
    for plugin in $alone; do
        "$@" --quiet --profile guest --target "$target" --target-dir "$build" --locked --manifest-path "plugins/$plugin/Cargo.toml"
    done
}

if has_rustup_target; then
    echo "guests: compiling with rustup's $target"
    build_all cargo build
elif has_debian_compiler; then
    echo "guests: compiling with Debian's $(/usr/bin/rustc --version)"
    [ "${GUEST_COMPILER:-}" = debian ] || { mkdir -p "$build" && touch "$build/without-rustup"; }
    build="$build/debian"
    # rustup's cargo would hide Debian's. RUSTC_BOOTSTRAP allows a stable compiler to build its standard library.
    build_all env PATH="/usr/bin:$PATH" RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1 \
        CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=wasm-ld /usr/bin/cargo build -Zbuild-std=std,panic_abort
else
    echo "guests: no compiler for $target: run 'rustup target add $target', or install Debian's packages rustc-web, cargo-web, rust-web-src and lld" >&2
    exit 1
fi

for plugin in $builders $destinations $alone; do
    # Cargo names the file like the library, with underscores.
    from="$build/$target/guest/$(echo "$plugin" | tr - _).wasm"
    to="$out/$plugin.wasm"
    if cmp -s "$from" "$to"; then
        echo "guests: $plugin.wasm is unchanged"
    else
        cp "$from" "$to.new" && mv "$to.new" "$to"
        echo "guests: $plugin.wasm, $(wc -c <"$to") bytes"
    fi
done
