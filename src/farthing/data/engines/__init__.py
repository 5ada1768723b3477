"""The engines that hold tables; `engine_of` knows the one behind an Ibis backend."""

from __future__ import annotations

from typing import Any

from farthing.data.engines.engine import KNOWN, Engine
from farthing.errors import InvalidValue

__all__ = ["Engine", "engine_of"]


def engine_of(backend: Any) -> Engine:
    """The engine behind an Ibis backend, always the same one for the same backend.

    Args:
        backend: An Ibis connection to DuckDB, Postgres or Spark.

    Returns:
        The engine that runs queries on it.

    Raises:
        InvalidValue: If farthing knows no engine for it.

    >>> from farthing.data import connection
    >>> engine_of(connection()).name
    'duckdb'
    """
    name = getattr(backend, "name", type(backend).__name__)
    if name == "duckdb":
        from farthing.data.engines.duckdb import DuckDBEngine

        return DuckDBEngine.around(backend)
    if name == "postgres":
        from farthing.data.engines.postgres import PostgresEngine

        return PostgresEngine.around(backend)
    if name == "pyspark":
        from farthing.data.engines.spark import SparkEngine

        return SparkEngine.around(backend)
    raise InvalidValue("source", name, f"must be an Ibis table of {', '.join(KNOWN)}", "export it to Parquet")
