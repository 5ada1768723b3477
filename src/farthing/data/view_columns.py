"""Which column of a table a view shows under a name, so that a key is the same key however it is reached.

A view may call any column by any name, and may compute it. What is certain is followed: a view that shows one column
of one table, view or file as it is, under its own or another name. Any other column is one of that view as it is
defined today, and of nothing else.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from farthing.data.engines.engine import Engine, rows_of

if TYPE_CHECKING:
    from farthing.data.sources import Source


def stored_column(source: Source, column: str) -> str:
    """A column as the table that holds it calls it; one that a view computes, with that view and its definition.

    >>> import ibis
    >>> from farthing.data.engines.duckdb import quiet
    >>> from farthing.data.sources import open_source
    >>> base = ibis.duckdb.connect()
    >>> with quiet():
    ...     _ = base.con.execute("CREATE TABLE pay AS SELECT 1 AS sender, 2 AS receiver")
    ...     _ = base.con.execute("CREATE VIEW later AS SELECT receiver AS sender, sender + 0 AS who FROM pay")
    ...     [stored_column(open_source(base.table("later")), name)[:10] for name in ("sender", "who")]
    ['receiver', 'who of the']
    """
    if source.files or source.rows is not None or not hasattr(source.table, "op"):
        return column
    if source.engine.name not in ("duckdb", "postgres"):
        return _in_plan(source, column)
    views, name = _Views(source.engine), _name_of(source)
    origin = views.origin(name, column)
    return _of_view(column, name.table, views.all_texts(name)) if origin is None else origin


def view_digest(source: Source) -> str:
    """What a view is defined as today; nothing for a table, a file or a frame."""
    if source.files or source.rows is not None or not hasattr(source.table, "op"):
        return ""
    if source.engine.name not in ("duckdb", "postgres"):
        plan = _plan(source, source.table)
        return "" if f".{source.table.op().name.lower()}\n" in plan.lower() else _digest(plan)
    text = _Views(source.engine).all_texts(_name_of(source))
    return _digest(text) if text else ""


class _Name(NamedTuple):
    catalog: str | None
    schema: str | None
    table: str

    def quoted(self) -> str:
        return ".".join('"' + part.replace('"', '""') + '"' for part in self if part)


def _name_of(source: Source) -> _Name:
    operation = source.table.op()
    return _Name(operation.namespace.catalog, operation.namespace.database, operation.name)


class _Views:
    """The views of an engine, by which a column is followed to its table."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def origin(self, name: _Name, column: str) -> str | None:
        """The column of a table or file that one of a table or view is; None where that is not certain."""
        definition = self._definition(name)
        if definition is None:
            return column
        query, called = _query_of(definition, self._engine.name)
        if called:  # CREATE VIEW name (columns) AS ...
            column = next(
                (own for own, name in zip(self._names(query), called, strict=False) if _alike(name, column)), ""
            )
        return self._origin_in(query, column)

    def _origin_in(self, query: Any, column: str) -> str | None:
        """The same for a column of a query."""
        import sqlglot.expressions as sql

        if isinstance(query, sql.Subquery):
            return self._origin_in(query.this, column)
        if isinstance(query, sql.Union) and not _reads_more(query):
            places = [place for place, name in enumerate(self._names(query.left)) if _alike(name, column)]
            sides = [self._names(side) for side in (query.left, query.right)]
            if len(places) != 1 or query.args.get("by_name") or not places[0] < min(map(len, sides)):
                return None
            pairs = zip((query.left, query.right), sides, strict=True)
            origins = {self._origin_in(side, names[places[0]]) for side, names in pairs}
            return origins.pop() if len(origins) == 1 else None
        clause = query.args.get("from_") if isinstance(query, sql.Select) else None
        if clause is None or _reads_more(query) or _reads_more(clause.this):
            return None
        below = _column_below(query.expressions, column)
        if below is None or isinstance(clause.this, sql.Subquery):
            return below and self._origin_in(clause.this.this, below)
        if isinstance(clause.this, sql.Table) and isinstance(clause.this.this, sql.Identifier):
            return None if clause.this.alias_column_names else self.origin(_table_name(clause.this), below)
        return below if isinstance(clause.this, sql.Table) and _is_scan(clause.this.this) else None

    def _names(self, query: Any) -> list[str]:
        """What a query calls its columns."""
        import sqlglot.expressions as sql

        if query is None:
            return []
        chosen = query.named_selects if isinstance(query, sql.Query) else []
        if "*" not in chosen or self._engine.name == "postgres":  # which writes out every column
            return list(chosen)
        described = rows_of(self._engine, f"SELECT column_name FROM (DESCRIBE {query.sql(dialect='duckdb')})")
        return [str(column) for (column,) in described]

    def all_texts(self, name: _Name) -> str:
        """The definitions of a view and of all views that it reads; nothing for a table."""
        import sqlglot.expressions as sql

        texts, waiting = dict[str, None](), [name]
        while waiting:
            text = self._definition(waiting.pop())
            if text is None or text in texts:
                continue
            texts[text] = None
            query, _ = _query_of(text, self._engine.name)
            tables = query.find_all(sql.Table) if query is not None else ()
            waiting += [_table_name(table) for table in tables if table.name]
        if texts and self._engine.name == "duckdb":  # a view may show what a macro makes of a table
            texts |= dict.fromkeys(str(text) for (text,) in rows_of(self._engine, _MACROS))
        return "\n".join(texts)

    def _definition(self, name: _Name) -> str | None:
        """The text of a view; None for a table."""
        if self._engine.name == "postgres":
            quoted = name.quoted().replace("'", "''")
            texts = rows_of(self._engine, _POSTGRES.format(name=f"'{quoted}'"))
        else:
            where = " AND ".join(
                f"lower({each}) = lower('{part.replace(chr(39), 2 * chr(39))}')"
                for each, part in zip(("database_name", "schema_name", "view_name"), name, strict=True)
                if part
            )
            texts = rows_of(self._engine, f"SELECT sql FROM duckdb_views() WHERE NOT internal AND {where}")
        return "\n".join(str(text) for (text,) in texts) or None


