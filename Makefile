# make table   set up, run the workflow on the embedded corpus, print Table 1
# make test    set up, run the tests that take minutes; test-all: every test, among them complete runs of the workflow;
#              test-slurm: those of a cluster, on a Slurm that they start (Debian: slurm-wlm, munge)
# make kill-test N=50   kill the workflow N times at random moments, resume it, compare the bytes of its results
# make setup   the set-up alone: .venv with what requirements.lock pins; tests and checks add requirements-dev.lock
# make fuzz    damage files and requests and use them, MINUTES=5; ONLY=texts runs one harness (tests/fuzz)
# make bench   compare the speed of five stages with the record of this processor, on the results of `make table`
# make docs    the pages of docs/ as a site, in site/
# make check   what has to be clean before a commit: formatting, linting, types, the direction of imports

PYTHON ?= python3
N ?= 50
CORES ?= $(shell $(PYTHON) -c "import os; print(os.cpu_count() or 1)")
VENV := .venv
BIN := $(VENV)/bin

.PHONY: setup table test test-all test-slurm fuzz kill-test bench check docs format clean

table: setup
	$(BIN)/snakemake --cores $(CORES)
	@echo && cat results/table1.md

test: $(VENV)/ready-dev
	$(BIN)/python -m pytest -n $(CORES) -m "not slow" tests

test-all: $(VENV)/ready-dev
	$(BIN)/python -m pytest -n $(CORES) tests

test-slurm: $(VENV)/ready-dev
	RNNSMT_TEST_SLURM=1 $(BIN)/python -m pytest tests/workflow/test_slurm.py

fuzz: $(VENV)/ready-dev
	$(BIN)/python -m tests.fuzz --minutes $(or $(MINUTES),5) $(if $(ONLY),--only $(ONLY))

kill-test: $(VENV)/ready-dev
	$(BIN)/python -m tests.fuzz.kills --kills $(or $(N),50) --cores $(CORES)

bench: $(VENV)/ready
	$(BIN)/python benchmarks/regression.py

setup: $(VENV)/ready

$(VENV)/ready: requirements.lock pyproject.toml
	@$(PYTHON) -c "import sys; sys.exit(0 if sys.version_info >= (3, 11) else 'rnnsmt needs Python 3.11 or newer, this is ' + sys.version.split()[0] + '; name another one: make setup PYTHON=python3.12')"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --only-binary :all: --no-binary connection_pool --requirement requirements.lock
	$(BIN)/python -m compileall -qq -j 0 -x '/(tests?|testing)/' $(VENV)/lib
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

$(VENV)/ready-dev: $(VENV)/ready requirements-dev.lock
	@command -v c++ > /dev/null || { echo "the tests compare with kenlm, which is built from source: install a C++ compiler first (Debian: apt install build-essential)" >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --requirement requirements-dev.lock
	touch $@

check: $(VENV)/ready-dev
	$(BIN)/ruff format --check src tests benchmarks setup.py
	$(BIN)/ruff check src tests benchmarks setup.py
	$(BIN)/snakefmt --check Snakefile workflow
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/snakemake --lint

docs: $(VENV)/ready
	$(BIN)/python -m pip install --quiet --requirement requirements-docs.lock
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir site
	@echo "the pages are in site/index.html"

format: $(VENV)/ready-dev
	$(BIN)/ruff format src tests benchmarks setup.py
	$(BIN)/ruff check --fix src tests benchmarks setup.py
	$(BIN)/snakefmt Snakefile workflow

clean:
	rm -rf results .snakemake
