"""How far a number that is computed from a secret sample is from that of the whole table: the draw included."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

from farthing.numerics.bounds import error_text
from farthing.statistics.measurements import Noise, Output

_SCALED = ("count", "histogram", "top", "contingency", "sum")  # which grow with the rows
_NOT_PREDICTED = ("ranges", "marginals", "count_distinct")  # of which nobody has worked out how they vary over samples


@dataclass(frozen=True)
class TableError:
    """The error of a statistic against the whole table, where it is computed from a sample.

    Attributes:
        standard_error: The root of the mean squared error over its cells, noise and draw together.
        error: Within this distance of the table's value in about 95 cases of 100.
        times: What the released number, and its interval, must be multiplied by to be about the table; 1 for means,
            quantiles and shares.
        rests_on: What this rests on, as clauses after "if".

    >>> TableError(10.0, 19.6, 10.0, ("the table has as many rows as expected",)).sentence
    'times 10, within about ±19.6 of the value in the whole table, the draw included (95%), if the table has as many
    rows as expected'
    """

    standard_error: float
    error: float
    times: float
    rests_on: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """How far off the table's value it is, with the draw, and on what that rests."""
        times = "" if self.times == 1 else f"times {self.times:.6g}, "
        if not math.isfinite(self.error):
            return f"{times}no error against the whole table can be predicted"
        clauses = f", if {' and '.join(self.rests_on)}" if self.rests_on else ""
        within = f"within about ±{error_text(self.error)} of the value in the whole table, the draw included (95%)"
        return f"{times}{within}{clauses}"

    def to_dict(self) -> dict[str, Any]:
        """The numbers, what they rest on and the sentence, for JSON."""
        return {
            "standard_error": self.standard_error,
            "error": self.error,
            "times": self.times,
            "rests_on": list(self.rests_on),
            "sentence": self.sentence,
        }


def table_error(output: Output, noises: Mapping[str, Noise], probability: float, size: str) -> TableError | None:
    """The error against the table of a statistic of a sample that keeps every unit with this probability, if known.

    Statement:
        Let v be the variance of an estimate over samples of independent units from an endless population, of which
        the table is like one. Over draws from the table that keep each unit with probability p it is about (1 - p) v:
        exactly so for counts and sums, where v is a sum over units, and to first order for means, quantiles and other
        smooth functions of them. The draw is independent of the noise, so variances add up. At 95% the distance is at
        most about the root of the squared distances of both.
    Source: the variance of a Poisson (Bernoulli) sample: Sarndal, Swensson & Wretman, Model Assisted Survey Sampling,
        1992, section 3.2. What varies over samples of a population is each statistic's own (`for_population`).
    Assumes: the column and the number of rows are as the plan expects or assumes, which `rests_on` names.
    Direction: an approximation; what nobody stated is taken at its worst.
    Checked by: tests/unit/study/test_sampled_studies.py
    """
    asked = output.statistic
    if asked.kind in _NOT_PREDICTED:
        return None
    noise = replace(output, statistic=replace(asked, for_population=False)).predicted(noises)
    variance = (1 - probability) * output.sample_variance(noises)
    normal = NormalDist().inv_cdf(0.975)
    times = 1 / probability if asked.kind in _SCALED else 1.0
    standard_error = times * math.hypot(float(noise.standard_error), math.sqrt(variance))
    error = times * math.hypot(float(noise.error(0.95)), normal * math.sqrt(variance))
    drawn = replace(output, statistic=replace(asked, for_population=True))
    return TableError(standard_error, error, times, tuple(filter(None, (size, *drawn.rests_on))))
