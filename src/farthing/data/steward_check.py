"""A look at the rows themselves, for the steward who may see them: what does not fit what was declared.

Nothing here is private, and nothing here enters a plan or a release: no other part of farthing imports this module but
the command line. Bounds and categories stay what is known in public; the check says what the declaration does to the
rows, so that a wrong delimiter, a forgotten category or a bound that is too low is found before anything is spent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from farthing.data.column_types import typed
from farthing.data.csv_files import Layout, ragged
from farthing.data.dataset import Dataset
from farthing.data.engines.engine import Engine, rows_of
from farthing.data.linked_rows import LinkedBase
from farthing.data.schema import BLANKS, Categories, Dates, Domain, Flags, Integers, Reals
from farthing.data.stability import UNBOUNDED
from farthing.data.unit_rows import Base

NOT_PRIVATE = (
    "NOT PRIVATE: a look at the rows themselves, for those who may see them. None of it enters a plan or a release."
)
MOST_EXAMPLES = 8
_NO_TEXT = "bytes that are not UTF-8"
_LONGEST_EXAMPLE = 40
_COUNTED = ("missing", "unread", "below", "above", "rounded")
_FEW = 8  # values of a list that are shown
_SHARES = (0.95, 0.99, 1.0)  # of the rows, that a bound on the rows of a unit may keep


@dataclass(frozen=True)
class FileCheck:
    """A CSV file: its lines, the first quote that is out of place, if there is one, and lines of another length.

    `short` lines have fewer cells than the header and are dropped; what `long` ones have beyond it is cut. The numbers
    beside them are the lines on which the first of each begins. In a file that is not UTF-8, the bytes that are not are
    read as Windows-1252.
    """

    name: str
    rows: int
    fault: str | None
    line: int
    short: int = 0
    short_line: int = 0
    long: int = 0
    long_line: int = 0
    is_utf8: bool = True


@dataclass(frozen=True)
class ColumnCheck:
    """What becomes of the cells of a column: `unread` stand for no value of it, `rounded` lose a fraction.

    `listed` says whether its values are a list, `tidier` which of `trim` and `lower` would read some of its examples.
    """

    name: str
    declared: str
    missing: int
    unread: int
    below: int
    above: int
    examples: tuple[tuple[str, int], ...] = ()
    rounded: int = 0
    listed: bool = False
    tidier: tuple[str, ...] = ()


@dataclass(frozen=True)
class UnitCheck:
    """How many rows the units have: `keeps` says which max_rows keeps which share of the rows.

    Rows `without` a unit name none, or their keys lead to none; `shared` ones are of linked tables, and their keys lead
    to several. Both are dropped. So are rows that are `lacking` a row in a table that an inner join names.
    """

    columns: tuple[str, ...]
    units: int
    most_rows: int
    without: int
    max_rows: int | None
    kept: float
    keeps: tuple[tuple[float, int], ...]
    shared: int = 0
    linked: bool = False
    auto: bool = False
    lacking: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Check:
    """What a check found. PRIVATE facts about rows: print it for the steward, and give it to nobody else.

    Args:
        name: What the source is called.
        rows: How many rows are read; None if a file cannot be read.
        files: The CSV files, each with its rows and the first quote that is out of place.
        unit: How many rows the units have.
        columns: What becomes of the cells of each column.
        lists: The columns of lists, which are not looked at.
        unknown: The columns that nobody knows yet, which are not looked at either.
        joined: The linked tables whose columns are brought along, each with its columns.

    >>> import pyarrow
    >>> from farthing.data import dataset
    >>> table = pyarrow.table({"age": [30, 200, None], "sex": ["F", "f", "M"]})
    >>> print(check(dataset(table, schema={"age": (0, 110), "sex": ["F", "M"]})))
    NOT PRIVATE: a look at the rows themselves, for those who may see them. None of it enters a plan or a release.
    <BLANKLINE>
    pyarrow.Table: 3 rows are read.
    age, whole numbers from 0 to 110: 1 (33%) missing; 1 (33%) above, clipped
    sex, one of 'F', 'M': 1 (33%) not listed: 'f' (1) (lower would read some of them)
    """

    name: str
    rows: int | None
    files: tuple[FileCheck, ...] = ()
    unit: UnitCheck | None = None
    columns: tuple[ColumnCheck, ...] = ()
    lists: tuple[str, ...] = field(default=())
    unknown: tuple[str, ...] = ()
    joined: tuple[Check, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the table can be read at all: no file has a quote out of place."""
        return all(file.fault is None for file in self.files)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data; its first entry says that it is not private."""
        return {"not_private": NOT_PRIVATE, "ok": self.ok, **asdict(self)}

    def __str__(self) -> str:
        lines = [NOT_PRIVATE, ""]
        for file in self.files:
            if file.fault is not None:
                lines.append(
                    f"{file.name}, line {file.line}: {file.fault}. The file is refused, because one row could "
                    "swallow others. Write it again with quotes doubled inside quoted cells, or as Parquet."
                )
        if self.rows is None:
            return "\n".join(lines)
        lines.append(f"{self.name}: {_rows_read(self.rows)}{self._dropped()}.")
        for file in self.files:
            lines += _file_lines(file) + _length_lines(file)
        if self.unit is not None:
            lines += _unit_lines(self.unit, self.rows)
        lines += [_column_line(column, self.rows) for column in self.columns]
        lines += [f"{name}: a column of lists, not looked at" for name in self.lists]
        lines += [f"{name}: unknown, not looked at; farthing discover finds it" for name in self.unknown]
        for other in self.joined:
            lines += ["", f"{other.name}, joined: {_rows_read(other.rows or 0)}."]
            lines += [_column_line(column, other.rows or 0) for column in other.columns]
        return "\n".join(lines)

    def _dropped(self) -> str:
        if not self.files:
            return ""
        dropped = sum(file.rows for file in self.files) - (self.rows or 0)
        if not dropped:
            return ", all quotes close"
        lines = "1 line is" if dropped == 1 else f"{dropped:,} lines are"
        return f", all quotes close; {lines} dropped: blank, too short or too long"


def check(dataset: Dataset) -> Check:
    """Look at all rows of the table that a dataset was made of, before any of its steps.

    For the steward alone: what it returns is computed from private rows, without noise.

    Args:
        dataset: The dataset whose table is looked at.

    Returns:
        Counts of missing, unreadable and clipped cells for each column; print it.

    Raises:
        EngineError: If the engine fails.

    >>> import pyarrow
    >>> from farthing.data import dataset
    >>> visits = dataset(pyarrow.table({"who": [1, 1, 1, 2], "cost": [1.0] * 4}), unit="who", max_rows=2,
    ...                  schema={"cost": (0.0, 9.0)})
    >>> check(visits).unit.keeps[-1]
    (1.0, 3)
    """
    base = dataset._base
    csv = base.source.csv
    files = tuple(
        FileCheck(
            Path(path).name, layout.rows, layout.fault, layout.line, **_lengths(path, layout), is_utf8=layout.is_utf8
        )
        for path, layout in (csv.layouts().items() if csv is not None else ())
    )
    if any(file.fault is not None for file in files):
        return Check(dataset.name, None, files)
    for source in base.sources:
        source.prepare()
    rows, columns = _columns(base.own)
    joined = []
    for name, other in base.joined_tables.items() if isinstance(base, LinkedBase) else ():
        number, cells = _columns(other)
        joined.append(Check(name, number, (), None, cells, other.lists))
    unit, unknown = _unit(base, rows) if base.unit else None, tuple(base.declared.unknown)
    return Check(dataset.name, rows, files, unit, columns, base.lists, unknown, tuple(joined))


def _lengths(path: str, layout: Layout) -> dict[str, int]:
    return asdict(ragged(path)) if layout.fault is None else {}


def _file_lines(file: FileCheck) -> list[str]:
    letters = "not all of it is UTF-8: other bytes are read as letters of Windows-1252 (Latin-1); save it as UTF-8"
    return [] if file.is_utf8 else [f"  {file.name}: {letters}"]


def _length_lines(file: FileCheck) -> list[str]:
    return [
        f"  {file.name}: {number:,} line{'s' * (number > 1)} with too {what} cells (the first is line {line:,}): {then}"
        for number, line, what, then in (
            (file.short, file.short_line, "few", "dropped"),
            (file.long, file.long_line, "many", "what is beyond the last column is cut; is a separator in a cell?"),
        )
        if number
    ]


def _columns(base: Base) -> tuple[int, tuple[ColumnCheck, ...]]:
    raw, engine = base.source.table, base.source.engine
    looks = {name: _Look(base, name) for name in base.declared if name not in base.lists}
    sums = {"rows": raw.count()}
    for place, look in enumerate(looks.values()):
        sums |= {f"{kind}{place}": flags.cast("int64").sum() for kind, flags in look.flags().items()}
    # Every needed cell is read in this query, so that the rows are those that a release reads.
    (totals,) = rows_of(engine, engine.sql(raw.aggregate(**sums)))
    numbers = dict(zip(sums, totals, strict=True))
    checks = []
    for place, (name, look) in enumerate(looks.items()):
        counts = {kind: int(numbers.get(f"{kind}{place}") or 0) for kind in _COUNTED}
        examples = look.examples() if counts["unread"] else ()
        domain = base.declared[name]
        listed = isinstance(domain, Categories)
        tidier = _tidier(domain, [cell for cell, _ in examples]) if isinstance(domain, Categories) else ()
        checks.append(ColumnCheck(name, _domain(domain), **counts, examples=examples, listed=listed, tidier=tidier))
    return int(numbers["rows"]), tuple(checks)


class _Look:
    """One column, as it is stored, as it is read, and in between."""

    def __init__(self, base: Base, name: str) -> None:
        self.base, self.domain, self.raw = base, base.declared[name], base.source.table[name]
        self.engine = base.source.engine
        plain = self.engine.plain(self.raw, padded=name in base.padded)
        self.typed = typed(plain, self.domain, self.engine, csv=base.source.text_file)
        self.missing = plain.isnull()
        self.text = self._readable(plain)
        if plain.type().is_string() and not _is_label(self.domain, ""):
            self.missing = self.missing | (self.text.strip() == "").fill_null(False)
        if plain.type().is_floating():
            self.missing = self.missing | plain.isnan()
        self.unread = ~self.missing & base.read(name, self.raw).isnull()

    def _readable(self, plain: Any) -> Any:
        """Text without bytes that are none, which an Arrow table may hold: engines would stop at them."""
        if not plain.type().is_string() or self.base.source.text_file:
            return plain
        return self.engine.text_of_key(self.engine.key(plain))

    def flags(self) -> Mapping[str, Any]:
        flags = {"missing": self.missing, "unread": self.unread}
        if isinstance(self.domain, Integers | Reals | Dates):
            import ibis

            low, high = (ibis.literal(end) for end in (self.domain.lower, self.domain.upper))
            seen = ~self.missing & ~self.unread
            flags |= {"below": seen & (self.typed < low), "above": seen & (self.typed > high)}
            if isinstance(self.domain, Integers) and not self.typed.type().is_integer():
                inside = seen & self.typed.between(low, high)  # what is clipped is told already
                flags["rounded"] = inside & (self.typed != self.typed.floor())
        return flags

    def examples(self) -> tuple[tuple[str, int], ...]:
        """The most frequent cells that are not read."""
        import ibis

        table = self.base.source.table
        cell = ibis.coalesce(self.text.cast("string").substr(0, _LONGEST_EXAMPLE), ibis.literal(_NO_TEXT))
        odd = table.filter(self.unread).select(cell=cell)
        counted = odd.group_by("cell").agg(number=odd.count())
        first = counted.order_by(ibis.desc("number"), "cell").limit(MOST_EXAMPLES)
        return tuple((str(cell), int(number)) for cell, number in rows_of(self.engine, self.engine.sql(first)))


def _is_label(domain: Any, text: str) -> bool:
    return isinstance(domain, Categories) and text in domain.values


def _domain(domain: Domain) -> str:
    """What was declared of a column, as its steward would say it."""
    match domain:
        case Categories(values=values):
            more = f" and {len(values) - _FEW:,} more" if len(values) > _FEW else ""
            ways = [", trim"] * domain.trim + [", lower"] * domain.lowered
            return f"one of {', '.join(map(repr, values[:_FEW]))}{more}{''.join(ways)}"
        case Integers(lower=lower, upper=upper):
            return f"whole numbers from {lower:,} to {upper:,}"
        case Reals(lower=low, upper=high):
            spelled = f", decimal {domain.decimal!r}" if domain.decimal else ""
            return f"numbers from {low:,.15g} to {high:,.15g}{spelled}"
        case Dates(lower=first, upper=last):
            return f"dates from {first} to {last}"
        case Flags():
            return "yes or no"


def _tidier(domain: Categories, cells: Sequence[str]) -> tuple[str, ...]:
    """Which of `trim` and `lower` it takes to read some of these cells as categories."""
    if not isinstance(domain.values[0], str):
        return ()
    exact = set(map(str, domain.values))
    small = {value.lower() for value in exact}
    ways: set[str] = set()
    for cell in cells:
        bare = cell.strip(BLANKS)
        if bare.lower() in small:
            ways |= {"trim"} if bare != cell else set()
            ways |= {"lower"} if bare not in exact else set()
    return tuple(way for way in ("trim", "lower") if way in ways)


def _unit(base: Base, rows: int) -> UnitCheck:
    engine = base.source.engine
    keys = base.units()
    named = keys.filter(*(keys[name].notnull() for name in keys.columns))
    each = named.group_by(list(keys.columns)).agg(number=named.count())
    sizes = each.group_by("number").agg(units=each.count())
    sizes_of_units = sorted((int(size), int(units)) for size, units in rows_of(engine, engine.sql(sizes)))
    total = sum(size * units for size, units in sizes_of_units)

    def kept(bound: int) -> int:
        return sum(min(size, bound) * units for size, units in sizes_of_units)

    most = sizes_of_units[-1][0] if sizes_of_units else 0
    keeps = tuple((share, _least(kept, share * total, most)) for share in _SHARES) if total else ()
    shared = _number(base.shared_rows(), base.source.engine) if isinstance(base, LinkedBase) else 0
    lacking: tuple[tuple[str, int], ...] = ()
    if isinstance(base, LinkedBase):
        lacking = tuple((name, _number(base.rows_lacking(name), engine)) for name in base.inner_joins)
    return UnitCheck(
        base.unit,
        sum(units for _, units in sizes_of_units),
        most,
        rows - total - shared,
        base.max_rows if base.max_rows < UNBOUNDED and not base.is_auto else None,
        kept(base.max_rows) / total if total else 1.0,
        keeps,
        shared,
        isinstance(base, LinkedBase),
        base.is_auto,
        lacking,
    )


def _number(rows: Any, engine: Engine) -> int:
    ((number,),) = rows_of(engine, engine.sql(rows.aggregate(number=rows.count())))
    return int(number)


def _least(kept: Any, share: float, most: int) -> int:
    """The least bound that keeps as many rows."""
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if kept(middle) >= share else (middle + 1, high)
    return low


def _unit_lines(unit: UnitCheck, rows: int) -> list[str]:
    named = ", ".join(unit.columns)
    units, rows_of_largest = (
        f"{number:,} {word}{'s' * (number != 1)}" for number, word in ((unit.units, "unit"), (unit.most_rows, "row"))
    )
    lines = [f"unit {named}: {units}, the largest has {rows_of_largest}"]
    # The largest share of each.
    best = {bound: share for share, bound in unit.keeps if bound != unit.max_rows}
    advice = "; ".join(f"{bound:,} would keep {share:.0%}" for bound, share in best.items())
    if unit.max_rows is None:
        said = f"; as max_rows, {advice}" if advice else ""
        why = 'max_rows = "auto": farthing discover finds it' if unit.auto else ""
        lines.append(f"  {why or 'without max_rows, every statistic needs a bound of its own'}{said}")
    else:
        advice = f"; {advice}" if advice else ""
        lines.append(f"  max_rows = {unit.max_rows:,} keeps {unit.kept:.1%} of the rows{advice}")
    if unit.kept < 0.9:
        lines.append("  more than a tenth of the rows are lost: a larger max_rows loses fewer, and adds noise")
        lines.append('  counts with of="people" look at all rows, whatever max_rows is')
    if unit.without:
        one = unit.without == 1
        lead, name, are = ("leads", "names", "is") if one else ("lead", "name", "are")
        where = f"{lead} to no unit (a key is missing, or no row has it)" if unit.linked else f"{name} no unit"
        lines.append(f"  {_part(unit.without, rows)} {where} and {are} dropped")
    if unit.shared:
        lead, are = ("leads", "is") if unit.shared == 1 else ("lead", "are")
        where = f"{lead} to several units (rows of different units have one key)"
        lines.append(f"  {_part(unit.shared, rows)} {where} and {are} dropped")
    for name, number in unit.lacking:
        if number:
            kept = f'join = {{ table = "{name}", how = "left" }} keeps them, with missing cells'
            have, are = ("has", "is") if number == 1 else ("have", "are")
            lines.append(f"  {_part(number, rows)} {have} no row in {name} and {are} dropped by the join; {kept}")
    return lines


def _column_line(column: ColumnCheck, rows: int) -> str:
    examples = ", ".join(f"{cell!r} ({number:,})" for cell, number in column.examples)
    parts = [f"{_part(column.missing, rows)} missing"] if column.missing else []
    if column.unread:
        what = "not listed" if column.listed else "unreadable, so missing"
        tidied = f" ({' and '.join(column.tidier)} would read some of them)" if column.tidier else ""
        parts.append(f"{_part(column.unread, rows)} {what}: {examples}{tidied}")
    if column.below:
        parts.append(f"{_part(column.below, rows)} below, clipped")
    if column.above:
        parts.append(f"{_part(column.above, rows)} above, clipped")
    if column.rounded:
        parts.append(
            f"{_part(column.rounded, rows)} with a fraction, rounded down; bounds with a point, such as 0.0, keep it"
        )
    return f"{column.name}, {column.declared}: {'; '.join(parts) or 'every cell fits'}"


def _rows_read(number: int) -> str:
    return "1 row is read" if number == 1 else f"{number:,} rows are read"


def _part(number: int, rows: int) -> str:
    share = number / rows if rows else 0.0
    return f"{number:,} ({share:.0%})" if share >= 0.1 or not number else f"{number:,} ({share:.1%})"
