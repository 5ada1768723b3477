# The few commands to remember: `make demo` and `make test`; `make help` lists the rest.
# Everything lives in $(VENV). Stamps inside it remember what is installed, so a second run starts at once and a
# change of pyproject.toml or constraints.txt installs again.

PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13 python; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$p"; break; }; done)
VENV ?= .venv
# More than cores: tests wait for databases and browsers, and on a busy machine the share is by the head. See tests/forks.py.
WORKERS ?= 10
PYTEST_ARGS ?=

BIN := $(VENV)/bin
STAMPS := $(VENV)/.stamps
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
INSTALL := $(PIP) install --constraint constraints.txt
PINS := pyproject.toml constraints.txt
PYTEST := $(BIN)/python -m pytest --forks $(WORKERS) $(PYTEST_ARGS)
# The page's JavaScript and CSS are checked by Biome, which npm fetches into $(VENV). Nothing else here needs Node: where it
# is missing, or npm reaches no registry, a line says that the page was not checked.
NPM ?= npm
BIOME_VERSION := 2.6.7
BIOME_HOME := $(VENV)/biome-$(BIOME_VERSION)
BIOME := $(BIOME_HOME)/node_modules/.bin/biome
define biome
	@$(BIOME) --version >/dev/null 2>&1 || $(NPM) install --prefix $(BIOME_HOME) --no-save --no-package-lock --ignore-scripts \
		--no-audit --no-fund --fetch-retries=0 --fetch-timeout=15000 @biomejs/biome@$(BIOME_VERSION) >/dev/null 2>&1 || true
	@if $(BIOME) --version >/dev/null 2>&1; then $(BIOME) $(1) --error-on-warnings; \
	else echo "skipped: the page's JavaScript and CSS were not checked; that needs Node and Biome $(BIOME_VERSION) from npm"; fi
endef
# cffconvert wants older packages than ours, so it has a folder of its own: a test runs it from there.
CFFCONVERT_PINS := tests/fixtures/citation-file-format/cffconvert.txt
CFFCONVERT_HOME := $(VENV)/cffconvert
# The tests start hundreds of processes that import farthing: it is compiled once, even where the environment forbids it.
unexport PYTHONDONTWRITEBYTECODE
# The order of a set is one more thing that must not differ from run to run.
export PYTHONHASHSEED ?= 0

.DEFAULT_GOAL := help
.PHONY: help install demo test test-fast test-repeat lint style style-page types every-test compiled format map docs bench clean

help:  ## say what each target does
	@sed -nE 's/^([a-z-]+):.*## (.*)$$/\1\t\2/p' $(MAKEFILE_LIST) | awk -F'\t' '{printf "  make %-11s %s\n", $$1, $$2}'

install: $(STAMPS)/all  ## make .venv with every optional part except the bench's peers

demo: $(STAMPS)/demo  ## study a made-up health survey from end to end, with an HTML report
	$(BIN)/farthing demo

# mypy needs one core for the better part of a minute, so it runs beside the tests and not before them.
test: $(STAMPS)/all style  ## lint, types, every test and every example in the docs
	@$(MAKE) --no-print-directory --jobs 2 types every-test

every-test: $(STAMPS)/all $(STAMPS)/cffconvert compiled
	$(PYTEST)

# Once and on all cores: processes that tests start together would each compile all of it.
compiled: $(STAMPS)/all
	@$(BIN)/python -m compileall -qq -j 0 src

test-fast: $(STAMPS)/all $(STAMPS)/cffconvert compiled  ## every test but those marked slow: 2.5 minutes of processor time
	$(PYTEST) -m "not slow"

test-repeat: $(STAMPS)/all $(STAMPS)/cffconvert  ## that the tests say the same every time: DRAWS=100 and WHOLE=5 rounds beside busy loops
	$(BIN)/python tests/repeat.py --workers $(WORKERS) --draws $(or $(DRAWS),100) --whole $(or $(WHOLE),5)

lint: style types  ## ruff, mypy, and Biome for the page where there is Node

style: $(STAMPS)/all style-page
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

style-page:
	$(call biome,check)

types: $(STAMPS)/all
	$(BIN)/mypy

format: $(STAMPS)/all  ## let ruff and Biome fix what they can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(call biome,check --write)

map: $(STAMPS)/all  ## make docs/architecture.md, its picture and CONTRIBUTING's map from docs/architecture.toml
	$(BIN)/python docs/architecture.py

docs: $(STAMPS)/all  ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict  # not --quiet: it hides warnings from --strict as well
	@echo "the documentation is in site/index.html"

bench: $(STAMPS)/bench  ## farthing beside its peers: result, error, time, memory (QUICK=1: fewer cases)
	$(BIN)/python -m benchmarks $(if $(QUICK),--quick)

clean:  ## remove what was built; .venv stays unless VENV_TOO=1
	rm -rf site dist build farthing-demo benchmarks/results .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests docs benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
	$(if $(VENV_TOO),rm -rf $(VENV))

# What builds is installed first, so that even the build is pinned: hatchling for farthing, wheel for a whole Spark.
$(STAMPS)/venv: $(PINS)
	@test -n "$(PYTHON)" || { echo "farthing needs Python 3.11 or newer: install it, or say make PYTHON=/path/to/python"; exit 1; }
	test -x $(BIN)/python || "$(PYTHON)" -m venv $(VENV)
	@mkdir -p $(STAMPS)
	$(INSTALL) hatchling wheel
	@touch $@

$(STAMPS)/demo: $(STAMPS)/venv
	$(INSTALL) --no-build-isolation --editable '.[plots]'
	@touch $@

# pip would compile on one core, the packages' own tests included. Not every file is meant to compile (templates).
$(STAMPS)/all: $(STAMPS)/venv
	$(INSTALL) --no-compile --no-build-isolation --editable '.[all]'
	$(BIN)/python -W ignore -m compileall -qq -j 0 -x '/tests?/' $(VENV)/lib || true
	@touch $@ $(STAMPS)/demo

# Where no index can be reached, the test that needs it is skipped, which fails under CI.
$(STAMPS)/cffconvert: $(STAMPS)/venv $(CFFCONVERT_PINS)
	@rm -rf $(CFFCONVERT_HOME)
	@if $(PIP) install --no-deps --no-build-isolation --target $(CFFCONVERT_HOME) --requirement $(CFFCONVERT_PINS); \
	then touch $@; else rm -rf $(CFFCONVERT_HOME); echo "skipped: cffconvert could not be installed"; fi

$(STAMPS)/bench: $(STAMPS)/venv
	$(INSTALL) --no-build-isolation --editable '.[plots,postgres,opendp,bench]'
	@touch $@
