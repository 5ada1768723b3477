"""Axes: the public names of the cells along one column, and which of them a condition holds for."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.data.expressions.syntax_tree import written_constant, written_name
from farthing.data.schema import Categories, Dates, Domain, Flags, Integers, Reals
from farthing.errors import InvalidExpression, InvalidValue
from farthing.statistics.cells.column_pieces import all_cuts, is_plain, representatives
from farthing.statistics.cells.predicates import TRUE, Atom, Truths
from farthing.statistics.cells.statistic_cells import CellAxis


@dataclass(frozen=True)
class Axis:
    """The cells of one column: a value each (`labels`), or the ranges between `edges`, of which the last is closed.

    Args:
        column: The name of the column.
        labels: The value of each cell.
        edges: The edges between cells, instead of labels.
        declared: What the column may hold; read off the labels or edges by default.

    Raises:
        InvalidValue: If labels repeat, edges do not rise, or neither or both are given.

    >>> len(Axis("age", range(100))), len(Axis("bmi", edges=(10.0, 18.5, 25.0, 60.0)))
    (100, 3)
    >>> Axis("bmi", edges=(10.0, 18.5, 25.0, 60.0)).text(2)
    '25.0 <= bmi <= 60.0'
    """

    column: str
    labels: Sequence[Any] | None = None
    edges: Sequence[Any] | None = None
    declared: Domain | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if (self.labels is None) == (self.edges is None):
            raise InvalidValue("labels", self.labels, "must be given if edges are not", "pass one of the two")
        for name in ("labels", "edges"):
            given = getattr(self, name)
            if given is not None and not isinstance(given, range):
                object.__setattr__(self, name, tuple(given))
        if self.labels is not None and (
            not len(self.labels) or (not isinstance(self.labels, range) and len(set(self.labels)) < len(self.labels))
        ):
            raise InvalidValue("labels", self.labels, "must be one or more different values")
        if self.edges is not None and not (len(self.edges) > 1 and np.all(np.diff(_numbers(self.edges)) > 0)):
            raise InvalidValue("edges", self.edges, "must be two or more increasing numbers or dates")

    def __len__(self) -> int:
        return len(self.labels) if self.labels is not None else len(self.edges or ()) - 1

    @cached_property
    def domain(self) -> Domain:
        """What the column may hold."""
        if self.declared is not None:
            return self.declared
        if isinstance(self.labels, range):
            return _domain_of(self.labels, False)
        if self.labels is not None:
            return _domain_of([label for label in self.labels if label is not None], False)
        return _domain_of(self.edges or (), True)

    @classmethod
    def of_cells(cls, cells: CellAxis) -> Axis:
        """The cells of a statistic's column, as they are reported.

        Args:
            cells: The cells of a statistic's column.

        Returns:
            The axis.

        >>> Axis.of_cells(CellAxis("age", Integers(0, 110), (0, 18, 65, 110))).text(1)
        '18 <= age < 65'
        """
        if cells.edges is None:
            return cls(cells.column, cells.labels, None, cells.domain)
        return cls(cells.column, None, cells.edges, cells.domain)

    def value(self, i: int) -> Any:
        """The value of a cell that has a label.

        Args:
            i: The number of the cell.

        Returns:
            Its label.
        """
        assert self.labels is not None
        return self.labels[i]

    def text(self, i: int) -> str:
        """A cell as a condition.

        Args:
            i: The number of the cell.

        Returns:
            The condition.

        >>> Axis("sex", ("F", "M")).text(1), Axis("age", edges=(0, 10, 25)).text(0)
        ("sex = 'M'", '0 <= age < 10')
        """
        name = written_name(self.column)
        if self.edges is None:
            return f"{name} = {written_constant(self.value(i))}"
        low, high = (written_constant(edge) for edge in self.edges[i : i + 2])
        return f"{low} <= {name} {'<' if i < len(self) - 1 else '<='} {high}"

    def truth_of(self, atom: Atom, text: str) -> Truths:
        """The truth of a condition on this column, cell by cell; refused where it changes inside a cell.

        Args:
            atom: A condition on this column.
            text: The whole question, for the message of a refusal.

        Returns:
            One truth value for each cell.

        Raises:
            InvalidExpression: If the condition changes inside a cell, or cannot be decided cell by cell.
        """
        if isinstance(self.domain, Categories | Flags):
            assert self.labels is not None
            return np.array([atom.truth(value) for value in self.labels], dtype=np.int8)
        if not is_plain(atom, self.domain):
            raise InvalidExpression(
                text, None, f"{atom.text} cannot be decided cell by cell", "compare the column with constants"
            )
        starts = representatives(self.domain, all_cuts(self.domain, [atom], []))
        truths = np.array([atom.truth(value) for value in starts], dtype=np.int8)
        if self.edges is not None:
            self._refuse_cut_cells(starts, truths, atom, text)
        # Every cell behaves like the piece that begins last at or before it.
        cells = _numbers(self.labels if self.labels is not None else self._first_values)
        truth = truths[np.searchsorted(_numbers(starts[1:]), cells, side="right")]
        if self.labels is not None and not isinstance(self.labels, range) and None in self.labels:
            truth[[label is None for label in self.labels]] = atom.truth(None)
        return np.asarray(truth)

    def _refuse_cut_cells(self, starts: Sequence[Any], truths: Truths, atom: Atom, text: str) -> None:
        assert self.edges is not None
        for place in np.flatnonzero(np.diff(truths)):
            start = starts[int(place) + 1]
            if start in self._first_values:
                continue
            cell = max(0, int(np.searchsorted(_numbers(self.edges), _numbers([start])[0], side="right")) - 1)
            cell = min(cell, len(self) - 1)
            name = written_name(self.column)
            low, high = (written_constant(edge) for edge in self.edges[cell : cell + 2])
            last = cell == len(self) - 1
            if truths[0] != TRUE == truths[-1]:  # it holds from somewhere on
                ways = [f"{name} >= {low}", f"{name} >= {high}"][: 1 if last else 2]
            else:
                ways = [f"{name} < {low}", f"{name} {'<=' if last else '<'} {high}"][0 if cell else 1 :]
            raise InvalidExpression(
                text,
                None,
                f"{atom.text} cuts through the cell {self.text(cell)}",
                f"its edges are {low} and {high}, write {' or '.join(ways)}",
            )

    @cached_property
    def _first_values(self) -> tuple[Any, ...]:
        """The least value of every cell between edges; of whole numbers, the first one from the edge on."""
        whole = isinstance(self.domain, Integers)
        return tuple(math.ceil(edge) if whole else edge for edge in (self.edges or ())[:-1])

    def truth_of_choice(self, choice: Any) -> NDArray[np.bool_]:
        """Cells chosen by a value, a list of values, or a pair (lo, hi) that stands for lo <= value < hi.

        Args:
            choice: A value, a list of values, or a pair.

        Returns:
            One truth value for each cell.

        Raises:
            InvalidValue: If a value is not one of the cells', or an edge not one of the edges.
        """
        if isinstance(choice, tuple) and len(choice) == 2:
            return self._between(*choice)
        many = choice if isinstance(choice, list | tuple | Set | np.ndarray) else [choice]
        if self.edges is not None:
            raise InvalidValue(self.column, choice, "must be a pair of edges", self._edges_shown())
        assert self.labels is not None
        truth = np.zeros(len(self), dtype=bool)
        for value in many:
            try:
                place = self._places.get(_key(value))
            except TypeError:  # what cannot be looked up is none of them
                place = None
            if place is None:
                raise InvalidValue(self.column, value, "must be one of its values", self._edges_shown())
            truth[place] = True
        return truth

    @cached_property
    def _places(self) -> dict[Any, int]:
        return {_key(label): place for place, label in enumerate(self.labels or ())}

    def _between(self, low: Any, high: Any) -> NDArray[np.bool_]:
        """As the condition lo <= column < hi would: there is nothing beyond the ends, so a pair may reach past them."""
        rule = f"must be a pair lo < hi {'of its edges' if self.edges is not None else 'of such values'}"
        if isinstance(self.domain, Categories | Flags):
            raise InvalidValue(
                self.column, (low, high), "has no order", "give one value, or a list of values in brackets"
            )
        try:
            marks = _numbers(self.edges if self.edges is not None else self.labels)  # type: ignore[arg-type]
            least, most = _numbers([low, high])
        except (TypeError, ValueError, AttributeError):
            raise InvalidValue(self.column, (low, high), rule, self._edges_shown()) from None
        days = isinstance(self.domain, Dates)
        same_kind = all(isinstance(edge, datetime.date) == days for edge in (low, high))
        if self.edges is not None:
            known = all(edge in marks or not marks[0] <= edge <= marks[-1] for edge in (least, most))
            # The last cell holds its upper edge, too: nothing begins there.
            good = bool(least < most) and known and least != marks[-1]
            inside = (marks[:-1] >= least) & (marks[:-1] < most)
        else:
            good = bool(least < most)
            inside = (marks >= least) & (marks < most)
        if not (good and same_kind):
            raise InvalidValue(self.column, (low, high), rule, self._edges_shown())
        return np.asarray(inside)

    def _edges_shown(self) -> str:
        marks = self.edges if self.edges is not None else self.labels
        assert marks is not None
        texts = [written_constant(mark) for mark in (*marks[:4], *marks[4:][-2:])]
        if len(marks) > 6:
            texts.insert(4, "...")
        return f"they are {', '.join(texts)}"


def _key(value: Any) -> tuple[bool, Any]:
    """True is not 1 here, and NumPy's numbers are Python's."""
    plain = value.item() if isinstance(value, np.generic) else value
    return isinstance(plain, bool), plain


def _numbers(values: Sequence[Any]) -> NDArray[Any]:
    """Numbers or days as numbers that can be compared at once; a missing one is NaN."""
    if isinstance(values, range):
        return np.arange(values.start, values.stop, values.step)
    if any(isinstance(value, datetime.date) for value in values):
        return np.array([np.nan if day is None else day.toordinal() for day in values])
    if any(value is None for value in values):
        return np.array([np.nan if value is None else value for value in values], dtype=float)
    array = np.array(values)
    if array.dtype.kind not in "iuf" and len(array):
        raise TypeError("numbers or dates")
    return array


def _domain_of(labels: Sequence[Any], cut: bool) -> Domain:
    """Numbers and dates by their least and greatest, anything else by its list."""
    first = labels[0] if len(labels) else None
    if isinstance(first, bool | np.bool_):
        return Flags()
    if isinstance(first, datetime.date):
        return Dates(min(labels), max(labels))
    if isinstance(labels, range) or (
        all(isinstance(value, int | np.integer) for value in labels)
        and (cut or list(labels) == list(range(int(labels[0]), int(labels[0]) + len(labels))))
    ):
        return Integers(int(labels[0]), int(labels[-1]))
    if isinstance(first, str | int | np.integer) and not cut:
        return Categories(tuple(labels))
    return Reals(float(min(labels)), float(max(labels)))
