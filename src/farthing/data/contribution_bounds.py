"""Whose rows these are: units without a name leave, a secret sample is taken, at most `max_rows` rows a unit stay.

Two units are the same only if their bytes are. Engines disagree with that, and with themselves: under a collation
"a" = "A" in a GROUP BY and not in a hash, and a CHAR(8) meets VARCHARs with and without blanks at their ends. So text
is replaced by bytes before anything is grouped, hashed or joined (`unit_key`).

    whole numbers       as 64 bits; of 8 unsigned bytes, as they are
    text                its bytes if there are fewer than 32 of them, and their SHA-256 (32 bytes) otherwise; the blanks
                        that fill up a CHAR(n) are no part of it, other blanks are
    dates, UUIDs, flags as they are: every engine has one form for each of them
    anything else       refused when the dataset is made, by its type

The rows of a unit that stay are chosen uniformly at random, by the engine's own generator. Privacy does not rest on
that randomness: for *any* choice that looks at the unit's own rows only, adding or removing the unit changes at most
`max_rows` rows, so the claim holds for every outcome of the generator and hence on average over them. Uniformity is
for the statistics. `random()` looks at no row at all.

The sample is another matter. Amplification holds because nobody knows who was kept, so `random()` will not do: it is
a fast generator whose state can be worked out. A unit is kept when

    SHA-256(key, unit) < floor(probability * 2^256)

for a key of 256 bits that the operating system draws for every run and nobody sees. Under the usual assumption that
the keyed hash looks random, the units are kept independently, each with probability floor(p 2^256) / 2^256 <= p,
which is never above the `probability` that is priced. Rows without a unit are told apart by a token the engine makes
for each (a UUID): tokens need to be different, not secret, because the key is.
"""

from __future__ import annotations

import secrets
from fractions import Fraction
from typing import Any

from farthing.data.engines import Engine

UNIT = "__farthing_unit_"
_DRAW = "__farthing_draw"
_RANK = "__farthing_rank"
_BITS = 256
_DIGEST = 32  # bytes; text that is shorter stands for itself, so that the two cannot meet


def unit_columns(count: int) -> list[str]:
    """Names under which the columns of the unit travel through the steps."""
    return [f"{UNIT}{place}" for place in range(count)]


def common_type(kind: Any) -> Any:
    """An Ibis type without what differs between sources of the same values: width, length and NOT NULL.

    >>> import ibis
    >>> common_type(ibis.dtype("!int8"))
    Int64(nullable=True)
    """
    import ibis

    narrow = kind.is_signed_integer() or (kind.is_unsigned_integer() and kind.nbytes < 8)
    return (
        ibis.dtype("int64" if narrow else "string")
        if narrow or kind.is_string()
        else kind.copy(nullable=True)
    )


def unit_key(column: Any, engine: Engine) -> Any:
    """What stands for a unit in every comparison; see the top of this module."""
    import ibis

    if not column.type().is_string():
        return column.cast(common_type(column.type()))
    data = engine.bytes_of(column)
    return ibis.cases((engine.octets(column) < _DIGEST, data), else_=engine.sha256(data))


def fresh_key() -> str:
    """256 secret bits from the operating system, as hexadecimal digits."""
    return secrets.token_hex(_BITS // 8)


def sampled(table: Any, engine: Engine, units: int, probability: Fraction, key: str) -> Any:
    """The rows of the units that a secret sample keeps; see the top of this module."""
    if probability >= 1:
        return table
    threshold = int(probability * 2**_BITS)  # rounded down: kept with at most the probability that is priced
    names = unit_columns(units)
    if names:
        # Lengths make the text of several columns one-to-one: ("a", "bc") and ("ab", "c") differ.
        parts = [_digits(table[name], engine) for name in names]
        text = parts[0].length().cast("string") + ":" + parts[0]
        for part in parts[1:]:
            text = text + part.length().cast("string") + ":" + part
    else:
        name = "__farthing_token"
        table = table.mutate(**{name: engine.token()})
        text = table[name]
    import ibis

    # Bytes, not digits: a database may have a collation of its own for the order of digits and letters.
    digest = engine.sha256(engine.bytes_of(ibis.literal(key) + text))
    kept = digest < engine.constant_bytes(threshold.to_bytes(_BITS // 8))
    found = table.filter(kept)
    return found if names else found.drop("__farthing_token")


def _digits(unit: Any, engine: Engine) -> Any:
    """A unit as plain ASCII text."""
    return engine.hexadecimal(unit) if unit.type().is_binary() else unit.cast("string")


def bounded(table: Any, units: int, max_rows: int) -> Any:
    """At most `max_rows` rows of each unit, chosen uniformly at random."""
    import ibis

    names = unit_columns(units)
    if not names:
        return table
    # The draw is a column of its own first: DuckDB refuses random() inside the window.
    drawn = table.mutate(**{_DRAW: ibis.random()})
    ranked = drawn.mutate(**{_RANK: ibis.row_number().over(group_by=names, order_by=_DRAW)})
    return ranked.filter(ranked[_RANK] < max_rows).drop(_DRAW, _RANK)
