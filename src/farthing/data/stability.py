"""How far one unit's rows reach: the chain of transformations, each with its factor and the reason for it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from farthing.data.sensitivity import REPLACE


@dataclass(frozen=True, slots=True)
class Link:
    """One transformation: what it does, its own stability, and how many rows of one unit there are after it.

    >>> Link("explode codes, at most 4 a row", "x 4", 12, "a row becomes 4 rows at most").rows
    12
    """

    title: str
    own: str
    rows: int
    why: str


@dataclass(frozen=True)
class Stability:
    """How many rows of a dataset one unit can move, link by link; printing it shows the chain.

    `rows_per_unit` rows belong to one unit at most; `group` units change together; `probability` is the chance, rounded
    up, that a unit is in the sample (1 without one).

    >>> print(Stability((Link("people.csv", "1", 1, "a unit is one row"),), (), "replace", 1))
    unit: one row; neighbours replace one unit
    V0  people.csv  1  1 row      a unit is one row
    neighbours differ in at most 2 rows (1 a unit x out and in again)
    """

    links: tuple[Link, ...]
    unit: tuple[str, ...]
    neighbours: str
    rows_per_unit: int
    group: int = 1
    exact_probability: Fraction = Fraction(1)

    @property
    def rows(self) -> int:
        """How many rows come or go between neighbours; under replacement as many again come in their place."""
        return self.rows_per_unit * self.group

    @property
    def probability(self) -> float:
        """The probability to price with `Sampled`: never below the one that is drawn with."""
        return rounded_up(self.exact_probability)

    @property
    def distance(self) -> int:
        """The most rows that must be added or removed to turn a table into its neighbour."""
        return self.rows * (2 if self.neighbours == REPLACE else 1)

    def __str__(self) -> str:
        whose = "one row" if not self.unit else "all rows with one " + ", ".join(self.unit)
        change = "replace" if self.neighbours == REPLACE else "add or remove"
        many = f" {self.group} units" if self.group > 1 else " one unit"
        lines = [f"unit: {whose}; neighbours {change}{many}"]
        wide = max(len(link.title) for link in self.links)
        owns = max(len(link.own) for link in self.links)
        for number, link in enumerate(self.links):
            rows = f"{link.rows:,} row{'s' if link.rows != 1 else ''}"
            lines.append(f"V{number}  {link.title:<{wide}}  {link.own:<{owns}}  {rows:<9}  {link.why}")
        lines.append(self._total())
        return "\n".join(lines)

    def _total(self) -> str:
        parts = [f"{self.rows_per_unit:,} a unit"]
        if self.group > 1:
            parts.append(f"{self.group} units")
        if self.neighbours == REPLACE:
            parts.append("out and in again")
        text = f"neighbours differ in at most {self.distance:,} row{'s' if self.distance != 1 else ''}"
        if len(parts) > 1:
            text += f" ({' x '.join(parts)})"
        if self.exact_probability < 1:
            text += f", if the unit is in the sample (probability {self.probability:.6g})"
        return text


def rounded_up(share: Fraction) -> float:
    """The least float that is not below a fraction.

    >>> rounded_up(Fraction(1, 10)) >= Fraction(1, 10)
    True
    """
    import math

    number = float(share)
    return number if Fraction(number) >= share else math.nextafter(number, math.inf)
