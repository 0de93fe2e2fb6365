"""Importers: calls that were made before cowpath was there, each source with a reader of its own."""
