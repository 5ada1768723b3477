"""A study described in a file: `study.toml`.

[dataset], [schema], [[steps]]      the table, its public facts, what is done to it: farthing.data.declaration_file
[tables], [keys]                    several tables that keys link: farthing.data.declaration_file

[study]
epsilon = 1.0
delta = 1e-9
ledger = "study.db"                # beside this file, or a Postgres URL
account = "patients"               # who is protected, and pays; by default the account of the table
renews = "month"                   # each month has its own budget, for the rows of that month
date = "admitted"                  # with renews: by this column of dates
period = "2026-03"                 # with renews: the month that is asked about; by default the last that is over
split = { by = "region", epsilon = 0.5 }  # disjoint parts, which cost the most that one of them may; part = "north"
title = "table 4 of the yearbook"  # what the release is found by; the names of its statistics by default
plan_epsilon = 0.5                 # what this plan may use; by default all that is left
plan_reserve = 0.1                 # of that, what it leaves unspent
plan_fit = false                   # true: the least epsilon at which every `within` is met

[expected]                         # what is known from elsewhere; it makes the predicted errors true
rows = 100_000
income = [41_000.0, 20_000.0]      # mean and standard deviation of a column
sex = { F = 0.52, M = 0.48 }       # shares of its categories

[[statistics]]
kind = "mean"
column = "income"
by = "sex"
weight = 2.0
within = 500                       # required error, at `confidence` (0.95 by default)

[publication]                      # details for farthing publish: see farthing.publication
title = "Income in the city, 2026"
"""

from __future__ import annotations

import hashlib
import math
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from farthing.curator.division import Division
from farthing.data import Dataset
from farthing.data.declaration_file import dataset_of_tables, read_toml, table_of
from farthing.errors import InvalidValue
from farthing.ledger import Ledger
from farthing.ledger.ledger_access import has_ledger
from farthing.publication import PublicationDetails
from farthing.statistics import Statistic
from farthing.study.documents.study_document import (
    PlanDescription,
    expected_values,
    plan_description,
    plan_of,
    refuse_unknown,
    statistic_of,
)
from farthing.study.plan import Plan
from farthing.study.study import Study

STUDY_KEYS = (
    "epsilon",
    "delta",
    "ledger",
    "account",
    "name",
    "analyst",
    "sampling_rate",
    "renews",
    "date",
    "period",
    "split",
    "title",
    "plan_epsilon",
    "plan_reserve",
    "plan_fit",
)


_OPTIONS = ("account", "name", "analyst", "sampling_rate", "renews", "date", "period")


@dataclass(frozen=True)
class StudyFile:
    """A study.toml, read and checked; nothing is opened until it is asked for."""

    path: Path
    text: str
    facts: Mapping[str, Any]
    asked: PlanDescription
    changes: Mapping[str, Any] = field(default_factory=dict)  # what [study] says otherwise than the text
    unbounded: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # left out, for they lack `max_cells`

    @cached_property
    def dataset(self) -> Dataset:
        """The dataset that the file describes."""
        return dataset_of_tables(self.facts, self.path.parent)

    @property
    def ledger_url(self) -> str:
        """The ledger's file (beside the study) or URL."""
        place = str(self.facts["study"]["ledger"])
        return place if "://" in place else str(self.path.parent / place)

    @property
    def has_ledger(self) -> bool:
        """Whether there is a ledger already."""
        return has_ledger(self.ledger_url)

    @property
    def names_account(self) -> bool:
        """Whether it says which account pays."""
        return "account" in self.facts["study"] or "name" in self.facts["study"]

    @property
    def request_id(self) -> str:
        """What earlier versions called the release of a file: by its text. Now it is named by what it asks."""
        text = f"{self.text}{sorted(self.changes.items())}" if self.changes else self.text
        return f"{self.path.stem[:40]}-{hashlib.sha256(text.encode()).hexdigest()[:24]}"

    @property
    def title(self) -> str:
        """What the release is to be found by; nothing where the file does not say."""
        return str(self.facts["study"].get("title", ""))

    @property
    def publication(self) -> PublicationDetails:
        """The details of the release for its publication; much may be missing."""
        return PublicationDetails.of(table_of(self.facts, "publication") if "publication" in self.facts else {})

    @property
    def split(self) -> Split | None:
        """How the table is divided, if it is."""
        about = self.facts["study"].get("split")
        return None if about is None else Split(**about)

    def study(self, ledger: Ledger | str | None = None) -> Study:
        """The study, with its ledger opened."""
        about = self.facts["study"]
        options = {key: about[key] for key in _OPTIONS if key in about}
        return Study(
            self.dataset,
            about["epsilon"],
            about.get("delta", 0.0),
            ledger=self.ledger_url if ledger is None else ledger,
            **options,
        )

    @contextmanager
    def looked_at(self) -> Iterator[Study]:
        """The study for those who only plan: where there is no ledger yet, none is made.

        The budget is then that of the file, in a ledger that is thrown away.
        """
        with tempfile.TemporaryDirectory() as folder:
            url = self.ledger_url
            # Else the code that opens it says what is wrong.
            can_be_made = "://" in url or Path(url).parent.is_dir()
            study = self.study(str(Path(folder) / "study.db") if can_be_made and not self.has_ledger else url)
            try:
                yield study
            finally:
                study.close()

    def plan(self, study: Study | None = None) -> Plan:
        """The plan, with the weights and requirements of the file."""
        about = self.facts["study"]
        asked = replace(
            self.asked,
            epsilon=about.get("plan_epsilon"),
            reserve=about.get("plan_reserve"),
            fit=about.get("plan_fit", False),
            expected=self.expected,
        )
        plan = plan_of(study or self.study(), asked, from_file=True, again=True)
        return replace(plan, lines=tuple(self.text.splitlines()))

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """What is asked for, in the order of the file."""
        return self.asked.statistics

    @property
    def expected(self) -> dict[str, Any]:
        """What the steward expects, with TOML's lists and tables as the columns mean them."""
        return expected_values(self.facts.get("expected", {}), self.dataset)


