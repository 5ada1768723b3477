"""Whose privacy a budget counts: a budget for persons must not be spent on answers that protect rows only."""

from __future__ import annotations

from farthing.data import Dataset
from farthing.errors import InvalidValue


def unit_of(dataset: Dataset) -> str:
    """The unit of a dataset as a ledger keeps it: who is protected, and which tables are neighbours.

    >>> import pyarrow
    >>> from farthing.data import dataset
    >>> visits = pyarrow.table({"person": [1, 1], "cost": [10, 20]})
    >>> unit_of(dataset(visits, unit="person", max_rows=2, schema={"cost": (0, 99)}))
    'person, add-remove'
    >>> unit_of(dataset(visits, schema={"cost": (0, 99)}, neighbours="replace").group_privacy(3))
    'row, replace, groups of 3'
    """
    stability = dataset.stability()
    alone = _alone(dataset)
    return alone if stability.group == 1 else f"{alone}, groups of {stability.group}"


def refuse_other_unit(dataset: Dataset, registered: str, ledger_name: str) -> None:
    """Refuse rows whose unit is not the registered one; protecting groups of it is more, and welcome."""
    if not registered or registered in (unit_of(dataset), _alone(dataset)):
        return
    raise InvalidValue(
        "unit",
        unit_of(dataset),
        f"must be {registered!r}, for which the budget of {ledger_name!r} was set",
        "make the dataset with that unit and those neighbours, or register another name",
    )


def _alone(dataset: Dataset) -> str:
    who = " + ".join(dataset.unit) if dataset.unit else "row"
    return f"{who}, {dataset.neighbours}"
