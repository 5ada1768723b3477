"""Parquet files: what their footers say about columns and sizes; no row is read."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from farthing.errors import InvalidValue

PARQUET = (".parquet", ".pq")
LARGEST_BLOCK = 2**27
"""Bytes of a column in one row group of a Parquet file; DuckDB unpacks them in a buffer of up to twice the size."""


def parquet_schema(path: str) -> list[tuple[str, Any]]:
    """Names and Arrow types of the columns of a Parquet file, from its footer."""
    import pyarrow.parquet

    refusal: InvalidValue | None = None
    try:
        schema = pyarrow.parquet.read_schema(path)
    except Exception as problem:  # Arrow's errors are of many classes
        refusal = _unreadable(path, problem)
    if refusal is not None:
        raise refusal
    return list(zip(schema.names, schema.types, strict=True))


def refuse_milliseconds(footer: Sequence[tuple[str, Any]]) -> None:
    """Refuse a file with a column of timestamps in milliseconds, by its type, whatever it holds and whoever reads it.

    DuckDB reads them as microseconds, and stops at one that does not fit, even in a column that no query names: it
    converts the least and largest of every column that the footer has. Then a single row would decide whether a query
    fails, after it was paid for.
    """
    for name, kind in footer:
        if _has_milliseconds(kind):
            raise InvalidValue(
                f"schema[{name!r}]",
                "timestamps in milliseconds",
                "cannot be read from a Parquet file: one that is out of range would stop every query, of any column",
                "leave the column out of the file, or write it as dates, or as timestamps in microseconds: in pandas "
                f'frame[{name!r}].astype("datetime64[us]"), in SQL CAST({name} AS DATE)',
            )


def _has_milliseconds(kind: Any) -> bool:
    from pyarrow import types

    if types.is_timestamp(kind):
        return bool(kind.unit == "ms")
    if types.is_dictionary(kind):
        return _has_milliseconds(kind.value_type)
    return any(_has_milliseconds(kind.field(place).type) for place in range(kind.num_fields))


def refuse_other_footer(path: str, footer: tuple[Any, ...]) -> None:
    """Refuse a file that was taken away or replaced by one of other columns; its folder is not named."""
    rule, way_out = "cannot be read any more", "check the file"
    with contextlib.suppress(InvalidValue):
        if tuple(parquet_schema(path)) == footer:
            return
        rule, way_out = "has other columns now", "make the dataset again"
    raise InvalidValue("source", Path(path).name, rule, way_out)


def refuse_large_blocks(path: str, names: Sequence[str], *, title: str | None = None) -> None:
    """Refuse a block of text or bytes that DuckDB may not have the memory to unpack: one cell can be all of it.

    The sizes stand in the footer. Numbers, dates and flags have no cells of any size, and so blocks of any size.
    """
    import pyarrow.parquet

    refusal: InvalidValue | None = None
    try:
        footer = pyarrow.parquet.read_metadata(path)
        blocks = [
            footer.row_group(group).column(place)
            for group in range(footer.num_row_groups)
            for place in range(footer.num_columns)
        ]
        for block in blocks:
            column = block.path_in_schema.partition(".")[0]  # a list has its elements under it
            large = block.physical_type == "BYTE_ARRAY" and block.total_uncompressed_size > LARGEST_BLOCK
            if large and (not names or column in names):
                refusal = InvalidValue(
                    "source",
                    title or path,
                    f"has a row group with more than {LARGEST_BLOCK >> 20} MiB in column {column!r}",
                    "write it with fewer rows in a group, and shorten large cells in the source",
                )
    except Exception as problem:  # Arrow's errors are of many classes
        refusal = _unreadable(title or path, problem)
    if refusal is not None:
        raise refusal


def _unreadable(path: str, problem: Exception) -> InvalidValue:
    reason = getattr(problem, "strerror", None) or type(problem).__name__
    return InvalidValue("source", path, f"cannot be read ({reason})", "check the file")
