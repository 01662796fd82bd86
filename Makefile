# The two main commands are `make run` and `make test`. They install everything that they need into .venv.

SHELL := /bin/bash
.ONESHELL:
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= $(shell for name in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$name" && break; done)
# Each test process has its own Postgres and model and needs about 1.5 GB.
TEST_PROCESSES ?= 2
# --all runs those tests, too, that wait for test-all.
ALL_TESTS ?=
# A test that takes longer has come to a halt: it is stopped and fails. Quiet, the longest takes a tenth of it.
TEST_SECONDS ?= 600
# If the stopped test does not end either, its process is ended, and with it the whole run.
TEST_END_SECONDS ?= $(shell expr $(TEST_SECONDS) + 180)
BIN := .venv/bin
UV := UV_SYSTEM_CERTS=true $(BIN)/uv -q
LOCK := $(UV) pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header
# An environment that was set up for the tests also runs the service: `run` never removes the test tools.
READY := $(if $(wildcard .venv/.test-ready),.venv/.test-ready,.venv/.run-ready)

# A container may forbid Python to store what it compiled: each process would compile 2 s of a core's work again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help:  ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 16

.venv/bin/uv: requirements/uv.lock
	@if [ -z "$(PYTHON)" ]; then echo "Priors needs Python 3.11 or newer; set PYTHON=/path/to/python3" >&2; exit 2; fi
	test -x $(BIN)/python || { echo "Installing into .venv, once, which takes a minute or two …"; $(PYTHON) -m venv .venv; }
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/uv.lock
	touch $@

.venv/.run-ready: requirements/run.lock pyproject.toml .venv/bin/uv
	@if [ -e .venv/.test-ready ]; then exit 0; fi  # the same call of make has just made it
	$(UV) pip sync --require-hashes requirements/run.lock
	$(UV) pip install --no-deps --no-build-isolation -e .
	touch $@

.venv/.test-ready: requirements/dev.lock pyproject.toml .venv/bin/uv
	@$(UV) pip sync --require-hashes requirements/dev.lock
	$(UV) pip install --no-deps --no-build-isolation -e .
	touch $@

# The panel is built again when its source changes. Without it, the service still runs and says how to build it.
PANEL := app/panel/dist/index.html
PANEL_SOURCES := $(shell find app/panel -type f \
	-not -path '*/node_modules/*' -not -path '*/dist/*' -not -path '*/.node/*')

$(PANEL): $(PANEL_SOURCES) | $(READY)
	@sh app/panel/build.sh
	touch $@

.PHONY: panel
panel: $(PANEL)  ## Build the web panel

.PHONY: panel-types
panel-types: $(READY)  ## Write the panel's types and the client from the OpenAPI document
	@$(BIN)/python -m app.interfaces.http.serving.application > app/panel/openapi.json
	sh app/panel/build.sh types
	$(BIN)/python client/generate.py < app/panel/openapi.json

# It is made anew each time: its types and its table of routes are those of the service as it is.
.PHONY: typescript
typescript: $(READY)  ## Build the TypeScript client
	@cd client/typescript
	../../$(BIN)/python -m app.interfaces.http.serving.application > openapi.json
	../../$(BIN)/python ../generate_typescript.py < openapi.json
	sh ../../app/panel/build.sh build .

.PHONY: run
run: $(READY)  ## Start everything and serve on 127.0.0.1:8000
	@$(MAKE) -s panel >.venv/panel.log 2>&1 || {
		cat .venv/panel.log >&2
		echo "the panel is not built: the service runs without it" >&2
	}
	PRIORS_DATA_DIR=$${PRIORS_DATA_DIR:-.priors} exec $(BIN)/priors run --stop-with-parent

.PHONY: lint
lint: .venv/.test-ready panel-check  ## Check style
	@$(BIN)/ruff check .
	$(BIN)/ruff format --check -q .
	sh app/panel/build.sh lint || [ $$? = 3 ]

.PHONY: format
format: .venv/.test-ready  ## Format Python and TypeScript, and mend what can be mended without reading it
	@$(BIN)/ruff check --fix -q .
	$(BIN)/ruff format -q .
	sh app/panel/build.sh format || [ $$? = 3 ]

.PHONY: types
types: python-types panel-check  ## Check types

.PHONY: python-types
python-types: .venv/.test-ready
	@$(BIN)/mypy

.PHONY: panel-check
panel-check: .venv/.test-ready
	@sh app/panel/build.sh check || [ $$? = 3 ]

# The browser for the panel's tests. Without the permission to install it, these tests are skipped and say so.
.PHONY: browser
browser:
	@for name in chromium chromium-browser google-chrome google-chrome-stable; do \
		command -v "$$name" >/dev/null && exit 0; done
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		{ apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } >/dev/null 2>&1 || true
	fi
	command -v chromium >/dev/null || echo "there is no Chromium: the panel's tests are skipped; run: apt-get install chromium" >&2

.PHONY: panel-for-tests
panel-for-tests: panel-check browser
	@sh app/panel/build.sh test || [ $$? = 3 ]
	$(MAKE) -s panel || echo "the panel is not built: its tests are skipped" >&2

.PHONY: typescript-for-tests
typescript-for-tests: panel-for-tests
	@$(MAKE) -s typescript || {
		! sh app/panel/build.sh node 2>/dev/null &&
			echo "there is no Node: the TypeScript client is not built, and its tests are skipped" >&2
	}

# Before Python's packages are there, only a Node of the system can install its own.
.PHONY: node-packages
node-packages:
	@for package in app/panel client/typescript; do sh app/panel/build.sh packages $$package; done

# mypy takes one core for as long as the panel's check and build, and the client's, take the other.
.PHONY: test
test:  ## Check style and types, and run the tests against a real Postgres, in ten minutes
	@$(MAKE) -s -j 2 .venv/.test-ready node-packages
	$(MAKE) -s -j 2 python-types typescript-for-tests lint
	$(BIN)/pytest $(ALL_TESTS) -n $(TEST_PROCESSES) --dist loadfile --no-loadscope-reorder --timeout $(TEST_SECONDS) \
		-o faulthandler_timeout=$(TEST_END_SECONDS) -o faulthandler_exit_on_timeout=true --max-worker-restart 0

# tests/tiers.py says what each subject is.
.PHONY: test-all
test-all:  ## Run all tests, also those of: benchmarks browser contracts documents kills migrations processes routes
	@$(MAKE) test ALL_TESTS=--all

.PHONY: demo
demo: $(READY)  ## Play a toy pipeline with Priors and without, print a table and write its chart
	@$(BIN)/python -m examples.pipeline

.PHONY: chaos
chaos: .venv/.test-ready  ## Strike services, worker and Postgres at 100 random moments and compare what is stored
	@$(BIN)/python -m chaos

.PHONY: screenshots
screenshots: .venv/.test-ready panel  ## Write pictures of the panel's views into screenshots/
	@$(BIN)/python -m tests.panel.screenshots

.PHONY: bench
bench: .venv/.test-ready  ## Run the benchmarks and print their tables
	@$(BIN)/python -m benchmarks

# FILE is one that LongMemEval publishes and you have downloaded; QUESTIONS limits it.
.PHONY: bench-longmemeval
bench-longmemeval: .venv/.test-ready  ## Measure recall on LongMemEval: FILE=longmemeval_s_cleaned.json QUESTIONS=50
	@if [ -z "$(FILE)" ]; then echo "name the file that you have downloaded: make bench-longmemeval FILE=longmemeval_s_cleaned.json" >&2; exit 2; fi
	$(BIN)/python -m benchmarks.longmemeval "$(FILE)" $(if $(QUESTIONS),--questions $(QUESTIONS))

.venv-peers/.ready: requirements/peers.txt pyproject.toml .venv/bin/uv
	@$(UV) venv --allow-existing --python $(BIN)/python .venv-peers
	$(UV) pip sync --python .venv-peers --require-hashes requirements/peers.txt
	$(UV) pip install --python .venv-peers --no-deps --no-build-isolation -e .
	touch $@

.PHONY: bench-peers
bench-peers: .venv-peers/.ready  ## Compare with other systems; PEERS has options, such as "--size 1000"
	@.venv-peers/bin/python -m benchmarks.peers $(PEERS)

.venv-audit/.ready: requirements/audit.txt .venv/bin/uv
	@$(UV) venv --allow-existing --python $(BIN)/python .venv-audit
	$(UV) pip sync --python .venv-audit --require-hashes requirements/audit.txt
	touch $@

# A part is named by its digest or version alone: the bills of two checkouts of one commit are equal.
.PHONY: sbom
sbom: .venv-audit/.ready  ## Write what the service and its panel consist of into sbom/, as CycloneDX
	@mkdir -p sbom
	.venv-audit/bin/cyclonedx-py requirements requirements/run.lock --pyproject pyproject.toml \
		--output-reproducible --output-format JSON --output-file sbom/python.cdx.json --validate 2>/dev/null
	for package in app/panel client/typescript; do
		(cd $$package && npm sbom --package-lock-only --sbom-format cyclonedx 2>/dev/null) >sbom/$$(basename $$package).cdx.json
	done
	for bill in sbom/*.cdx.json; do echo "$$bill: $$(grep -c '"purl"' $$bill) parts"; done

.PHONY: audit-dependencies
audit-dependencies: .venv-audit/.ready  ## Look up known flaws of the locked packages, where their data can be reached
	@.venv-audit/bin/python requirements/audit.py

IMAGES := $(wildcard docker/Dockerfile docker/*/Dockerfile compose*.yaml)

