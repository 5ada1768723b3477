"""The table a dataset starts from: opened, checked against the schema, with its unit and its bound.

Whose rows these are: units without a name leave, a secret sample is taken, at most `max_rows` rows a unit stay.

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

for a key of 256 bits that the operating system draws for every run and that stands only in the SQL of that run. Under
the usual assumption that
the keyed hash looks random, the units are kept independently, each with probability floor(p 2^256) / 2^256 <= p,
which is never above the `probability` that is priced. Rows without a unit are distinguished by a token the engine makes
for each (a UUID): tokens need to be different, not secret, because the key is.

Whether a column can hold its domain is decided from its type alone, when the dataset is made, so a wrong type never
becomes an error that depends on a row (`refuse_wrong_type`). How a cell is read from then on stands in
`farthing.data.expressions.ibis_compiler`.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Any

from farthing.data.engines.engine import Engine
from farthing.data.expressions import read_column
from farthing.data.expressions.ibis_compiler import literal
from farthing.data.schema import Categories, Dates, Domain, Flags, Integers, Reals, Schema
from farthing.data.sources import Source, open_source
from farthing.data.stability import NEIGHBOURS
from farthing.errors import InvalidValue
from farthing.privacy.events import checked_count
from farthing.privacy.periods import Periods

EXACT_IN_A_DOUBLE = 2**53
_TO_DATES = " to dates, or to timestamps without a time zone (the zone decides which day it was)"
MOST_DIGITS = 38  # of a decimal, on the engines that have a limit


def refuse_wrong_type(name: str, kind: Any, domain: Domain, *, text_file: bool) -> None:
    """Refuse a column whose type cannot hold its domain; `kind` is the Ibis type."""
    if text_file:
        _refuse_inexact(name, domain, "a CSV file")
        return
    if kind.is_array():  # its elements are read after `explode`
        kind = kind.value_type
    if isinstance(domain, Integers | Reals):
        spelled = isinstance(domain, Reals) and bool(domain.decimal) and kind.is_string()
        fits = spelled or (kind.is_numeric() and not kind.is_boolean())
        types = "numbers, or of text with decimal declared"
    elif isinstance(domain, Dates):
        fits = kind.is_date() or kind.is_string() or (kind.is_timestamp() and kind.timezone is None)
        types = "dates, timestamps without a time zone, or text such as 2024-12-31"
    elif isinstance(domain, Flags):
        fits, types = _can_be_flags(kind), "true/false values, 0 and 1, or text"
    else:
        fits, types = _holds(kind, domain)
    if not fits:
        zoned = kind.is_timestamp() and kind.timezone is not None
        actual = f"timestamps with a time zone ({kind})" if zoned else _type_text(kind)
        raise InvalidValue(
            f"schema[{name!r}]",
            _in_words(domain),
            f"needs a column of {types}, and this one holds {actual}",
            f"declare what the column holds, or convert it in the source{_TO_DATES if zoned else ''}",
        )
    if kind.is_decimal() and kind.scale is not None:
        _refuse_undecimal(name, kind, domain)
    if kind.is_floating() or kind.is_decimal():
        _refuse_inexact(name, domain, f"a column of type {kind}")


def _type_text(kind: Any) -> str:
    """A column's type; one that Ibis does not know, such as a domain of PostgreSQL, by the name that its engine has."""
    own = getattr(kind, "raw_type", None)
    return str(kind) if own is None else own.sql(dialect="postgres")


def _in_words(domain: Domain) -> str:
    """What was declared, in the words of Python and of study.toml alike."""
    if isinstance(domain, Categories):
        few = ", ".join(map(str, domain.values[:4]))
        return f"categories {few}{', ...' if len(domain.values) > 4 else ''}"
    if isinstance(domain, Flags):
        return "flags"
    called = {Integers: "whole numbers", Reals: "real numbers", Dates: "dates"}[type(domain)]
    return f"{called} from {domain.lower} to {domain.upper}"


def typed(column: Any, domain: Domain, engine: Engine, *, csv: bool = False) -> Any:
    """A column in the type of its domain: text is read, 0 and 1 are flags; what spells no such value is missing.

    The same on every engine, and the same for a CSV file as for text that is stored otherwise.
    """
    import ibis

    kind = column.type()
    labels = isinstance(domain, Categories) and isinstance(domain.values[0], str)
    flags = isinstance(domain, Flags) or (isinstance(domain, Categories) and isinstance(domain.values[0], bool))
    if flags and kind.is_numeric() and not kind.is_boolean():
        return ibis.cases((column == 1, ibis.literal(True)), (column == 0, ibis.literal(False)))
    if not kind.is_string():
        return column
    if isinstance(domain, Categories) and labels:
        if not (domain.trim or domain.lowered):
            return column
        longest = max(len(str(value).encode()) for value in domain.values)
        return _tidy(_short(column, 2 * longest + _MOST_BLANKS, engine, csv), domain)
    # Stripped first, and not only for the spaces: DuckDB moves a bare cast into its CSV reader, which then drops the
    # whole line instead of the cell.
    text = _short(column, _LONGEST_SPELLING, engine, csv).strip()
    if isinstance(domain, Dates):
        return _date(text, engine)
    if flags:
        word = text.lower()
        return ibis.cases((word.isin(_TRUE), ibis.literal(True)), (word.isin(_FALSE), ibis.literal(False)))
    if isinstance(domain, Reals) and domain.decimal == ",":
        text = text.translate(",.", ".x")  # a point is no comma: 1.234 might be meant as a thousand
    return _number(text, engine)


