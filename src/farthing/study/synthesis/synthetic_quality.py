"""How good a synthetic table is: which columns and pairs of columns it gets right, and by how much it may be off.

Everything here is made of noisy numbers that were paid for. The error of a table of counts is its total variation: the
share of rows that would have to be moved to make it right. No question about these columns, whatever it counts, has
more error than that share of the rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from farthing.adaptive.synthesis import SyntheticModel
from farthing.adaptive.synthesis.synthesis_transcript import NoisyTable, Transcript
from farthing.adaptive.synthesis.value_groups import summed
from farthing.adaptive.synthesis_validation import CheckedSynthesis, Codes, drawn
from farthing.errors import InvalidValue

GOOD, ROUGH, NOT_VOUCHED = "good", "rough", "not vouched for"
GOOD_UP_TO, ROUGH_UP_TO = 0.05, 0.15
"""Verdicts by the largest error that the check does not contradict."""

_MOST_SHOWN = 30
_DENSE = 2**22  # cells; of more only those that hold a row are counted
_CONFIDENCE = 0.99  # an error is above `at_most` in one case of a hundred


@dataclass(frozen=True)
class MarginalQuality:
    """What the check says about one column or one pair. Errors are shares of the rows (total variation).

    Args:
        columns: The column, or the pair.
        error: The error that the check estimated.
        at_most: The same with the noise of the check allowed for.
        measured: Whether the synthesis looked at these columns together.

    >>> MarginalQuality(("sex", "age"), 0.021, 0.034, measured=True).verdict
    'good'
    """

    columns: tuple[str, ...]
    error: float
    at_most: float
    measured: bool

    @property
    def verdict(self) -> str:
        """Good up to 5%, rough up to 15%, and beyond that not vouched for."""
        if self.at_most <= GOOD_UP_TO:
            return GOOD
        return ROUGH if self.at_most <= ROUGH_UP_TO else NOT_VOUCHED

    def to_dict(self) -> dict[str, Any]:
        """Columns, errors and verdict as plain data.

        Returns:
            Texts and numbers by name.

        >>> MarginalQuality(("sex",), 0.021, 0.034, measured=True).to_dict()["verdict"]
        'good'
        """
        return {**asdict(self), "columns": list(self.columns), "verdict": self.verdict}


@dataclass(frozen=True)
class MeasuredQuality:
    """One noisy table that the model was fitted to.

    `noise` is the standard error of one of its `cells`, in rows; `noise_error` the total variation to expect of such
    noise, `fit_error` that between the noisy table and the model. A fit error far above the noise says that the
    model cannot follow the table; far below, that it follows the noise.
    """

    columns: tuple[str, ...]
    cells: int
    noise: float
    noise_error: float
    fit_error: float

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "columns": list(self.columns)}


@dataclass(frozen=True, eq=False)
class Quality:
    """The quality of a synthetic table; print it.

    Args:
        marginals: The columns and pairs that were checked.
        measured: The noisy tables that the model was fitted to.
        rows: How many rows were measured.
        noise: The standard error of each distance, in rows.
        unchecked: How many pairs were not checked, where there are too many of them.
        rows_error: How far off the number of rows may be, at the same confidence.
        made: How many rows the table has, where they are not as many as were measured.
        chance: The most that another number of rows adds to an error.

    >>> one = MarginalQuality(("sex",), 0.002, 0.011, measured=True)
    >>> two = MarginalQuality(("sex", "age"), 0.048, 0.057, measured=False)
    >>> quality = Quality((one, two), (), 1000.0, 9.0)
    >>> quality.good, quality.of("age", "sex").verdict
    ((('sex',),), 'rough')
    >>> print(quality)
    columns      estimated  at most  verdict
    -----------  ---------  -------  -------
    sex               0.2%     1.1%  good
    sex and age       4.8%     5.7%  rough
    <BLANKLINE>
    columns: 1 of 1 good; pairs of columns: 0 of 1 good, 1 rough, 0 not vouched for
    """

    marginals: tuple[MarginalQuality, ...]
    measured: tuple[MeasuredQuality, ...]
    rows: float
    noise: float
    unchecked: int = 0  # pairs, where there are too many of them
    rows_error: float = 0.0  # of the number of rows, at the same confidence
    made: int | None = None  # rows of the table, where they are not as many as were measured
    chance: float = 0.0  # the most that another number of rows adds to an error

    @property
    def good(self) -> tuple[tuple[str, ...], ...]:
        """The columns and pairs of columns that are good."""
        return tuple(one.columns for one in self.marginals if one.verdict == GOOD)

    def of(self, *columns: str) -> MarginalQuality:
        """What is said about one column or one pair.

        Args:
            *columns: The column, or the two columns in any order.

        Returns:
            Its errors and verdict.

        Raises:
            InvalidValue: If it was not checked.

        >>> Quality((MarginalQuality(("sex",), 0.002, 0.011, measured=True),), (), 1000.0, 9.0).of("sex").at_most
        0.011
        """
        for one in self.marginals:
            if set(one.columns) == set(columns):
                return one
        raise InvalidValue(
            "columns",
            columns,
            "must be a column or a pair that was checked",
            "of three columns and more nothing is known: the table may be right there or not",
        )

    def holding(self, columns: Iterable[str]) -> MarginalQuality | None:
        """The checked column or pair that has all of these columns and the fewest others; None if there is none.

        Never the one that came out best: of many noisy numbers the least is too small far more often than each is.

        Args:
            columns: The columns that it must have.

        Returns:
            Its errors and verdict, or None.

        >>> pair = MarginalQuality(("sex", "age"), 0.002, 0.011, measured=True)
        >>> Quality((pair,), (), 1000.0, 9.0).holding(["age"]).columns
        ('sex', 'age')
        """
        names = set(columns)
        candidates = [one for one in self.marginals if names <= set(one.columns)]
        return min(candidates, key=lambda one: len(one.columns), default=None)

    def of_size(self, size: int) -> tuple[MarginalQuality, ...]:
        """The checked columns, or the checked pairs.

        Args:
            size: 1 for columns, 2 for pairs.

        Returns:
            Their errors and verdicts.

        >>> Quality((MarginalQuality(("sex",), 0.002, 0.011, measured=True),), (), 1e3, 9.0).of_size(2)
        ()
        """
        return tuple(one for one in self.marginals if len(one.columns) == size)

    @property
    def sentence(self) -> str:
        """How many columns and pairs have which verdict."""
        parts = []
        for size, name in ((1, "columns"), (2, "pairs of columns")):
            own = [one.verdict for one in self.of_size(size)]
            counted = [f"{own.count(word)} {word}" for word in (ROUGH, NOT_VOUCHED) if len(own) > own.count(GOOD)]
            if own:
                parts.append(", ".join([f"{name}: {own.count(GOOD)} of {len(own)} good", *counted]))
        if self.unchecked:
            parts.append(f"{self.unchecked:,} more pairs were not checked")
        if self.made is not None:
            parts.append(
                f"this table has {self.made:,} rows and not the {self.rows:,.0f} that were checked, which makes an "
                f"error up to {percent(self.chance)} larger"
            )
        return "; ".join(parts)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What nobody should overlook: a table that is noise more than anything else."""
        warnings = []
        if not any(one.verdict == GOOD for one in self.of_size(1)):
            warnings.append("not one column of this table is good: what is counted in it may be noise alone")
        if self.rows_error >= self.rows:
            warnings.append(
                f"the number of rows is noise itself: {self.rows:,.0f} were measured, and that may be off by "
                f"{self.rows_error:,.0f}"
            )
        if warnings:
            warnings.append(
                "a larger epsilon, fewer columns or coarser cells make a better table, and so does a schema with "
                "the categories and types of the table"
            )
        return tuple(warnings)

    def records(self) -> list[dict[str, Any]]:
        """One plain record for each column and pair."""
        return [one.to_dict() for one in self.marginals]

    def to_dict(self) -> dict[str, Any]:
        """Verdicts, errors and warnings as plain data."""
        return {
            "rows": self.rows,
            "noise": self.noise,
            "rows_error": self.rows_error,
            "made": self.made,
            "chance": self.chance,
            "unchecked": self.unchecked,
            "summary": self.sentence,
            "marginals": self.records(),
            "measured": [one.to_dict() for one in self.measured],
        }

    def __str__(self) -> str:
        from farthing.study.plan_text import aligned

        worst = sorted(self.of_size(2), key=lambda one: -one.at_most)
        chosen = [*self.of_size(1)[:_MOST_SHOWN], *worst[:_MOST_SHOWN]]
        lines = aligned(
            [("columns", "estimated", "at most", "verdict"), *(table_row(one) for one in chosen)],
            right=(1, 2),
        )
        hidden = len(self.marginals) - len(chosen)
        if hidden > 0:
            lines.append(f"... and {hidden:,} more, with less error")
        return "\n".join([*lines, "", self.sentence])


