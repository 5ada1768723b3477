"""Tests of hypotheses on a release: whether groups differ, whether two columns are related. Free, like comparisons."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from farthing.errors import InvalidValue
from farthing.inference import Answer
from farthing.inference.noisy_numbers import NoisyNumber
from farthing.inference.significance import Significance, equality, fit, independence, same_distribution
from farthing.study.release_comparisons import Comparisons

_SAMPLE = "the rows are taken to be an independent sample of the population that the hypothesis is about"
_ONE_EACH = re.compile(r"^rows \(at most 1 of each [^()]*(?<! in each cell)\)$|, in at most 1 cell\)$")


class HypothesisTests(Comparisons):
    """Tests whose p-values account for the noise. They are about the population that the rows were drawn from."""

    plan: Mapping[str, Any]

    @property
    def counts(self) -> Mapping[str, str]:
        """What the numbers of each statistic count."""
        raise AssertionError("a release says what it counts")

    def independence(self, name: str) -> Significance:
        """Whether two columns are unrelated: a chi-square test of a table of counts.

        Args:
            name: A count by two columns, or a contingency table of two.

        Returns:
            The test.

        Raises:
            InvalidValue: If it is not a table of two columns, or rows are not independent of each other.

        >>> import pyarrow, tempfile, farthing as ft
        >>> table = pyarrow.table({"sex": ["F", "M"] * 500, "ill": [True, False] * 400 + [True, True] * 100})
        >>> people = ft.dataset(table, schema={"sex": ["F", "M"], "ill": bool})
        >>> folder = tempfile.TemporaryDirectory()
        >>> study = ft.Study(people, epsilon=1.0, account="people", ledger=folder.name + "/study.db")
        >>> release = study.plan(ft.contingency(["sex", "ill"])).release()
        >>> release.independence("contingency of sex and ill").p_value < 0.001
        True
        >>> study.close(); folder.cleanup()
        """
        answer = self._tested(name, ("count", "contingency", "histogram"))
        if not answer.labels or not all(isinstance(label, tuple) and len(label) == 2 for label in answer.labels):
            raise InvalidValue("name", name, "must be a table of two columns", "use contingency([one, other])")
        rows = len(dict.fromkeys(label[0] for label in answer.labels))
        shape = rows, len(answer.labels) // rows
        if min(shape) < 2 or rows * shape[1] != len(answer.labels):
            raise InvalidValue("name", name, "must be a table of two columns with two values each or more")
        return self._noted(independence(self._sums(answer), shape, name))

    def fit(self, name: str, shares: Mapping[Any, float]) -> Significance:
        """Whether counts follow shares that are known from elsewhere: a chi-square test of goodness of fit.

        Args:
            name: A count by groups or a histogram.
            shares: A number > 0 for every group; they are divided by their sum.

        Returns:
            The test.

        Raises:
            InvalidValue: If the shares are not about these groups, or rows are not independent of each other.
        """
        answer = self._tested(name, ("count", "contingency", "histogram"))
        if len(answer.labels) < 2 or set(shares) != set(answer.labels):
            raise InvalidValue(
                "shares", list(shares), "must have a number for every group", f"they are {answer.labels}"
            )
        numbers = [float(shares[label]) for label in answer.labels]
        total = math.fsum(numbers)
        if not (all(number > 0 for number in numbers) and total < math.inf):
            raise InvalidValue("shares", dict(shares), "must be numbers > 0")
        return self._noted(fit(self._sums(answer), [number / total for number in numbers], name))

    def equality(self, name: str) -> Significance:
        """Whether all groups have the same mean: of two, Welch's test; of more, Welch's analysis of variance.

        For a column of flags this is the test of equal proportions. For other columns the release should contain the
        variance or the standard deviation of the same groups; without it they are taken to vary as much as they can.

        Args:
            name: A mean by groups.

        Returns:
            The test.

        Raises:
            InvalidValue: If it is not a mean by groups, or rows are not independent of each other.
        """
        answer = self._tested(name, ("mean",))
        if len(answer.labels) < 2:
            raise InvalidValue("name", name, "must have groups to compare", "release it with by=")
        tops, bottoms = self._ratios(answer)
        if self._is_share(answer):
            return self._noted(equality(tops, bottoms, None, name))
        variances, note = self._variances(answer, self._asked(name))
        return self._noted(equality(tops, bottoms, variances, name), note)

    def same_distribution(self, name: str, one: Any, other: Any) -> Significance:
        """Whether two groups have the same distribution: a Kolmogorov-Smirnov test at the edges of a cdf.

        Args:
            name: A cdf by one column.
            one: The label of a group.
            other: The label of the other group.

        Returns:
            The test.

        Raises:
            InvalidValue: If it is not a cdf with these groups, or rows are not independent of each other.
        """
        answer = self._tested(name, ("cdf",))
        groups: dict[Any, list[int]] = {}
        for place, label in enumerate(answer.labels):
            if isinstance(label, tuple) and len(label) == 2:
                groups.setdefault(label[0], []).append(place)
        for group in (one, other):
            if group not in groups:
                raise InvalidValue("group", group, "must be a group of the cdf", f"there are {list(groups)}")
        tops, bottoms = self._ratios(answer)
        below = [[tops[place] for place in groups[group]] for group in (one, other)]
        return self._noted(same_distribution(below, [bottoms[groups[each][-1]] for each in (one, other)], None, name))

    def distribution_fit(self, name: str, shares: Sequence[float]) -> Significance:
        """Whether a column has a known distribution: a Kolmogorov-Smirnov test at the edges of a cdf.

        Args:
            name: A cdf without groups.
            shares: The share up to every edge under the hypothesis; the last is 1.

        Returns:
            The test.

        Raises:
            InvalidValue: If it is not such a cdf, shares do not rise to 1, or rows are not independent of each other.
        """
        answer = self._tested(name, ("cdf",))
        known = [float(share) for share in shares]
        rising = all(a <= b for a, b in zip([0.0, *known], known, strict=False))
        if len(known) != len(answer.labels) or not rising or not abs(known[-1] - 1) <= 1e-9:
            raise InvalidValue(
                "shares", known, f"must be {len(answer.labels)} numbers that rise to 1, one for each edge"
            )
        if any(isinstance(label, tuple) for label in answer.labels):
            raise InvalidValue("name", name, "must have no groups", "compare two groups with same_distribution")
        tops, bottoms = self._ratios(answer)
        return self._noted(same_distribution([tops], [bottoms[-1]], known, name))

    def _asked(self, name: str) -> Mapping[str, Any]:
        (asked,) = [one.get("asked", {}) for one in self.plan["statistics"] if one["name"] == self[name].name]
        return dict(asked)

    def _tested(self, name: str, kinds: tuple[str, ...]) -> Answer:
        """A statistic of one of these kinds, whose noises are known and whose rows are independent of each other."""
        answer = self[name]
        if self._asked(name).get("kind") not in kinds:
            raise InvalidValue("name", name, f"must be a {' or '.join(kinds)}")
        whose = str(self.plan.get("unit", "")).partition(",")[0]
        if whose != "row" and not _ONE_EACH.search(self.counts.get(answer.name, "")):
            raise InvalidValue(
                "name",
                name,
                "may count several rows of one unit, which are not independent of each other",
                'ask with max_rows=1, or for counts with of="people"',
            )
        if answer.noise is None:
            raise InvalidValue(
                "name",
                name,
                "has no record of its noise",
                "it is too large, some of its cells are withheld, or it was released by an older version",
            )
        return replace(answer, noise=replace(answer.noise, sampling=()))  # samples are drawn by the test itself

    def _sums(self, answer: Answer) -> list[NoisyNumber]:
        assert answer.noise is not None
        return [answer.noise.numbers(place)[0] for place in range(len(answer))]

    def _ratios(self, answer: Answer) -> tuple[list[NoisyNumber], list[NoisyNumber]]:
        assert answer.noise is not None
        pairs = [answer.noise.numbers(place) for place in range(len(answer))]
        return [top for top, _ in pairs], [bottom for _, bottom in pairs if bottom is not None]

    def _is_share(self, answer: Answer) -> bool:
        """Whether it is the mean of a column of flags: nothing else lies between 0 and 1 without a note on bounds."""
        assert answer.noise is not None
        bounds = answer.noise.least, answer.noise.most
        return bounds == (0.0, 1.0) and "count as the nearer bound" not in answer.note

    def _variances(self, answer: Answer, asked: Mapping[str, Any]) -> tuple[list[float], str]:
        """The variance of every group, one standard error more than released; else the most that it can be."""
        assert answer.noise is not None
        for one in self.plan["statistics"]:
            other = one.get("asked", {})
            same = all(other.get(key) == asked.get(key) for key in ("columns", "by", "where"))
            if not (same and other.get("kind") in ("variance", "std")) or one["name"] not in self:
                continue
            spread = self[one["name"]]
            upper = [
                float(value) + float(error) if math.isfinite(error) else math.nan
                for value, error in zip(spread.values, spread.standard_errors, strict=True)  # type: ignore[arg-type]
            ]
            if spread.labels == answer.labels and all(map(math.isfinite, upper)):
                return ([value**2 for value in upper] if other["kind"] == "std" else upper), ""
        half = (answer.noise.most - answer.noise.least) / 2
        note = "without the variance of the groups, values are taken to vary as much as their bounds allow"
        return [half**2] * len(answer), f"{note}: release the variance as well, and the test finds more"

    def _noted(self, test: Significance, note: str = "") -> Significance:
        return replace(test, note="; ".join(filter(None, [test.note, note, _SAMPLE])))