@dataclass(frozen=True)
class Split:
    """Disjoint parts of the table: by which column, with which budget each, and which one is asked about (or all)."""

    by: str
    epsilon: float
    delta: float = 0.0
    part: Any = None

    def division(self, study: Study) -> Division:
        """What dividing the table of a study like this would cost; nothing is charged."""
        return study.split_plan(self.by, self.epsilon, self.delta)

    def studies(self, study: Study) -> dict[Any, Study]:
        """The parts that are asked about. The table is divided, and that is charged, unless it was before."""
        return self._chosen(study.split(self.by, self.epsilon, self.delta))

    def studies_before(self, study: Study, division: Division) -> dict[Any, Study]:
        """The parts of the table as it was before it changed: for their stored answers, for nothing else is charged."""
        assert division.before is not None
        parts, rows = replace(division, number=division.before).parts, study.dataset.split(self.by)
        pair, ledger = (self.epsilon, self.delta), study.ledger
        return self._chosen(
            {value: Study(rows[value], *pair, ledger=ledger, account=part.name) for value, part in parts.items()}
        )

    @contextmanager
    def looked_at(self, study: Study) -> Iterator[dict[Any, Study]]:
        """The same for those who only plan: where the table was not divided, that is done in a ledger thrown away."""
        division = self.division(study)
        if division.is_paid:
            yield self.studies(study)
            return
        study.allowance(division.cost.epsilon)  # refused as the release would be
        with tempfile.TemporaryDirectory() as folder:
            whole = Study(study.dataset, study.epsilon, study.delta, ledger=f"{folder}/study.db", account=study.name)
            try:
                yield self.studies(whole)
            finally:
                whole.close()

    def _chosen(self, parts: dict[Any, Study]) -> dict[Any, Study]:
        if self.part is None:
            return parts
        chosen = {value: study for value, study in parts.items() if str(value).lower() == str(self.part).lower()}
        if not chosen:
            known = ", ".join(map(str, parts))
            raise InvalidValue("study.split.part", self.part, f"must be a value of {self.by}", f"there are: {known}")
        return chosen


def read_study(
    path: str | os.PathLike[str],
    *,
    statistics: bool = True,
    split: bool = False,
    incomplete: bool = False,
    changes: Mapping[str, Any] | None = None,
) -> StudyFile:
    """The study that a file describes; what is wrong with it is said with its place.

    `statistics` says that there must be some to release; what asks for other things can do without. `split` says that
    the file may ask about disjoint parts. With `incomplete`, statistics that lack `max_cells` are named and left out:
    how many cells there are may not be known yet. `changes` are words of [study] that count instead of those in the
    file.
    """
    text, facts = read_toml(path)
    if changes:
        own = {
            key: value for key, value in table_of(facts, "study").items() if key != "name" or "account" not in changes
        }
        facts = {**facts, "study": {**own, **changes}}
    refuse_unknown(
        facts, ("dataset", "schema", "tables", "keys", "steps", "study", "expected", "statistics", "publication"), ""
    )
    about = table_of(facts, "study")
    if "part" in about:
        inside = f'write split = {{ by = "region", epsilon = 0.5, part = "{about["part"]}" }}'
        raise InvalidValue("study.part", about["part"], "belongs inside split", inside)
    refuse_unknown(about, STUDY_KEYS, "study.")
    for key, hint in (("epsilon", "epsilon = 1.0"), ("ledger", 'ledger = "study.db"')):
        if key not in about:
            raise InvalidValue(f"study.{key}", None, "must be given", f"write {hint} under [study]")
    if not isinstance(about["ledger"], str) or not about["ledger"]:
        raise InvalidValue("study.ledger", about["ledger"], "must be a file name or a URL")
    _check_split(about.get("split"), split)
    if not isinstance(about.get("title", ""), str):
        raise InvalidValue("study.title", about["title"], "must be a text")
    if not isinstance(about.get("plan_fit", False), bool):
        raise InvalidValue("study.plan_fit", about["plan_fit"], "must be true or false")
    if "expected" in facts:
        table_of(facts, "expected")
    asked: Any = facts.get("statistics", None if statistics else [])
    listed = isinstance(asked, list) and all(isinstance(entry, dict) for entry in asked)
    if not listed or (statistics and not asked):
        raise InvalidValue(
            "statistics",
            asked,
            "must be a list of at least one",
            'write [[statistics]] and kind = "count" below it',
        )
    unbounded = _unbounded(asked) if incomplete else {}
    whole = [entry for place, entry in enumerate(asked) if _place(place) not in unbounded]
    described = plan_description(whole, partial(_statistic, facts))
    return StudyFile(Path(path), text, facts, described, dict(changes or {}), unbounded)


