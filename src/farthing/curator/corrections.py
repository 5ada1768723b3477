"""A declaration that was wrong is corrected: the account stays, and an entry says what changed."""

from __future__ import annotations

from collections.abc import Mapping

from farthing.curator.payers import unit_of
from farthing.data import Dataset
from farthing.errors import InvalidValue

Changes = Mapping[str, tuple[str, str]]
"""By what was declared, how it stood and how it stands now, in words."""

_LONGEST = 400


def changes_of(before: Dataset, after: Dataset) -> dict[str, tuple[str, str]]:
    """What another declaration of one table changes: bounds, categories, public facts; never whom it protects.

    >>> import pyarrow
    >>> from farthing.data import dataset
    >>> table = pyarrow.table({"age": [30, 41]})
    >>> changes_of(dataset(table, schema={"age": (0, 110)}), dataset(table, schema={"age": (0, 120)}))
    {'age': ('Integers(lower=0, upper=110)', 'Integers(lower=0, upper=120)')}
    """
    if unit_of(before) != unit_of(after):
        raise InvalidValue(
            "unit",
            str(unit_of(after)),
            f"must stay {str(unit_of(before))!r}: whom an account protects is not corrected",
            "open an account of its own for another unit, in another ledger; the two budgets then add up",
        )
    one, other = _facts(before), _facts(after)
    names = [*one, *(name for name in other if name not in one)]
    return {
        name: (_short(one.get(name, "not declared")), _short(other.get(name, "not declared")))
        for name in names
        if one.get(name) != other.get(name)
    }


def _facts(dataset: Dataset) -> dict[str, str]:
    """What was declared besides the unit: the domain of each column, and public numbers."""
    _, _, most, _, rows, columns, *_ = dataset.definition
    return {**dict(columns), "max_rows": repr(most), "rows": repr(rows)}


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