_TRUE, _FALSE = ("true", "t", "yes", "y", "1", "1.0"), ("false", "f", "no", "n", "0", "0.0")
_MOST_BLANKS = 1000  # bytes around a category
_LONGEST_SPELLING = 100  # bytes of a number, a date or a flag
_SPELLED_NUMBER = "^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,2})?$"
_SPELLED_DATE = "^[0-9]{4}[-/][0-9]{2}[-/][0-9]{2}([T ]|$)"


def _short(column: Any, longest: int, engine: Engine, csv: bool) -> Any:
    """Text without a collation of its own, and of a size that is safe to work on; longer cells are missing."""
    import ibis

    short = ibis.cases((engine.octets(column) <= longest, column))
    return short if csv else engine.text_of_key(engine.key(short))


def _tidy(text: Any, domain: Categories) -> Any:
    if domain.trim:
        text = text.strip()
    if domain.lowered:
        # Letters of the list alone: a cell with another one is none of its categories, and engines agree on these.
        letters = sorted(set("".join(map(str, domain.values))))
        pairs = [(large, small) for small in letters for large in {small.upper(), small.title()} - {small}]
        pairs = [(large, small) for large, small in pairs if len(large) == 1]
        if pairs:
            text = text.translate(*("".join(side) for side in zip(*pairs, strict=True)))
    return text


def _number(text: Any, engine: Engine) -> Any:
    import ibis

    if engine.name == "duckdb":
        return ibis.cases((~text.contains("_"), text)).try_cast("float64")  # which reads 1_000 as a thousand
    return ibis.cases((text.re_search(_SPELLED_NUMBER), text)).cast("float64")


def _date(text: Any, engine: Engine) -> Any:
    """The day that ISO 8601 spells at the beginning of a text; 2023-02-30 is none."""
    import ibis

    text = ibis.cases((text.re_search(_SPELLED_DATE) & (text.substr(0, 4) != "0000"), text.substr(0, 10)))
    if engine.name == "duckdb":
        return text.try_cast("date")
    year, month, day = (text.substr(*place).cast("int64") for place in ((0, 4), (5, 2), (8, 2)))
    leap = ((year % 4 == 0) & (year % 100 != 0)) | (year % 400 == 0)
    thirty = month.isin([4, 6, 9, 11])
    days = ibis.cases((month == 2, ibis.cases((leap, 29), else_=28)), (thirty, 30), else_=31)
    valid = month.between(1, 12) & day.between(1, days)
    # Of a day that is none, the first of its year is made, and left out: an engine may fail where it looks too early.
    real = ibis.date(year, ibis.cases((valid, month), else_=1), ibis.cases((valid, day), else_=1))
    return ibis.cases((valid, real))


def _can_be_flags(kind: Any) -> bool:
    return bool(kind.is_boolean() or kind.is_numeric() or kind.is_string())


def _holds(kind: Any, domain: Categories) -> tuple[bool, str]:
    first = domain.values[0]
    if isinstance(first, bool):
        return _can_be_flags(kind), "true/false values, 0 and 1, or text"
    if isinstance(first, int):
        return kind.is_numeric() and not kind.is_boolean(), "numbers"
    return kind.is_string(), "text"


def _refuse_undecimal(name: str, kind: Any, domain: Domain) -> None:
    """Refuse bounds that do not fit beside the fraction of a decimal: the engine would fail in a query."""
    room = max(MOST_DIGITS, kind.precision or 0) - kind.scale
    ends = (domain.lower, domain.upper) if isinstance(domain, Integers | Reals) else ()
    numbers = ends or [value for value in getattr(domain, "values", ()) if isinstance(value, int)]
    if isinstance(domain, Flags):
        numbers = [1]
    if any(math.ceil(abs(number)) >= 10**room for number in numbers):
        raise InvalidValue(
            f"schema[{name!r}]",
            domain,
            f"must be numbers that fit {kind}, below 10^{room}",
            "narrow the bounds, or store it with fewer digits after the point",
        )


