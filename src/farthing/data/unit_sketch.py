"""Are these the same people? A sketch of the units of a table, from which the overlap of two tables is estimated.

For the steward alone: a sketch is computed from private rows without noise. It lives in the process that made it, and
in a ledger only sealed under the ledger's key; nothing of it enters a plan or a release.

Every unit is hashed (SHA-256, the same on every engine). The first bits of the hash choose one of `BUCKETS` buckets,
and each bucket keeps the least of the hashes in it (MinHash with one permutation; Li, Owen & Zhang 2012). Doubles do
not matter, so one pass over the rows is enough, and of two tables the sketch of both is the lesser in every bucket.

The spelling of a unit does not matter here, as it does for privacy: 7, "7", " 007" and 7.0 are hashed alike, because a
CSV file that was written again as Parquet holds the same people. Where the unit is one row, its declared columns are
hashed, in the order of their names; two declarations with other columns cannot be compared then.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from farthing.data.engines.engine import Progress, rows_of
from farthing.data.sources import Source, apart

if TYPE_CHECKING:
    from farthing.data.dataset import Dataset

BUCKETS = 2**14
_BITS = 32  # of a hash that are kept: enough to tell the least hashes of billions of units apart
_EMPTY = 2**_BITS - 1  # no hash is kept that is as large
_FINE, _DIGITS = 4, _BITS // 4  # hexadecimal digits of a hash: those that engines group by, and those that they compare
_FOLD = 16**_FINE // BUCKETS  # groups of an engine that make one bucket
_WHOLE = "^[+-]?[0-9]{1,15}$"
_FRACTION = "^[+-]?[0-9]{1,15}[.][0-9]{1,15}$"
_EXACT = 10**15  # whole numbers of doubles are told apart up to here
_LONGEST = 10_000  # bytes of a text that are hashed; what is longer is hashed by its length


@dataclass(frozen=True, eq=False)
class UnitSketch:
    """The least hash of the units in every bucket. PRIVATE: computed from rows, without noise.

    >>> import pyarrow
    >>> from farthing.data import dataset
    >>> def sketch(ids):
    ...     table = pyarrow.table({"who": list(ids), "cost": [1.0] * len(ids)})
    ...     return UnitSketch.of(dataset(table, unit="who", max_rows=1, schema={"cost": (0.0, 9.0)}))
    >>> march, april = sketch(range(1_000)), sketch([str(number) for number in range(100, 1_100)])
    >>> round(april.share_in(march).value, 2), UnitSketch.of_bytes(march.to_bytes()) == march
    (0.9, True)
    """

    least: np.ndarray

    @classmethod
    def of(cls, dataset: Dataset, progress: Progress | None = None) -> UnitSketch:
        """The sketch of the table that a dataset was made of, before any of its steps, in one pass over its rows."""
        home = dataset.home  # of linked tables, the one that names the units
        with apart(home._base.source) as source:
            source.prepare()
            return cls._of_source(home, source, progress)

    @classmethod
    def _of_source(cls, dataset: Dataset, source: Source, progress: Progress | None) -> UnitSketch:
        base, raw, engine = dataset._base, source.table, source.engine
        columns = base.unit or tuple(sorted(set(base.declared) - set(base.lists)))
        plain = {f"c{place}": engine.plain(raw[name], padded=name in base.padded) for place, name in enumerate(columns)}
        cells = raw.select(**plain)
        rows = cells.filter(*(cells[name].notnull() for name in cells.columns)) if base.unit else cells
        kinds = dict(cells.schema().items())
        fine = np.full(16**_FINE, _EMPTY, np.uint32)
        for group, least in rows_of(engine, _query(engine.sql(rows), kinds, _DIALECTS[engine.name]), progress):
            fine[int(group, 16)] = int(least, 16)
        return cls(_folded(fine))

    @classmethod
    def of_bytes(cls, data: bytes) -> UnitSketch:
        """The sketch that `to_bytes` wrote."""
        return cls(np.frombuffer(data, ">u4").astype(np.uint32))

    def to_bytes(self) -> bytes:
        """The same number of bytes whatever the table holds."""
        return self.least.astype(">u4").tobytes()

    def with_units_of(self, other: UnitSketch) -> UnitSketch:
        """The sketch of the units of both."""
        return UnitSketch(np.minimum(self.least, other.least))

    def share_in(self, other: UnitSketch) -> Share:
        """Which share of these units are units of the other, too.

        Statement:
            In a bucket, let a and b be the least hashes of A and of B. If a = b the least of all is a unit of both; if
            a < b it is one of A alone. Of the buckets with a <= b, each has a = b with probability |A and B| / |A|.
        Source: Broder 1997, resemblance and containment, with one permutation as in Li, Owen & Zhang, arXiv:1208.1259.
        Assumes: SHA-256 spreads the units like a random function.
        Direction: an estimate with its margin, for advice to the steward; no privacy rests on it.
        Checked by: tests/unit/data/test_unit_sketch.py
        """
        both = int(np.sum((self.least == other.least) & (self.least < _EMPTY)))
        alone = int(np.sum(self.least < other.least))
        return Share(both, both + alone)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnitSketch) and bool(np.array_equal(self.least, other.least))

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Share:
    """A share that was estimated from so many units: `both` of `looked_at` are in the other table.

    >>> print(Share(3_900, 4_000)), Share(3, 4).is_telling
    97.5% (97.0% to 97.9%)
    (None, False)
    """

    both: int
    looked_at: int

    @property
    def value(self) -> float:
        """The estimate; 0 where no unit could be looked at."""
        return self.both / self.looked_at if self.looked_at else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's interval, which holds about 95 times in 100."""
        n, p, z = self.looked_at, self.value, 1.96
        if not n:
            return 0.0, 1.0
        centre, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        return max(0.0, (centre - half) / (1 + z * z / n)), min(1.0, (centre + half) / (1 + z * z / n))

    @property
    def is_telling(self) -> bool:
        """Whether enough units were looked at to say anything."""
        low, high = self.interval
        return high - low <= 0.2

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.value:.1%} ({low:.1%} to {high:.1%})"


