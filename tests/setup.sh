#!/usr/bin/env bash
# All set-up for building, testing and the demo. Run it as often as you like; interrupted, it goes on where it stopped.
#
#   tests/setup.sh            packages that are missing, then the partners' servers and the plugins
#   tests/setup.sh packages   only the packages: installs them as root, else says what to install
#   tests/setup.sh plugins    only the plugins, into target/plugins
#   tests/setup.sh servers    only the servers that are Python packages, into target/servers
#   tests/setup.sh services   starts the tests' PostgreSQL, if it does not run
#   tests/setup.sh stop       stops it
#   tests/setup.sh clean      stops it and removes its data
#   tests/setup.sh schema     prints the URL of a database with the schema of migrations/, made anew
set -euo pipefail
cd "$(dirname "$0")/.."

services=$PWD/target/services
step() { printf 'setup: %s\n' "$*" >&2; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

postgres_programs() {
    local found
    found=$(printf '%s\n' /usr/lib/postgresql/*/bin/postgres | sort -t/ -k5 -rn | head -n 1)
    if [ ! -x "$found" ]; then found=$(command -v postgres) || return 0; fi
    dirname "$found"
}

packages() {
    local missing=()
    { [ -n "$(postgres_programs)" ] && command -v psql >/dev/null; } || missing+=(postgresql postgresql-client)
    [ -x /usr/sbin/sshd ] || missing+=(openssh-server)
    { command -v sftp && command -v ssh-keygen; } >/dev/null || missing+=(openssh-client)
    # What partners read encrypted files with.
    { command -v gpg && command -v gpg-agent; } >/dev/null || missing+=(gpg gpg-agent)
    command -v cc >/dev/null || missing+=(build-essential pkg-config)
    if ! rustup_target && ! debian_guest_compiler; then missing+=(rustc-web cargo-web rust-web-src lld); fi
    command -v node >/dev/null || missing+=(nodejs)
    command -v npm >/dev/null || missing+=(npm)
    # Partners of the tests: OpenSSH is not the only server.
    [ -x /usr/sbin/proftpd ] || missing+=(proftpd-core)
    [ -e /usr/lib/proftpd/mod_sftp.so ] || missing+=(proftpd-mod-crypto)
    command -v rclone >/dev/null || missing+=(rclone)
    # Without ensurepip a virtual environment has no pip.
    python3 -c 'import venv, ensurepip' 2>/dev/null || missing+=(python3 python3-venv)
    command -v cargo >/dev/null || fail "cargo was not found; install Rust from https://rustup.rs"
    if [ ${#missing[@]} -eq 0 ]; then
        step "no package is missing"
        return
    fi
    if [ "$(id -u)" -ne 0 ]; then
        fail "missing packages; install them and run this again: sudo apt-get install --no-install-recommends ${missing[*]}"
    fi
    command -v apt-get >/dev/null || fail "missing: ${missing[*]} (Debian's names); install them and run this again"
    step "installing ${missing[*]}"
    # The packages must not start servers of their own; the tests run theirs.
    if [ ! -e /usr/sbin/policy-rc.d ]; then
        trap 'rm -f /usr/sbin/policy-rc.d' EXIT
        printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
        chmod +x /usr/sbin/policy-rc.d
    fi
    if [ ! -e /etc/postgresql-common/createcluster.conf ]; then
        mkdir -p /etc/postgresql-common
        printf 'create_main_cluster = false\n' >/etc/postgresql-common/createcluster.conf
    fi
    export DEBIAN_FRONTEND=noninteractive
    # An installation that was interrupted is finished first.
    dpkg --configure -a >/dev/null
    apt-get update -qq </dev/null
    apt-get install -y -qq --no-install-recommends -o Dpkg::Options::=--force-confold "${missing[@]}" </dev/null >/dev/null
    # Nor at the next start of the machine.
    if [ -d /run/systemd/system ]; then
        case " ${missing[*]} " in *" openssh-server "*) systemctl --quiet disable ssh.service ;; esac
        case " ${missing[*]} " in *" proftpd-core "*) systemctl --quiet disable proftpd.service ;; esac
    fi
    if [ "$(trap -p EXIT)" ]; then
        rm -f /usr/sbin/policy-rc.d
        trap - EXIT
    fi
}

# The target for plugins, added if rustup can reach its server; asked once.
rustup_target() {
    command -v rustup >/dev/null || return 1
    rustup target list --installed 2>/dev/null | grep -qx wasm32-unknown-unknown && return 0
    [ -e target/guests/without-rustup ] && debian_guest_compiler && return 1
    step "asking rustup for wasm32-unknown-unknown, for a minute at most"
    timeout 60 rustup target add wasm32-unknown-unknown >/dev/null 2>&1 && return 0
    # plugins/build.sh looks for the same file.
    mkdir -p target/guests && touch target/guests/without-rustup
    return 1
}

debian_guest_compiler() {
    [ -x /usr/bin/cargo ] && [ -x /usr/bin/rustc ] && command -v wasm-ld >/dev/null &&
        [ -d "$(/usr/bin/rustc --print sysroot 2>/dev/null)/lib/rustlib/src/rust/library/std" ]
}

plugins() {
    step "building the plugins into target/plugins"
    plugins/build.sh target/plugins
    plugins/build-interpreted.sh target/plugins
    # What tests compiled of plugins that are long gone.
    if [ -d target/cache/waybill/compiled ]; then find target/cache/waybill/compiled -type f -mtime +7 -delete; fi
}

# Servers that are Python packages, installed once for each list of them: the file `complete` comes last.
servers() {
    local list=tests/servers/requirements.txt directory=target/servers/python digest
    digest=$(sha256sum <"$list")
    if [ "$(cat "$directory/complete" 2>/dev/null)" = "$digest" ]; then return; fi
    step "installing AsyncSSH, Paramiko and moto into $directory"
    rm -rf "$directory"
    mkdir -p "$directory"
    python3 -m venv "$directory"
    "$directory/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r "$list" >&2
    printf '%s\n' "$digest" >"$directory/complete"
}

# PostgreSQL refuses to run as root.
as_server() {
    if [ "$(id -u)" -eq 0 ]; then
        setpriv --reuid "$account" --regid "$(id -g "$account")" --clear-groups "$@"
    else
        "$@"
    fi
}

# Where the server lives. In memory, where there is enough: a test makes a database of some hundred files and removes them, and
# a disk's file system spends more time on that than the test does. Else target/services/postgres, or a directory below /tmp where
# that path is too long for a socket or its account cannot enter it. The kit (tests/kit/services.rs) finds the choice in
# target/services/directory.
choose_directory() {
    account=$(id -un)
    if [ "$account" = root ]; then
        account=nobody
        if id postgres >/dev/null 2>&1; then account=postgres; fi
    fi
    mkdir -p "$services"
    # One that runs is the one, whoever started it.
    if [ -s "$services/directory" ]; then
        directory=$(cat "$services/directory")
        if server_pid >/dev/null; then return; fi
    fi
    local own
    own=waybill-services-$(printf '%s' "$services" | sha256sum | cut -c1-16)
    if [ "$(stat --file-system --format %T /dev/shm 2>/dev/null)" = tmpfs ] &&
        [ "$(df --output=avail --block-size=1M /dev/shm | tail -n 1)" -ge 3072 ]; then
        directory=/dev/shm/$own
        return
    fi
    directory=$services/postgres
    # A socket's path is at most 107 bytes.
    if [ ${#directory} -gt 80 ] || ! as_server test -x "$services"; then directory=${TMPDIR:-/tmp}/$own; fi
}

server_pid() {
    local pid
    pid=$(head -n 1 "$directory/data/postmaster.pid" 2>/dev/null) || return 1
    { tr '\0' '\n' <"/proc/$pid/cmdline"; } 2>/dev/null | grep -qxF "$directory/data" || return 1
    echo "$pid"
}

is_ready() { server_pid >/dev/null && sed -n 8p "$directory/data/postmaster.pid" 2>/dev/null | grep -q '^ready'; }

start_services() {
    choose_directory
    # The same lock as the kit's: whoever comes first starts the server.
    exec 8>"$services/start.lock"
    flock -w 180 8 || fail "another process has been starting the services for three minutes; see $services/start.lock"
    if is_ready; then
        step "PostgreSQL runs in $directory"
        return
    fi
    local programs
    programs=$(postgres_programs)
    [ -n "$programs" ] || fail "PostgreSQL is not installed; run: tests/setup.sh packages"
    mkdir -p "$directory/socket"
    chmod 0700 "$directory" "$directory/socket"
    if [ "$(id -u)" -eq 0 ]; then chown "$account" "$directory" "$directory/socket"; fi
    local socket=$directory/socket
    if [ ! -e "$directory/data/PG_VERSION" ]; then
        step "making a database cluster in $directory"
        rm -rf "$directory/data" "$directory/data.unfinished"
        (cd / && LC_ALL=C as_server "$programs/initdb" --auth=trust --encoding=UTF8 --locale=C --no-sync \
            --username=waybill_admin --pgdata="$directory/data.unfinished" >"$directory/initdb.log" 2>&1) ||
            fail "initdb failed: $(tail -n 3 "$directory/initdb.log")"
        mv "$directory/data.unfinished" "$directory/data"
    fi
    step "starting PostgreSQL in $directory"
    touch "$directory/log"
    # Without fsync: a power cut costs nothing but this test data. A session of its own: Ctrl-C is for the tests.
    # Locks and pipes stay here, the caller's too: a server that held them would keep others waiting.
    (
        exec </dev/null >>"$directory/log" 2>&1
        local held
        for held in /proc/"$BASHPID"/fd/*; do
            held=${held##*/}
            if [ "$held" -gt 2 ] && [ "$held" -ne 255 ]; then eval "exec $held>&-"; fi
        done
        cd /
        LC_ALL=C as_server setsid "$programs/postgres" -D "$directory/data" -k "$socket" -c listen_addresses= \
            -c port=5432 -c unix_socket_permissions=0700 -c max_connections=400 -c timezone=UTC \
            -c fsync=off -c synchronous_commit=off -c full_page_writes=off
    ) &
    local left=1200
    until is_ready; do
        left=$((left - 1))
        [ $left -gt 0 ] || fail "PostgreSQL was not ready within two minutes: $(tail -n 3 "$directory/log")"
        sleep 0.1
    done
    printf '%s\n' "$directory" >"$services/directory"
}

