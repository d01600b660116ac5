# Everything is in scripts that can be run by hand; this names them. `make help` lists what there is.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo test mutants-sql services plugins prepare lint clean-services

help: ## This list.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1|\2/' | column -t -s '|'

demo: ## A delivery from beginning to end, with a private PostgreSQL and private OpenSSH servers.
	@tests/setup.sh
	@cargo build --workspace
	@target/debug/waybill demo

test: ## All set-up, then all tests. Stops at the end what it started.
	@tests/run.sh

mutants-sql: ## Takes each predicate of each SQL statement out and expects a test to fail. Long; goes on where it stopped.
	@tests/setup.sh
	@tests/setup.sh services
	@cargo build --workspace --all-targets
	@target/debug/mutants-sql $(ARGUMENTS)

services: ## Starts the tests' PostgreSQL and leaves it running; `make clean-services` ends it.
	@tests/setup.sh packages
	@tests/setup.sh services

plugins: ## Builds the plugins into target/plugins.
	@tests/setup.sh packages
	@tests/setup.sh plugins

prepare: ## Checks every SQL statement against the schema of migrations/ and writes .sqlx anew.
	@tests/prepare.sh

lint: ## Formatting and lints; nothing is changed.
	@cargo fmt --all --check
	@cargo fmt --manifest-path plugins/openpgp-builder/Cargo.toml --check
	@cargo clippy --workspace --all-targets -- -D warnings
	@plugins/lint.sh

clean-services: ## Stops the tests' PostgreSQL and removes its data.
	@tests/setup.sh clean
