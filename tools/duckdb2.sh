#!/bin/sh
# Runs the core tests on the newest DuckDB 2: an environment that holds only that, laid over .venv.
# Arguments are pytest's; without any, the way of an event from the POST to the suggestion.
set -eu
cd "$(dirname "$0")/.."
overlay=.venv/duckdb2
python="$overlay/bin/python"
if ! "$python" -c 'import duckdb, pytest; assert duckdb.__version__.startswith("2.")' 2>/dev/null; then
    .venv/bin/python -m venv --clear --without-pip "$overlay"
    .venv/bin/python -m pip --python "$python" install -q "duckdb>=2,<3"
    "$python" - <<'PY'
import pathlib, sysconfig
below = next(pathlib.Path(".venv/lib").glob("python*/site-packages")).resolve()
pathlib.Path(sysconfig.get_path("purelib"), "below.pth").write_text(f"{below}\n")
PY
fi
"$python" -c 'import duckdb; print("DuckDB", duckdb.__version__)'
if [ $# -eq 0 ]; then
    set -- tests/collector tests/miner tests/ranker tests/test_follow_one_event.py tests/test_equal_bytes.py tests/test_data_dictionary.py
fi
exec "$python" -m pytest -q -m "not slow and not model" "$@"
