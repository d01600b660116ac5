#!/usr/bin/env bash
# Builds the plugins of this repository that are written in JavaScript and Python: build-interpreted.sh OUTDIR makes
# OUTDIR/<language>-<world>.wasm, a component for each. What did not change is not built again: each takes a minute.
#
# The tools that make components are installed once for each lock file, into target/cache/waybill/tools or where WAYBILL_TOOLS
# says, in the form of `waybill plugin build`. No package of the system is installed here. Where Node.js is too old (Debian 12
# has 18), npm's package of a newer one is among the tools, and target/node leads to it.
set -euo pipefail
# A failed step ends a command substitution too.
shopt -s inherit_errexit

if [ $# -lt 1 ] || [ $# -gt 2 ]; then
    echo "usage: $0 OUTDIR [javascript|python]" >&2
    exit 2
fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
tools=${WAYBILL_TOOLS:-$PWD/target/cache/waybill/tools}
contract=$PWD/wit/0.2.0
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
            node)
                cp plugins/javascript/node/package.json plugins/javascript/node/package-lock.json "$directory/"
                (cd "$directory" && quietly npm ci --no-audit --no-fund --ignore-scripts)
                ;;
            python)
                python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || {
                    say "Python 3.10 or later with venv and pip is needed: install it (Debian's packages python3 and python3-venv)" >&2
                    return 1
                }
                quietly python3 -m venv "$directory/venv"
                quietly "$directory/venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$lock"
                ;;
        esac
        touch "$directory/complete"
    fi
    printf '%s\n' "$directory"
}

# True if Node.js is one that the packages of plugins/javascript/package-lock.json ask for.
has_usable_node() {
    node -e 'const [major, minor] = process.versions.node.split(".").map(Number);
        process.exit((major === 20 && minor >= 19) || (major === 22 && minor >= 12) || major > 22 ? 0 : 1)' 2>/dev/null
}

# Puts a usable Node.js first into the PATH, and into target/node where it is not the machine's: tests build plugins, too.
use_node() {
    local tool found
    command -v npm >/dev/null || { say "npm was not found: install it and Node.js (Debian's packages npm and nodejs)" >&2; return 1; }
    if has_usable_node; then
        # tests/run.sh puts target/node into the PATH by itself: then it is the one that was found here, and stays.
        [ "$(command -v node)" = "$PWD/target/node/node" ] || rm -f target/node
        return
    fi
    tool=$(tools_of node plugins/javascript/node/package-lock.json)
    # npm has installed the one package that fits the machine, or none.
    found=("$tool"/node_modules/node-linux-*/bin)
    ln -sfn "${found[0]}" target/node
    PATH=$PWD/target/node:$PATH
    has_usable_node || {
        say "Node.js 20.19 or later of 20, or 22.12 or later, is needed, and npm has no package of it for this machine: install it" >&2
        return 1
    }
}

javascript() {
    local tool
    tool=$(tools_of javascript plugins/javascript/package-lock.json)
    quietly "$tool/node_modules/.bin/componentize-js" "$1" --wit "$contract" --world-name "$2" \
        --disable http fetch-event stdio random clocks --out "$3"
}

python() {
    local tool
    tool=$(tools_of python plugins/python/requirements.txt)
    # Without its script, whose first line holds the directory in which it was installed: checkouts are moved.
    PYTHONDONTWRITEBYTECODE=1 quietly "$tool/venv/bin/python" -c 'import sys; from componentize_py import script; sys.exit(script())' \
        --quiet --wit-path "$contract" --world "$2" \
        componentize --python-path "$(dirname "$1")" "$(basename "$1" .py)" --output "$3"
}

# build NAME LANGUAGE SOURCE WORLD LOCK: both the source and what it is built with are in the stamp.
build() {
    local name=$1 language=$2 source=$3 world=$4 lock=$5 stamp
    stamp=$(digest "$source" "$lock" "$contract"/*.wit plugins/build-interpreted.sh)
    if [ -e "$out/$name.wasm" ] && [ "$(cat "$out/.$name.stamp" 2>/dev/null)" = "$stamp" ]; then
        say "$name.wasm is unchanged"
        return
    fi
    "$language" "$source" "$world" "$out/$name.wasm.new"
    mv "$out/$name.wasm.new" "$out/$name.wasm"
    printf '%s\n' "$stamp" >"$out/.$name.stamp"
    say "$name.wasm, $(wc -c <"$out/$name.wasm") bytes"
}

all_javascript() {
    local lock=plugins/javascript/package-lock.json world
    use_node
    for world in builder destination; do
        build "javascript-$world" javascript "plugins/javascript/$world.js" "$world" "$lock"
    done
}

all_python() {
    local lock=plugins/python/requirements.txt world
    for world in builder destination; do
        build "python-$world" python "plugins/python/$world.py" "$world" "$lock"
    done
    build misbehaving-python python plugins/misbehaving-python/misbehaving.py builder "$lock"
}

# One language after the other would leave half of the processors idle.
failed=0
started=()
if [ "${2:-javascript}" = javascript ]; then
    all_javascript &
    started+=($!)
fi
if [ "${2:-python}" = python ]; then
    all_python &
    started+=($!)
fi
for one in "${started[@]}"; do wait "$one" || failed=1; done
exit "$failed"
