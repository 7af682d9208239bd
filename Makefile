# make table   set up, run the workflow on the embedded corpus, print Table 1
# make test    set up, run the tests that take minutes; test-all: every test, among them complete runs of the workflow;
#              test-slurm: those of a cluster, on a Slurm that they start (Debian: slurm-wlm, munge)
# make kill-test N=50   kill the workflow N times at random moments, resume it, compare the bytes of its results
# make setup   the set-up alone: .venv with what requirements.lock pins; tests and checks add requirements-dev.lock
# make docs    the pages of docs/ as a site, in site/
# make check   what has to be clean before a commit: formatting, linting, types, the direction of imports

PYTHON ?= python3
N ?= 50
CORES ?= $(shell $(PYTHON) -c "import os; print(os.cpu_count() or 1)")
VENV := .venv
BIN := $(VENV)/bin

.PHONY: setup table test test-all test-slurm kill-test check docs format clean

table: setup
	$(BIN)/snakemake --cores $(CORES)
	@echo && cat results/table1.md

test: $(VENV)/ready-dev
	$(BIN)/python -m pytest -n $(CORES) -m "not slow" tests

test-all: $(VENV)/ready-dev
	$(BIN)/python -m pytest -n $(CORES) tests

test-slurm: $(VENV)/ready-dev
	RNNSMT_TEST_SLURM=1 $(BIN)/python -m pytest tests/workflow/test_slurm.py

kill-test: $(VENV)/ready-dev
	$(BIN)/python -m tests.fuzz.kills --kills $(N) --cores $(CORES)

setup: $(VENV)/ready

$(VENV)/ready: requirements.lock pyproject.toml
	@$(PYTHON) -c "import sys; sys.exit(0 if sys.version_info >= (3, 11) else 'rnnsmt needs Python 3.11 or newer, this is ' + sys.version.split()[0] + '; name another one: make setup PYTHON=python3.12')"
	@command -v c++ > /dev/null || { echo "kenlm is built from source: install a C++ compiler first (Debian: apt install build-essential)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@# kenlm comes as source: it is compiled while the others are unpacked and Python compiles their bytecode
	grep -v '^kenlm=' requirements.lock > $(VENV)/wheels.txt
	rm -rf $(VENV)/built
	CFLAGS="$$CFLAGS -g0" CXXFLAGS="$$CXXFLAGS -g0" $(BIN)/python -m pip wheel --quiet --no-deps \
	  --wheel-dir $(VENV)/built $$(grep '^kenlm=' requirements.lock) & kenlm=$$!; trap "kill $$kenlm" INT TERM; \
	$(BIN)/python -m pip install --quiet --no-compile --requirement $(VENV)/wheels.txt || { kill $$kenlm; exit 1; }; \
	$(BIN)/python -m compileall -qq -j 0 -x '/(tests?|testing)/' $(VENV)/lib; wait $$kenlm
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation $(VENV)/built/*.whl --editable .
	touch $@

$(VENV)/ready-dev: $(VENV)/ready requirements-dev.lock
	$(BIN)/python -m pip install --quiet --requirement requirements-dev.lock
	touch $@

check: $(VENV)/ready-dev
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/snakefmt --check Snakefile workflow
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/snakemake --lint

docs: $(VENV)/ready
	$(BIN)/python -m pip install --quiet --requirement requirements-docs.lock
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir site
	@echo "the pages are in site/index.html"

format: $(VENV)/ready-dev
	$(BIN)/ruff format src tests benchmarks
	$(BIN)/ruff check --fix src tests benchmarks
	$(BIN)/snakefmt Snakefile workflow

clean:
	rm -rf results .snakemake