stop_services() {
    choose_directory
    local pid left=600
    if ! pid=$(server_pid); then return 0; fi
    step "stopping PostgreSQL in $directory"
    kill -INT "$pid"
    while server_pid >/dev/null; do
        left=$((left - 1))
        [ $left -gt 0 ] || fail "PostgreSQL (process $pid) does not stop"
        sleep 0.1
    done
    # Memory is given back.
    case $directory in /dev/shm/*) rm -rf "$directory" ;; esac
}

clean_services() {
    stop_services
    step "removing $directory and $services"
    rm -rf "$directory" "$services"
}

# For `make prepare`: the statements are checked against this schema before the host compiles, so it is made without it.
schema() {
    start_services
    local socket
    socket=$(sed -n 5p "$directory/data/postmaster.pid")
    local run=(psql -X -q -v ON_ERROR_STOP=1 -h "$socket" -p 5432 -U waybill_admin)
    step "migrating the database waybill_prepare"
    PGOPTIONS='-c client_min_messages=warning' "${run[@]}" -d postgres \
        -c 'DROP DATABASE IF EXISTS waybill_prepare WITH (FORCE)' -c 'CREATE DATABASE waybill_prepare' >&2
    # Roles belong to the cluster, and migrations only grant to them; so they name them all.
    local role
    for role in $(grep -oh 'waybill_[a-z]*' migrations/*.sql | sort -u); do
        "${run[@]}" -d waybill_prepare -c "DO \$\$ BEGIN CREATE ROLE $role LOGIN NOINHERIT; EXCEPTION WHEN duplicate_object THEN NULL; END \$\$" >&2
    done
    # The host's migrator keeps its list in this table, and grants speak of it.
    "${run[@]}" -d waybill_prepare -c 'CREATE TABLE _sqlx_migrations (version bigint PRIMARY KEY, description text NOT NULL,
        installed_on timestamptz NOT NULL DEFAULT now(), success boolean NOT NULL, checksum bytea NOT NULL,
        execution_time bigint NOT NULL)' >&2
    local migration
    for migration in migrations/*.sql; do "${run[@]}" -1 -d waybill_prepare -f "$migration" >&2; done
    printf 'postgres://waybill_admin@%s:5432/waybill_prepare\n' "$(printf '%s' "$socket" | sed 's/%/%25/g; s/ /%20/g; s,/,%2F,g')"
}

case "${1:-all}" in
    all) packages; servers; plugins ;;
    packages) packages ;;
    plugins) plugins ;;
    servers) servers ;;
    services) start_services ;;
    stop) stop_services ;;
    clean) clean_services ;;
    schema) schema ;;
    *) fail "unknown: $1 (packages, plugins, servers, services, stop, clean, schema, or nothing for all set-up)" ;;
esac
