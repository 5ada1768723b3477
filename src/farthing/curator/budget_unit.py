"""Whose privacy a budget counts: a budget for persons must not be spent on answers that protect rows only."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

from farthing.data import Dataset
from farthing.errors import InvalidValue
from farthing.privacy.units import Unit, parts_of
from farthing.statistics.measurements import checked_rate

if TYPE_CHECKING:
    from farthing.ledger import Budget

_MOST_PIECES = 12  # of old words, which can be put together in 2**11 ways


def unit_of(dataset: Dataset, sampling_rate: float | None = None) -> Unit:
    """The unit of a dataset as a ledger keeps it: who is protected, and which tables are neighbours.

    `sampling_rate` says that the table is a secret sample, so that the budget is that of the population.

    >>> import pyarrow
    >>> from farthing.data import dataset
    >>> visits = pyarrow.table({"person": [1, 1], "cost": [10, 20]})
    >>> print(unit_of(dataset(visits, unit="person", max_rows=2, schema={"cost": (0, 99)}), sampling_rate=0.01))
    person, add-remove, secret sample of 0.01
    >>> print(unit_of(dataset(visits, schema={"cost": (0, 99)}, neighbours="replace").group_privacy(3)))
    row, replace, groups of 3
    """
    unit = Unit(dataset.unit, dataset.neighbours, dataset.stability().group)
    if sampling_rate is None:
        return unit
    rate = checked_rate(sampling_rate)
    if unit.group > 1 or dataset.neighbours != "add-remove" or dataset.probability < 1:
        raise InvalidValue(
            "sampling_rate",
            sampling_rate,
            "needs single units that are added or removed, and a table that is not sampled again",
            'say neighbours="add-remove", or leave the rate out',
        )
    return replace(unit, sampling_rate=rate)


def refuse_other_unit(
    dataset: Dataset, budget: Budget, sampling_rate: float | None = None, way_out: str = ""
) -> None:
    """Refuse rows whose unit is not that of the budget; protecting groups of it is more, and welcome."""
    unit = unit_of(dataset, sampling_rate)
    meanings = meanings_of(budget, dataset.source_columns)
    if meanings is None or meanings == [unit] or (sampling_rate is None and meanings == [unit.alone]):
        return
    if len(meanings) > 1 and (unit in meanings or unit.alone in meanings):
        either = " or ".join(repr(str(each)) for each in meanings)
        raise InvalidValue(
            "unit",
            str(unit),
            f"may not be the one for which the budget of {budget.dataset!r} was set: an older version wrote "
            f"{budget.unit!r}, which means {either} for this table",
            way_out or "rename that column, or keep this study in another ledger",
        )
    raise InvalidValue(
        "unit",
        str(unit),
        f"must be {budget.unit!r}, for which the budget of {budget.dataset!r} was set",
        way_out
        or "make the dataset with that unit and those neighbours, or keep this study in another ledger",
    )


def meanings_of(budget: Budget, columns: Collection[str]) -> list[Unit] | None:
    """What the unit of a budget can mean for a table with these columns; None where any unit will do.

    It is one unit, unless the ledger was written by a version that kept words only: there a column called `row` was
    the same as one row, and a column called `a + b` the same as two columns.

    >>> from farthing.ledger import Budget
    >>> from farthing.privacy import ApproxDP
    >>> old = Budget("visits", "", ApproxDP(1.0), 0.0, 0.0, {}, ApproxDP(1.0), 0, "row, add-remove")
    >>> [str(each) for each in meanings_of(old, ["age"])], len(meanings_of(old, ["age", "row"]))
    (['row, add-remove'], 2)
    """
    if budget.protects is not None:
        return [budget.protects]
    if not budget.unit:
        return None
    parts = parts_of(budget.unit)
    if parts is None:
        return []
    who, rest = parts
    found = [rest] if who == "row" else []
    pieces = who.split(" + ")
    if len(pieces) > _MOST_PIECES:
        return found
    for cuts in range(len(pieces)):
        for places in combinations(range(1, len(pieces)), cuts):
            ends = [0, *places, len(pieces)]
            names = [" + ".join(pieces[start:end]) for start, end in pairwise(ends)]
            if set(names) <= set(columns):
                found.append(replace(rest, columns=tuple(names)))
    return list(dict.fromkeys(found))


def rate_of(budget: Budget) -> float | None:
    """The rate of the secret sample that the unit of a budget speaks of.

    >>> from farthing.ledger import Budget
    >>> from farthing.privacy import ApproxDP
    >>> words = "person, add-remove, secret sample of 0.01"
    >>> rate_of(Budget("visits", "", ApproxDP(1.0), 0.0, 0.0, {}, ApproxDP(1.0), 0, words))
    0.01
    """
    if budget.protects is not None:
        return budget.protects.sampling_rate
    parts = parts_of(budget.unit)
    return None if parts is None else parts[1].sampling_rate


def sampling_rate_of(dataset: Dataset, rate: float | None) -> float | None:
    """The rate at which a study says that its table was sampled in secret; refused where that cannot be."""
    if dataset.probability < 1:
        raise InvalidValue(
            "dataset",
            repr(dataset),
            "must not be sampled already",
            "study the whole table, and state sampling_rate= if it is itself a secret sample",
        )
    if rate is None:
        return None
    number = checked_rate(rate)
    if dataset.neighbours != "add-remove":
        raise InvalidValue(
            "sampling_rate", rate, "needs neighbours that add or remove a unit", 'say neighbours="add-remove"'
        )
    return number
