"""What deciding as you go costs: the optimum for charges fixed in advance, beside every filter."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from farthing.accounting.comparison.theorem_comparison import Charges, charges_of_pairs
from farthing.accounting.event_price import price_of
from farthing.accounting.filters import BasicFilter, ClockFilter, Filter, FullyAdaptiveFilter, RenyiFilter
from farthing.errors import BudgetExceeded, InvalidValue
from farthing.numerics.bounds import exact, float_up, rounded_text, rounded_up_text
from farthing.privacy import ApproxDP, Event
from farthing.privacy.events import checked_delta, checked_epsilon

MOST_KINDS = 200  # a new kind of charge takes a filter milliseconds; a list of more is a question of minutes
_NEAR = 1e-4  # how closely the least epsilon of a filter is searched, as a part of it
_LARGEST = 1e6

Pairs = Sequence[tuple[Event, int]]
Make = Callable[[float], Filter]


@dataclass(frozen=True)
class FilterLine:
    """One way to account for the charges.

    Attributes:
        name: The filter, or "fixed in advance".
        epsilon: The least epsilon that admits all charges; None where a budget was given, infinite if there is none.
        fits: How many of the charges the budget admits, in their order; None where no budget was given.
        cost_percent: What deciding as you go costs: percent more epsilon, or percent fewer charges.
        source: Where the theorem stands.
        applies: Whether it takes these charges.
        note: Why not, if it does not.
    """

    name: str
    epsilon: float | None
    fits: int | None
    cost_percent: float | None
    source: str
    applies: bool = True
    note: str = ""


@dataclass(frozen=True)
class AdaptiveComparison:
    """What the same charges cost when each may be chosen after seeing the answers before it.

    Attributes:
        k: How many charges there are.
        delta: The delta of the whole.
        epsilon: The epsilon of the budget, if one was given.
        leak: The part of delta that is set aside for the charges' own deltas.
        lines: The optimum for charges fixed in advance, then the filters.
        sentence: What deciding as you go costs, in one sentence.
    """

    k: int
    delta: float
    epsilon: float | None
    leak: float
    lines: tuple[FilterLine, ...]
    sentence: str

    @property
    def cost_percent(self) -> float | None:
        """What deciding as you go costs under the best filter: percent more epsilon, or percent fewer charges."""
        best = _best(self.lines[1:])
        return None if best is None else best.cost_percent


def adaptive_comparison_of(charges: Charges, delta: float, *, epsilon: float | None = None) -> AdaptiveComparison:
    """The charges under every filter, beside the optimum for charges fixed in advance.

    Charges are taken in their order, guarantees before other events. Without a budget each line says which epsilon
    admits all of them; with one, how many of them fit.

    Args:
        charges: What is charged.
        delta: The delta of the whole.
        epsilon: The epsilon of a budget.

    Returns:
        One line for the optimum and one for each filter.

    Raises:
        InvalidValue: If `delta` or `epsilon` is out of range, or there are too many kinds of charges.

    >>> from farthing.accounting.comparison import charges_of_pairs
    >>> from farthing.privacy import ApproxDP
    >>> hundredths = adaptive_comparison_of(charges_of_pairs([(ApproxDP(0.01), 400)]), 1e-9, epsilon=1.0)
    >>> [(line.name, line.fits) for line in hundredths.lines]
    [('fixed in advance', 336), ('clock', 329), ('fully adaptive', 235), ('Renyi', 305), ('plain sums', 100)]
    >>> hundredths.sentence
    'Deciding as you go, 329 of these charges fit instead of 336: 2.1% fewer.'
    """
    delta = checked_delta(delta)
    if not delta > 0:
        raise InvalidValue("delta", delta, "must be > 0", "with delta 0 only plain sums hold, adaptive or not")
    pairs, leak = _pairs(charges), 0.0
    if len(_kinds(pairs)) > MOST_KINDS:
        raise InvalidValue(
            "charges",
            f"{len(_kinds(pairs)):,} kinds",
            f"must be at most {MOST_KINDS} kinds to be compared under every filter",
            "round the epsilons, or charge a ClockFilter one by one",
        )
    own = sum((count * price_of(event).leak for event, count in pairs), Fraction(0))
    if own:  # the share is fixed before the first answer: what all charges need, but no more than half
        leak = min(float_up(own), delta / 2)
    makers = _makers(delta, leak)
    if epsilon is None:
        within = makers if exact(leak) >= own else {"plain sums": makers["plain sums"]}
        lines = _least_epsilons(pairs, charges, delta, within)
    else:
        lines = _fitting(pairs, checked_epsilon(epsilon), delta, makers)
    return AdaptiveComparison(
        charges.k, delta, epsilon, leak, tuple(lines), _sentence(lines, sum(count for _, count in pairs))
    )


def clock_epsilon(charges: Charges, delta: float, optimal: float) -> float:
    """The least epsilon whose clock admits the charges, each chosen after seeing the answers before it.

    Args:
        charges: What is charged.
        delta: The delta of the whole; with 0, only plain sums hold.
        optimal: What the charges cost if they are fixed in advance, where the search starts.

    Returns:
        The epsilon, a ten-thousandth too large at most; infinite if there is none, or there are too many kinds.

    >>> from farthing.accounting.comparison import charges_of_pairs
    >>> from farthing.privacy import ApproxDP
    >>> 1.0967 < clock_epsilon(charges_of_pairs([(ApproxDP(0.01), 400)]), 1e-9, 1.0968) < 1.11
    True
    """
    pairs = _pairs(charges)
    own = sum((count * price_of(event).leak for event, count in pairs), Fraction(0))
    if len(_kinds(pairs)) > MOST_KINDS or own > exact(delta) / 2:
        return math.inf
    clock = partial(ClockFilter, delta=delta, leak=float_up(own), equal_charges=False)
    make: Make = clock if delta > 0 else BasicFilter
    return _least_epsilon(make, pairs, optimal)


_SOURCES = {
    "clock": "the page The clock, Theorem 1",
    "fully adaptive": "WRRW23 Theorem 2",
    "Renyi": "FZ21 Theorem 4.3",
    "plain sums": "RRUV16 Theorem 3.6",
}


def _makers(delta: float, leak: float) -> dict[str, Make]:
    return {
        "clock": partial(ClockFilter, delta=delta, leak=leak, equal_charges=False),
        "fully adaptive": partial(FullyAdaptiveFilter, delta=delta, leak=leak),
        "Renyi": partial(RenyiFilter, delta=delta, leak=leak),
        "plain sums": partial(BasicFilter, delta=delta),
    }


def _pairs(charges: Charges) -> list[tuple[Event, int]]:
    """The charges in their order, equal neighbours together."""
    rows: list[tuple[Event, int]] = [
        (ApproxDP(epsilon, delta), count)
        for epsilon, delta, count in zip(
            charges.epsilons.tolist(), charges.deltas.tolist(), charges.counts.tolist(), strict=True
        )
    ]
    pairs: list[tuple[Event, int]] = []
    for event, count in [*rows, *charges.events]:
        if pairs and pairs[-1][0] == event:
            pairs[-1] = (event, pairs[-1][1] + count)
        elif count:
            pairs.append((event, count))
    return pairs


def _kinds(pairs: Pairs) -> set[Event]:
    return {event for event, _ in pairs}


def _least_epsilons(pairs: Pairs, charges: Charges, delta: float, makers: dict[str, Make]) -> list[FilterLine]:
    optimal = charges.composition().epsilon_at(delta).upper
    lines = [FilterLine("fixed in advance", optimal, None, None, "MV16 Theorem 1.5")]
    for name in _SOURCES:
        line = FilterLine(name, math.inf, None, None, _SOURCES[name])
        if name not in makers:
            lines.append(replace(line, note="the charges' own deltas need more than half of delta"))
            continue
        try:
            least = _least_epsilon(makers[name], pairs, optimal)
        except InvalidValue as refusal:
            lines.append(replace(line, epsilon=None, applies=False, note=refusal.rule))
            continue
        more = None if not 0 < optimal < math.inf or math.isinf(least) else 100 * max(0.0, least / optimal - 1)
        lines.append(replace(line, epsilon=least, cost_percent=more))
    return lines


def _least_epsilon(make: Make, pairs: Pairs, optimal: float) -> float:
    """The least budget that admits all charges, found from above: what is returned was admitted."""

    def admits(epsilon: float) -> bool:
        return _most(make(epsilon), pairs) == sum(count for _, count in pairs)

    if math.isinf(optimal) or admits(optimal):
        return optimal
    known = [price_of(event).epsilon for event, _ in pairs]
    plain = sum((amount * count for amount, (_, count) in zip(known, pairs, strict=True) if amount), Fraction(0))
    low, high = optimal, max(1.05 * optimal, 1e-9) if None in known else float_up(plain)
    while not admits(high):
        if not high < _LARGEST:
            return math.inf
        low, high = high, 2 * high
    while high - low > _NEAR * high:
        middle = low + (high - low) / 2
        low, high = (low, middle) if admits(middle) else (middle, high)
    return high


def _fitting(pairs: Pairs, epsilon: float, delta: float, makers: dict[str, Make]) -> list[FilterLine]:
    best = _most_in_advance(pairs, epsilon, delta)
    lines = [FilterLine("fixed in advance", None, best, None, "MV16 Theorem 1.5")]
    for name, make in makers.items():
        line = FilterLine(name, None, None, None, _SOURCES[name])
        try:
            fits = _most(make(epsilon), pairs)
        except InvalidValue as refusal:
            lines.append(replace(line, applies=False, note=refusal.rule))
            continue
        lines.append(replace(line, fits=fits, cost_percent=100 * max(0.0, 1 - fits / best) if best else None))
    return lines


def _most_in_advance(pairs: Pairs, epsilon: float, delta: float) -> int:
    def fits(count: int) -> bool:
        return charges_of_pairs(_first(pairs, count)).composition().delta_at(epsilon).upper <= delta

    return _largest(fits, sum(count for _, count in pairs))


def _most(budget: Filter, pairs: Pairs) -> int:
    """How many charges a filter admits one after the other, up to the first that it refuses."""
    taken = 0
    for event, count in pairs:
        try:
            budget = budget.charge(event, count)
        except BudgetExceeded:
            return taken + _largest(partial(budget.admits, event), count)
        taken += count
    return taken


def _largest(fits: Callable[[int], bool], most: int) -> int:
    """The largest number up to `most` that fits, if more never fits where less does not."""
    if fits(most):
        return most
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _first(pairs: Pairs, count: int) -> list[tuple[Event, int]]:
    taken: list[tuple[Event, int]] = []
    for event, times in pairs:
        part = min(times, count - sum(each for _, each in taken))
        if part:
            taken.append((event, part))
    return taken


def _best(filters: Sequence[FilterLine]) -> FilterLine | None:
    """The filter that takes most of the charges, or needs the least epsilon; the first where several do."""
    known = [line for line in filters if line.applies]
    return min(known, key=lambda line: (-(line.fits or 0), line.epsilon or 0.0), default=None)


def _sentence(lines: Sequence[FilterLine], k: int) -> str:
    fixed, best = lines[0], _best(lines[1:])
    if not k:
        return "Nothing is charged, so nothing is lost."
    if best is None:
        return "No filter takes these charges."
    if fixed.fits is not None and best.fits is not None:
        if fixed.fits <= best.fits:  # a bound on the optimum may be looser than a filter
            number = "all" if best.fits == k else f"{best.fits:,} of"
            return f"Deciding as you go costs nothing here: {number} these charges fit either way."
        return (
            f"Deciding as you go, {best.fits:,} of these charges fit instead of {fixed.fits:,}: "
            f"{rounded_text(best.cost_percent or 0.0, 2)}% fewer."
        )
    assert fixed.epsilon is not None and best.epsilon is not None
    if math.isinf(fixed.epsilon) or math.isinf(best.epsilon):
        return "No epsilon is large enough at this delta if you decide as you go" + (
            "." if math.isinf(fixed.epsilon) else f"; fixed in advance, the charges need {_up(fixed.epsilon)}."
        )
    if best.epsilon <= fixed.epsilon or _up(best.epsilon) == _up(fixed.epsilon):
        return f"Deciding as you go costs nothing here: epsilon {_up(best.epsilon)} either way."
    more = best.cost_percent or 0.0
    much = "less than 0.1% more" if more < 0.1 else f"{rounded_text(more, 2)}% more"
    return f"Deciding as you go costs {much}: epsilon {_up(best.epsilon)} instead of {_up(fixed.epsilon)}."


def _up(epsilon: float) -> str:
    return rounded_up_text(epsilon, 4)