# A tag may be moved to another image; a digest may not. It needs docker, and the registry.
.PHONY: pin-images
pin-images:  ## Pin the images of Dockerfiles and compose files by the digests that their tags have now
	@for image in $$(sed -nE 's/^FROM ([^ @]+)( .*)?$$/\1/p; s/^ +image: ([^ @]+\/[^ @]+)$$/\1/p' $(IMAGES) | sort -u); do
		digest=$$(docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$$image")
		sed -i -E "s#(FROM|image:) $$image( |\$$)#\1 $$image@$$digest\2#" $(IMAGES)
		echo "$$image@$$digest"
	done

# What a release consists of, but for the image. It needs npm.
.PHONY: packages
packages: $(READY) panel typescript  ## Build the wheels and the npm package into dist/
	@$(UV) build --wheel --no-build-isolation -o dist .
	$(UV) build --wheel --no-build-isolation -o dist client
	cd client/typescript && npm pack --silent --pack-destination ../../dist

.PHONY: lock
lock: .venv/bin/uv  ## Resolve the dependencies again and write the lock files
	@$(LOCK) requirements/uv.in -o requirements/uv.lock
	$(LOCK) pyproject.toml --extra map --extra otel --group build --group weights -o requirements/run.lock
	$(LOCK) pyproject.toml --extra map --extra otel --group dev -o requirements/dev.lock
	$(LOCK) requirements/node.in -o requirements/node.lock
	$(LOCK) requirements/audit.in -o requirements/audit.txt
	$(LOCK) pyproject.toml --extra map requirements/peers.in --overrides requirements/peers-overrides.in --group build --group weights -o requirements/peers.txt

.PHONY: clean
clean:  ## Remove the virtual environments and caches; the data directory stays
	@rm -rf .venv .venv-peers .venv-audit sbom .mypy_cache .ruff_cache .pytest_cache .hypothesis screenshots
	rm -rf app/panel/node_modules app/panel/dist app/panel/.node app/panel/openapi.json
	rm -rf client/typescript/node_modules client/typescript/dist client/typescript/openapi.json client/typescript/src/{routes,schema}.ts
