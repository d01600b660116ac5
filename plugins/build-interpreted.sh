#!/usr/bin/env bash
# Builds the plugins of this repository that are written in JavaScript and Python: build-interpreted.sh OUTDIR makes
# OUTDIR/<language>-<part>.wasm, a component for each. What did not change is not built again: each takes a minute.
#
# The tools that make components are installed once for each lock file, into target/tools or where WAYBILL_TOOLS says, which
# is where `waybill plugin build` looks for them too. No package of the system is installed here.
set -euo pipefail

if [ $# -ne 1 ]; then
    echo "usage: $0 OUTDIR" >&2
    exit 2
fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
tools=${WAYBILL_TOOLS:-$PWD/target/tools}
contract=$PWD/wit/0.1.0
mkdir -p "$tools"

say() { printf 'guests: %s\n' "$*"; }
digest() { cat "$@" | sha256sum | cut -c1-16; }

# Runs a command, and shows what it said only if it failed.
quietly() {
    local said
    said=$("$@" 2>&1) || { printf '%s\n' "$said" >&2; return 1; }
}

# The directory of a language's tools, made whole or not at all: the file `complete` comes last.
tools_of() {
    local language=$1 lock=$2 directory
    directory=$tools/$language-$(digest "$lock")
    if [ ! -e "$directory/complete" ]; then
        say "installing the tools for $language" >&2
        rm -rf "$directory"
        mkdir -p "$directory"
        case $language in
            javascript)
                cp plugins/javascript/package.json plugins/javascript/package-lock.json "$directory/"
                (cd "$directory" && quietly npm ci --no-audit --no-fund --ignore-scripts)
                ;;
            python)
                quietly python3 -m venv "$directory/venv"
                quietly "$directory/venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes -r "$lock"
                ;;
        esac
        touch "$directory/complete"
    fi
    printf '%s\n' "$directory"
}

javascript() {
    local tool
    tool=$(tools_of javascript plugins/javascript/package-lock.json)
    quietly "$tool/node_modules/.bin/componentize-js" "plugins/javascript/$1.js" --wit "$contract" --world-name "$1" \
        --disable http fetch-event stdio random clocks --out "$2"
}

python() {
    local tool
    tool=$(tools_of python plugins/python/requirements.txt)
    PYTHONDONTWRITEBYTECODE=1 quietly "$tool/venv/bin/componentize-py" --quiet --wit-path "$contract" --world "$1" \
        componentize --python-path plugins/python "$1" --output "$2"
}

# Both the source and what it is built with are in the stamp.
build() {
    local language=$1 part=$2 source=$3 lock=$4 name=$1-$2 stamp
    stamp=$(digest "$source" "$lock" "$contract"/*.wit "$0")
    if [ -e "$out/$name.wasm" ] && [ "$(cat "$out/.$name.stamp" 2>/dev/null)" = "$stamp" ]; then
        say "$name.wasm is unchanged"
        return
    fi
    "$language" "$part" "$out/$name.wasm.new"
    mv "$out/$name.wasm.new" "$out/$name.wasm"
    printf '%s\n' "$stamp" >"$out/.$name.stamp"
    say "$name.wasm, $(wc -c <"$out/$name.wasm") bytes"
}

# One language after the other would leave half of the processors idle.
both_parts() {
    build "$1" builder "plugins/$1/builder.$2" "plugins/$1/$3"
    build "$1" destination "plugins/$1/destination.$2" "plugins/$1/$3"
}
both_parts javascript js package-lock.json &
javascript=$!
both_parts python py requirements.txt &
python=$!
failed=0
wait "$javascript" || failed=1
wait "$python" || failed=1
exit "$failed"
