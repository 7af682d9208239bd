# Image for all jobs of the workflow, and for Snakemake itself: `make image`; tests: `make test-image` (docs/install.md).
#
# BASE: an image with Python 3.11 and curl; `make image` makes one from Debian's packages.
# DEVICE: cpu, or cuda for PyTorch with the CUDA libraries. The latter is written, but was never built.
ARG BASE=localhost/rnnsmt-base

FROM ${BASE} AS wheel
WORKDIR /source
COPY . .
RUN python3 -m venv /build && /build/bin/python -m pip wheel --no-cache-dir --no-deps --wheel-dir /wheel .

FROM ${BASE}
ARG DEVICE=cpu
# PyTorch's build for CPUs is on an index of its own, whose hashes pip compares with those that this index states.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
# Snakemake loads GitPython, and the image has no git. Home directory and name are those of any user id.
ENV PATH=/opt/rnnsmt/bin:/usr/local/bin:/usr/bin:/bin \
    LOGNAME=rnnsmt \
    HOME=/home/rnnsmt \
    NUMBA_CACHE_DIR=/opt/rnnsmt/kernels \
    GIT_PYTHON_REFRESH=quiet
WORKDIR /install
COPY requirements-hashed.lock requirements-hashed-torch.lock requirements-hashed-image.lock ./
RUN python3 -m venv /opt/rnnsmt && \
    version="$(sed -n 's/^torch==\([0-9.]*\).*/\1/p' requirements-hashed-torch.lock)" && \
    pip install --no-cache-dir --require-hashes --requirement requirements-hashed.lock && \
    pip install --no-cache-dir --require-hashes --no-deps --requirement requirements-hashed-image.lock && \
    case "$DEVICE" in \
      cpu) pip install --no-cache-dir --no-deps --index-url "$TORCH_INDEX" "torch==$version" ;; \
      cuda) pip install --no-cache-dir --require-hashes --no-deps --requirement requirements-hashed-torch.lock ;; \
      *) echo "DEVICE is cpu or cuda, not $DEVICE" >&2; exit 1 ;; \
    esac
COPY --from=wheel /wheel /wheel
# A small run with all networks of the search compiles the kernels. They are used on processors like that of the build, also
# if the root is read-only; on others, they are compiled again, in a cache below the home directory.
RUN pip install --no-cache-dir --no-deps /wheel/*.whl && \
    mkdir -p "$HOME" "$NUMBA_CACHE_DIR" /demo && cd /demo && \
    rnnsmt init . --demo && \
    rnnsmt run --cores all --config 'demo={scale: 0.03}' 'tuning={runs: 1, iterations: 1}' 'search={pop_limit: 20}' \
      'compare=[baseline, cslm_rnn_nnjm]' && \
    cd / && rm -rf /demo /install "$HOME" && mkdir -p "$HOME" /workdir && \
    chmod -R a+rX /opt/rnnsmt && chmod 1777 "$HOME" /workdir
USER 1000:1000
WORKDIR /workdir
# No ENTRYPOINT: executors pass the command of a job as CMD.
CMD ["rnnsmt", "--help"]
