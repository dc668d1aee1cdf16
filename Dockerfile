FROM python:3.13-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends git openssh-client \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --create-home aiaml \
    && install -d -o aiaml -m 700 /memory
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip install --no-cache-dir .
LABEL io.modelcontextprotocol.server.name="io.github.aiaml/aiaml"
# The state is a key that names the index: it stays with the memories, as no container does.
ENV AIAML_MEMORY_DIR=/memory XDG_STATE_HOME=/memory/.state
USER aiaml
WORKDIR /memory
VOLUME /memory
ENTRYPOINT ["aiaml-server"]
