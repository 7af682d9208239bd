#!/usr/bin/env bash
# Snakemake runs this script once in a new environment. To install a checkout instead of the released package, set
# RNNSMT_CHECKOUT to its directory.
set -euo pipefail
if [ -n "${RNNSMT_CHECKOUT:-}" ]; then
    python -m pip install --no-deps --editable "$RNNSMT_CHECKOUT"
else
    python -m pip install --no-deps rnnsmt==1.0.0
fi