def table_row(one: MarginalQuality) -> tuple[str, str, str, str]:
    """A line of the table: columns, error, at most, verdict."""
    return " and ".join(one.columns), percent(one.error), percent(one.at_most), one.verdict


def percent(share: float) -> str:
    """A share for people.

    >>> percent(0.0312), percent(0.00004), percent(1.3)
    ('3.1%', '0.0%', '100%')
    """
    return "100%" if share >= 0.9995 else f"{100 * share:.1f}%"


def quality_of(
    question: CheckedSynthesis, answers: Mapping[str, Any], model: SyntheticModel, made: Codes | None = None
) -> Quality:
    """The quality that the recorded numbers show: of the table that was checked, or of `made` in its place."""
    names, sets = question.plan.names, question.sets(answers)
    transcript = Transcript.read(drawn(answers))
    rows = question.rows(model)
    together = {frozenset(table.columns) for table in transcript.tables}
    noise = _slack(question, transcript)
    chances = [0.0] * len(sets)
    if made is not None:
        checked_rows = question.codes(answers, None, model)
        chances = [apart(checked_rows, made, columns, question.plan.sizes) for columns in sets]
    marginals = []
    for columns, distance, chance in zip(sets, answers["distances"], chances, strict=True):
        # No distance is below 0: one that noise has moved there says 0, and not that the noise is known.
        error, at_most = (_share(max(float(distance), 0.0) + more, rows) for more in (0.0, noise))
        measured = any(set(columns) <= each for each in together)
        # The draw knows nothing of the error, so they rarely add up.
        marginals.append(
            MarginalQuality(
                tuple(names[place] for place in columns),
                min(math.hypot(error, chance), 1.0),
                min(at_most + chance, 1.0),
                measured,
            )
        )
    checked = sum(len(one.columns) == 2 for one in marginals)
    return Quality(
        tuple(marginals),
        _measured(transcript, question, model, rows),
        float(rows),
        float(noise),
        math.comb(len(names), 2) - checked,
        _rows_error(question, transcript),
        None if made is None else len(made),
        max(chances),
    )


