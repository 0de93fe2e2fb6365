"""``python -m cowpath``: the same command line."""

from cowpath.cli import run

run()
