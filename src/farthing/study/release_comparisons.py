"""Comparisons of released numbers: differences, ratios, shares of a total, standardised rates, inequality.

All of them are computed from answers that were paid for. They cost nothing, and their intervals know which noises the
answers have in common.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from farthing.errors import InvalidValue
from farthing.inference import Answer
from farthing.inference.comparisons import Estimate, smooth

_NO_PARTS = ("mean", "variance", "std", "median", "quantile", "quantiles", "cdf", "linear_regression")


class Comparisons(Mapping[str, Answer]):
    """What can be computed from answers by name, free of charge."""

    def _kind_of(self, name: str) -> str | None:
        """The kind of a statistic, such as "mean"; None where it is not known."""
        return None

    def difference(self, name: str, one: Any, other: Any) -> Answer:
        """By how much one group's number exceeds another's: "mean of income by sex", "F", "M".

        Args:
            name: A statistic with groups.
            one: The label of a group; of several columns, a tuple.
            other: The group to subtract.

        Returns:
            The difference, with an interval that accounts for the noise in both.

        Raises:
            InvalidValue: If there is no such statistic or group.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"sex": ["F"] * 700 + ["M"] * 300}), schema={"sex": ["F", "M"]})
        >>> folder = tempfile.TemporaryDirectory()
        >>> study = ft.Study(people, epsilon=1.0, account="people", ledger=folder.name + "/study.db")
        >>> release = study.plan(ft.count(by="sex")).release()
        >>> difference = release.difference("count by sex", "F", "M")
        >>> difference.name, difference.lower > 370, difference.upper < 430
        ('count by sex: F minus M', True, True)
        >>> study.close(); folder.cleanup()
        """
        first, second = self._two(name, one, other)
        return (first - second).renamed(f"{name}: {_text(one)} minus {_text(other)}")

    def ratio(self, name: str, one: Any, other: Any) -> Answer:
        """One group's number divided by another's: for shares, the relative risk.

        Args:
            name: A statistic with groups.
            one: The label of a group; of several columns, a tuple.
            other: The group to divide by.

        Returns:
            The ratio. Its interval is unbounded if the other number may be 0.

        Raises:
            InvalidValue: If there is no such statistic or group.
        """
        first, second = self._two(name, one, other)
        return (first / second).renamed(f"{name}: {_text(one)} over {_text(other)}")

    def odds_ratio(self, name: str, one: Any, other: Any) -> Answer:
        """The odds of one group over those of another; the numbers must be shares: means of a column of flags.

        Args:
            name: The mean of a flag by groups.
            one: The label of a group; of several columns, a tuple.
            other: The group to divide by.

        Returns:
            The odds ratio.

        Raises:
            InvalidValue: If there is no such statistic or group, or its numbers may lie outside 0 .. 1.
        """
        answer = self._grouped(name)
        odds = []
        for share in (answer[one].estimate(0), answer[other].estimate(0)):
            if not (share.least >= 0 and share.most <= 1):
                raise InvalidValue("name", name, "must be a share, such as the mean of a column of flags")
            odds.append(share.over(Estimate.known(1.0).plus(share, -1.0)))
        return self._computed(answer, f"{name}: odds of {_text(one)} over {_text(other)}", [odds[0].over(odds[1])])

    def shares(self, name: str) -> Answer:
        """Each group's share of the sum of all groups: "count by region" as shares of the total.

        Args:
            name: Counts or sums with groups.

        Returns:
            The shares; their intervals know that the total contains each group.

        Raises:
            InvalidValue: If there is no such statistic, or it has no groups.
        """
        answer = self._grouped(name)
        if self._kind_of(name) in _NO_PARTS:
            raise InvalidValue("name", name, "must be counts or sums", "compare others by difference or ratio")
        parts = answer.estimates
        total = parts[0]
        for part in parts[1:]:
            total = total.plus(part)
        counted = all(part.least >= 0 for part in parts)
        cells = [_share(part.over(total)) if counted else part.over(total) for part in parts]
        return self._computed(answer, f"share of {name}", cells, answer.labels)

    def change(self, name: str, earlier: Mapping[str, Answer]) -> Answer:
        """By how much a number exceeds that of an earlier release.

        Args:
            name: A statistic of both releases.
            earlier: The other release.

        Returns:
            This number minus the earlier one, cell by cell.

        Raises:
            InvalidValue: If one of them does not have it, or they differ in their cells.
        """
        return (self[name] - earlier[name]).renamed(f"change of {name}")

    def weighted(self, name: str, weights: Mapping[Any, float]) -> Answer:
        """A weighted mean of groups: an age-standardised rate, if the weights are those of a standard population.

        Args:
            name: A statistic with groups.
            weights: A number >= 0 for every group that counts; they are divided by their sum.

        Returns:
            The weighted mean. The weights are taken to be exact.

        Raises:
            InvalidValue: If a label is not a group, or the weights are not numbers >= 0 with a sum above 0.

        >>> import pyarrow, tempfile, farthing as ft
        >>> table = pyarrow.table({"old": [False, True] * 5000, "ill": ([False, True] + [False] * 6) * 1250})
        >>> people = ft.dataset(table, schema={"old": bool, "ill": bool})
        >>> folder = tempfile.TemporaryDirectory()
        >>> study = ft.Study(people, epsilon=2.0, account="people", ledger=folder.name + "/study.db")
        >>> release = study.plan(ft.mean("ill", by="old")).release()
        >>> rate = release.weighted("mean of ill by old", {False: 0.8, True: 0.2})
        >>> abs(float(rate) - 0.05) < 0.01
        True
        >>> study.close(); folder.cleanup()
        """
        answer = self._grouped(name)
        numbers = [float(weight) for weight in weights.values()]
        total = math.fsum(numbers)
        if not (all(number >= 0 for number in numbers) and 0 < total < math.inf):
            raise InvalidValue("weights", dict(weights), "must be numbers >= 0 with a sum above 0")
        cells = [
            answer[label].estimate(0).times(number / total) for label, number in zip(weights, numbers, strict=True)
        ]
        whole = cells[0]
        for cell in cells[1:]:
            whole = whole.plus(cell)
        return self._computed(answer, f"weighted {name}", [whole])

    def gini(self, name: str, least: float = 0.0) -> Answer:
        """The Gini coefficient of a column of values >= 0, from its cdf: 0 is equality, 1 is all for one.

        Values are taken to be spread evenly between two edges of the cdf; with few edges this makes the number too
        small.

        Args:
            name: A cdf of numbers without groups.
            least: Where the first cell of the cdf begins.

        Returns:
            The coefficient.

        Raises:
            InvalidValue: If it is not the cdf of numbers that are never below 0.
        """
        answer = self._grouped(name)
        edges = answer.labels
        if not all(isinstance(edge, int | float) and not isinstance(edge, bool) for edge in edges):
            raise InvalidValue("name", name, "must be a cdf of numbers, without groups")
        if not 0 <= least <= edges[0] or not all(a < b for a, b in pairwise(edges)):
            raise InvalidValue("least", least, "must be at least 0 and no more than the first edge of a cdf")
        widths = np.diff([float(least), *map(float, edges)])
        parts = answer.estimates
        values = _gini(np.array([each.value for each in parts]), widths, least)[0]
        centre, slopes = _gini(np.array([each.centre for each in parts]), widths, least)
        whole = smooth(values, centre, parts, slopes.tolist(), 0.0, 1.0)
        note = "values are taken to be spread evenly between two edges of the cdf"
        return self._computed(answer, f"Gini coefficient from {name}", [whole], note=note)

    def _grouped(self, name: str) -> Answer:
        answer = self[name]
        if not answer.labels:
            raise InvalidValue("name", name, "must have groups", "release it with by=")
        return answer

    def _two(self, name: str, one: Any, other: Any) -> tuple[Answer, Answer]:
        answer = self._grouped(name)
        return answer[one].renamed(f"{name}: {_text(one)}"), answer[other].renamed(f"{name}: {_text(other)}")

    def _computed(
        self, answer: Answer, name: str, cells: list[Estimate], labels: tuple[Any, ...] = (), note: str = ""
    ) -> Answer:
        notes = "; ".join(part for part in (answer.note, note) if part)
        return Answer.of_estimates(name, cells, labels, confidence=answer.confidence, note=notes)


def _share(estimate: Estimate) -> Estimate:
    """A share of a total that contains it: at most 1."""
    return replace(estimate, most=1.0, value=min(estimate.value, 1.0))


def _gini(shares: np.ndarray[Any, Any], widths: np.ndarray[Any, Any], least: float) -> tuple[float, Any]:
    """1 - (the integral of the squared survival) / (the mean), and its slope in every share.

    >>> round(_gini(np.array([1.0]), np.array([1.0]), 0.0)[0], 4)  # even between 0 and 1
    0.3333
    """
    above = 1 - np.concatenate([[0.0], shares])
    a, b = above[:-1], above[1:]
    mean = least + float(widths @ (a + b)) / 2
    squares = least + float(widths @ (a * a + a * b + b * b)) / 3
    left, right = np.append(widths, 0.0)[1:], widths  # of each edge: the cell after it and the one before
    after = np.append(b, 0.0)[1:]
    mean_slope = -(left + right) / 2
    square_slope = -(right * (a + 2 * b) + left * (2 * b + after)) / 3
    mean = mean if mean > 0 else math.nan
    return 1 - squares / mean, -square_slope / mean + squares * mean_slope / mean**2


def _text(label: Any) -> str:
    return ", ".join(map(str, label)) if isinstance(label, tuple) else str(label)
