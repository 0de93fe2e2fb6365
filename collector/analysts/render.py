"""A table of an answer as bytes: JSON, CSV or an Arrow stream."""

from __future__ import annotations

from decimal import Decimal
from io import BytesIO
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.csv

from cowpath.errors import TooLarge

MEDIA = {"json": "application/json", "csv": "text/csv", "arrow": "application/vnd.apache.arrow.stream"}
"""Format -> media type."""

MOST_ANSWER_BYTES = 256 * 2**20


def rendered(table: pa.Table, format: str) -> bytes:
    """The table in one of the formats of ``MEDIA``. TooLarge past ``MOST_ANSWER_BYTES``."""
    if table.nbytes > MOST_ANSWER_BYTES:
        raise TooLarge(f"the answer has {table.nbytes} bytes; select fewer columns or rows")
    if format == "arrow":
        return _arrow(table)
    return _csv(table) if format == "csv" else msgspec.json.encode(document(table), enc_hook=_plain)


def document(table: pa.Table) -> dict[str, Any]:
    """The table as a JSON document: column names, and one list a row."""
    columns = [column.to_pylist() for column in table.columns]
    return {
        "columns": table.column_names,
        "types": [str(field.type) for field in table.schema],
        "rows": [list(row) for row in zip(*columns, strict=True)],
    }


def _arrow(table: pa.Table) -> bytes:
    sink = BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _csv(table: pa.Table) -> bytes:
    nested = [i for i, field in enumerate(table.schema) if pa.types.is_nested(field.type) or _is_odd(field.type)]
    for i in nested:
        texts = [
            None if v is None else msgspec.json.encode(v, enc_hook=_plain).decode().strip('"')
            for v in table.column(i).to_pylist()
        ]
        table = table.set_column(i, table.column_names[i], pa.array(texts, pa.string()))
    sink = BytesIO()
    pyarrow.csv.write_csv(table, sink)
    return sink.getvalue()


def _is_odd(kind: pa.DataType) -> bool:
    return bool(pa.types.is_interval(kind) or pa.types.is_duration(kind) or pa.types.is_binary(kind))


def _plain(value: object) -> object:
    return float(value) if isinstance(value, Decimal) else str(value)
