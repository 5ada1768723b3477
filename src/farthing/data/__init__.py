"""The table stays where it is: schemas, expressions, datasets, stability and bounded aggregates.

dataset       a table with its unit, its bound and its public facts; every transformation knows its stability
linked        several such tables, linked by keys, with one unit
schema        public facts about columns: categories, ranges, dates
expressions   predicates and derived columns, typed and total on every engine
aggregates    the only things that leave an engine, each with its exact sensitivities
engines       what differs between DuckDB, Postgres and Spark
"""

from farthing.data.aggregates import (
    Bounded,
    CellCounts,
    Count,
    CrossProducts,
    DistinctCount,
    Histogram,
    Moments,
    OrderCounts,
    SoftPartition,
    Sum,
    UnitBound,
)
from farthing.data.dataset import Dataset, dataset
from farthing.data.engines.duckdb import connection
from farthing.data.engines.postgres import postgres_table
from farthing.data.engines.spark import spark_table
from farthing.data.linked_tables import LinkedTables, TableFacts, linked, table
from farthing.data.schema import Categories, Dates, Flags, Integers, Reals, Schema, Unknown, unknown
from farthing.data.split_parts import Parts
from farthing.data.stability import LeftOut, Link, Sensitivity, Stability
from farthing.data.steward_check import Check, check

__all__ = [
    "Bounded",
    "Categories",
    "CellCounts",
    "Check",
    "Count",
    "CrossProducts",
    "Dataset",
    "Dates",
    "DistinctCount",
    "Flags",
    "Histogram",
    "Integers",
    "LeftOut",
    "Link",
    "LinkedTables",
    "Moments",
    "OrderCounts",
    "Parts",
    "Reals",
    "Schema",
    "Sensitivity",
    "SoftPartition",
    "Stability",
    "Sum",
    "TableFacts",
    "UnitBound",
    "Unknown",
    "check",
    "connection",
    "dataset",
    "linked",
    "postgres_table",
    "spark_table",
    "table",
    "unknown",
]
