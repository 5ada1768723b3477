"""A declaration that was wrong is corrected: the account stays, and an entry says what changed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from farthing.curator.payers import Register, unit_of
from farthing.data import Categories, Dataset, Flags
from farthing.data.declaration_file import columns_of
from farthing.data.schema import Domain
from farthing.data.sources import open_source
from farthing.data.table_identity import pieces_of
from farthing.errors import FarthingError, InvalidValue
from farthing.numerics.bounds import number_text

if TYPE_CHECKING:
    from farthing.ledger import Ledger

Changes = Mapping[str, tuple[str, str]]
"""By what was declared, how it stood and how it stands now, in words."""

_LONGEST = 400
_NUMBERS = ("max_rows", "rows")


def changes_of(before: Dataset, after: Dataset) -> dict[str, tuple[str, str]]:
    """What another declaration of one table changes: bounds, categories, public facts; never whom it protects.

    >>> import pyarrow
    >>> from farthing.data import dataset
    >>> table = pyarrow.table({"age": [30, 41]})
    >>> changes_of(dataset(table, schema={"age": (0, 110)}), dataset(table, schema={"age": (0, 120)}))
    {'age': ('0 to 110', '0 to 120')}
    """
    if unit_of(before) != unit_of(after):
        raise InvalidValue(
            "unit",
            str(unit_of(after)),
            f"must stay {str(unit_of(before))!r}: whom an account protects is not corrected",
            "declare it with that unit and those neighbours",
        )
    one, other = _facts(before), _facts(after)
    changes = {}
    for name in [*one, *(name for name in other if name not in one)]:
        was, now = one.get(name, _Fact()), other.get(name, _Fact())
        if was.exact != now.exact:
            differ = was.words != now.words
            changes[name] = _short(was.words if differ else was.exact), _short(now.words if differ else now.exact)
    return changes


def refuse_unknown_fact(ledger: Ledger, account: str, what: str) -> bool:
    """Refuse to correct what no table of an account has; whether that could be checked.

    A ledger keeps no paths: only tables that lie beside it can be looked at, and only the names of their columns.
    """
    titles, folder = ledger.budget(account).sources, Path(ledger.place).parent
    if what in _NUMBERS or what.strip().lower() in ("unit", "neighbours"):  # which the ledger refuses
        return True
    if not titles or "://" in ledger.place:
        return False
    register, columns = Register(ledger), set[str]()
    for title in titles:
        try:
            (piece,) = pieces_of(open_source(folder / title))
            columns |= {name for name, _ in columns_of(str(folder / title))}
        except (FarthingError, OSError, ValueError):  # another reader says so
            return False
        if account not in register.holders(piece):  # another file of that name
            return False
    if what not in columns:
        rule = f"must be a column of {' or '.join(titles)}, or one of {', '.join(_NUMBERS)}"
        raise InvalidValue("what", what, rule, "write it as the table does")
    return True


class _Fact(NamedTuple):
    """A declared fact, in words and exactly: the words of two domains may be the same."""

    words: str = "not declared"
    exact: str = "not declared"


def _facts(dataset: Dataset) -> dict[str, _Fact]:
    """What was declared besides the unit: the domain of each column, and public numbers.

    A column of a linked table that is not joined has the name of its table before its own.
    """
    _, _, most, _, rows, columns, *_ = dataset.definition
    facts = {name: _Fact(exact, exact) for name, exact in columns}
    for name in dataset.schema:
        if name in facts and repr(dataset.schema[name]) == facts[name].exact:
            facts[name] = facts[name]._replace(words=_words(dataset.schema[name]))
    for table, schema in dataset.schemas_beside.items():
        facts |= {f"{table}.{name}": _Fact(_words(each), repr(each)) for name, each in schema.columns.items()}
        facts |= {f"{table}.{name}": _Fact(repr(each), repr(each)) for name, each in schema.unknown.items()}
    numbers = dict(zip(_NUMBERS, (most, rows), strict=True))
    return facts | {name: _Fact(_counted(value), repr(value)) for name, value in numbers.items()}


def _words(domain: Domain) -> str:
    if isinstance(domain, Categories):
        return ", ".join(map(str, domain.values))
    if isinstance(domain, Flags):
        return "yes or no"
    return f"{_bound(domain.lower)} to {_bound(domain.upper)}"


def _bound(value: Any) -> str:
    return number_text(value, 15) if isinstance(value, int | float) else str(value)


def _counted(value: int | None) -> str:
    return "not said" if value is None else str(value)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
