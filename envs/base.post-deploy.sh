#!/usr/bin/env bash
# Snakemake runs this script once in a new environment. The workflow sets RNNSMT_CHECKOUT if it is in a checkout.
set -euo pipefail
if [ -n "${RNNSMT_CHECKOUT:-}" ]; then
    python -m pip install --no-deps --editable "$RNNSMT_CHECKOUT"
else
    python -m pip install --no-deps rnnsmt==1.0.0
fi
