"""Tests of hypotheses on noisy numbers: p-values that account for the noise.

Each test is a parametric bootstrap. Under the null hypothesis, tables are drawn as large as the released one seems to
be, noise of exactly the released kind and scale is added to them, and the statistic is computed from both in the same
way. The p-value is the share of draws whose statistic is no smaller. Noise shared by several cells is shared in every
draw. The draws are the same each time: a test of a release has one p-value.

The statistics divide by the variance of sampling and noise together. So cells of few rows, where noise dominates, do
not decide about the rest (after Gaboardi, Lim, Rogers & Vadhan 2016, arXiv:1602.03090; Kifer & Rogers 2017).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidValue
from farthing.inference.comparisons import CLOSE
from farthing.inference.noise_terms import Floats
from farthing.inference.noisy_numbers import NoisyNumber, Source

DRAWS = 9_999
_MOST_NUMBERS = 8_000_000  # of noises that are drawn at once
TOO_FEW = "too few rows for so much noise: nothing can be concluded"


@dataclass(frozen=True)
class Significance:
    """The outcome of a test.

    Args:
        name: What was tested.
        null: The hypothesis, in words.
        statistic: What was computed from the numbers.
        p_value: How often a statistic as large comes out if the hypothesis is true; at least 1 / (draws + 1).
        draws: How many times that was tried.
        note: What the p-value rests on.

    >>> print(Significance("count by sex", "all groups are equally large", 4.2, 0.0412, 9999))
    count by sex: p = 0.041 (if all groups are equally large)
    """

    name: str
    null: str
    statistic: float
    p_value: float
    draws: int
    note: str = ""

    def __str__(self) -> str:
        least = 1 / (self.draws + 1)
        p = f"p < {2 * least:.2g}" if self.p_value <= 1.5 * least else f"p = {self.p_value:.2g}"
        return "\n".join([f"{self.name}: {p} (if {self.null})", *([f"note: {self.note}"] if self.note else [])])


def adjusted(tests: Sequence[Significance], method: str = "holm") -> list[Significance]:
    """Several tests with p-values that allow for their number.

    Args:
        tests: The tests that were looked at, all of them.
        method: "holm": with p-values below 0.05 called significant, any false one among them occurs at most 5 times in
            100. "bh" (Benjamini and Hochberg): at most 5% of those called significant are false on average, if the
            tests are independent or positively dependent.

    Returns:
        The same tests in the same order, with adjusted p-values.

    Raises:
        InvalidValue: If there is no such method.

    >>> tests = [Significance(name, "", 0.0, p, 9999) for name, p in (("a", 0.01), ("b", 0.04), ("c", 0.03))]
    >>> [round(each.p_value, 3) for each in adjusted(tests)]
    [0.03, 0.06, 0.06]
    >>> [round(each.p_value, 3) for each in adjusted(tests, "bh")]
    [0.03, 0.04, 0.04]
    """
    count = len(tests)
    order = sorted(range(count), key=lambda place: tests[place].p_value)
    values = [0.0] * count
    if method == "holm":
        largest = 0.0
        for rank, place in enumerate(order):
            largest = max(largest, min(1.0, (count - rank) * tests[place].p_value))
            values[place] = largest
    elif method == "bh":
        least = 1.0
        for rank, place in reversed(list(enumerate(order, start=1))):
            least = min(least, tests[place].p_value * count / rank)
            values[place] = least
    else:
        raise InvalidValue("method", method, "must be holm or bh")
    said = f"adjusted for {count:,} tests ({'Holm' if method == 'holm' else 'Benjamini-Hochberg'})"
    return [
        replace(test, p_value=value, note="; ".join(filter(None, [test.note, said])))
        for test, value in zip(tests, values, strict=True)
    ]


class Noises:
    """Draws of the noises in several numbers: a row for each draw, a column for each number."""

    def __init__(self, numbers: Sequence[NoisyNumber], draws: int = DRAWS) -> None:
        sources = list(dict.fromkeys(source for number in numbers for source in number.noise))
        self.draws = max(199, min(draws, _MOST_NUMBERS // max(len(sources), 1)))
        self.generator = np.random.default_rng(len(numbers))  # of draws from public numbers: the same each time
        weights = np.zeros((len(sources), len(numbers)))
        places = {source: place for place, source in enumerate(sources)}
        for column, number in enumerate(numbers):
            for source, weight in number.noise.items():
                weights[places[source], column] = weight
        columns = [_drawn(self.generator, source, self.draws) for source in sources]
        self.rows: Floats = (np.array(columns).T if columns else np.zeros((self.draws, 0))) @ weights


def _drawn(generator: np.random.Generator, source: Source, draws: int) -> Floats:
    """Draws of one noise; of discrete Gaussian noise by its probabilities."""
    *_, kind, scale = source
    if kind == "laplace":
        if scale < 0.02:
            return np.zeros(draws)
        success = -math.expm1(-1 / scale)
        return np.asarray(generator.geometric(success, draws) - generator.geometric(success, draws), dtype=float)
    if kind == "normal" or scale > 20:  # the steps of whole numbers are a fiftieth of the noise and less
        return generator.normal(0.0, scale, draws)
    reach = math.ceil(10 * scale) + 1
    numbers = np.arange(-reach, reach + 1.0)
    weights = np.exp(-(numbers**2) / (2 * scale**2))
    return np.asarray(generator.choice(numbers, draws, p=weights / weights.sum()))


def p_value_of(statistic: float, drawn: Floats) -> float:
    """How often a draw is no smaller than the statistic; anything that is not a number counts as larger.

    >>> p_value_of(3.0, np.array([1.0, 2.0, 4.0]))
    0.5
    """
    if not math.isfinite(statistic):
        return 1.0
    return float(1 + np.sum(~(drawn < statistic * (1 - 1e-12)))) / (len(drawn) + 1)


def _variances(numbers: Sequence[NoisyNumber]) -> Floats:
    return np.array([number.deviation**2 for number in numbers])


def independence(numbers: Sequence[NoisyNumber], shape: tuple[int, int], name: str, draws: int = DRAWS) -> Significance:
    """Whether the rows and the columns of a table of counts are independent: a chi-square test.

    Args:
        numbers: The counts, row by row.
        shape: How many rows and columns there are.
        name: What is tested.
        draws: How many tables are drawn.

    Returns:
        The test.
    """
    noise = _variances(numbers)
    counts = np.array([number.value for number in numbers])

    def expected(tables: Floats) -> Floats:
        cells = tables.reshape(-1, *shape)
        rows, columns = (np.maximum(cells.sum(axis=axis), 0.0) for axis in (2, 1))
        total = np.maximum(cells.sum(axis=(1, 2)), 1.0)
        return np.asarray(rows[:, :, None] * columns[:, None, :] / total[:, None, None]).reshape(len(tables), -1)

    null = "rows and columns are independent"
    return _of_counts(counts, noise, numbers, expected, name, null, draws)


def fit(numbers: Sequence[NoisyNumber], shares: Sequence[float], name: str, draws: int = DRAWS) -> Significance:
    """Whether counts follow given shares: a chi-square test of goodness of fit.

    Args:
        numbers: The counts.
        shares: The share of each under the hypothesis; they add up to 1.
        name: What is tested.
        draws: How many tables are drawn.

    Returns:
        The test.
    """
    known = np.asarray(shares, dtype=float)
    counts = np.array([number.value for number in numbers])

    def expected(tables: Floats) -> Floats:
        return np.asarray(np.maximum(tables.sum(axis=1), 1.0)[:, None] * known)

    null = "the shares are as given"
    return _of_counts(counts, _variances(numbers), numbers, expected, name, null, draws)


def _of_counts(
    counts: Floats,
    noise: Floats,
    numbers: Sequence[NoisyNumber],
    expected: Callable[[Floats], Floats],
    name: str,
    null: str,
    draws: int,
) -> Significance:
    def statistics(tables: Floats) -> Floats:
        means = expected(tables)
        return np.asarray(np.sum((tables - means) ** 2 / np.maximum(means + noise, 1e-3), axis=1))

    (mean,) = expected(counts[None, :])
    total = float(mean.sum())
    if not total > 0 or not _total(numbers).deviation <= CLOSE * total:
        return Significance(name, null, 0.0, 1.0, draws, TOO_FEW)
    (statistic,) = statistics(counts[None, :]).tolist()
    noises = Noises(numbers, draws)
    tables = noises.generator.multinomial(round(total), mean / total, noises.draws) + noises.rows
    return Significance(name, null, statistic, p_value_of(statistic, statistics(tables)), noises.draws)


def _total(numbers: Sequence[NoisyNumber]) -> NoisyNumber:
    total = numbers[0]
    for number in numbers[1:]:
        total = total.plus(number)
    return total


def equality(
    tops: Sequence[NoisyNumber],
    bottoms: Sequence[NoisyNumber],
    variances: Sequence[float] | None,
    name: str,
    draws: int = DRAWS,
) -> Significance:
    """Whether groups have the same mean: of two, Welch's test; of more, an analysis of variance without equal spread.

    Args:
        tops: The sum of every group.
        bottoms: The number of rows in every group.
        variances: The variance of the values in every group; None for shares, whose variance follows from them.
        name: What is tested.
        draws: How many tables are drawn.

    Returns:
        The test.
    """
    null = "all groups have the same mean"
    groups = len(tops)
    rows = np.array([number.value for number in bottoms])
    noisy = np.array([number.deviation for number in bottoms])
    if not (np.all(rows >= 2) and np.all(noisy <= CLOSE * rows)):
        return Significance(name, null, 0.0, 1.0, draws, TOO_FEW)
    sums = np.array([number.value for number in tops])
    noises = Noises([*tops, *bottoms], draws)
    noise_in_sums, noise_in_rows = noises.rows[:, :groups], noises.rows[:, groups:]
    mean = float(sums.sum() / rows.sum())
    noise = _variances([top.plus(bottom, -mean) for top, bottom in zip(tops, bottoms, strict=True)])

    def statistics(own_sums: Floats, own_rows: Floats) -> Floats:
        counted = np.maximum(own_rows, 1.0)
        means = own_sums / counted
        if variances is None:
            share = np.clip(own_sums.sum(axis=1) / counted.sum(axis=1), 0.0, 1.0)
            spread = (share * (1 - share))[:, None] / counted
        else:
            spread = np.asarray(variances)[None, :] / counted
        weights = 1 / np.maximum(spread + noise / counted**2, 1e-300)
        middle = np.sum(weights * means, axis=1) / np.sum(weights, axis=1)
        return np.asarray(np.sum(weights * (means - middle[:, None]) ** 2, axis=1))

    (statistic,) = statistics(sums[None, :], rows[None, :]).tolist()
    whole = np.rint(rows)
    if variances is None:
        drawn = noises.generator.binomial(whole.astype(int), min(max(mean, 0.0), 1.0), (noises.draws, groups))
        sampled: NDArray[np.float64] = drawn.astype(float)
    else:  # a variance that was estimated from few rows: Student's t instead of the normal distribution
        deviates = noises.generator.standard_t(np.maximum(whole - 1, 1), (noises.draws, groups))
        sampled = whole * mean + deviates * np.sqrt(whole * np.asarray(variances))
    drawn_statistics = statistics(sampled + noise_in_sums, whole + noise_in_rows)
    return Significance(name, null, statistic, p_value_of(statistic, drawn_statistics), noises.draws)


def same_distribution(
    below: Sequence[Sequence[NoisyNumber]],
    totals: Sequence[NoisyNumber],
    known: Sequence[float] | None,
    name: str,
    draws: int = DRAWS,
) -> Significance:
    """Whether two groups have one distribution, or one group a known one: a test of Kolmogorov and Smirnov on a grid.

    Args:
        below: For one group or two, the rows up to every edge.
        totals: The rows of every group.
        known: The share up to every edge under the hypothesis, for one group; None for two.
        name: What is tested.
        draws: How many tables are drawn.

    Returns:
        The test.
    """
    null = "both groups have the same distribution" if known is None else "the distribution is as given"
    rows = np.array([number.value for number in totals])
    if not (np.all(rows >= 2) and all(number.deviation <= CLOSE * number.value for number in totals)):
        return Significance(name, null, 0.0, 1.0, draws, TOO_FEW)
    groups, edges = len(below), len(below[0])
    noises = Noises([*(number for group in below for number in group), *totals], draws)
    counts = np.array([[number.value for number in group] for group in below])

    def statistics(tops: Floats, bottoms: Floats) -> Floats:
        shares = tops / np.maximum(bottoms, 1.0)[:, :, None]
        other = np.asarray(known) if known is not None else shares[:, 1]
        return np.asarray(np.max(np.abs(shares[:, 0] - other), axis=1))

    (statistic,) = statistics(counts[None], rows[None]).tolist()
    shares = np.asarray(known) if known is not None else counts.sum(axis=0) / rows.sum()
    parts = np.maximum(np.diff(np.append(np.maximum.accumulate(np.clip(shares, 0.0, 1.0)), 1.0), prepend=0.0), 0.0)
    whole = np.rint(rows).astype(int)
    drawn = np.stack(
        [np.cumsum(noises.generator.multinomial(each, parts / parts.sum(), noises.draws), axis=1) for each in whole],
        axis=1,
    )[:, :, :edges]
    tops = drawn + noises.rows[:, : groups * edges].reshape(-1, groups, edges)
    bottoms = whole + noises.rows[:, groups * edges :]
    return Significance(name, null, statistic, p_value_of(statistic, statistics(tops, bottoms)), noises.draws)