def apart(one: Codes, other: Codes, columns: Sequence[int], sizes: Sequence[int]) -> float:
    """The total variation of two synthetic tables in some columns; both are public, so it is exact.

    Statement:
        If a table T is within t of the private one in total variation, and T' within u of T, then T' is within t + u of
        the private one.
    Source: triangle inequality.
    Assumes: nothing; T is the table that was checked, T' one of another number of rows.
    Direction: an upper bound.
    Checked by: tests/theorems/test_synthetic_quality.py

    >>> apart(np.array([[0], [1]]), np.array([[0], [0], [0], [1]]), [0], [2])
    0.25
    """
    if not (len(one) and len(other)):
        return 1.0
    shape = [sizes[column] for column in columns]
    cells = np.ravel_multi_index(np.concatenate([one, other])[:, list(columns)].T, shape)
    if math.prod(shape) > _DENSE:
        cells = np.unique(cells, return_inverse=True)[1]
    size = int(cells.max()) + 1
    first, second = (np.bincount(part, minlength=size) / len(part) for part in np.split(cells, [len(one)]))
    return float(np.abs(first - second).sum()) / 2


def _slack(question: CheckedSynthesis, transcript: Transcript) -> float:
    """What a noisy distance may lack, in rows: its noise, and how far the number of rows is off.

    Statement:
        Let x be the private counts of n rows, T the synthetic ones of m, and d = sum |x - T|. The sum of x - T over any
        cells is at most (d + |n - m|) / 2, and so is m times the total variation between x / n and T / m. If d and n
        are known up to independent noises that exceed a and b, to either side, with probability at most beta each, as
        Gaussians do, then d + |n - m| exceeds what is known of d by more than sqrt(a^2 + b^2) with probability at
        most beta.
    Source: the positive and the negative parts of x - T add up to d and differ by n - m; x / n - T / m is
        (x - T) / m + x (1 / n - 1 / m). The last step is a union over both signs of n - m.
    Assumes: the number of rows was measured with the noise that `OneWay` states, which is nearly Gaussian.
    Direction: an upper bound up to that; sums of Laplace noise have wider tails than their variance says.
    Checked by: tests/theorems/test_synthetic_quality.py
    """
    return math.hypot(question.noise.error(_CONFIDENCE), _rows_error(question, transcript))


def _rows_error(question: CheckedSynthesis, transcript: Transcript) -> float:
    """How far the measured number of rows may be off."""
    from statistics import NormalDist

    return NormalDist().inv_cdf((1 + _CONFIDENCE) / 2) * question.plan.alone(transcript).total_deviation


def _share(distance: float, rows: float) -> float:
    """From a sum of differences to total variation; of a table without rows nothing is known."""
    return min(max(distance / (2 * rows), 0.0), 1.0) if rows > 0 else 1.0


def _measured(
    transcript: Transcript, question: CheckedSynthesis, model: SyntheticModel, rows: float
) -> tuple[MeasuredQuality, ...]:
    """Each measured table once, its repetitions taken together."""
    names, standard_error = question.plan.names, question.plan.prices.standard_error
    alike: dict[Any, list[NoisyTable]] = {}
    for table in transcript.tables:
        alike.setdefault((table.columns, tuple(part.tobytes() for part in table.places)), []).append(table)
    return tuple(
        _one_measured(tables, [standard_error(table.shares) for table in tables], names, model, rows)
        for tables in alike.values()
    )


def _one_measured(
    tables: Sequence[NoisyTable],
    errors: Sequence[float],
    names: Sequence[str],
    model: SyntheticModel,
    rows: float,
) -> MeasuredQuality:
    first, precisions = tables[0], np.array([error**-2.0 for error in errors])
    mean = sum(table.values * weight for table, weight in zip(tables, precisions, strict=True)) / precisions.sum()
    whole = model.marginal(first.columns) if len(first.columns) == 1 else model.graph.marginal(first.columns)
    noise = float(precisions.sum()) ** -0.5
    cells = int(first.values.size)
    return MeasuredQuality(
        tuple(names[place] for place in first.columns),
        cells,
        noise,
        _share(cells * noise * math.sqrt(2 / math.pi), rows),
        _share(float(np.abs(mean - summed(whole, first.places)).sum()), rows),
    )
