# Everything a person does here. PYTHON picks the interpreter that makes .venv (3.11 or newer).
PYTHON ?= python3
VENV := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help setup demo up test duckdb2 lint check bench docs lock clean

help: ## This list
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Make .venv from requirements.lock (CPU torch; about 2.5 GB, a few minutes)
	@$(PYTHON) tools/install.py

demo: setup ## Post a shipped log, learn from it, print suggestions with their reasons
	@$(VENV)/python -m examples.demo

up: setup ## Serve the collector and the ranker on 127.0.0.1:8710
	@$(VENV)/cowpath up

test: setup ## The whole test suite
	@$(VENV)/python -m pytest -q

duckdb2: setup ## The core tests on the newest DuckDB 2, beside the 1.5 of requirements.lock
	@sh tools/duckdb2.sh

lint: setup ## ruff and mypy
	@$(VENV)/ruff check .
	@$(VENV)/ruff format --check .
	@$(VENV)/mypy

check: lint test ## What must pass before a push: lint and the whole suite

bench: setup ## Every benchmark, one JSON document each
	@set -e; for file in $$(grep -l '__main__' benchmarks/*.py); do \
		name=$$(basename $$file .py); echo "benchmarks.$$name" >&2; $(VENV)/python -m benchmarks.$$name --json; \
	done

docs: setup ## Write the generated pages under docs/ anew
	@$(VENV)/python tools/docs.py

lock: ## Write requirements.lock from what .venv holds, after a change of dependencies
	@$(VENV)/python tools/lock.py

clean: ## Remove what runs and builds left behind; .venv and your own data stay
	@rm -rf .demo dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -not -path './.venv/*' -prune -exec rm -rf {} +
