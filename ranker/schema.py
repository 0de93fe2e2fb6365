"""JSON Schema of what is asked and answered, exact because it comes from the types that decode and encode it."""

from __future__ import annotations

from typing import Any

import msgspec


def schema_of(kind: type) -> dict[str, Any]:
    """JSON Schema of a struct with nothing to look up elsewhere, so that it fits into any document."""
    (schema,), components = msgspec.json.schema_components([kind], ref_template="{name}")

    def inlined(node: Any) -> Any:
        if isinstance(node, list):
            return [inlined(item) for item in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            return inlined(components[node["$ref"]])
        return {key: inlined(value) for key, value in node.items()}

    found: dict[str, Any] = inlined(schema)
    return found
