# make table            set up .venv, run the workflow on the demo corpus, print Table 1
# make multi30k         download image captions (1.3 MB), run the workflow on them in runs/multi30k, print Table 1 beside the paper's;
#                       DATA=DIR: use the files in DIR
# make test             run the tests except the slow ones (minutes)
# make test-all         run all tests, including complete runs of the workflow
# make test-slurm       run the cluster tests on a Slurm that they start (Debian: slurm-wlm, munge)
# make test-notebooks   execute the notebooks in notebooks/
# make bench            compare the speed of five stages with the record for this processor, on the results of `make table`
# make setup            create .venv with the packages of requirements.lock; tests and checks add requirements-dev.lock
# make check            run formatters, linters, type and import checks, as before a commit
# make format           format the code and fix lint errors
# make docs             build the documentation site in site/
# make screenshots      take screenshots of the report and the translation page of a finished run with Chromium: RUN=.
# make wheel            build source distribution and wheel in dist/
# make test-wheel       install the wheel in an empty environment, run a reduced demo
# make image            build the container image localhost/rnnsmt from the packages of Debian and PyPI, as root; Debian: apt install
#                       debootstrap buildah; DEVICE=cuda: PyTorch with CUDA (never built); BASE=IMAGE: another base, without debootstrap
# make test-image       run a reduced demo in the image, as another user and without a network
# make models           pack systems of a finished run with model cards: RUN=., SYSTEMS="cslm_rnn baseline", LICENCE=MIT
# make sbom             write the contents of .venv to build/sbom/ (CycloneDX, licences)
# make locks            update the lock files with hashes

PYTHON ?= python3
CORES ?= $(shell $(PYTHON) -c "import os; print(len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count() or 1)")
VENV := .venv
BIN := $(VENV)/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)
# packages are compiled when they are first imported, and stay so in .venv
export PYTHONDONTWRITEBYTECODE :=
TOOLS := build/tools
DOCS := build/docs
# for `make models`; required for other runs, whose texts have other licences
LICENCE ?= $(if $(RUN),,MIT)
MATHJAX := mathjax-3.2.2
MATHJAX_SHA256 := 1b9c0a1c44df864e915690558e72adb9cc5203360daefd385084ced3b6c64c09
MERMAID := mermaid-11.6.0
MERMAID_SHA256 := 156e94d96fcd3c8dcbc9580b4f6db2bf145eefbb3ed833e4a2931be57cf9ee52
UV_COMPILE = $(TOOLS)/bin/uv pip compile --quiet --generate-hashes --universal --python-version 3.11 --no-annotate \
  --no-emit-index-url --no-emit-find-links --custom-compile-command "make locks"

.DELETE_ON_ERROR:

.PHONY: setup table multi30k test test-all test-slurm test-notebooks bench check docs wheel test-wheel image test-image sbom locks screenshots models format clean

table: $(VENV)/ready
	snakemake --cores $(CORES) $(shell test -t 2 && echo --logger rich)

multi30k: $(VENV)/ready
	snakemake --cores $(CORES) --directory runs/multi30k --configfile workflow/configs/multi30k.yaml \
	  $(if $(DATA),--config data_dir=$(abspath $(DATA))) $(shell test -t 2 && echo --logger rich)

test: $(VENV)/ready-dev
	$(BIN)/python -m pytest -n $(CORES) --dist worksteal -m "not slow" tests

test-all: $(VENV)/ready-dev
	$(BIN)/python -m pytest -n $(CORES) --dist worksteal tests

test-slurm: $(VENV)/ready-dev
	RNNSMT_TEST_SLURM=1 $(BIN)/python -m pytest tests/workflow/test_slurm.py

test-notebooks: $(VENV)/ready-dev
	$(BIN)/python -m pytest -m slow tests/unit/test_notebooks.py

bench: $(VENV)/ready
	$(BIN)/python benchmarks/regression.py

setup: $(VENV)/ready
	@echo "next: source $(VENV)/bin/activate, then rnnsmt --help; or make table"

$(VENV)/ready: requirements.lock pyproject.toml
	@$(PYTHON) -c "import sys; sys.exit(0 if sys.version_info >= (3, 11) else 'rnnsmt needs Python 3.11 or newer, this is ' + sys.version.split()[0] + '; use another one: make setup PYTHON=python3.12')"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --only-binary :all: --no-binary connection_pool --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

$(VENV)/ready-dev: $(VENV)/ready requirements-dev.lock
	$(BIN)/python -m pip install --quiet --requirement requirements-dev.lock
	touch $@

check: $(VENV)/ready-dev
	$(BIN)/ruff format --check src tests benchmarks setup.py .github notebooks docs examples
	$(BIN)/ruff check src tests benchmarks setup.py .github notebooks docs examples
	$(BIN)/snakefmt --check Snakefile workflow
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/snakemake --lint
	$(BIN)/python benchmarks/size.py

$(DOCS)/ready: requirements-docs.lock
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install --quiet --requirement requirements-docs.lock
	touch $@

# The site includes MathJax and Mermaid, which are not in the repository.
build/$(MATHJAX).tgz: SHA256 = $(MATHJAX_SHA256)
build/$(MERMAID).tgz: SHA256 = $(MERMAID_SHA256)
build/%.tgz:
	@command -v npm > /dev/null || { echo "the site includes MathJax and Mermaid, which are downloaded with npm: install npm first (Debian: apt install npm)" >&2; exit 1; }
	mkdir -p build && cd build && npm pack --silent $(subst -,@,$*)
	echo "$(SHA256)  $@" | shasum -a 256 --check --status

