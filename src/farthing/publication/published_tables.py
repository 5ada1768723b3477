"""The tables of an edition as CSV and Parquet. Every row carries its unit, epsilon, delta, errors and notes.

Columns that repeat cost little and survive what a header does not: a row that is cut out, pasted or joined still says
what it is.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping
from typing import Any

from farthing.publication.edition import COLUMNS, Edition

_TEXTS = frozenset({"statistic", "cell", "counts", "unit", "note"})
_FORMULA = re.compile(r"[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_FIGURES = re.compile(r"[-+][\d.,:e+\- ]*( to [\d.,:e+\- ]*)?")

MEANINGS = {
    "statistic": "the name of the statistic",
    "cell": "the group or the bin; empty where there is one number",
    "counts": "what is counted: rows or people, and how much of each unit",
    "value": "the released number; empty where it was withheld",
    "raw": "the unbiased number before any adjustment; equal to the value where there was none",
    "standard_error": "the standard error caused by the noise",
    "lower": "the lower end of the interval",
    "upper": "the upper end of the interval",
    "lower_at_once": "the lower end of an interval that holds for all numbers of the release together",
    "upper_at_once": "the upper end of an interval that holds for all numbers of the release together",
    "confidence": "the probability with which the interval contains the number without noise",
    "unit": "the unit of privacy: who is protected, and which tables are neighbours",
    "epsilon": "epsilon of the whole release",
    "delta": "delta of the whole release",
    "note": "the caveats of the number",
}
"""What each column means."""


def is_text(column: str) -> bool:
    """Whether a column holds text."""
    return column in _TEXTS


def csv_of(edition: Edition, table: Mapping[str, Any]) -> bytes:
    """One table of an edition as CSV."""
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in edition.rows(table):
        writer.writerow([_cell(row[name]) for name in COLUMNS])
    return file.getvalue().encode()


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(value)
    # A text that a spreadsheet would run as a formula is shown as text.
    runs = isinstance(value, str) and _FORMULA.match(value) and not _FIGURES.fullmatch(value)
    return f"'{value}" if runs else value


def parquet_of(edition: Edition, table: Mapping[str, Any]) -> bytes:
    """One table as Parquet; what the columns mean is in its schema as well."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = []
    for name in COLUMNS:
        kind = pa.string() if is_text(name) else pa.float64()
        columns.append(pa.field(name, kind, metadata={"description": MEANINGS[name]}))
    caveats = {"caveats": json.dumps(edition.caveats(table)), "title": edition.publication.title}
    schema = pa.schema(columns, metadata=caveats)
    data = pa.Table.from_pylist(edition.rows(table), schema=schema)
    file = io.BytesIO()
    pq.write_table(data, file, compression="none", store_schema=True)
    return file.getvalue()


def parquet_rows(content: bytes, count: int) -> list[dict[str, Any]]:
    """The rows of a Parquet file from a stranger: refused if it has other columns, or more rows than `count`.

    A file of few bytes can stand for many: with long runs of one value, packed, or with one long text that a
    dictionary repeats. So the number of rows is known beforehand, nothing may be packed, and texts are compared where
    they stand in the dictionary.

    Raises:
        ValueError: If it is not such a file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        about = pq.read_metadata(io.BytesIO(content))
        schema = about.schema
        kinds = {name: ("BYTE_ARRAY" if is_text(name) else "DOUBLE", 1, 0) for name in COLUMNS}
        held = [schema.column(place) for place in range(min(len(schema), len(COLUMNS) + 1))]
        plain = {one.path: (one.physical_type, one.max_definition_level, one.max_repetition_level) for one in held}
        if plain != kinds or len(held) != len(COLUMNS) or about.num_rows != count or about.num_row_groups > count + 1:
            raise ValueError("it has other columns, or another number of rows")
        groups = [about.row_group(place) for place in range(about.num_row_groups)]
        if sum(one.num_rows for one in groups) != count or any(one.num_rows < 0 for one in groups):
            raise ValueError("it has another number of rows")
        for group in groups:
            for place in range(len(COLUMNS)):
                chunk = group.column(place)
                if chunk.compression != "UNCOMPRESSED" or chunk.num_values != group.num_rows:
                    raise ValueError("it is packed, or its columns are of different lengths")
        texts = [name for name in COLUMNS if is_text(name)]
        table = pq.ParquetFile(io.BytesIO(content), read_dictionary=texts).read(use_threads=False)
        columns = [_values(table.column(name)) for name in COLUMNS]
    except (pa.ArrowException, OSError, MemoryError) as problem:
        raise ValueError(f"it cannot be read ({type(problem).__name__})") from None
    return [dict(zip(COLUMNS, row, strict=True)) for row in zip(*columns, strict=True)]


def _values(column: Any) -> list[Any]:
    """The values of a column; a text that a dictionary has once is there once."""
    values: list[Any] = []
    for chunk in column.chunks:
        if hasattr(chunk, "dictionary"):
            texts = chunk.dictionary.to_pylist()
            values += [None if place is None else texts[place] for place in chunk.indices.to_pylist()]
        else:
            values += chunk.to_pylist()
    return values
