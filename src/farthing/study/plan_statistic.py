"""One statistic of a plan: its mechanism, its epsilon and its error, and what that rests on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from farthing.data import Dataset
from farthing.inference import ErrorDistribution
from farthing.inference.answers import level_at_once
from farthing.numerics.bounds import error_text, number_text
from farthing.planner import Allocation, Problem, Requirement, own_epsilon
from farthing.statistics.coverage import ALL_ROWS, Coverage
from farthing.statistics.design import Design, design_of
from farthing.statistics.measurements import Noise, Output
from farthing.statistics.public_facts import ASSUMED_ROWS, Assumption, Counted
from farthing.statistics.statistic import Statistic, text_of
from farthing.study.coverage_text import coverage_of
from farthing.study.power import detectable_by, power_of
from farthing.study.table_error import TableError, table_error

_ERRORS_OF_NOISE_ALONE = ("count", "histogram", "top", "contingency", "sum")
_COUNTS = (
    "count",
    "histogram",
    "contingency",
)  # whose errors are whole numbers, unless others say something about them


def rows_known(dataset: Dataset, expected: Mapping[str, Any]) -> int | None:
    """The number of rows where it is public or somebody expects one; None where nothing is known.

    >>> import pyarrow, farthing as ft
    >>> table = pyarrow.table({"age": [30, 31, 45]})
    >>> [rows_known(ft.dataset(table, schema={"age": (0, 110)}), said) for said in ({}, {"rows": 3})]
    [None, 3]
    """
    rows = dataset.rows if dataset.rows is not None else expected.get("rows")
    number = isinstance(rows, int | float) and not isinstance(rows, bool) and 1 <= rows < 2**63
    return int(rows) if number else None  # type: ignore[arg-type]


def errors_rest_on(
    asked: Sequence[Statistic],
    names: Sequence[str],
    dataset: Dataset,
    expected: Mapping[str, Any],
    counted: Counted | None = None,
) -> tuple[Assumption, ...]:
    """What the errors of the named statistics assume; those of counts and sums rest on the noise alone.

    >>> import pyarrow, farthing as ft
    >>> people = ft.dataset(pyarrow.table({"age": [30], "sex": ["F"]}), schema={"age": (0, 110), "sex": ["F", "M"]})
    >>> asked = ft.count(by="sex"), ft.median("age")
    >>> errors_rest_on(asked, ["count by sex"], people, {"rows": 400})
    ()
    >>> print(errors_rest_on(asked, ["median of age"], people, {"rows": 400})[0])
    age is assumed uniform...
    """
    own = [
        each
        for each in asked
        if each.name in names and (each.for_population or each.kind not in _ERRORS_OF_NOISE_ALONE)
    ]
    if not own:
        return ()
    others = {each.name for each in asked} - {each.name for each in own} - {*dataset.schema}
    # A count that is expected says how large groups are, also to the others.
    own_expected = {name: value for name, value in expected.items() if name not in others or name.startswith("count")}
    return design_of(own, dataset, own_expected, counted=counted).assumptions


_WORDS = {
    "laplace": "discrete Laplace",
    "gaussian": "discrete Gaussian",
    "exponential": "exponential mechanism",
}
_CHEBYSHEV = 20**0.5  # no distribution has a 95% error of more standard errors than this
_ALIKE = 1.1  # a worst case that is no worse than this is not distinguished from the best
_UNLIKE = 1.5  # cells whose errors differ by more than this are not described by one number


@dataclass(frozen=True, eq=False)
class PlannedStatistic:
    """What a plan predicts of one statistic. Made by a plan: `plan["mean of age"]`.

    `standard_error` is the root of the mean squared error over its cells; `error(0.95)` holds in 95 cases of 100 (on
    average over cells, where it has several: `errors` has one for each). If the error depends on something that is
    not expected, both are for the worst case, and `depends_on` says what it is. `epsilon` is what the statistic
    would cost alone at the plan's delta; measurements that statistics share count in each of them.

    Args:
        output: The statistic and how it comes out of the measurements.
        noises: The noise of every measurement it reads, by name.
        delta: The plan's delta.
        distribution: The distribution of its error.
        quick: Whether its epsilon is a rough one, for a plan that is only looked at.
        requirement: What is required of it.
        size: What is assumed or expected of the number of rows, as a clause after "if".
        others: The noises of the whole plan.
        even: How many times larger its error would be with an even share of the budget to itself.
        probability: With which every unit is in the sample that it is computed from; 1 for the whole table.
        coverage: What its numbers count: rows or people, and how much of each unit.

    >>> import pyarrow, tempfile, farthing as ft
    >>> table = pyarrow.table({"age": [30, 41, 52]})
    >>> folder = tempfile.TemporaryDirectory()
    >>> study = ft.Study(
    ...     ft.dataset(table, schema={"age": (0, 110)}, name="people"), epsilon=1.0, ledger=folder.name + "/study.db"
    ... )
    >>> one = study.plan(ft.count())["count"]
    >>> one.mechanism, round(one.epsilon, 6), one.error(0.95), one.sentence
    ('discrete Laplace', 1.0, 3.0, '95 times in 100 within ±3 of the true value')
    >>> study.ledger.close(); folder.cleanup()
    """

    output: Output
    noises: tuple[tuple[str, Noise], ...]
    delta: float
    distribution: ErrorDistribution
    quick: bool = False  # then its epsilon is a rough one, for a plan that is only looked at
    requirement: Requirement | None = None
    size: str = ""  # what is assumed or expected of the number of rows, as a clause after "if"
    others: Mapping[str, Noise] = field(default_factory=dict, compare=False, repr=False)  # of the whole plan
    even: float = 1.0  # how many times larger its error would be with an even share of the budget to itself
    probability: float = 1.0  # with which every unit is in the sample that it is computed from
    coverage: Coverage = ALL_ROWS  # what is counted

    @property
    def counts(self) -> str:
        """What its numbers count, in words: rows or people, and how much of each unit."""
        return self.coverage.text

    @property
    def name(self) -> str:
        """What the statistic is called in the plan."""
        return self.output.name

    @property
    def is_ranked(self) -> bool:
        """Whether the largest of its numbers are shown: then errors are those that hold for all of them together."""
        return self.output.statistic.kind == "top"

    @property
    def law(self) -> ErrorDistribution:
        """`distribution` under its name before 0.1; deprecated, there until 1.0."""
        return self.distribution

    @property
    def mechanism(self) -> str:
        """Which noise makes it private."""
        kinds = dict.fromkeys(noise.kind for _, noise in self.noises)
        return " and ".join(_WORDS[kind] for kind in kinds) or "none needed"

    @cached_property
    def epsilon(self) -> float:
        """What it would cost alone."""
        return own_epsilon([noise for _, noise in self.noises], self.delta, quick=self.quick)

    @property
    def noise(self) -> dict[str, float]:
        """The parameter of every measurement it reads: epsilon, or for Gaussian noise sigma over the sensitivity."""
        return {name: noise.parameter for name, noise in self.noises}

    @property
    def cells(self) -> int:
        """How many numbers it has."""
        return max(1, len(self.output.labels))

    @property
    def standard_error(self) -> float:
        """The root of the mean squared error, in the data's own units."""
        return float(self.distribution.standard_error)

    def error(self, confidence: float = 0.95, *, at_once: bool = False) -> float:
        """Within this distance of the true value in `confidence` of all cases.

        Args:
            confidence: How often, between 0 and 1.
            at_once: The distance within which all of its cells are together: exact where their noises are independent
                and alike, else an upper bound.

        Returns:
            The distance, in the data's own units.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db", account="people")
        ...     print(study.plan(ft.count())["count"].error(0.5))
        ...     study.close()
        1.0
        """
        if at_once or self.is_ranked:
            return float(np.max(self.distribution.errors(self.level_at_once(confidence)), initial=0.0))
        if confidence not in self._errors:  # a root of a sum of tails: a page shows it in four places
            self._errors[confidence] = float(self.distribution.error(confidence))
        return self._errors[confidence]

    def even_share(self, confidence: float = 0.95) -> float:
        """What `error` would be if every statistic had its own, even share of the budget and measured for itself.

        Args:
            confidence: How often, between 0 and 1.

        Returns:
            The distance, in the data's own units.
        """
        return min(self.error(confidence) * self.even, self.output.most)

    @property
    def shown_even_share(self) -> str:
        """The same at 95% for a table; empty where nothing is measured, or the error has no limit."""
        error = self.even_share()
        if not self.noises or not math.isfinite(error):
            return ""
        # Errors of counts are whole numbers.
        return f"± {error_text(round(error) if self.error() == round(self.error()) else error)}"

    @property
    def _all(self) -> dict[str, Noise]:
        """A count that is estimated from several measurements depends on the noises of all of them."""
        return {**self.others, **dict(self.noises)}

    @cached_property
    def _errors(self) -> dict[float, float]:
        return {}

    @cached_property
    def at_best(self) -> ErrorDistribution:
        """The distribution in the best case of what is not expected; `distribution` if everything is expected."""
        return self.output.predicted_at_best(self._all) if self.noises else self.distribution

    @cached_property
    def depends_on(self) -> str:
        """What its error depends on and is not expected, if that matters; then `error` is for the worst case.

        In words, such as "the true share"; `at_best.error(0.95)` is the other end.
        """
        reason = self.output.depends_on
        if not reason or math.isinf(self.at_best.error(0.95)):
            return ""
        return reason if self.standard_error > _ALIKE * self.at_best.standard_error else ""

    @property
    def condition(self) -> str:
        """What its error rests on, in few words: how many rows there are, or whether values are as expected."""
        return self.output.short_condition

    def level_at_once(self, confidence: float = 0.95) -> float:
        """The confidence of one cell by itself at which all of them hold together.

        Args:
            confidence: How often all of them hold.

        Returns:
            A confidence that is at least as large.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db", account="people")
        ...     print(study.plan(ft.count())["count"].level_at_once(0.95))  # one cell
        ...     study.close()
        0.95
        """
        return level_at_once(confidence, self.cells, independent=self.output.independent)

    def worst_error(self, confidence: float = 0.95) -> float:
        """The error of the worst cell as it is released: what `require` applies to, and what keeps a plan as it is.

        Means of few rows come out wider than predicted where fewer rows are counted; this holds in 999 of 1,000
        releases, if everything is as expected.

        Args:
            confidence: How often the error holds.

        Returns:
            The error, in the data's own units.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db", account="people")
        ...     print(study.plan(ft.count())["count"].worst_error())
        ...     study.close()
        3.0
        """
        if self.is_ranked:
            confidence = self.level_at_once(confidence)
        if not self.noises:
            return float(self.distribution.worst(confidence))
        return float(self.output.promised(self._all).worst(confidence))

    def power(self, one: Any, other: Any, difference: float, spread: float | None = None, level: float = 0.05) -> float:
        """How likely a test is to find that two groups differ, if their means differ by so much.

        It accounts for the sample and the noise, if groups are as large as expected.

        Args:
            one: The label of a group.
            other: The label of the other group.
            difference: By how much the means differ, in the data's own units; of a flag, the shares.
            spread: The standard deviation of values within a group; by default as expected of the column.
            level: A difference counts as found if the p-value is at most this.

        Returns:
            A probability.

        Raises:
            InvalidValue: If this is not a mean by groups, or an argument is out of range.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"sex": ["F"], "ill": [True]}), schema={"sex": ["F", "M"], "ill": bool})
        >>> folder = tempfile.TemporaryDirectory()
        >>> study = ft.Study(people, epsilon=0.3, account="people", ledger=folder.name + "/study.db")
        >>> known = {"rows": 10_000, "ill": {True: 0.2, False: 0.8}, "sex": {"F": 0.5, "M": 0.5}}
        >>> planned = study.plan(ft.mean("ill", by="sex"), expected=known)["mean of ill by sex"]
        >>> [round(planned.power("F", "M", difference), 2) for difference in (0.0, 0.01, 0.02, 0.03)]
        [0.05, 0.23, 0.68, 0.95]
        >>> study.close(); folder.cleanup()
        """
        return power_of(self.output, self._all, (one, other), difference, spread, level)

    def detectable(
        self, one: Any, other: Any, power: float = 0.8, spread: float | None = None, level: float = 0.05
    ) -> float:
        """The least difference between the means of two groups that a test finds with this probability.

        Args:
            one: The label of a group.
            other: The label of the other group.
            power: How likely it is found.
            spread: The standard deviation of values within a group; by default as expected of the column.
            level: A difference counts as found if the p-value is at most this.

        Returns:
            A difference in the data's own units; infinite where the bounds allow none that is so large.

        Raises:
            InvalidValue: If this is not a mean by groups, or an argument is out of range.
        """
        return detectable_by(self.output, self._all, (one, other), power, spread, level)

    @cached_property
    def of_table(self) -> TableError | None:
        """Its error against the whole table, the draw included, where it is computed from a sample of it.

        None for the whole table itself, and for ranges, marginals and different values, for which the draw is not
        worked out.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)}, name="people")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people.sample(0.1), epsilon=1.0, ledger=folder + "/study.db", account="people")
        ...     print(study.plan(ft.count(), expected={"rows": 10_000})["count"].of_table.sentence)
        ...     study.close()
        times 10, within about ±589 of the value in the whole table, the draw included (95%), if the table has as many
        rows as expected and its numbers are as expected
        """
        if self.probability == 1 or not self.noises:
            return None
        return table_error(self.output, self._all, self.probability, self.size)

    @property
    def rests_on(self) -> tuple[str, ...]:
        """What a required error rests on, as clauses after "if"; nothing where it holds whatever the data."""
        size = (self.size,) if self.size and self.output.sized else ()
        return (*size, *self.output.rests_on)

    @property
    def required(self) -> str:
        """What is required of it, how often a release keeps it and what that rests on; empty where nothing is."""
        return required_sentence(self)

    def errors(self, confidence: float = 0.95) -> Sequence[float]:
        """The error of every cell by itself.

        Args:
            confidence: How often each holds.

        Returns:
            One error for each cell.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db", account="people")
        ...     print(study.plan(ft.count())["count"].errors())
        ...     study.close()
        [3.0]
        """
        level = self.level_at_once(confidence) if self.is_ranked else confidence
        return [float(error) for error in self.distribution.errors(level)]

    @cached_property
    def _extremes(self) -> tuple[float, float]:
        """The 95% errors of the best and the worst cell."""
        deviations = self.distribution.standard_errors
        if self.cells == 1 or self.is_ranked or np.all(deviations == deviations[0]):
            return self.error(), self.error()
        best, worst = (
            float(self.distribution.cell(int(at)).error(0.95)) for at in (deviations.argmin(), deviations.argmax())
        )
        return best, worst

    @property
    def shown_error(self) -> str:
        """The 95% error for a table: one number, or from and to where cells differ."""
        best, worst = self._extremes
        if self.depends_on:
            # The last share of a cdf is 1.
            noisy = self.at_best.errors(0.95)[self.at_best.standard_errors > 0]
            lowest, highest = float(np.min(noisy, initial=math.inf)), max(worst, self.error())
            if math.isinf(highest):
                return f"± {error_text(lowest)} to no limit"
            return f"± {error_text(lowest)} to {error_text(highest)}{self._of_what}"
        if math.isinf(self.error()):
            return f"no limit{self._of_what}"
        if worst > _UNLIKE * best:
            return f"± {error_text(best)} to {error_text(worst)}{self._of_what}"
        return f"± {error_text(self.error())}{self._of_what}"

    @property
    def _of_what(self) -> str:
        # Ranges are asked for afterwards: the error that is shown, and that can be required, is that of their cells.
        asked = self.output.statistic
        cell = " a cell" if asked.kind == "ranges" and not asked.ranges else ""
        return f"{cell} {self.condition}" if self.condition else cell

    @cached_property
    def note(self) -> str:
        """Said of a statistic whose 95% error exceeds what is expected of it, in half of its cells or more.

        Also what its output warns of, such as rows too few for an interval with ends.
        """
        caution = self.output.caution(self._all) if self.noises else ""
        if caution:
            return caution
        reference, deviations = (
            np.asarray(self.output.reference, dtype=float),
            self.distribution.standard_errors,
        )
        if not self.noises or not reference.size:
            return ""
        ratios = deviations / np.maximum(reference, 1e-300)
        middle = int(np.argsort(ratios)[ratios.size // 2])
        if not ratios[middle] * _CHEBYSHEV > 1:
            return ""
        error = self.error() if self.cells == 1 else float(self.distribution.cell(middle).error(0.95))
        if not error > reference[middle]:
            return ""
        return (
            f"{self.name!r} is mostly noise: its error exceeds the value expected of it; raise its weight, "
            "require an error, or ask for less"
        )

    @property
    def remarks(self) -> tuple[str, ...]:
        """What else there is to know about its error, in words."""
        return self.output.remarks(self._all)

    @property
    def sentence(self) -> str:
        """The error in plain words."""
        return sentence_of(self)

    def to_dict(self, confidence: float = 0.95, *, promises: bool = True) -> dict[str, Any]:
        """The prediction as plain data.

        Args:
            confidence: How often the errors hold.
            promises: Whether `worst_error` is there too where no error is required: it takes the longest by far.

        Returns:
            Dictionaries, lists, numbers and texts.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db", account="people")
        ...     print(study.plan(ft.count())["count"].to_dict()["mechanism"])
        ...     study.close()
        discrete Laplace
        """
        return {
            "name": self.name,
            "counts": self.counts,
            "mechanism": self.mechanism,
            "epsilon": self.epsilon,
            "noise": self.noise,
            "cells": self.cells,
            "standard_error": self.standard_error,
            "error": self.error(confidence),
            "shown_error": self.shown_error,
            "error_at_best": self.at_best.error(confidence) if self.depends_on else self.error(confidence),
            "depends_on": self.depends_on,
            "even_share": self.even_share(confidence),
            "error_at_once": self.error(confidence, at_once=True),
            "level_at_once": self.level_at_once(confidence),
            "sentence": self.sentence,
            **({"worst_error": self.worst_error(confidence)} if promises or self.requirement is not None else {}),
            "within": None if self.requirement is None else self.requirement.within,
            "required": self.required or None,
            "rests_on": list(self.rests_on),
            "of_table": None if self.of_table is None else self.of_table.to_dict(),
            "asked": _asked(self.output.statistic),
        }

    def __repr__(self) -> str:
        return f"{self.name}: ± {error_text(self.error())} (95%), {self.mechanism}, epsilon {number_text(self.epsilon)}"


def sentence_of(statistic: PlannedStatistic, confidence: float = 0.95) -> str:
    """The predicted error as a sentence; it is never rounded down."""
    times = f"{100 * confidence:g} times in 100"
    error, value = error_text(statistic.error(confidence)), statistic.coverage.value
    if not statistic.noises:
        return "exact: its value is public"
    if statistic.error(confidence) == 0:
        return f"{times} exactly the {value}" if statistic.cells == 1 else f"{times} a cell has exactly its {value}"
    if statistic.depends_on and math.isinf(statistic.error(confidence)):
        best = error_text(statistic.at_best.error(confidence))
        return (
            f"no error can be predicted: from ±{best} at best to no limit, depending on {statistic.depends_on}; "
            "an expected value would allow a prediction"
        )
    condition = f", {statistic.output.condition}" if statistic.output.condition else ""
    if math.isinf(statistic.error(confidence)):
        return f"its interval is likely to be unbounded{condition}"
    sentence = f"{times} within ±{error} of the {value}{condition}"
    if statistic.cells > 1:
        sentence = f"{times} a cell is within ±{error} of its {value}{condition}"
    if statistic.is_ranked:
        return f"{times} all {statistic.cells:,} values, and so those shown, are within ±{error} of their {value}"
    if statistic.depends_on:
        best = error_text(statistic.at_best.error(confidence))
        sentence += f"; at best within ±{best}, depending on {statistic.depends_on}"
    return sentence


def required_sentence(statistic: PlannedStatistic) -> str:
    """What is required of a statistic, how often a release keeps it, and what that rests on: in one line."""
    asked = statistic.requirement
    if asked is None or not statistic.noises:
        return ""
    every = "every cell " if statistic.cells > 1 else ""
    sentence = f"{every}within ±{number_text(asked.within, 6)} ({100 * asked.confidence:g}%) {statistic.output.holds}"
    clauses = statistic.rests_on
    if not clauses:
        return f"{sentence}, whatever the data{_whole_number(statistic, asked)}"
    listed = f"{', '.join(clauses[:-1])} and {clauses[-1]}" if len(clauses) > 1 else clauses[0]
    return f"{sentence}, if {listed}"


def _whole_number(statistic: PlannedStatistic, asked: Requirement) -> str:
    """Why a count's error is smaller than the fraction that was asked for; empty where it is not."""
    if statistic.output.statistic.kind not in _COUNTS or asked.within.is_integer():
        return ""
    error = statistic.worst_error(asked.confidence)
    return f"; it is ±{error:,.0f}, because this error is a whole number" if error == math.floor(asked.within) else ""


def _asked(statistic: Statistic) -> dict[str, Any]:
    """What a later session must know in order to use the answers: which columns, which rows, cut or not."""
    return {
        "kind": statistic.kind,
        "columns": list(statistic.columns),
        "by": list(statistic.by),
        "where": None if statistic.where is None else text_of(statistic.where),
        "cut": bool(statistic.bins),
        **({"of": statistic.of} if statistic.counts_people else {}),
        **({"bound": str(statistic.bound)} if statistic.bound is not None else {}),
    }


def planned_statistic(output: Output, allocation: Allocation, dataset: Dataset) -> PlannedStatistic:
    """The statistic of one output under an allocation."""
    noises = tuple((slot.name, allocation.noises[slot.name]) for slot in output.slots)
    distribution = allocation.distributions[output.name]
    problem = allocation.problem
    requirement = problem.requirements.get(output.name)
    return PlannedStatistic(
        output,
        noises,
        problem.delta,
        distribution,
        allocation.quick,
        requirement,
        _size(problem, output.statistic, dataset),
        allocation.noises,
        allocation.even_share[output.name],
        dataset.probability,
        coverage_of(output, dataset),
    )


def _size(problem: Problem, statistic: Statistic, dataset: Dataset) -> str:
    """What the number of rows, or of people, is assumed to be, as a clause after "if"; empty where it is public."""
    design = problem.design
    assert isinstance(design, Design)
    if statistic.counts_people:
        if "people" in design.expected:
            return "the table has as many people as expected"
        return "" if dataset.people is not None else f"the table has {ASSUMED_ROWS:,} people (assumed)"
    if design.assumed_rows is not None:
        return f"the table has {design.assumed_rows:,} rows (assumed)"
    if design.counted is not None:
        return f"the table has at least {design.counted.lower:,} rows (counted, 97.5 times in 100)"
    return "" if design.rows_public else "the table has as many rows as expected"


CONFIDENCE = 0.95
_MOST_NAMED = 12


@dataclass(frozen=True)
class AtOnce:
    """Errors that hold for all numbers of a plan together, one for each statistic.

    `level` is the confidence of each number by itself. It is exact where all noises are independent (`exact`), else
    from Boole's inequality, and then the errors are at most a little larger than they need be.
    """

    confidence: float
    numbers: int
    level: float
    exact: bool
    errors: dict[str, float]
    conditions: dict[str, str] = field(default_factory=dict)  # what the errors of some rest on, in words

    @classmethod
    def of(cls, statistics: Sequence[PlannedStatistic], confidence: float = CONFIDENCE) -> AtOnce:
        """All numbers that have noise; public ones are exact."""
        noisy = [statistic for statistic in statistics if statistic.noises]
        numbers = sum(statistic.cells for statistic in noisy)
        slots = [name for statistic in noisy for name, _ in statistic.noises]
        apart = len(set(slots)) == len(slots)  # what two statistics share moves both
        exact = apart and all(one.cells == 1 or one.output.independent for one in noisy)
        level = level_at_once(confidence, max(1, numbers), independent=exact)
        errors = {one.name: float(np.max(one.distribution.errors(level), initial=0.0)) for one in noisy}
        conditions = {one.name: one.condition for one in noisy if one.condition}
        return cls(confidence, numbers, level, exact, errors, conditions)

    @property
    def sentence(self) -> str:
        """In words; nothing where there is only one number."""
        if self.numbers < 2:
            return ""
        few = list(self.errors.items())[:_MOST_NAMED]
        errors = ", ".join(self._error_text(name, error) for name, error in few)
        more = f" and {len(self.errors) - len(few)} more" if len(self.errors) > len(few) else ""
        times = f"{'' if self.exact else 'at least '}{100 * self.confidence:g} times in 100"
        return f"all {self.numbers:,} numbers are within these errors together, {times}: {errors}{more}"

    def _error_text(self, name: str, error: float) -> str:
        """One error, never rounded down; where it rests on how values are spread, the same words say so."""
        condition = self.conditions.get(name)
        size = f"± {error_text(error)}" if math.isfinite(error) else "without a limit"
        return f"{name} {size}{f' {condition}' if condition else ''}"

    def to_dict(self) -> dict[str, Any]:
        return {
            "confidence": self.confidence,
            "numbers": self.numbers,
            "level": self.level,
            "exact": self.exact,
            "errors": dict(self.errors),
            "conditions": dict(self.conditions),
            "sentence": self.sentence,
        }
