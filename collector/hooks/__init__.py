"""Hooks: what agents post about themselves, one module a harness, each a pure function from payload to events."""
