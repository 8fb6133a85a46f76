# Every target needs only Python 3.11 or newer, git and make; `make help` lists them.
# The network is used by .venv alone: once it stands, nothing below opens a connection.

SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
OUT ?= compare-out
DOCS_OUT ?= build/docs
PYTEST_FLAGS ?= -n 2 --dist worksteal
TESTS ?= tests

# The first interpreter that really runs, is new enough and can make an environment.
PYTHON ?= $(shell for p in python3.11 python3 python3.12 python3.13 python3.14; do \
	$$p -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' \
	>/dev/null 2>&1 && { echo $$p; break; }; done)

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help .venv test test-newest test-oldest lint format types contract wheel-check docs docs-code check compare clean distclean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z.-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.venv: $(STAMP) ## make the environment with every version pinned by constraints.txt

# The build backend comes first and at its pin, so that the build needs no isolation.
$(STAMP): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "no Python >= 3.11 with venv and ensurepip found; \
	set one with: make PYTHON=/path/to/python .venv" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt pip setuptools
	$(BIN)/python -m pip install --quiet --no-build-isolation -c constraints.txt -e '.[all,dev]'
	@touch $@

# Tests start many processes: each would compile ronda again where bytecode is not kept.
test: export PYTHONDONTWRITEBYTECODE :=
test: $(STAMP) ## run all tests, the slow ones too
	$(BIN)/pytest $(PYTEST_FLAGS) $(TESTS)

test-newest: ## run the tests with the newest versions of all dependencies (.venv-newest)
test-oldest: ## run the tests with the oldest that pyproject.toml allows (.venv-oldest)
test-newest test-oldest: test-%: .venv-%/.installed
	.venv-$*/bin/pytest $(PYTEST_FLAGS) $(TESTS)

.venv-newest/.installed .venv-oldest/.installed: .venv-%/.installed: pyproject.toml tools/oldest.py
	rm -rf .venv-$* && $(PYTHON) -m venv .venv-$*
	case $* in oldest) $(PYTHON) tools/oldest.py;; esac > .venv-$*/constraints.txt
	.venv-$*/bin/pip install --quiet -c .venv-$*/constraints.txt -e '.[all,dev]'
	@touch $@

lint: $(STAMP) ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(STAMP) ## let ruff repair what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(STAMP) ## mypy --strict over the package, and over what its users write
	$(BIN)/mypy
	$(BIN)/mypy tests/typing

contract: $(STAMP) ## the one-way imports between the layers
	$(BIN)/lint-imports --no-cache

wheel-check: $(STAMP) ## build the wheel, install it in an empty environment and use it
	$(BIN)/python .ci/wheel_check.py

docs: $(STAMP) ## make the pages as HTML; a warning is an error (DOCS_OUT=build/docs)
	$(BIN)/sphinx-build -q -W --keep-going -j 2 -b html docs $(DOCS_OUT)

docs-code: $(STAMP) ## run the code of README and docs, the slow blocks too
	$(BIN)/python docs/blocks.py

check: lint types contract wheel-check test ## all of the above

compare: $(STAMP) ## compare six policies on three packaged instances (OUT=compare-out)
	$(BIN)/ronda compare venus-vcvly pollux-1 philly-energy-small \
		--policies fifo,srtf,pollux-like,powerflow,milp,genetic --seeds 0 --out $(OUT)

clean: ## remove what tools and runs leave behind
	rm -rf build dist *.egg-info $(OUT) .coverage .coverage.* htmlcov
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find bench formulations horizon hosts instances lab questions ronda solvers systems tests tools -name __pycache__ -type d \
		-prune -exec rm -rf {} +

distclean: clean ## clean, and remove the environment
	rm -rf $(VENV) .venv-newest .venv-oldest
