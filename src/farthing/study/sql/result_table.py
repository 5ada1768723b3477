"""The rows of a statement, from released answers: post-processing, which costs nothing and sees no private row."""

from __future__ import annotations

import csv
import io
import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from itertools import product
from typing import Any

import numpy as np

from farthing.data import Categories, Dates, Flags, Integers
from farthing.data.expressions.row_evaluation import evaluate
from farthing.data.expressions.syntax_tree import Node
from farthing.data.schema import Domain
from farthing.inference import Answer
from farthing.inference.answers import with_interval
from farthing.numerics.bounds import number_text
from farthing.numerics.notebook_tables import html_table
from farthing.study.sql.table_query import Measured, Ordering, OutputColumn, SelectQuery, TableQuery

_ROWS_SHOWN = 60


@dataclass(frozen=True)
class Cell:
    """One number of a result, with its interval; None where nothing was released for it."""

    value: Any
    lower: float | None = None
    upper: float | None = None

    @property
    def error(self) -> float | None:
        """The distance to the further end of the interval."""
        if self.value is None or self.lower is None or self.upper is None:
            return None
        return float(max(self.upper - self.value, self.value - self.lower))


@dataclass(frozen=True)
class ResultTable:
    """What a statement returns: named columns and rows, as SQL does, and the error of every released number.

    Args:
        columns: The names of the columns.
        cells: The rows, with the interval of every number that has one.
        measured: Which columns are released numbers.
        confidence: How often each interval holds the true value.
        notes: What the numbers cannot say.

    >>> table = ResultTable(("sex", "n"), ((Cell("F"), Cell(10.0, 7.0, 13.0)),), (False, True), 0.95)
    >>> table.rows
    [('F', 10.0)]
    >>> table.records(errors=True, intervals=True)
    [{'sex': 'F', 'n': 10.0, 'n_error': 3.0, 'n_lower': 7.0, 'n_upper': 13.0}]
    >>> print(table)
    sex  n (95%)
    ---  -------
    F     10 ± 3
    """

    columns: tuple[str, ...]
    cells: tuple[tuple[Cell, ...], ...]
    measured: tuple[bool, ...]
    confidence: float
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """The rows as tuples, in the order of the statement."""
        return [tuple(cell.value for cell in row) for row in self.cells]

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.cells)

    def records(self, *, errors: bool = False, intervals: bool = False) -> list[dict[str, Any]]:
        """One dictionary for each row.

        Args:
            errors: Whether every released number has a column `..._error` beside it.
            intervals: Whether it has columns `..._lower` and `..._upper`.

        Returns:
            The rows, by the names of their columns.
        """
        records = []
        for row in self.cells:
            record: dict[str, Any] = {}
            for name, cell, measured in zip(self.columns, row, self.measured, strict=True):
                record[name] = cell.value
                if measured and errors:
                    record[f"{name}_error"] = cell.error
                if measured and intervals:
                    record[f"{name}_lower"], record[f"{name}_upper"] = cell.lower, cell.upper
            records.append(record)
        return records

    def names(self, *, errors: bool = False, intervals: bool = False) -> list[str]:
        """The names of the columns that `records` has.

        Args:
            errors: As for `records`.
            intervals: As for `records`.

        Returns:
            The names, in order.
        """
        names = []
        for name, measured in zip(self.columns, self.measured, strict=True):
            names.append(name)
            names += [f"{name}_error"] if measured and errors else []
            names += [f"{name}_lower", f"{name}_upper"] if measured and intervals else []
        return names

    def to_frame(self, *, errors: bool = False, intervals: bool = False) -> Any:
        """The same as a pandas table.

        Args:
            errors: As for `records`.
            intervals: As for `records`.

        Returns:
            A data frame.
        """
        import pandas

        options = {"errors": errors, "intervals": intervals}
        return pandas.DataFrame(self.records(**options), columns=self.names(**options))

    def to_csv(self, *, errors: bool = True, intervals: bool = True) -> str:
        """The same as comma-separated text, by default with errors and intervals.

        Args:
            errors: As for `records`.
            intervals: As for `records`.

        Returns:
            The text, with a header.
        """
        options = {"errors": errors, "intervals": intervals}
        out = io.StringIO()
        writer = csv.DictWriter(out, self.names(**options), lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.records(**options))
        return out.getvalue()

    def to_dict(self) -> dict[str, Any]:
        """Columns, rows, errors and intervals as plain data, ready for JSON."""
        rows = self.records(errors=True, intervals=True)
        return {
            "columns": self.names(errors=True, intervals=True),
            "rows": [{name: _plain(value) for name, value in row.items()} for row in rows],
            "confidence": self.confidence,
            "notes": list(self.notes),
        }

    def _repr_html_(self) -> str:
        rows = [[_cell_text(cell) for cell in row] for row in self.cells[:_ROWS_SHOWN]]
        more = [f"... and {len(self.cells) - _ROWS_SHOWN:,} more rows"] if len(self.cells) > _ROWS_SHOWN else []
        right = [place for place, has in enumerate(self.measured) if has or _is_number(self.cells, place)]
        return html_table(self._heads, rows, notes=[*more, *self.notes], numbers=right)

    @property
    def _heads(self) -> list[str]:
        level = f" ({100 * self.confidence:.6g}%)"
        return [name + level * has for name, has in zip(self.columns, self.measured, strict=True)]

    def __str__(self) -> str:
        heads = self._heads
        body = [[_cell_text(cell) for cell in row] for row in self.cells[:_ROWS_SHOWN]]
        widths = [max([len(head), *(len(row[place]) for row in body)]) for place, head in enumerate(heads)]
        right = [has or _is_number(self.cells, place) for place, has in enumerate(self.measured)]
        lines = ["  ".join(head.ljust(width) for head, width in zip(heads, widths, strict=True)).rstrip()]
        lines.append("  ".join("-" * width for width in widths))
        for row in body:
            cells = zip(row, widths, right, strict=True)
            lines.append("  ".join(cell.rjust(w) if numeric else cell.ljust(w) for cell, w, numeric in cells).rstrip())
        if len(self.cells) > _ROWS_SHOWN:
            lines.append(f"... and {len(self.cells) - _ROWS_SHOWN:,} more rows")
        if not self.cells:
            lines.append("(no rows)")
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