docs: $(DOCS)/ready build/$(MATHJAX).tgz build/$(MERMAID).tgz
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict --quiet --site-dir site
	mkdir -p site/javascripts/mathjax
	tar xzf build/$(MATHJAX).tgz -C site/javascripts/mathjax --strip-components 2 package/es5/tex-mml-chtml.js package/es5/output/chtml/fonts
	tar xzf build/$(MERMAID).tgz -C site/javascripts --strip-components 2 package/dist/mermaid.min.js
	@echo "the pages are in site/index.html"

screenshots: $(VENV)/ready
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python docs/screenshots.py $(or $(RUN),.) $(or $(SYSTEM),cslm_rnn)

models: $(VENV)/ready
	@test -n "$(LICENCE)" || { echo "LICENCE: state the licence of the texts of $(RUN), for the model cards" >&2; exit 1; }
	mkdir -p models
	for system in $(or $(SYSTEMS),cslm_rnn baseline); do \
	  $(BIN)/rnnsmt pack --system "$(or $(RUN),.)/results/systems/$$system/run1" --results "$(or $(RUN),.)/results" \
	    --licence "$(LICENCE)" --output "models/$$system.tar.gz" || exit; \
	done
	cd models && shasum -a 256 *.tar.gz > SHA256SUMS && cat SHA256SUMS

$(TOOLS)/ready: requirements-release.lock
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/python -m pip install --quiet --requirement requirements-release.lock
	touch $@

wheel: $(TOOLS)/ready
	rm -rf dist
	$(TOOLS)/bin/python -m build --outdir dist

test-wheel:
	rm -rf build/empty && mkdir -p build/empty
	$(PYTHON) -m venv build/empty/venv
	build/empty/venv/bin/python -m pip install --quiet --constraint requirements.lock "$$(ls $(CURDIR)/dist/*.whl)[networks]"
	cd build/empty && PATH="$(CURDIR)/build/empty/venv/bin:$$PATH" && rnnsmt init demo --demo && cd demo && \
	  rnnsmt run --cores $(CORES) --config 'demo={scale: 0.15}' 'tuning={runs: 1}' 'compare=[baseline, rnn]' && test -s results/table1.md

# Without user namespaces, as in many containers, only the isolation by chroot works.
BUILDAH ?= buildah --storage-driver vfs
ISOLATION ?= chroot
DEBIAN ?= http://deb.debian.org/debian

build/image/base:
	mkdir -p build/image
	debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates,curl bookworm build/image/base.part $(DEBIAN)
	container=$$($(BUILDAH) from scratch) && $(BUILDAH) add --quiet $$container build/image/base.part / && \
	  $(BUILDAH) commit --quiet --rm $$container localhost/rnnsmt-base
	mv build/image/base.part $@

image: $(if $(BASE),,build/image/base)
	$(BUILDAH) build --isolation $(ISOLATION) --build-arg BASE=$(or $(BASE),localhost/rnnsmt-base) \
	  --build-arg DEVICE=$(or $(DEVICE),cpu) $(BUILD_OPTIONS) --tag localhost/rnnsmt .

test-image:
	container=$$($(BUILDAH) from localhost/rnnsmt) && \
	  unshare --net $(BUILDAH) run --isolation $(ISOLATION) --user 1234:1234 $$container -- sh -ec "rnnsmt init demo --demo; cd demo; \
	  rnnsmt run --cores $(CORES) --config 'demo={scale: 0.15}' 'tuning={runs: 1}' 'compare=[baseline, rnn]'; test -s results/table1.md" && \
	  $(BUILDAH) rm $$container

sbom: $(VENV)/ready $(TOOLS)/ready
	mkdir -p build/sbom
	$(TOOLS)/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible --output-file build/sbom/rnnsmt.cdx.json $(BIN)/python
	$(TOOLS)/bin/pip-licenses --python $(BIN)/python --from mixed --format markdown --order license --output-file build/sbom/licences.md

# The second file contains only PyTorch, on Linux with the CUDA libraries, because its CPU build is on another package index;
# the third one what the image has in addition, with the version of python-dateutil that botocore requires.
locks: $(TOOLS)/ready
	mkdir -p build
	grep -v '^torch==' requirements.lock > build/requirements.in
	grep '^torch==' requirements.lock > build/requirements-torch.in
	$(UV_COMPILE) --output-file requirements-hashed.lock build/requirements.in
	grep -v '^python-dateutil==' requirements.lock > build/requirements-image.constraints
	echo 'snakemake-storage-plugin-s3>=0.3.6' | $(UV_COMPILE) --constraint build/requirements-image.constraints $(shell sed -n 's/^\([A-Za-z].*\)==.*/\1/p' requirements.lock | grep -v '^python-dateutil$$' | sed 's/^/--no-emit-package /') --output-file requirements-hashed-image.lock -
	$(UV_COMPILE) --constraint requirements.lock $(shell sed -n 's/^\([A-Za-z].*\)==.*/\1/p' requirements.lock | grep -v '^torch$$' | sed 's/^/--no-emit-package /') --output-file requirements-hashed-torch.lock build/requirements-torch.in

format: $(VENV)/ready-dev
	$(BIN)/ruff format src tests benchmarks setup.py .github notebooks docs examples
	$(BIN)/ruff check --fix src tests benchmarks setup.py .github notebooks
	$(BIN)/snakefmt Snakefile workflow

clean:
	rm -rf results .snakemake
