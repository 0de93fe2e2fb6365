#!/bin/sh
# Runs the core tests on DuckDB 2.0: an environment that holds only that, laid over .venv.
set -eu
cd "$(dirname "$0")/.."
overlay=.venv/duckdb2
if [ ! -x "$overlay/bin/python" ]; then
    .venv/bin/python -m venv --without-pip "$overlay"
    .venv/bin/python -m pip --python "$overlay/bin/python" install -q "duckdb==2.0.*"
    "$overlay/bin/python" - "$overlay" <<'PY'
import sysconfig, pathlib, sys
below = next(pathlib.Path(".venv/lib").glob("python*/site-packages")).resolve()
pathlib.Path(sysconfig.get_path("purelib"), "below.pth").write_text(f"{below}\n")
PY
fi
"$overlay/bin/python" -c 'import duckdb; assert duckdb.__version__.startswith("2.0"), duckdb.__version__'
if [ $# -eq 0 ]; then
    set -- tests/collector tests/miner tests/test_follow_one_event.py
fi
exec "$overlay/bin/python" -m pytest -q -m "not slow and not model" "$@"
