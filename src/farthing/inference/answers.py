"""Answers: values, how far off they may be, and an interval at a confidence. No rows, no way to any."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from farthing.errors import InvalidValue
from farthing.inference.comparisons import Estimate, intervals_of, way_note
from farthing.inference.error_distributions import ErrorDistribution
from farthing.inference.noise_sums import checked_confidence
from farthing.inference.noise_terms import Floats
from farthing.inference.noisy_numbers import CellNoise
from farthing.numerics.notebook_tables import html_table, interval_mark


def decimals_for(error: float) -> int:
    """How many decimals leave two digits of the error (three when they begin with 1); negative: round to tens.

    >>> decimals_for(480.2), decimals_for(0.0123), decimals_for(3.0)
    (-1, 4, 1)
    """
    if not 0 < error < math.inf:
        return 0
    exponent = math.floor(math.log10(error))
    first = error / 10.0**exponent
    return (2 if first < 2 else 1) - exponent


def plain(value: float, decimals: int) -> str:
    """The value rounded to `decimals`, with commas between thousands and no zeros hanging on.

    >>> plain(41230.4, -1), plain(0.125, 2), plain(3.0, 1), plain(-0.0, 0), plain(2.5e19, 0)
    ('41,230', '0.12', '3', '0', '2.5e+19')
    """
    if not math.isfinite(value):
        return "unknown" if math.isnan(value) else ("∞" if value > 0 else "-∞")
    rounded = round(value, decimals)
    if rounded == 0:
        return "0"
    if not 1e-6 <= abs(rounded) < 1e15:
        return f"{rounded:.4g}"
    text = f"{rounded:,.{max(decimals, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def with_error(value: float, error: float) -> str:
    """`value ± error`.

    >>> with_error(41230.4, 480.19), with_error(12, 0), with_error(0.51234, 0.0123)
    ('41,230 ± 480', '12', '0.5123 ± 0.0123')
    """
    if error == 0:
        return plain(value, 12 if abs(value) < 1e3 else 6)
    decimals = decimals_for(error)
    return f"{plain(value, decimals)} ± {plain(error, decimals)}"


def with_interval(value: float, lower: float, upper: float) -> str:
    """`value (lower to upper)`, where the interval is not even-sided; `value ± error` where it is.

    >>> with_interval(3.0, 0.0, 9.0), with_interval(5.0, 4.0, 6.0)
    ('3 (0 to 9)', '5 ± 1')

    An interval without ends leaves no digit meaningful, and none is to be read off a rounding: the first four stand.

    >>> with_interval(0.29764, -math.inf, math.inf), with_interval(-15_903.2, -math.inf, math.inf)
    ('0.2976 (-∞ to ∞)', '-15,903 (-∞ to ∞)')
    """
    below, above = value - lower, upper - value
    widest = max(below, above)
    if math.isfinite(widest) and abs(above - below) <= 1e-6 * widest:
        return with_error(value, widest)
    nearer = min(below, above)
    if math.isinf(nearer) and value:
        decimals = max(0, 3 - math.floor(math.log10(abs(value)))) if math.isfinite(value) else 0
    else:
        decimals = decimals_for(widest if math.isfinite(widest) else nearer)
    return f"{plain(value, decimals)} ({plain(lower, decimals)} to {plain(upper, decimals)})"


def level_at_once(confidence: float, numbers: int, *, independent: bool = False) -> float:
    """The confidence that each of so many intervals needs, so that all of them hold at once with `confidence`.

    Statement:
        Let each of k intervals hold with probability at least p. All of them hold at once with probability at least
        1 - k (1 - p), and at least p^k if they are independent. So p = 1 - (1 - c) / k is enough for c, and
        p = c^(1/k) if they are independent; then nothing less is enough for intervals that hold with exactly p.
    Source: Boole's inequality; Sidak 1967, "Rectangular confidence regions for the means of multivariate normal
        distributions", JASA 62(318), section 1, for independent ones.
    Assumes: each interval holds with at least the confidence it is asked for, as all of ours do.
    Direction: rounded up, so that the coverage of all is at least `confidence`.
    Checked by: tests/theorems/test_simultaneous_intervals.py

    >>> round(level_at_once(0.95, 40), 6), round(level_at_once(0.95, 40, independent=True), 6)
    (0.99875, 0.998718)
    >>> level_at_once(0.95, 1)
    0.95
    """
    level = checked_confidence(confidence)
    if not (isinstance(numbers, int) and numbers >= 1):
        raise InvalidValue("numbers", numbers, "must be a whole number, at least 1")
    if numbers == 1:
        return level
    each_level = math.exp(math.log(level) / numbers) if independent else 1 - (1 - level) / numbers
    for _ in range(4):  # exp, log and the division are each off by a last digit or so
        each_level = math.nextafter(each_level, 1.0)
    return min(each_level, math.nextafter(1.0, 0.0))


Numbers = float | Floats
IntervalAt = Callable[[float], tuple[Floats, Floats]]
_ROWS_SHOWN = 24


class FurtherQueries(Protocol):
    """What further questions an answer can be asked: post-processing of what was released, free of charge."""

    def query(self, what: Any, confidence: float) -> Answer:
        """One number about the cells that `what` holds of."""

    def stored(self) -> dict[str, Any]:
        """Everything it needs, as JSON-ready data."""


def cut_interval(
    centre: Floats, errors: Floats, least: float = -math.inf, most: float = math.inf
) -> tuple[Floats, Floats]:
    """`centre` plus and minus `errors`, cut to where the truth is known to lie; never cut down to nothing.

    Cutting costs no coverage: what is cut off does not hold the truth. An interval that lies outside altogether says
    that the noise was unusual and not that the truth is known: it becomes that of an estimate at the border.

    >>> cut_interval(np.array([2.0, -9.0]), np.array([5.0, 5.0]), least=0.0)
    (array([0., 0.]), array([7., 5.]))
    """
    middle = np.where(centre + errors < least, least, np.where(centre - errors > most, most, centre))
    return np.clip(middle - errors, least, most), np.clip(middle + errors, least, most)


@dataclass(frozen=True)
class SymmetricInterval:
    """The interval `centre` plus and minus the error of a distribution, cut to where the truth is known to lie.

    >>> from farthing.inference import Term
    >>> SymmetricInterval(np.array([2.0]), ErrorDistribution([Term("normal", 3.0)]), least=0.0)(0.95)
    (array([0.]), array([7.87989196]))
    """

    centre: Floats
    distribution: ErrorDistribution
    least: float = -math.inf
    most: float = math.inf

    def __call__(self, confidence: float) -> tuple[Floats, Floats]:
        """Lower and upper ends at a confidence."""
        return cut_interval(self.centre, self.distribution.errors(confidence), self.least, self.most)


@dataclass(frozen=True, eq=False)
class Answer:
    """A statistic as released: one number, or one for each label.

    Attributes:
        name: What was asked.
        labels: What each number is of; empty for a single number.
        values: The released numbers.
        standard_errors: The standard error of each.
        lower: The lower end of each interval.
        upper: The upper end of each interval.
        confidence: The probability with which each interval holds the truth.
        interval_at: Gives the ends at another confidence.
        note: What numbers cannot say, such as what an interval rests on.
        asking: Answers further questions from the released cells, where that is possible.
        raw: The unbiased numbers as the noise left them, where `values` were moved to where the truth must lie (counts
            are not negative, and add up to the total that the raw ones have); elsewhere both are the same.
        counts: What its numbers count, where something of a unit may be left out before any noise; no margin of error
            speaks of that.
        noise: Which noises its cells are made of, where that is known: what is computed from answers needs it.
        computed: How its numbers were computed from others, where they were.

    Answers can be added, subtracted, multiplied and divided, and combined with numbers. What comes out is an answer,
    whose interval knows which noises the two have in common.

    >>> from farthing.inference import ErrorDistribution, Term
    >>> answer = Answer.around("mean of income", 41_230.4, ErrorDistribution([Term("normal", 245.0)]))
    >>> answer
    41,230 ± 480 (95%)
    >>> answer.at(0.5)
    41,230 ± 165 (50%)
    >>> counts = Answer.around("count by sex", [510, 3], ErrorDistribution([Term("laplace", 2.0)]), ("F", "M"), least=0)
    >>> print(counts)
    count by sex (95%)
      F  510 ± 6
      M    3 (0 to 9)
    >>> counts["F"].values
    510.0

    >>> from farthing.inference import ErrorDistribution, Term
    >>> distribution = ErrorDistribution([Term("laplace", 2.0)])
    >>> Answer.around("count by sex", [508, 0], distribution, ("F", "M"), centre=[510, -2], least=0).raw
    array([510.,  -2.])
    """

    name: str
    labels: tuple[Any, ...]
    values: Numbers
    standard_errors: Numbers
    lower: Numbers
    upper: Numbers
    confidence: float
    interval_at: IntervalAt = field(repr=False)
    note: str = ""
    asking: FurtherQueries | None = field(default=None, repr=False)
    raw: Numbers = math.nan
    counts: str = ""
    noise: CellNoise | None = field(default=None, repr=False)
    computed: tuple[Estimate, ...] = field(default=(), repr=False)

    @classmethod
    def around(
        cls,
        name: str,
        values: ArrayLike,
        distribution: ErrorDistribution,
        labels: tuple[Any, ...] = (),
        *,
        confidence: float = 0.95,
        centre: ArrayLike | None = None,
        least: float = -math.inf,
        most: float = math.inf,
        note: str = "",
    ) -> Answer:
        """An answer whose interval is `centre` plus and minus the distribution's error.

        Args:
            name: What was asked.
            values: The released numbers.
            distribution: The distribution of their errors.
            labels: What each number is of; empty for a single number.
            confidence: The probability with which each interval holds the truth.
            centre: The unbiased estimate that the distribution speaks of, when `values` were moved afterwards (to be
                non-negative or consistent); `values` themselves by default.
            least: The least that the truth can be.
            most: The most that the truth can be.
            note: What numbers cannot say.

        Returns:
            The answer.

        Raises:
            InvalidValue: If there is not one number for each label, or the confidence is not between 0 and 1.
        """
        middle = np.atleast_1d(np.asarray(values if centre is None else centre, dtype=float))
        interval = SymmetricInterval(middle, distribution, least, most)
        return cls.within(
            name,
            values,
            distribution.standard_errors,
            interval,
            labels,
            confidence=confidence,
            raw=middle,
            note=note,
        )

    @classmethod
    def within(
        cls,
        name: str,
        values: ArrayLike,
        standard_errors: ArrayLike,
        interval_at: IntervalAt,
        labels: tuple[Any, ...] = (),
        *,
        confidence: float = 0.95,
        note: str = "",
        asking: FurtherQueries | None = None,
        raw: ArrayLike | None = None,
    ) -> Answer:
        """An answer whose interval is a function of the confidence; it is widened to hold the value itself.

        Args:
            name: What was asked.
            values: The released numbers.
            standard_errors: The standard error of each.
            interval_at: Maps a confidence to the lower and the upper ends.
            labels: What each number is of; empty for a single number.
            confidence: The probability with which each interval holds the truth.
            note: What numbers cannot say.
            asking: Answers further questions from the released cells.
            raw: The unbiased numbers, where `values` were moved.

        Returns:
            The answer.

        Raises:
            InvalidValue: If there is not one number for each label, or the confidence is not between 0 and 1.
        """
        level = checked_confidence(confidence)
        flat = np.atleast_1d(np.asarray(values, dtype=float))
        if flat.shape != (len(labels) or 1,):
            raise InvalidValue("values", flat.shape, f"must be {len(labels) or 1} number(s), one for each label")
        errors = np.broadcast_to(np.asarray(standard_errors, dtype=float), flat.shape)
        plain = np.broadcast_to(np.asarray(flat if raw is None else raw, dtype=float).reshape(-1), flat.shape)
        low, high = interval_at(level)
        low, high = np.minimum(low, flat), np.maximum(high, flat)
        if labels:
            return cls(
                name,
                tuple(labels),
                flat,
                np.array(errors),
                low,
                high,
                level,
                interval_at,
                note,
                asking,
                np.array(plain),
            )
        value, error, least, most, own = map(float, (flat[0], errors[0], low[0], high[0], plain[0]))
        return cls(name, (), value, error, least, most, level, interval_at, note, asking, own)

    def at(self, confidence: float) -> Answer:
        """The same answer with its interval at another confidence.

        Args:
            confidence: The probability with which each interval holds the truth.

        Returns:
            The answer with new intervals; the values are the same.

        Raises:
            InvalidValue: If `confidence` is not between 0 and 1.
        """
        answer = Answer.within(
            self.name,
            self.values,
            self.standard_errors,
            self.interval_at,
            self.labels,
            confidence=confidence,
            note=self.note,
            asking=self.asking,
            raw=self.raw,
        )
        return replace(answer, counts=self.counts, noise=self.noise, computed=self.computed)

    def query(self, what: Any) -> Answer:
        """What the released cells say about a question nobody asked before, with its own error: free, at any time.

        Args:
            what: A condition ("10 <= age < 25"), a pair (lower, upper) or a mapping from columns to values or pairs.

        Returns:
            The answer, at the same confidence.

        Raises:
            InvalidValue: If this statistic has no cells to ask (ranges and marginals have), or they do not determine
                it.

        >>> from farthing.inference import ErrorDistribution, Term
        >>> Answer.around("count", 510, ErrorDistribution([Term("laplace", 2.0)])).query("age < 25")
        Traceback (most recent call last):
        farthing.errors.InvalidValue: query='age < 25': cannot be asked of 'count'; ranges and marginals can be asked.
        """
        if self.asking is None:
            way_out = "ranges and marginals can be asked"
            raise InvalidValue("query", what, f"cannot be asked of {self.name!r}", way_out)
        return self.asking.query(what, self.confidence).counting(self.counts)

    def error(self, confidence: float | None = None) -> Numbers:
        """The distance from the value to the further end of the interval.

        Args:
            confidence: Another confidence than the answer's own.

        Returns:
            One distance for each value.
        """
        answer = self if confidence is None else self.at(confidence)
        ends = np.maximum(np.subtract(answer.upper, answer.values), np.subtract(answer.values, answer.lower))
        return ends if self.labels else float(ends)

    def renamed(self, name: str) -> Answer:
        """The same answer under another name.

        Args:
            name: The new name.

        Returns:
            The answer.
        """
        return replace(self, name=name)

    def counting(self, counts: str) -> Answer:
        """The same answer, saying what its numbers count.

        Args:
            counts: Rows or people, and how much of each unit; empty for nothing to say.

        Returns:
            The answer.

        >>> from farthing.inference import ErrorDistribution, Term
        >>> answer = Answer.around("count", 510, ErrorDistribution([Term("laplace", 2.0)]))
        >>> print(answer.counting("rows (at most 5 of each person)"))
        510 ± 6 (95%); counts rows (at most 5 of each person)
        """
        return replace(self, counts=counts)

    def estimate(self, place: int) -> Estimate:
        """The number in one place, ready to be computed with.

        Args:
            place: Which number, counted from 0.

        Returns:
            The number, and which noises it is made of.
        """
        if self.computed:
            return self.computed[place]
        interval = self.interval_at

        def box(level: float) -> tuple[float, float]:
            low, high = (float(np.atleast_1d(end)[place]) for end in interval(level))
            return low, high

        value, raw = (float(np.atleast_1d(numbers)[place]) for numbers in (self.values, self.raw))
        if self.noise is None or not self.noise.release:  # noises without a name could be taken for each other
            return Estimate(value, value if math.isnan(raw) else raw, box)
        top, bottom = self.noise.numbers(place)
        return Estimate.of(value, box, top, bottom, self.noise.least, self.noise.most)

    @property
    def estimates(self) -> list[Estimate]:
        """All numbers, ready to be computed with."""
        return [self.estimate(place) for place in range(len(self))]

    @classmethod
    def of_estimates(
        cls,
        name: str,
        estimates: Sequence[Estimate],
        labels: tuple[Any, ...] = (),
        *,
        confidence: float = 0.95,
        note: str = "",
    ) -> Answer:
        """What was computed from released numbers, as an answer.

        Args:
            name: What it is.
            estimates: The numbers.
            labels: What each number is of; empty for a single number.
            confidence: The probability with which each interval holds the truth.
            note: What there is to know about it.

        Returns:
            The answer; its note says what its intervals rest on.
        """
        parts = tuple(estimates)
        answer = cls.within(
            name,
            [each.value for each in parts],
            [each.standard_error for each in parts],
            lambda level: intervals_of(parts, level),
            labels,
            confidence=confidence,
            note="; ".join(dict.fromkeys(part for part in (*note.split("; "), way_note(parts)) if part)),
            raw=[each.centre for each in parts],
        )
        return replace(answer, computed=parts)

    def __float__(self) -> float:
        if self.labels:
            raise InvalidValue("answer", self.name, "has several numbers", f"choose one of {_few(self.labels)}")
        return float(self.values)

    def _with(self, other: object, sign: str, function: Callable[[Estimate, Estimate], Estimate]) -> Answer:
        """Both answers cell by cell; a single number goes with every cell."""
        if isinstance(other, Answer):
            if self.labels and other.labels and self.labels != other.labels:
                raise InvalidValue("answer", other.name, f"has other cells than {self.name!r}", "choose cells of both")
            name, theirs, note = other.name, other.estimates, other.note
            labels, counts = self.labels or other.labels, other.counts
        elif isinstance(other, Real) and not isinstance(other, bool) and math.isfinite(other):
            name, theirs, note = plain(float(other), 12), [Estimate.known(float(other))], ""
            labels, counts = self.labels, self.counts
        else:
            return NotImplemented  # type: ignore[no-any-return]
        own, size = self.estimates, len(labels) or 1
        pairs = zip(own * (size if len(own) == 1 else 1), theirs * (size if len(theirs) == 1 else 1), strict=True)
        answer = Answer.of_estimates(
            f"({self.name}) {sign} ({name})",
            [function(one, two) for one, two in pairs],
            labels,
            confidence=self.confidence,
            note="; ".join(_said(self.note, note)),
        )
        return answer.counting(self.counts) if self.counts == counts else answer

    def __add__(self, other: object) -> Answer:
        return self._with(other, "+", lambda one, two: one.plus(two))

    def __radd__(self, other: object) -> Answer:
        return self if type(other) is int and other == 0 else self.__add__(other)  # as `sum` begins

    def __sub__(self, other: object) -> Answer:
        return self._with(other, "-", lambda one, two: one.plus(two, -1.0))

    def __rsub__(self, other: object) -> Answer:
        return (-self).__add__(other)

    def __mul__(self, other: object) -> Answer:
        return self._with(other, "×", lambda one, two: one.by(two))

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> Answer:
        return self._with(other, "/", lambda one, two: one.over(two))

    def __rtruediv__(self, other: object) -> Answer:
        return self._with(other, "under", lambda one, two: two.over(one))

    def __neg__(self) -> Answer:
        return self._with(-1, "×", lambda one, two: one.times(two.value))

    def __len__(self) -> int:
        return len(self.labels) or 1

    def __getitem__(self, label: Any) -> Answer:
        """The answer for one label, as an answer of its own."""
        if label not in self.labels:
            raise InvalidValue("label", label, f"must be one of {_few(self.labels)}")
        place = self.labels.index(label)
        whole = self.interval_at

        def one(confidence: float) -> tuple[Floats, Floats]:
            low, high = whole(confidence)
            return low[place : place + 1], high[place : place + 1]

        answer = Answer.within(
            f"{self.name}: {_label(label)}",
            np.asarray(self.values)[place],
            np.asarray(self.standard_errors)[place],
            one,
            confidence=self.confidence,
            note=self.note,
            raw=np.atleast_1d(self.raw)[place],
        )
        computed = () if self.noise is None and not self.computed else (self.estimate(place),)
        return replace(answer, counts=self.counts, computed=computed)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.labels)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        level = f"({100 * self.confidence:.6g}%)" + (f"; counts {self.counts}" if self.counts else "")
        columns = map(np.atleast_1d, (self.values, self.lower, self.upper))
        rows = [with_interval(*map(float, cell)) for cell in zip(*columns, strict=True)]
        if not self.labels:
            return "\n".join([f"{rows[0]} {level}", *self._noted])
        names = [_label(label) for label in self.labels]
        width = max(map(len, names))
        heads = [row.split(" ", 1) for row in rows]
        numbers = max(len(head[0]) for head in heads)
        lines = [
            f"  {name:<{width}}  {head[0]:>{numbers}}" + (f" {head[1]}" if len(head) > 1 else "")
            for name, head in zip(names, heads, strict=True)
        ]
        if len(lines) > _ROWS_SHOWN:
            lines = [*lines[:_ROWS_SHOWN], f"  ... and {len(lines) - _ROWS_SHOWN:,} more"]
        return "\n".join([f"{self.name} {level}", *lines, *self._noted])

    def _repr_html_(self) -> str:
        values, lower, upper = (np.atleast_1d(each) for each in (self.values, self.lower, self.upper))
        first = slice(0, _ROWS_SHOWN)
        ends = [float(end) for end in (*lower[first], *upper[first]) if math.isfinite(end)]
        finite = len(ends) == 2 * len(values[first])
        rows = []
        for place, cell in enumerate(zip(values[first], lower[first], upper[first], strict=True)):
            value, low, high = map(float, cell)
            mark = interval_mark(value, low, high, min(0.0, *ends), max(ends)) if finite and self.labels else ""
            rows.append([_label(self.labels[place]) if self.labels else "", with_interval(value, low, high), mark])
        more = [f"... and {len(values) - _ROWS_SHOWN:,} more"] if len(values) > _ROWS_SHOWN else []
        counts = [f"counts {self.counts}"] if self.counts else []
        title = f"{self.name} ({100 * self.confidence:.6g}%)"
        return html_table(["", "", ""], rows, title=title, notes=[*more, *counts, *self._noted], numbers=[1])

    @property
    def value(self) -> float:
        """The number, where there is one.

        >>> from farthing.inference import ErrorDistribution, Term
        >>> Answer.around("count", 510, ErrorDistribution([Term("laplace", 2.0)])).value
        510.0
        """
        return float(self)

    def to_frame(self) -> Any:
        """The numbers with their errors as a pandas table.

        Returns:
            One row for each label: label, value, error, lower, upper, standard_error.

        >>> from farthing.inference import ErrorDistribution, Term
        >>> counts = Answer.around("count", [5, 9], ErrorDistribution([Term("laplace", 2.0)]), ("F", "M"))
        >>> list(counts.to_frame().columns)
        ['label', 'value', 'error', 'lower', 'upper', 'standard_error']
        """
        import pandas

        columns: dict[str, Any] = {} if not self.labels else {"label": [_label(each) for each in self.labels]}
        numbers = (self.values, self.error(), self.lower, self.upper, self.standard_errors)
        names = ("value", "error", "lower", "upper", "standard_error")
        return pandas.DataFrame(columns | dict(zip(names, map(np.atleast_1d, numbers), strict=True)))

    @property
    def _noted(self) -> list[str]:
        return [f"note: {self.note}"] if self.note else []

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and lists, ready for JSON; what is not finite becomes None."""
        return {
            "name": self.name,
            "labels": [list(label) if isinstance(label, tuple) else label for label in self.labels],
            "values": _plain(self.values),
            "raw": _plain(self.raw),
            "standard_errors": _plain(self.standard_errors),
            "lower": _plain(self.lower),
            "upper": _plain(self.upper),
            "confidence": self.confidence,
            **({"counts": self.counts} if self.counts else {}),
            "note": self.note,
        }


def _label(label: Any) -> str:
    """A label as text; a label of several columns has its parts joined."""
    return ", ".join(map(str, label)) if type(label) is tuple else str(label)


def _said(*notes: str) -> list[str]:
    """Each part of several notes once."""
    return list(dict.fromkeys(part for note in notes for part in note.split("; ") if part))


def _few(labels: tuple[Any, ...]) -> str:
    first_labels = ", ".join(repr(label) for label in labels[:8])
    return (
        first_labels if len(labels) <= 8 else f"{first_labels} and {len(labels) - 8} more"
    ) or "none: it is one number"


def _plain(numbers: Numbers) -> Any:
    if isinstance(numbers, float):
        return numbers if math.isfinite(numbers) else None
    return [float(number) if math.isfinite(number) else None for number in numbers]
