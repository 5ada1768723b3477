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
_FORMULA = re.compile(r"[=+\-@\t\r]")
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


def parquet_rows(content: bytes) -> list[dict[str, Any]]:
    """The rows of a Parquet file from a stranger: refused if it has other columns.

    Raises:
        ValueError: If it is not such a file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(io.BytesIO(content))
        if tuple(file.schema_arrow.names) != COLUMNS or file.metadata.num_rows > MOST_ROWS:
            raise ValueError("it has other columns, or too many rows")
        rows: list[dict[str, Any]] = file.read().to_pylist()
    except (pa.ArrowException, OSError, MemoryError) as problem:
        raise ValueError(f"it cannot be read ({type(problem).__name__})") from None
    return rows


MOST_ROWS = 5_000_000
"""The most rows that one table may have."""
