#!/usr/bin/env bash
# Snakemake runs this once in a new environment. The workflow says where its checkout is.
set -euo pipefail
python -m pip install --no-deps --editable "${RNNSMT_CHECKOUT:?is set by the rules of rnnsmt}"