def _refuse_inexact(name: str, domain: Domain, where: str) -> None:
    numbers: tuple[float, ...] = ()
    if isinstance(domain, Integers):
        numbers = (domain.lower, domain.upper)
    elif isinstance(domain, Categories):
        numbers = tuple(value for value in domain.values if isinstance(value, int))
    if any(abs(number) > EXACT_IN_A_DOUBLE for number in numbers):
        raise InvalidValue(
            f"schema[{name!r}]", domain, f"must stay within 2^53 for {where}", "store it as 64-bit integers"
        )


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
    return ibis.dtype("int64" if narrow else "string") if narrow or kind.is_string() else kind.copy(nullable=True)


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
    sample = table.filter(kept)
    return sample if names else sample.drop("__farthing_token")


def _digits(unit: Any, engine: Engine) -> Any:
    """A unit as plain ASCII text."""
    return engine.hexadecimal(unit) if unit.type().is_binary() else unit.cast("string")


def bounded(table: Any, units: int, max_rows: int, first: str | None = None) -> Any:
    """At most `max_rows` rows of each unit, chosen uniformly at random; with `first`, those that are least in it.

    Among rows that are equal in `first` the choice is random. Rows without a value there must have left.
    """
    import ibis

    names = unit_columns(units)
    if not names:
        return table
    # The draw is a column of its own first: DuckDB refuses random() inside the window.
    shuffled = table.mutate(**{_DRAW: ibis.random()})
    order = [_DRAW] if first is None else [first, _DRAW]
    ranked = shuffled.mutate(**{_RANK: ibis.row_number().over(group_by=names, order_by=order)})
    return ranked.filter(ranked[_RANK] < max_rows).drop(_DRAW, _RANK)


MOST_ROWS_A_UNIT = 10**6
_DAY = "__farthing_day"
_ROW = "__farthing_row"  # something to select where rows are only counted


@dataclass(frozen=True, eq=False)
class Base:
    """Everything that was declared about a source."""

    source: Source
    unit: tuple[str, ...]
    max_rows: int
    declared: Schema
    neighbours: str
    rows: int | None
    padded: frozenset[str]
    schema: Schema  # the columns that can be used at once
    lists: tuple[str, ...]  # columns whose cells are lists: they are read after `explode`
    earliest: tuple[str, date] | None = None  # rows from this day on, the earliest of each unit: see `Dataset.earliest`
    during: tuple[str, Periods] | None = None  # rows of one period: see `Dataset.during`

    @property
    def unit_types(self) -> list[str]:
        """What the columns of the unit hold; neither the width nor the NOT NULL of a column matters."""
        if self.source.text_file:
            return ["string"] * len(self.unit)
        return [str(common_type(self.source.table.schema()[name])) for name in self.unit]

    def table(self, columns: Collection[str], probability: Fraction, key: str, limits: Mapping[str, int]) -> Any:
        """Rows with a unit, sampled, bounded, and with the wanted cells read by their domains.

        Units become keys and cells are read first of all: what one row holds, however large it is, then weighs as
        much as any other in all that follows. Lists are cut to their `limits` and read after `explode`.
        """
        import ibis

        raw, engine, lists = self.source.table, self.source.engine, self.lists
        names = unit_columns(len(self.unit))

        def cell(name: str) -> Any:
            if name in lists:
                return engine.first(raw[name], limits[name]) if name in limits else raw[name]
            return self.read(name, raw[name])

        dated = () if self.earliest is None else self.earliest[:1]
        table = raw.select(
            **self._keys(),
            **({} if self.during is None else {_DAY: self._day(self.during[0])}),
            **({} if names else {_ROW: ibis.literal(1, "int8")}),
            **{name: cell(name) for name in self.declared if name in columns or name in dated},
        )
        if names:  # rows that belong to nobody are dropped: together they would pass for one giant unit
            table = table.filter(*(table[name].notnull() for name in names))
        if self.during is not None:  # before the bound, which is then one on a unit's rows of this period
            start, end = self.during[1].edges
            table = table.filter(table[_DAY] >= literal(start), table[_DAY] < literal(end)).drop(_DAY)
        if self.earliest is not None:  # before the bound, so that older rows use none of it up
            column, since = self.earliest
            table = table.filter(table[column] >= literal(since))
        table = sampled(table, engine, len(names), probability, key)
        return bounded(table, len(names), self.max_rows, *dated)

    def units(self) -> Any:
        """The keys of the units, one row for each row of the table; None for a row that names nobody."""
        return self.source.table.select(**self._keys())

    def _keys(self) -> dict[str, Any]:
        names = unit_columns(len(self.unit))
        return {
            name: unit_key(self._plain(column, self.source.table[column]), self.source.engine)
            for name, column in zip(names, self.unit, strict=True)
        }

    def read(self, name: str, value: Any) -> Any:
        """A cell of a declared column, or an element of its lists, as the domain reads it."""
        domain, engine = self.declared[name], self.source.engine
        column = typed(self._plain(name, value), domain, engine, csv=self.source.text_file)
        return read_column(column, domain, engine)

    def _day(self, name: str) -> Any:
        """The day of a row as it stands in the source: bounds, which another declaration may have others of, move it
        to no other period.
        """
        raw, engine = self.source.table[name], self.source.engine
        day = typed(self._plain(name, raw), self.declared[name], engine, csv=self.source.text_file)
        return day.date() if day.type().is_timestamp() else day

    def _plain(self, name: str, value: Any) -> Any:
        return self.source.engine.plain(value, padded=name in self.padded)


