"""The unit of privacy: who is protected, and which tables are neighbours."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from farthing.errors import InvalidValue

NEIGHBOURS = ("add-remove", "replace")
_SAMPLE = ", secret sample of "
_PLAIN = r"[^\W\d]\w*(?:[ .-]\w+)*"
_PLAIN_NAME = re.compile(_PLAIN)
_NAME = re.compile(rf'"(?:[^"\\]|\\.)*"|{_PLAIN}')
_NAMES = re.compile(rf"(?:{_NAME.pattern})(?: \+ (?:{_NAME.pattern}))*")
_WORDS = re.compile(
    rf"(?P<who>.+), (?P<neighbours>{'|'.join(NEIGHBOURS)})"
    rf"(?:, groups of (?P<group>[1-9]\d*)|{_SAMPLE}(?P<rate>\S+))?",
    re.DOTALL,
)


@dataclass(frozen=True)
class Renewal:
    """That a unit is somebody in one period: each period has a budget of its own.

    Args:
        every: How long periods are: "day", "week", "month", "quarter" or "year".
        date: The column of dates that says in which period a row lies.
        period: The period of this budget; None for what all of them have in common.

    >>> print(Renewal("month", "admitted"), "|", Renewal("month", "admitted", "2026-03"))
    renewed every month by admitted | in 2026-03 by admitted
    """

    every: str
    date: str
    period: str | None = None

    def __str__(self) -> str:
        what = f"renewed every {self.every}" if self.period is None else f"in {self.period}"
        return f"{what} by {_quoted(self.date)}"


@dataclass(frozen=True)
class Unit:
    """Who is protected: one row, or all rows with the same values in `columns`, a group of so many, in a sample.

    Columns are a set: their order says nothing. A column that is called `row` is not the unit "one row", and one that
    is called `a + b` is not two columns; in words such names stand in quotes.

    >>> print(Unit(), "|", Unit(("person",)), "|", Unit(("row",)), "|", Unit(("b", "a")), "|", Unit(("a + b",)))
    row, add-remove | person, add-remove | "row", add-remove | a + b, add-remove | "a + b", add-remove
    >>> print(Unit(("person",), sampling_rate=0.01), "|", Unit(neighbours="replace", group=3))
    person, add-remove, secret sample of 0.01 | row, replace, groups of 3
    >>> Unit.from_dict(Unit(("row",)).to_dict()) == Unit(("row",)) != Unit()
    True
    """

    columns: tuple[str, ...] = ()
    neighbours: str = "add-remove"
    group: int = 1
    sampling_rate: float | None = None
    renewal: Renewal | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(sorted(self.columns)))

    @property
    def alone(self) -> Unit:
        """The same without groups, without a sample and without a renewal."""
        return replace(self, group=1, sampling_rate=None, renewal=None)

    def __str__(self) -> str:
        who = " + ".join(map(_quoted, self.columns)) if self.columns else "row"
        words = f"{who}, {self.neighbours}"
        if self.sampling_rate is not None:
            return f"{words}{_SAMPLE}{self.sampling_rate!r}"
        if self.renewal is not None:
            return f"{words}, {self.renewal}"
        return words if self.group == 1 else f"{words}, groups of {self.group}"

    def to_dict(self) -> dict[str, Any]:
        """The unit as JSON-ready data; one row is a kind of its own, and not a name."""
        who: dict[str, Any] = {"kind": "columns", "columns": list(self.columns)}
        data: dict[str, Any] = {**(who if self.columns else {"kind": "row"}), "neighbours": self.neighbours}
        if self.group != 1:
            data["group"] = self.group
        if self.sampling_rate is not None:
            data["sampling_rate"] = self.sampling_rate
        if self.renewal is not None:
            data["renewal"] = asdict(self.renewal)
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Unit:
        """The unit that `to_dict` wrote; anything else is refused."""
        columns = data.get("columns", [])
        named = isinstance(columns, list) and all(isinstance(name, str) for name in columns)
        renewal = data.get("renewal")
        if named and (renewal is None or (isinstance(renewal, dict) and renewal.keys() == {"every", "date", "period"})):
            unit = cls(
                tuple(columns),
                data.get("neighbours", ""),
                data.get("group", 1),
                data.get("sampling_rate"),
                None if renewal is None else Renewal(**renewal),
            )
            if unit.neighbours in NEIGHBOURS and unit.to_dict() == dict(data):
                return unit
        raise InvalidValue("unit", data, "must be a unit as Unit.to_dict writes it")

    @classmethod
    def read(cls, words: str) -> Unit | None:
        """The unit that `str` wrote; None where the words are something else.

        >>> Unit.read("row, add-remove") == Unit(), Unit.read('"row", add-remove') == Unit(("row",))
        (True, True)
        >>> Unit.read("a + b, replace").columns, Unit.read("the patients of the ward")
        (('a', 'b'), None)
        """
        parts = parts_of(words)
        if parts is None:
            return None
        who, rest = parts
        if who == "row":
            return rest
        if not _NAMES.fullmatch(who):
            return None
        try:
            names = [json.loads(name) if name.startswith('"') else name for name in _NAME.findall(who)]
        except ValueError:
            return None
        return replace(rest, columns=tuple(names))


def whom(words: str, period: str = "") -> str:
    """Who is protected by a unit in these words, for people; `period` is that of a budget which renews.

    >>> whom("row, add-remove"), whom("person, add-remove", "2026-03"), whom("")
    ('any one row', 'any one person, with all of its rows of 2026-03', 'any one unit, with all of its rows')
    """
    unit = Unit.read(words)
    if unit is not None and not unit.columns:
        return "any one row"
    named = (words.split(",")[0] or "unit") if unit is None else " and ".join(unit.columns)
    return f"any one {named}, with all of its rows{f' of {period}' if period else ''}"


def parts_of(words: str) -> tuple[str, Unit] | None:
    """Who is protected, in words, and the rest of a unit; None where the words are something else.

    >>> parts_of("person, add-remove, groups of 3")
    ('person', Unit(columns=(), neighbours='add-remove', group=3, sampling_rate=None, renewal=None))
    """
    match = _WORDS.fullmatch(words)
    if match is None:
        return None
    rate = None
    if match["rate"] is not None:
        try:
            rate = float(match["rate"])
        except ValueError:
            return None
        if not 0 < rate <= 1:
            return None
    return match["who"], Unit((), match["neighbours"], int(match["group"] or 1), rate)


def _quoted(name: str) -> str:
    plain = name != "row" and _PLAIN_NAME.fullmatch(name)
    return name if plain else json.dumps(name, ensure_ascii=False)


def alike(name: str) -> str:
    """What two spellings of one name have in common: case, width and blanks say nothing.

    >>> alike("Visits  2024") == alike("visits 2024")
    True
    """
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())
