"""What is asked in `benchmarks.mixed`, of which tables, and what is true.

It needs NumPy and nothing else, because the process of every peer reads it.

Adult is read from the file that FARTHING_ADULT names, else from `tables/adult.csv` in the folder of public files
(`workload_data.folder`). Without it a made-up table with Adult's columns takes its place, and says so. The panel is
made up: 20,000 people with 1 to 5 rows each.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.workload_data import folder

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

BOUNDS = {
    "age": (17.0, 90.0),
    "hours_per_week": (1.0, 99.0),
    "capital_gain": (0.0, 100_000.0),
    "fnlwgt": (0.0, 1_500_000.0),
}
CATEGORIES = {
    "sex": ("Female", "Male"),
    "income": ("<=50K", ">50K"),
    "race": ("Amer-Indian-Eskimo", "Asian-Pac-Islander", "Black", "Other", "White"),
    "relationship": ("Husband", "Not-in-family", "Other-relative", "Own-child", "Unmarried", "Wife"),
    "marital_status": (
        "Divorced", "Married-AF-spouse", "Married-civ-spouse", "Married-spouse-absent", "Never-married",
        "Separated", "Widowed",
    ),
    "workclass": (
        "Federal-gov", "Local-gov", "Never-worked", "Private", "Self-emp-inc", "Self-emp-not-inc", "State-gov",
        "Without-pay", "unknown",
    ),
    "education": (
        "10th", "11th", "12th", "1st-4th", "5th-6th", "7th-8th", "9th", "Assoc-acdm", "Assoc-voc", "Bachelors",
        "Doctorate", "HS-grad", "Masters", "Preschool", "Prof-school", "Some-college",
    ),
}  # fmt: skip
SIX = ("education", "marital_status", "relationship", "race", "sex", "income")
ROWS, PEOPLE, MOST_ROWS = 48_842, 20_000, 5
LARGE = 300  # means of smaller groups are noise for everybody: they are released and not compared


@dataclass(frozen=True)
class People:
    """A table: numbers as they are, categories as codes; `person` says whose row it is where people have several."""

    name: str
    columns: Mapping[str, NDArray[Any]]
    person: Integers | None = None
    made: bool = False

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return len(self.columns["age"])

    @property
    def most_rows(self) -> int:
        """How many rows a person may have."""
        return 1 if self.person is None else MOST_ROWS

    def save(self, path: Path) -> None:
        """For another process."""
        person = {} if self.person is None else {"person": self.person}
        with path.open("wb") as file:
            np.savez(file, allow_pickle=False, about=json.dumps([self.name, self.made]), **self.columns, **person)

    @classmethod
    def load(cls, path: str) -> People:
        """What another process saved."""
        with np.load(path, allow_pickle=False) as file:
            columns = dict(file)
        name, made = json.loads(str(columns.pop("about")))
        return cls(name, columns, columns.pop("person", None), made)


@dataclass(frozen=True)
class Asked:
    """One statistic in words that every tool can be asked in.

    `kind` is count, sum, mean, variance, quantiles, histogram, marginal or ranges; `where` is a column with "=" and a
    code, or with ">" and a number.
    """

    name: str
    kind: str
    column: str = ""
    by: tuple[str, ...] = ()
    where: tuple[str, str, float] | None = None
    edges: tuple[float, ...] = ()
    levels: tuple[float, ...] = ()
    ranges: tuple[tuple[int, int], ...] = field(default=(), repr=False)  # of cells: first, and one beyond the last

    @property
    def bounds(self) -> tuple[float, float]:
        """Those of its column."""
        return BOUNDS[self.column]

    @property
    def cells(self) -> int:
        """In how many cells its rows are counted or added up."""
        if self.edges:
            return len(self.edges) - 1
        return int(np.prod([len(CATEGORIES[name]) for name in self.by], dtype=int))

    def chosen(self, people: People) -> NDArray[np.bool_]:
        """Which rows it is about."""
        if self.where is None:
            return np.ones(people.rows, dtype=bool)
        column, sign, value = self.where
        own = people.columns[column]
        return np.asarray(own > value if sign == ">" else own == value)

    def cell_of_rows(self, people: People) -> Integers:
        """The cell of every row that it is about."""
        if self.edges:
            places = np.searchsorted(self.edges, people.columns[self.column], side="right") - 1
            cells = np.minimum(places, self.cells - 1)  # the last cell holds its upper edge
        else:
            cells = np.zeros(people.rows, dtype=np.int64)
            for name in self.by:
                cells = cells * len(CATEGORIES[name]) + people.columns[name]
        return np.asarray(cells[self.chosen(people)], dtype=np.int64)

    def values(self, people: People) -> Floats:
        """Its column, for the rows that it is about."""
        return np.asarray(people.columns[self.column][self.chosen(people)], dtype=float)

    def counts(self, people: People) -> Integers:
        """The rows of every cell."""
        return np.bincount(self.cell_of_rows(people), minlength=self.cells)

    def sums(self, people: People, power: int = 1) -> Floats:
        """The sum of its column to a power, in every cell."""
        values = self.values(people) ** power
        return np.asarray(np.bincount(self.cell_of_rows(people), values, self.cells), dtype=float)

    def truth(self, people: People) -> Floats:
        """What it truly is."""
        if self.kind == "quantiles":
            return np.asarray(np.quantile(self.values(people), self.levels, method="inverted_cdf"), float)
        counts = self.counts(people).astype(float)
        if self.kind == "ranges":
            return self.added(counts)
        if self.kind in ("count", "histogram", "marginal"):
            return counts
        sums = self.sums(people)
        if self.kind == "sum":
            return np.asarray(sums, dtype=float)
        means = sums / np.maximum(counts, 1)
        found = means if self.kind == "mean" else self.sums(people, 2) / np.maximum(counts, 1) - means**2
        return np.asarray(found)

    def added(self, cells: Any) -> Floats:
        """The ranges, from counts of cells."""
        below = np.concatenate(([0.0], np.cumsum(np.asarray(cells, dtype=float))))
        return np.array([below[last] - below[first] for first, last in self.ranges])

    def compared(self, people: People) -> NDArray[np.bool_]:
        """Which cells are compared: of means those of large groups."""
        if self.kind != "mean" or not self.by:
            return np.ones(len(self.truth(people)), dtype=bool)
        return np.asarray(self.counts(people) >= LARGE)

    def sensible(self, answers: Any) -> Floats:
        """Answers moved to where they must lie, as any reader would: a mean to its bounds, NaN to their middle."""
        found = np.asarray(answers, dtype=float)
        if self.kind not in ("mean", "variance", "quantiles"):
            return found
        lower, upper = self.bounds
        if self.kind == "variance":
            lower, upper = 0.0, (upper - lower) ** 2 / 4
        return np.clip(np.where(np.isnan(found), (lower + upper) / 2, found), lower, upper)


def twelve() -> tuple[Asked, ...]:
    """Twelve statistics as people ask for them."""
    return (
        Asked("count", "count"),
        Asked("count by sex", "count", by=("sex",)),
        Asked("count by education and sex", "count", by=("education", "sex")),
        Asked("histogram of age", "histogram", "age", edges=(17.0, *np.arange(20.0, 91.0, 5.0).tolist())),
        Asked("mean of age", "mean", "age"),
        Asked("mean of hours by sex", "mean", "hours_per_week", by=("sex",)),
        Asked("variance of hours", "variance", "hours_per_week"),
        Asked("median of weight", "quantiles", "fnlwgt", levels=(0.5,)),
        Asked("quartiles of weight", "quantiles", "fnlwgt", levels=(0.25, 0.5, 0.75)),
        Asked("count where hours > 45", "count", where=("hours_per_week", ">", 45.0)),
        Asked("sum of gain", "sum", "capital_gain"),
        Asked("mean of gain by workclass", "mean", "capital_gain", by=("workclass",)),
    )


def sixty() -> tuple[Asked, ...]:
    """60 means over conditions that overlap."""
    conditions = [("sex", 0), ("sex", 1), ("income", 0), ("income", 1), ("race", 2), ("race", 4)]
    conditions += [("marital_status", code) for code in (0, 2, 4)]
    conditions += [("relationship", code) for code in (0, 1, 3)]
    conditions += [("education", code) for code in (9, 11, 15)]
    return tuple(
        Asked(
            f"mean of {number} where {column} = {CATEGORIES[column][code]}",
            "mean",
            number,
            where=(column, "=", float(code)),
        )
        for number in BOUNDS
        for column, code in conditions
    )


def pairs() -> tuple[Asked, ...]:
    """All tables of two of six columns."""
    return tuple(Asked(f"{a} and {b}", "marginal", by=(a, b)) for a, b in combinations(SIX, 2))


def some_ranges() -> tuple[Asked, ...]:
    """200 ranges of a column that is cut into 250 cells."""
    ends = np.sort(np.random.default_rng(3).integers(0, 250, (250, 2)), axis=1) + np.array([0, 1])
    edges = tuple(np.linspace(*BOUNDS["fnlwgt"], 251).tolist())
    ranges = tuple(dict.fromkeys((int(first), int(last)) for first, last in ends))[:200]
    return (Asked("200 ranges of weight", "ranges", "fnlwgt", edges=edges, ranges=ranges),)


QUESTIONS = {
    "twelve": twelve,
    "60 overlapping means": sixty,
    "one count": lambda: twelve()[:1],
    "2-way marginals of six columns": pairs,
    "ranges": some_ranges,
}


def adult_path() -> Path:
    """Where Adult is looked for."""
    named = os.environ.get("FARTHING_ADULT", "")
    return Path(named) if named else folder() / "tables" / "adult.csv"


def adult(path: Path | None = None) -> People:
    """Adult from its file; a made-up table of its shape where there is none."""
    path = path or adult_path()
    if not path.is_file():
        return made_up("made-up table in Adult's shape", 1, ROWS, 1)
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    columns: dict[str, NDArray[Any]] = {name: np.array([float(row[name]) for row in rows]) for name in BOUNDS}
    for name, categories in CATEGORIES.items():
        code = {category: place for place, category in enumerate(categories)}
        columns[name] = np.array([code[row[name] or "unknown"] for row in rows])
    return People("Adult", columns)


def panel(people: int = PEOPLE) -> People:
    """Made up: people with 1 to 5 rows each."""
    return made_up("panel", 2, people, MOST_ROWS)


def made_up(name: str, seed: int, people: int, most_rows: int) -> People:
    """A table with Adult's columns, the same on every run. Sizes of groups fall steeply, as they do in life."""
    draw = np.random.default_rng(seed)
    person = np.repeat(np.arange(people), draw.integers(1, most_rows + 1, people))
    rows = len(person)
    columns: dict[str, NDArray[Any]] = {}
    for place, (column, categories) in enumerate(CATEGORIES.items()):
        shares = 0.5 ** np.random.default_rng(place).permutation(min(len(categories), 9))
        shares = np.resize(shares, len(categories))
        own = draw.choice(len(categories), people, p=shares / shares.sum())
        # Where somebody lives or works may change from row to row; who they are does not.
        columns[column] = (
            own[person]
            if column != "workclass"
            else np.where(draw.random(rows) < 0.8, own[person], draw.choice(own, rows))
        )
    rich = np.where(draw.random(rows) < 0.08, draw.lognormal(8.9, 0.8, rows), 0.0)
    level = draw.normal(0.0, 1.0, people)[person]
    columns["age"] = np.floor(np.clip(17 + draw.gamma(2.4, 9.0, people), 17, 90))[person]
    columns["hours_per_week"] = np.floor(np.clip(40 + 9 * level + 8 * draw.normal(size=rows), 1, 99))
    columns["capital_gain"] = np.floor(np.clip(rich, 0, 99_999))
    weight = np.exp(12 + 0.45 * level + 0.35 * draw.normal(size=rows))
    columns["fnlwgt"] = np.floor(np.clip(weight, 12_000, 1_490_000))
    return People(name, columns, person if most_rows > 1 else None, made=True)
