"""Tables of DuckDB with cells that it may not have the memory to read: one person could decide whether a query fails.

DuckDB reads 2,048 cells at a time, each of them whole, and keeps the longest text and the sum of all texts of a column
with the table. What may be too much is refused by these facts when a dataset is made, and before anybody pays. A
Parquet file says the same in its footer, also where a view names it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from farthing.data.engines.duckdb_views import files_of_view
from farthing.data.engines.engine import Engine, rows_of
from farthing.data.parquet_files import LARGEST_BLOCK, parquet_schema, refuse_large_blocks
from farthing.errors import EngineError, InvalidValue

CELLS_AT_A_TIME = 2048


def refuse_large_cells(engine: Engine, table: Any, names: Sequence[str]) -> None:
    """Refuse a table or view of DuckDB whose columns of text among `names` could fill the memory."""
    kinds = table.schema()
    for name in names:
        if name not in kinds or not _is_text(kinds[name]):
            continue
        if _bytes_at_a_time(engine, table, name) > LARGEST_BLOCK:
            raise InvalidValue(
                "source",
                table.op().name,
                f"has cells in column {name!r} of which {CELLS_AT_A_TIME:,} may have more than "
                f"{LARGEST_BLOCK >> 20} MiB",
                "shorten such cells in the source",
            )
    for path in files_of_view(engine, table.op().name).files:
        if not path.lower().endswith((".parquet", ".pq")):
            continue
        columns = {name for name, _ in parquet_schema(path)}
        # A view may call its columns otherwise; then all of them count.
        checked = names if columns.issuperset(names) else ()
        refuse_large_blocks(path, checked, title=Path(path).name)


def _is_text(kind: Any) -> bool:
    while kind.is_array():
        kind = kind.value_type
    return bool(kind.is_string())


def _bytes_at_a_time(engine: Engine, table: Any, name: str) -> float:
    """The most that the cells read at a time can have, by what DuckDB keeps; 0 where it keeps nothing of the kind."""
    column = '"' + name.replace('"', '""') + '"'
    try:
        # The facts are those of all rows, but the first cells are read for them.
        statistics = rows_of(engine, f"SELECT stats({column}) FROM ({engine.sql(table)}) AS t LIMIT 1")
    except EngineError as problem:
        return math.inf if "OutOfMemory" in problem.kind else 0
    facts = statistics[0][0] if statistics else None
    while isinstance(facts, dict) and "child_stats" in facts:
        facts = facts["child_stats"]
    if not isinstance(facts, dict):
        return 0
    longest = CELLS_AT_A_TIME * int(facts.get("max_string_length") or 0)
    return min(longest, int(facts.get("total_string_length") or longest))