def _folded(fine: np.ndarray) -> np.ndarray:
    """Groups of an engine as buckets: what tells the groups of one bucket apart becomes the first bits of the hash."""
    bits = _FOLD.bit_length() - 1
    place = (np.arange(fine.size, dtype=np.uint32) % _FOLD) << np.uint32(_BITS - bits)
    moved = np.where(fine == _EMPTY, np.uint32(_EMPTY), place | (fine >> np.uint32(bits)))
    least: np.ndarray = moved.reshape(BUCKETS, _FOLD).min(axis=1)
    return least


class _Dialect(NamedTuple):
    """How an engine spells what its sketches need: written as SQL, because Ibis takes longer to write it than to run.

    `digits` is SHA-256 of a text in hexadecimal digits, `matches` whether a text matches a pattern, `bytes` how many
    bytes a text has.
    """

    digits: str
    matches: str
    bytes: str
    text: str
    double: str = "DOUBLE"


_DIALECTS = {
    "duckdb": _Dialect("sha256({})", "regexp_matches({}, '{}')", "strlen({})", "VARCHAR"),
    "postgres": _Dialect(
        "encode(sha256(convert_to({}, getdatabaseencoding())), 'hex')", "{} ~ '{}'", "octet_length({})", "TEXT",
        "DOUBLE PRECISION",
    ),
    "pyspark": _Dialect("sha2(CAST({} AS BINARY), 256)", "{} RLIKE '{}'", "octet_length({})", "STRING"),
}  # fmt: skip


def _query(rows: str, kinds: dict[str, Any], spelled: _Dialect) -> str:
    """The least hash of every group of units, of rows with the columns `kinds`."""

    def cells(spell: Callable[[str, Any, _Dialect], str]) -> str:
        return ", ".join(f"{spell(name, kind, spelled)} AS {name}" for name, kind in kinds.items())

    bare = f"SELECT {cells(_bare)} FROM ({rows}) r"
    tidy = f"SELECT {cells(_tidy)} FROM ({bare}) s"
    # Lengths make the text of several columns one-to-one.
    joined = " || ".join(f"CAST(length({name}) AS {spelled.text}) || ':' || {name}" for name in kinds)
    hashed = f"SELECT {spelled.digits.format(joined)} AS h FROM ({tidy}) t"
    group, least = f"substr(h, 1, {_FINE})", f"min(substr(h, {_FINE + 1}, {_DIGITS}))"
    return f"SELECT {group} AS g, {least} AS m FROM ({hashed}) u GROUP BY 1"


def _bare(name: str, kind: Any, spelled: _Dialect) -> str:
    """A cell of a bounded size: text without blanks around it, numbers as doubles where they may have a fraction."""
    if kind.is_string():
        size = spelled.bytes.format(name)
        return f"CASE WHEN {size} <= {_LONGEST} THEN trim({name}) ELSE CAST({size} AS {spelled.text}) END"
    if kind.is_floating() or kind.is_decimal():
        return f"CAST({name} AS {spelled.double})"
    if kind.is_timestamp() and kind.scale != 9:  # DuckDB has some that it cannot write, and does not get over it
        years = f"{name} BETWEEN TIMESTAMP '0001-01-01 00:00:00' AND TIMESTAMP '9999-12-31 00:00:00'"
        return f"CAST(CASE WHEN {years} THEN {name} END AS {spelled.text})"
    return f"CAST({name} AS {spelled.text})"


def _tidy(name: str, kind: Any, spelled: _Dialect) -> str:
    """A cell as text in one spelling, whatever the type of its column; nothing for a missing one."""
    if kind.is_string():
        whole, fraction = (spelled.matches.format(name, pattern) for pattern in (_WHOLE, _FRACTION))
        number = f"CAST(CASE WHEN {fraction} THEN {name} ELSE '0.5' END AS {spelled.double})"
        digits = f"CAST(CAST(CASE WHEN {whole} THEN {name} ELSE '0' END AS BIGINT) AS {spelled.text})"
        text = f"CASE WHEN {whole} THEN {digits} WHEN {fraction} THEN {_number(number, spelled)} ELSE {name} END"
    elif kind.is_floating() or kind.is_decimal():
        text = _number(name, spelled)
    else:
        text = name
    return f"coalesce({text}, '')"


def _number(number: str, spelled: _Dialect) -> str:
    """Digits of a whole number, and a double as the engine writes it; of what is no number, 'NaN' or so."""
    is_whole = f"abs({number}) < {_EXACT} AND floor({number}) = {number}"
    whole = f"CAST(CAST(CASE WHEN {is_whole} THEN {number} ELSE 0 END AS BIGINT) AS {spelled.text})"
    return f"CASE WHEN {is_whole} THEN {whole} ELSE CAST({number} AS {spelled.text}) END"