def result_table(query: TableQuery, answers: Mapping[str, Answer], confidence: float = 0.95) -> ResultTable:
    """The rows of a statement.

    Args:
        query: The statement.
        answers: What was released, by the names of its statistics.
        confidence: How often each interval holds the true value.

    Returns:
        Its rows, in order.
    """
    rows: list[tuple[Cell, ...]] = []
    notes: list[str] = []
    for part in query.parts:
        own, computed = _rows_of(part, answers, confidence)
        rows += own
        notes += [*_notes_of(part, answers), *computed]
    columns = query.parts[0].columns
    measured = tuple(any(part.columns[place].has_error for part in query.parts) for place in range(len(columns)))
    for place, descending, missing_first in reversed(query.order):
        rows.sort(key=cmp_to_key(_by(lambda row, at=place: row[at].value, descending, missing_first)))
    if len(query.parts) > 1:
        rows = _cut(rows, query.limit, query.offset)
    names = tuple(each.name for each in columns)
    return ResultTable(names, tuple(rows), measured, confidence, tuple(dict.fromkeys(notes)))


def _rows_of(
    query: SelectQuery, answers: Mapping[str, Answer], confidence: float
) -> tuple[list[tuple[Cell, ...]], list[str]]:
    """The rows of one SELECT, and what there is to know about the numbers that are computed from several."""
    rows: list[tuple[dict[str, Any], tuple[Cell, ...]]] = []
    notes: list[str] = []
    for number, keys in enumerate(query.sets):
        numbers = [_Numbers.of(each, number, answers, confidence) for each in query.measured]
        combined = {
            column.name: _Numbers.combined(column.combined, numbers, confidence)
            for column in query.columns
            if column.combined is not None
        }
        notes += [each.answer.note for each in combined.values() if each.answer.note]
        for labels in product(*(values_of(query.keys[place].domain) for place in keys)):
            row: dict[str, Any] = {f"k{place}": None for place in range(len(query.keys))}
            for place, label in zip(keys, labels, strict=True):
                row[f"k{place}"] = query.keys[place].value(label)
            cells = [one.cell(labels) for one in numbers]
            row |= {f"a{place}": cell.value for place, cell in enumerate(cells)}
            if query.having is not None and evaluate(query.having, row) is not True:
                continue
            computed = (_cell(column, row, cells, combined, labels) for column in query.columns)
            rows.append((row, tuple(computed)))
    for ordering in reversed(query.order):
        rows.sort(key=cmp_to_key(_by_expression(ordering)))
    return _cut([cells for _, cells in rows], query.limit, query.offset), notes


@dataclass(frozen=True)
class _Numbers:
    """The released numbers of one statistic, by the labels of their groups."""

    answer: Answer
    places: Mapping[tuple[Any, ...], int]

    @classmethod
    def of(cls, measured: Measured, number: int, answers: Mapping[str, Answer], confidence: float) -> _Numbers:
        answer = answers[measured.statistics[number].name]
        if confidence != answer.confidence:
            answer = answer.at(confidence)
        places: dict[tuple[Any, ...], int] = {}
        for place, label in enumerate(answer.labels):
            parts = label if isinstance(label, tuple) else (label,)
            if measured.pick is not None:
                if parts[-1] != measured.pick:
                    continue
                parts = parts[:-1]
            places[parts] = place
        return cls(answer, places if answer.labels else {(): 0})

    @classmethod
    def combined(cls, node: Node, numbers: Sequence[_Numbers], confidence: float) -> _Numbers:
        """What is computed from several of them, with the noise that they have in common."""
        answer = _arithmetic(node, numbers).at(confidence)
        return cls(answer, numbers[_first_slot(node)].places)

    def cell(self, labels: tuple[Any, ...]) -> Cell:
        """The number of one group."""
        place = self.places.get(labels)
        if place is None:
            return Cell(None)
        value, lower, upper = (
            float(np.atleast_1d(each)[place]) for each in (self.answer.values, self.answer.lower, self.answer.upper)
        )
        return Cell(*(each if math.isfinite(each) else None for each in (value, lower, upper)))