def _place(number: int) -> str:
    return f"statistics[{number}]"


def _unbounded(asked: Sequence[Mapping[str, Any]]) -> dict[str, tuple[str, ...]]:
    """The places of statistics that lack `max_cells` and nothing else, each with the columns that cut its cells."""
    lacking = {}
    for number, entry in enumerate(asked):
        try:
            statistic_of(entry)
        except InvalidValue as refusal:
            if _lacks_max_cells(refusal):
                statistic_of({**entry, "max_cells": 1})  # what else is wrong is said
                lacking[_place(number)] = tuple(_cut_by(entry))
    return lacking


def _lacks_max_cells(refusal: InvalidValue) -> bool:
    return (refusal.name, refusal.value) == ("max_cells", None)


def _cut_by(entry: Mapping[str, Any]) -> list[str]:
    """The columns whose values cut the cells of a statistic."""
    named = [entry.get(key, []) for key in ("columns", "column", "by")]
    return [name for names in named for name in ([names] if isinstance(names, str) else names)]


def _statistic(facts: Mapping[str, Any], entry: Mapping[str, Any], where: str) -> tuple[Statistic, dict[str, Any]]:
    """The statistic of one entry; the refusal of one that lacks `max_cells` says how many cells there are."""
    try:
        return statistic_of(entry, where)
    except InvalidValue as refusal:
        if not _lacks_max_cells(refusal):
            raise
        columns = _cut_by(entry)
        sizes = {column: _values_listed(facts, column) for column in columns}
        cells, named = math.prod(sizes.values()), " and ".join(columns)
        if cells:
            way_out = f"{cells:,} cells of {named}: max_cells = {cells} leaves nobody out"
        else:
            unknown = [column for column, size in sizes.items() if not size and _is_unknown(facts, column)]
            way_out = "write max_cells = 3, for example, below this [[statistics]]; "
            way_out += f"the number of cells of {named} leaves nobody out"
            if unknown:
                way_out += f"; farthing discover finds how many values {' and '.join(unknown)} has"
        raise InvalidValue(f"{where}.max_cells", None, refusal.rule, way_out) from None


def _declared(facts: Mapping[str, Any], column: str) -> list[Any]:
    """What the file says of a column, in each table that has it."""
    linked = facts.get("tables")
    tables = [facts, *(linked.values() if isinstance(linked, Mapping) else ())]
    tables = [table for table in tables if isinstance(table, Mapping)]
    return [table["schema"].get(column) for table in tables if isinstance(table.get("schema"), Mapping)]


def _is_unknown(facts: Mapping[str, Any], column: str) -> bool:
    return any(isinstance(one, Mapping) and "unknown" in one for one in _declared(facts, column))


def _values_listed(facts: Mapping[str, Any], column: str) -> int:
    """How many values the file lists for a column; 0 where it lists none."""
    for one in _declared(facts, column):
        values = one.get("categories") if isinstance(one, Mapping) else one
        if isinstance(values, list):
            return len(values)
        if isinstance(one, Mapping) and one.get("flags") is True:
            return 2
    return 0


def _check_split(split: Any, allowed: bool) -> None:
    if split is None:
        return
    if not isinstance(split, dict) or not {"by", "epsilon"} <= set(split):
        raise InvalidValue("study.split", split, "must be a table", 'write split = { by = "region", epsilon = 0.5 }')
    refuse_unknown(split, ("by", "epsilon", "delta", "part"), "study.split.")
    if not allowed:
        raise InvalidValue(
            "study.split",
            split,
            "is for farthing plan and farthing release",
            "leave it out: counts, sessions, synthetic tables and requests are paid for by the whole account",
        )