def opened_base(
    source: Any,
    unit: str | Sequence[str] | None,
    max_rows: int | None,
    schema: Any,
    neighbours: str,
    rows: int | None,
    name: str | None = None,
) -> Base:
    """Open and check everything that can be checked without reading a row."""
    declared = Schema.read(schema)
    if neighbours not in NEIGHBOURS:
        raise InvalidValue("neighbours", neighbours, f"must be one of {', '.join(NEIGHBOURS)}")
    units = () if unit is None else (unit,) if isinstance(unit, str) or not isinstance(unit, Sequence) else tuple(unit)
    named = all(isinstance(column, str) for column in units)
    if unit is not None and (not units or not named or len(set(units)) != len(units)):
        raise InvalidValue("unit", unit, "must name one column or several, each once", "leave it out for one row")
    bound = _checked_max_rows(max_rows, units)
    size = None if rows is None else checked_count(rows, "rows")
    opened_source = open_source(source, list(dict.fromkeys([*units, *declared])), _checked_name(name))
    for name in declared:
        _refuse_absent(f"schema[{name!r}]", name, opened_source)
    for name in units:
        _refuse_absent("unit", name, opened_source)
    padded, lists = _checked_types(opened_source, declared, units)
    usable = Schema({name: declared[name] for name in declared if name not in lists})
    return Base(opened_source, units, bound, declared, neighbours, size, padded, usable, lists)


def _checked_types(source: Source, declared: Schema, units: tuple[str, ...]) -> tuple[frozenset[str], tuple[str, ...]]:
    """The padded columns and the lists; refuses types that cannot hold what is declared."""
    kinds = {} if source.text_file else dict(source.table.schema().items())  # a text file has text, and nothing else
    for name in declared:
        refuse_wrong_type(name, kinds.get(name), declared[name], text_file=source.text_file)
    if source.text_file:
        return frozenset(), ()
    for name in units:
        _refuse_wrong_unit(name, kinds[name])
    text = any(_is_text(kinds[name]) for name in (*declared, *units))
    padded = source.engine.padded(source.table) if text else frozenset()
    return padded, tuple(name for name in declared if kinds[name].is_array())


def _is_text(kind: Any) -> bool:
    return bool((kind.value_type if kind.is_array() else kind).is_string())


def _checked_name(name: str | None) -> str | None:
    if name is not None and not (isinstance(name, str) and name.strip()):
        raise InvalidValue("name", name, "must be a text that names the table", "leave it out for its file name")
    return name


def _checked_max_rows(max_rows: int | None, units: tuple[str, ...]) -> int:
    if not units:
        if max_rows not in (None, 1):
            raise InvalidValue("max_rows", max_rows, "must be 1 when the unit is one row", "name the unit's column")
        return 1
    if max_rows is None:
        raise InvalidValue(
            "max_rows",
            max_rows,
            "must be given with a unit",
            "say how many rows of one unit are kept, such as 3",
        )
    bound = checked_count(max_rows, "max_rows")
    if not 1 <= bound <= MOST_ROWS_A_UNIT:
        raise InvalidValue("max_rows", max_rows, f"must be a whole number from 1 to {MOST_ROWS_A_UNIT:,}")
    return bound


def _refuse_absent(argument: str, name: str, source: Source) -> None:
    kinds = source.columns
    if name not in kinds:
        import difflib

        close = difflib.get_close_matches(name, kinds, n=1)
        # The first line of a text file that has no header is a person's row: it is not shown.
        known = f"there are: {', '.join(list(kinds)[:20])}"
        rest = "its first line must hold the names of the columns" if source.text_file else known
        hint = f"did you mean {close[0]!r}" if close else rest
        raise InvalidValue(argument, name, "is not a column of the source", hint)


def _refuse_wrong_unit(name: str, kind: Any) -> None:
    named = kind.is_integer() or kind.is_string() or kind.is_uuid() or kind.is_date() or kind.is_boolean()
    if not named:
        raise InvalidValue(
            "unit",
            name,
            f"must be a column of whole numbers, text, UUIDs or dates, not {_type_text(kind)}",
            "convert it in the source: equal people must have equal values",
        )
