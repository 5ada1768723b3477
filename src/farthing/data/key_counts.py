"""How many units have each value of a column whose values nobody listed: for key selection, never for people.

A cell is brought into a bounded domain before anything is grouped: text of at most 100 bytes, folded by declared rules
(blanks around it, capitals), or whole numbers within 2^62. Anything else is missing. A unit then keeps at most
`len(weights)` of its different values, chosen at random among its own, and adds to each of them a weight that depends
on how many it keeps. So neighbours differ in the values of one unit, whatever the order of the rows.

The values leave the engine in parts, each with its sum, so that a part can be decided before the next one comes: of a
million values, those that are not kept are gone at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from farthing.data.column_types import MOST_BLANKS, short_text
from farthing.data.engines.engine import Engine, Progress, run
from farthing.data.expressions.ibis_compiler import literal
from farthing.data.schema import LARGEST_INTEGER
from farthing.data.unit_rows import Base, unit_columns, with_draw
from farthing.errors import InvalidValue

LONGEST_KEY = 100
"""Bytes of text, after folding; longer cells are missing."""

Take = Callable[[list[Any], NDArray[np.int64]], None]


class Searched(Protocol):
    """What a search needs of a dataset: the table itself, and that its text files are looked at before and after."""

    @property
    def _base(self) -> Base:
        """The rows that it starts from."""

    def prepare(self) -> None:
        """Refuse text files that cannot be read, before anything is."""

    def confirm(self) -> None:
        """Refuse what was read if a text file has changed."""


_KEY, _DRAW, _RANK, _MANY, _SUM = (f"__farthing_{word}" for word in ("key", "draw", "rank", "many", "sum"))
_PLAIN = range(0x80)
_LETTERS = (range(0x530), range(0x1E00, 0x1F00))  # Latin, Greek and Cyrillic


def refuse_keys_of(kind: Any, name: str, *, text_file: bool = False) -> None:
    """Refuse a column whose values cannot be keys, by its Ibis type alone.

    Args:
        kind: The type of the column.
        name: Its name, for the message.
        text_file: Whether it comes from a text file, where every cell is text.

    Raises:
        InvalidValue: If it holds neither text nor whole numbers.

    >>> import ibis
    >>> refuse_keys_of(ibis.dtype("float64"), "cost")
    Traceback (most recent call last):
    farthing.errors.InvalidValue: column='cost': must hold text or whole numbers to be discovered, not float64; ...
    """
    if not text_file and not (kind.is_string() or kind.is_integer()):
        raise InvalidValue(
            "column",
            name,
            f"must hold text or whole numbers to be discovered, not {kind}",
            "declare a range for it, or convert it in the source",
        )


def key_cell(column: Any, engine: Engine, *, trim: bool = False, lower: bool = False, csv: bool = False) -> Any:
    """A cell as a key: folded and of a bounded size, or missing; the same on every engine.

    Args:
        column: The raw Ibis column, of text or whole numbers.
        engine: The engine of its table.
        trim: Leave out the blanks around it.
        lower: Read capitals as small letters.
        csv: Whether it comes from a text file.

    Returns:
        An Ibis column of text that is compared by its bytes, or of 64-bit whole numbers.
    """
    import ibis

    if column.type().is_integer():
        wide = column.type().is_unsigned_integer() and column.type().nbytes == 8
        number = column.cast("decimal(20, 0)") if wide else column.cast("int64")
        inside = ibis.cases((number.between(literal(-LARGEST_INTEGER), literal(LARGEST_INTEGER)), number))
        return inside.cast("int64")
    # Twice: another encoding than UTF-8 may take more bytes for a character, and none takes that many more.
    text = short_text(column, 2 * LONGEST_KEY + (MOST_BLANKS if trim else 0), engine, csv)
    if trim:
        text = text.strip()
    if lower:
        plain = engine.octets(text) == text.length()  # of plain letters alone, as a rule: five hundred take much longer
        text = ibis.cases((plain, text.translate(*_capitals(_PLAIN))), else_=text.translate(*_capitals(*_LETTERS)))
    return ibis.cases((engine.octets(text) <= LONGEST_KEY, text))


def _capitals(*ranges: range) -> tuple[str, str]:
    """Capitals and their small letters, where each is one letter that leads back: engines differ in all others."""
    letters = [chr(code) for codes in ranges for code in codes]
    large = [a for a in letters if a != a.lower() and len(a.lower()) == 1 and a.lower().upper() == a]
    return "".join(large), "".join(a.lower() for a in large)


def key_query(dataset: Searched, name: str, weights: Sequence[int], *, trim: bool = False, lower: bool = False) -> Any:
    """The Ibis expression of every key with the weights of its units, added up; no row is read.

    Args:
        dataset: The table itself; steps are not applied.
        name: The column, declared or not.
        weights: What a unit adds to each of its keys if it keeps 1, 2, ... of them; a unit keeps no more than these.
        trim: Leave out the blanks around a key.
        lower: Read capitals as small letters.

    Returns:
        An Ibis table of two columns.

    Raises:
        InvalidValue: If the column holds neither text nor whole numbers.
    """
    return keys_of(dataset._base, name, weights, trim=trim, lower=lower)


def keys_of(base: Base, name: str, weights: Sequence[int], *, trim: bool = False, lower: bool = False) -> Any:
    """The same of the rows that a dataset starts from."""
    import ibis

    source, units = base.source, unit_columns(len(base.unit))
    refuse_keys_of(source.table.schema()[name], name, text_file=source.text_file)
    plain = source.engine.plain(source.table[name], padded=name in base.padded)
    key = key_cell(plain, source.engine, trim=trim, lower=lower, csv=source.text_file)
    rows = base.rows_of_units((), {}, {_KEY: key})
    rows = rows.filter(rows[_KEY].notnull())
    if not units:
        return rows.aggregate(by=[_KEY], **{_SUM: rows.count() * literal(weights[0])})
    pairs = rows.select(*units, _KEY).distinct()
    drawn = with_draw(pairs, _DRAW)
    ranked = drawn.mutate(
        **{
            _RANK: ibis.row_number().over(group_by=units, order_by=[_DRAW]),
            _MANY: drawn.count().over(group_by=units),
        }
    )
    kept = ranked.filter(ranked[_RANK] < len(weights))
    if len(set(weights)) == 1:
        weight = literal(weights[0])
    else:
        fewer = [(kept[_MANY] == literal(t), literal(weight)) for t, weight in enumerate(weights[:-1], 1)]
        weight = ibis.cases(*fewer, else_=literal(weights[-1]))
    weighed = kept.select(_KEY, **{_MANY: weight})
    return weighed.aggregate(by=[_KEY], **{_SUM: weighed[_MANY].sum().cast("int64")})


def each_key(
    dataset: Searched,
    name: str,
    weights: Sequence[int],
    take: Take,
    *,
    trim: bool = False,
    lower: bool = False,
    progress: Progress | None = None,
) -> None:
    """RAW weights of every key, without any noise, in parts: for mechanisms only, never for people.

    Args:
        dataset: The table itself; steps are not applied.
        name: The column, declared or not.
        weights: What a unit adds to each of its keys if it keeps 1, 2, ... of them; a unit keeps no more than these.
        take: Called with keys and their sums; whether it raises must not depend on them.
        trim: Leave out the blanks around a key.
        lower: Read capitals as small letters.
        progress: Called with a share between 0 and 1 while the engine runs.

    Raises:
        InvalidValue: If the column holds neither text nor whole numbers.
        EngineError: If the engine fails, or a text file changed while it was read.
    """
    expression = key_query(dataset, name, weights, trim=trim, lower=lower)
    engine = dataset._base.source.engine
    sql = engine.sql(expression)

    def part(rows: list[tuple[Any, ...]]) -> None:
        take([key for key, _ in rows], np.array([int(total) for _, total in rows], dtype=np.int64))

    dataset.prepare()
    run(engine, lambda: engine.each(sql, part), progress)
    dataset.confirm()
