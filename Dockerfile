# One image for every role: `tenfold control`, `tenfold task`, or a client program. The role comes from the command and
# the environment (TENFOLD_*, TF_CONFIG); see docs/cli.md. Build behind a package mirror with
# `docker build --build-arg PIP_INDEX_URL=…`; without it pip uses its own default.
FROM python:3.11-slim

# `make dist` gives it; the package says its version itself.
ARG VERSION=dev
LABEL org.opencontainers.image.title="Tenfold" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION"

ENV PYTHONUNBUFFERED=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1

RUN useradd --create-home --uid 10001 tenfold
WORKDIR /srv/tenfold

ARG PIP_INDEX_URL
COPY pyproject.toml README.md LICENSE ./
COPY protos protos
COPY core core
COPY link link
COPY client client
COPY kernels kernels
COPY compiler compiler
COPY services services
COPY control_api control_api
COPY examples examples
RUN pip install ".[control,examples,postgres]"

# The control service keeps its registry here, Numba its compiled kernels.
RUN mkdir -p /var/lib/tenfold/secrets /var/cache/tenfold && chown -R tenfold: /var/lib/tenfold /var/cache/tenfold \
    && chmod 700 /var/lib/tenfold/secrets
ENV NUMBA_CACHE_DIR=/var/cache/tenfold
USER tenfold

ENTRYPOINT ["tenfold"]
CMD ["--help"]
