"""TAKE IN: from bytes to events in live.duckdb and usage.duckdb."""
