#!/usr/bin/env bash
# `make prepare`: writes .sqlx, the cache from which the build without a database checks every SQL statement.
# The new cache takes the old one's place only when it is whole, so that an interrupted run changes nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

tests/setup.sh packages
url=$(tests/setup.sh schema)
new=$PWD/target/sqlx-new
rm -rf "$new"
mkdir -p "$new" .sqlx
# The macros run when the crate is compiled; cargo must think that it changed.
touch host/src/lib.rs
DATABASE_URL=$url SQLX_OFFLINE=false SQLX_OFFLINE_DIR=$new cargo check --workspace </dev/null
find .sqlx -name 'query-*.json' -delete
find "$new" -name 'query-*.json' -exec cp {} .sqlx/ \;
touch host/src/lib.rs
echo "prepare: $(find .sqlx -name 'query-*.json' | wc -l) statements in .sqlx" >&2