def _query_of(definition: str, dialect: str) -> tuple[Any, list[str]]:
    """The query of a view, and the names that the view gives its columns; no query where it cannot be read."""
    import sqlglot
    import sqlglot.expressions as sql

    try:
        tree: Any = sqlglot.parse_one(definition, dialect=dialect)
    except sqlglot.errors.SqlglotError:
        return None, []
    called: list[str] = []
    if isinstance(tree, sql.Create):
        head, tree = tree.this, tree.expression
        called = [each.name for each in head.expressions] if isinstance(head, sql.Schema) else []
    return (tree, called) if isinstance(tree, sql.Query) else (None, called)


def _reads_more(query: Any) -> bool:
    """Whether a query has rows of more than one table, or its own tables."""
    return any(query.args.get(each) for each in ("joins", "laterals", "with_", "pivots"))


def _column_below(chosen: Any, column: str) -> str | None:
    """The column of the one table below that a query shows under a name; None where it may be another, or computed."""
    import sqlglot.expressions as sql

    named = [each for each in chosen if not _is_star(each) and _alike(each.alias_or_name, column)]
    stars = [each for each in chosen if _is_star(each)]
    if not named:
        return column if column and len(stars) == 1 and _is_plain_star(stars[0]) else None
    inner = named[0].unalias()
    return inner.name if len(named) == 1 and not stars and isinstance(inner, sql.Column) else None


def _table_name(table: Any) -> _Name:
    return _Name(table.catalog or None, table.db or None, table.name)


def _is_scan(function: Any) -> bool:
    """Whether a function of DuckDB reads columns as they are: of Parquet files, or of rows that it was handed."""
    import sqlglot.expressions as sql

    called = function.name if isinstance(function, sql.Anonymous) else ""
    return isinstance(function, sql.ReadParquet) or called.lower() in _SCANS


_SCANS = ("parquet_scan", "python_arrow_scan", "arrow_scan", "pandas_scan")


def _is_star(expression: Any) -> bool:
    return bool(expression.is_star)


def _is_plain_star(expression: Any) -> bool:
    """Whether a star shows columns under their own names."""
    star = expression.this if expression.key == "column" else expression
    return star.key == "star" and not star.args.get("replace") and not star.args.get("rename")


def _alike(one: str, other: str) -> bool:
    return one.lower() == other.lower()


def _of_view(column: str, view: str, definition: str) -> str:
    return f"{column} of the view {view} as {_digest(definition)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _in_plan(source: Source, column: str) -> str:
    """The same for Spark, which numbers columns: what a view of one table shows has the number of what is scanned."""
    plan = _plan(source, source.table.select(column), numbered=True)
    steps = [title.split(" ")[0] for title in _SPARK_STEP.findall(plan)]
    outputs = [(int(number), names.split(", ")) for number, names in _SPARK_OUTPUT.findall(plan)]
    scans = [step for step in steps if step.endswith("Scan")]
    if outputs and len(scans) == 1 and {*steps} <= {*scans, *_SPARK_ROW_BY_ROW}:
        (_, scanned), (_, last) = min(outputs), max(outputs)
        origin = last[0].partition(" AS ")[0]
        if len(last) == 1 and origin in scanned:
            return str(origin.rpartition("#")[0])
    return _of_view(column, source.table.op().name, _plan(source, source.table.select(column)))


def _plan(source: Source, table: Any, numbered: bool = False) -> str:
    """How Spark reads a table; without the numbers of columns, which differ from one plan to the next."""
    engine: Any = source.engine
    ((plan,),) = engine.rows(f"EXPLAIN FORMATTED {engine.sql(table)}")
    return str(plan) if numbered else _SPARK_NUMBER.sub("", str(plan))


_SPARK_NUMBER = re.compile(r"#\d+L?|plan_id=\d+")
_SPARK_STEP = re.compile(r"(?m)^\(\d+\) ([^\n]*)$")
_SPARK_OUTPUT = re.compile(r"(?m)^\((\d+)\) [^\n]*\nOutput \[\d+\]: \[([^\]\n]*)\]$")
_SPARK_ROW_BY_ROW = ("ColumnarToRow", "Filter", "Project", "AdaptiveSparkPlan")  # of one table, whose columns pass
_MACROS = """
SELECT macro_definition FROM duckdb_functions() WHERE NOT internal AND macro_definition IS NOT NULL ORDER BY 1
"""
_POSTGRES = """
SELECT pg_catalog.pg_get_viewdef(c.oid) FROM pg_catalog.pg_class c
WHERE c.oid = pg_catalog.to_regclass({name}) AND c.relkind IN ('v', 'm')
"""
