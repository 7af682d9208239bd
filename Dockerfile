# docker build -t rnnsmt .                          PyTorch for CPUs
# docker build -t rnnsmt:cuda --build-arg DEVICE=cuda .
# docker run --rm -v "$PWD:/data" rnnsmt run --cores 2         see docs/install.md
ARG PYTHON=3.11

FROM python:${PYTHON}-slim AS wheel
WORKDIR /source
COPY . .
RUN python -m pip wheel --no-cache-dir --no-deps --wheel-dir /wheel .

FROM python:${PYTHON}-slim
ARG DEVICE=cpu
# Snakemake loads GitPython, and the image has no git.
ENV GIT_PYTHON_REFRESH=quiet
# curl downloads corpora.
RUN apt-get update && apt-get install --yes --no-install-recommends curl && rm -rf /var/lib/apt/lists/*
WORKDIR /install
COPY requirements-hashed.lock requirements-hashed-torch.lock ./
# PyTorch's build for CPUs is on an index of its own, whose hashes pip compares with those that this index states.
RUN version="$(sed -n 's/^torch==\([0-9.]*\).*/\1/p' requirements-hashed-torch.lock)" && \
    python -m pip install --no-cache-dir --require-hashes --requirement requirements-hashed.lock && \
    case "$DEVICE" in \
      cpu) python -m pip install --no-cache-dir --no-deps --index-url https://download.pytorch.org/whl/cpu "torch==$version" ;; \
      cuda) python -m pip install --no-cache-dir --require-hashes --no-deps --requirement requirements-hashed-torch.lock ;; \
      *) echo "DEVICE is cpu or cuda, not $DEVICE" >&2; exit 1 ;; \
    esac
COPY --from=wheel /wheel /wheel
RUN python -m pip install --no-cache-dir --no-deps /wheel/*.whl && \
    useradd --create-home --uid 1000 rnnsmt && \
    install --directory --owner rnnsmt /data
USER 1000
# Compiled kernels and figures are cached in the home directory.
WORKDIR /data
ENTRYPOINT ["rnnsmt"]
CMD ["--help"]
