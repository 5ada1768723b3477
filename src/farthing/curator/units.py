"""Whose privacy a budget counts: a budget for persons must not be spent on answers that protect rows only."""

from __future__ import annotations

from farthing.data import Dataset
from farthing.errors import InvalidValue
from farthing.release.sampling import checked_rate

_SAMPLE = ", secret sample of "


def unit_of(dataset: Dataset, sampling_rate: float | None = None) -> str:
    """The unit of a dataset as a ledger keeps it: who is protected, and which tables are neighbours.

    `sampling_rate` says that the table is a secret sample, so that the budget is that of the population.

    >>> import pyarrow
    >>> from farthing.data import dataset
    >>> visits = pyarrow.table({"person": [1, 1], "cost": [10, 20]})
    >>> unit_of(dataset(visits, unit="person", max_rows=2, schema={"cost": (0, 99)}), sampling_rate=0.01)
    'person, add-remove, secret sample of 0.01'
    >>> unit_of(dataset(visits, schema={"cost": (0, 99)}, neighbours="replace").group_privacy(3))
    'row, replace, groups of 3'
    """
    group = dataset.stability().group
    alone = _alone(dataset)
    if sampling_rate is not None:
        rate = checked_rate(sampling_rate)
        if group > 1 or dataset.neighbours != "add-remove" or dataset.probability < 1:
            raise InvalidValue(
                "sampling_rate",
                sampling_rate,
                "needs single units that are added or removed, and a table that is not sampled again",
                'say neighbours="add-remove", or leave the rate out',
            )
        return f"{alone}{_SAMPLE}{rate!r}"
    return alone if group == 1 else f"{alone}, groups of {group}"


def refuse_other_unit(
    dataset: Dataset, registered: str, ledger_name: str, sampling_rate: float | None = None
) -> None:
    """Refuse rows whose unit is not the registered one; protecting groups of it is more, and welcome."""
    unit = unit_of(dataset, sampling_rate)
    if unit == registered or (sampling_rate is None and registered in ("", _alone(dataset))):
        return
    raise InvalidValue(
        "unit",
        unit,
        f"must be {registered!r}, for which the budget of {ledger_name!r} was set",
        "make the dataset with that unit and those neighbours, or register another name",
    )


def rate_of(unit: str) -> float | None:
    """The rate of the secret sample that a registered unit speaks of.

    >>> rate_of("person, add-remove, secret sample of 0.01"), rate_of("person, add-remove")
    (0.01, None)
    """
    _, sampled, rate = unit.rpartition(_SAMPLE)
    try:
        return float(rate) if sampled else None
    except ValueError:  # a column may be called anything
        return None


def _alone(dataset: Dataset) -> str:
    who = " + ".join(dataset.unit) if dataset.unit else "row"
    return f"{who}, {dataset.neighbours}"
