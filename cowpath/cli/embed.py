"""Embedding the catalogue before a command that gains from it: best effort, and said aloud."""

from __future__ import annotations

from typing import Any

import msgspec

from cowpath.errors import ModelMissing
from cowpath.settings import Settings


def embed(settings: Settings) -> dict[str, Any]:
    """Embed what is new. Without the model extra the answer says so; keyword search still works."""
    try:
        from ranker.dense import embed_catalogue

        report = embed_catalogue(settings)
    except ModelMissing as error:
        return {"available": False, "reason": error.message}
    except ImportError as error:
        return {"available": False, "reason": f"{error.name or 'the ranker extra'} is not installed"}
    return {"available": True, **msgspec.to_builtins(report)}