def _cell(
    column: OutputColumn,
    row: Mapping[str, Any],
    cells: Sequence[Cell],
    combined: Mapping[str, _Numbers],
    labels: tuple[Any, ...],
) -> Cell:
    """One number or key of one row."""
    several = combined.get(column.name)
    return _computed(column, row, cells) if several is None else several.cell(labels)


_OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


def _arithmetic(node: Node, numbers: Sequence[_Numbers]) -> Any:
    if node.operator == "column":
        return numbers[int(str(node.value)[1:])].answer
    if node.operator == "constant":
        return node.value
    parts = [_arithmetic(each, numbers) for each in node.arguments]
    return -parts[0] if node.operator == "negative" else _OPERATIONS[node.operator](*parts)


def _first_slot(node: Node) -> int:
    """The number of the first released number in a tree: all of them have the same groups."""
    if node.operator == "column":
        return int(str(node.value)[1:])
    return next(place for place in map(_first_slot, node.arguments) if place >= 0) if node.arguments else -1


def _computed(column: OutputColumn, row: Mapping[str, Any], cells: Sequence[Cell]) -> Cell:
    """A column of the result. It moves along a line with one number, so its interval lies between the ends of that."""
    value = evaluate(column.meaning, row)
    if column.aggregate is None:
        return Cell(value)
    name, cell = f"a{column.aggregate}", cells[column.aggregate]
    if value is None or cell.lower is None or cell.upper is None:
        return Cell(value)
    ends = [evaluate(column.meaning, {**row, name: end}) for end in (cell.lower, cell.upper)]
    numbers = [float(end) for end in ends if isinstance(end, int | float)]
    return Cell(value, min(numbers), max(numbers)) if len(numbers) == 2 else Cell(value)


def values_of(domain: Domain) -> Sequence[Any]:
    """The values of a key, in the order of the schema."""
    if isinstance(domain, Categories):
        return domain.values
    if isinstance(domain, Flags):
        return (False, True)
    if isinstance(domain, Integers):
        return range(domain.lower, domain.upper + 1)
    assert isinstance(domain, Dates), "a key has a list of values"
    first = domain.lower.toordinal()
    return [domain.lower.fromordinal(day) for day in range(first, domain.upper.toordinal() + 1)]


def _notes_of(query: SelectQuery, answers: Mapping[str, Answer]) -> Iterator[str]:
    for measured in query.measured:
        if measured.note:
            yield measured.note
        for statistic in measured.statistics:
            answer = answers[statistic.name]
            if answer.note:
                yield answer.note
            if answer.counts:
                yield f"{statistic.name} counts {answer.counts}"
    if query.having is not None or query.limit is not None:
        yield "HAVING, ORDER BY and LIMIT compare released numbers, which carry noise"
    missing = [key.name or key.column for key in query.keys]
    if missing:
        yield f"rows without a value of {' or '.join(missing)} are in no group"


def _by_expression(ordering: Ordering) -> Any:
    return _by(lambda pair: evaluate(ordering.meaning, pair[0]), ordering.descending, ordering.missing_first)


def _by(value_of: Any, descending: bool, missing_first: bool) -> Any:
    """Compares by a value; what is missing comes last, or first, whatever the direction."""

    def compared(one: Any, other: Any) -> int:
        left, right = value_of(one), value_of(other)
        if left is None or right is None:
            if left is None and right is None:
                return 0
            return -1 if (left is None) == missing_first else 1
        if type(left) is not type(right) and not (isinstance(left, int | float) and isinstance(right, int | float)):
            left, right = str(left), str(right)
        way = int(left > right) - int(left < right)
        return -way if descending else way

    return compared


def _cut(rows: list[Any], limit: int | None, offset: int) -> list[Any]:
    return rows[offset:] if limit is None else rows[offset : offset + limit]


def _cell_text(cell: Cell) -> str:
    if cell.value is None:
        return "NULL"
    if cell.lower is not None and cell.upper is not None:
        return with_interval(float(cell.value), cell.lower, cell.upper)
    if isinstance(cell.value, float):
        return number_text(cell.value, 6)
    return str(cell.value).lower() if isinstance(cell.value, bool) else str(cell.value)


def _is_number(cells: Sequence[Sequence[Cell]], place: int) -> bool:
    return any(isinstance(row[place].value, int | float) and not isinstance(row[place].value, bool) for row in cells)


def _plain(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value
