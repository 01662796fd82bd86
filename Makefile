# Two commands matter: `make run` and `make test`. Everything that they need is installed into .venv.

SHELL := /bin/bash
.ONESHELL:
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= $(shell for name in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$name" && break; done)
BIN := .venv/bin
UV := UV_SYSTEM_CERTS=true $(BIN)/uv -q
LOCK := $(UV) pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header
# A virtual environment that was set up for the tests also runs the service: `run` never takes their tools away.
READY := $(if $(wildcard .venv/.test-ready),.venv/.test-ready,.venv/.run-ready)

.PHONY: help
help:  ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 16

.venv/bin/uv: requirements/uv.lock
	@if [ -z "$(PYTHON)" ]; then echo "Priors needs Python 3.11 or newer; set PYTHON=/path/to/python3" >&2; exit 2; fi
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/uv.lock
	touch $@

.venv/.run-ready: requirements/run.lock pyproject.toml .venv/bin/uv
	@$(UV) pip sync --require-hashes requirements/run.lock
	$(UV) pip install --no-deps --no-build-isolation -e .
	touch $@

.venv/.test-ready: requirements/dev.lock pyproject.toml .venv/bin/uv
	@$(UV) pip sync --require-hashes requirements/dev.lock
	$(UV) pip install --no-deps --no-build-isolation -e .
	touch $@

.PHONY: run
run: $(READY)  ## Start everything and serve on 127.0.0.1:8000
	@exec $(BIN)/priors run --stop-with-parent

.PHONY: lint
lint: .venv/.test-ready  ## Check style
	@$(BIN)/ruff check .
	$(BIN)/ruff format --check -q .

.PHONY: types
types: .venv/.test-ready  ## Check types
	@$(BIN)/mypy

.PHONY: test
test: lint types  ## Lint, types and all tests, against a real Postgres
	@$(BIN)/pytest

.PHONY: bench
bench: .venv/.test-ready  ## Run the benchmarks and print their tables
	@$(BIN)/python -m benchmarks

.venv-peers/.ready: requirements/peers.txt pyproject.toml .venv/bin/uv
	@$(UV) venv --allow-existing --python $(BIN)/python .venv-peers
	$(UV) pip sync --python .venv-peers --require-hashes requirements/peers.txt
	$(UV) pip install --python .venv-peers --no-deps --no-build-isolation -e .
	touch $@

.PHONY: bench-peers
bench-peers: .venv-peers/.ready  ## Compare with what else there is; options in PEERS, such as "--size 1000"
	@.venv-peers/bin/python -m benchmarks.peers $(PEERS)

.PHONY: lock
lock: .venv/bin/uv  ## Resolve the dependencies anew
	@$(LOCK) requirements/uv.in -o requirements/uv.lock
	$(LOCK) pyproject.toml --group build -o requirements/run.lock
	$(LOCK) pyproject.toml --group dev -o requirements/dev.lock
	$(LOCK) pyproject.toml requirements/peers.in --group build -o requirements/peers.txt

.PHONY: clean
clean:  ## Remove the virtual environment and caches; the data directory stays
	@rm -rf .venv .venv-peers .mypy_cache .ruff_cache .pytest_cache .hypothesis
