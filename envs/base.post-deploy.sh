#!/usr/bin/env bash
# Snakemake runs this once in a new environment. The workflow says where its checkout is, if it has one.
set -euo pipefail
if [ -n "${RNNSMT_CHECKOUT:-}" ]; then
    python -m pip install --no-deps --editable "$RNNSMT_CHECKOUT"
else
    python -m pip install --no-deps rnnsmt==1.0.0
fi
