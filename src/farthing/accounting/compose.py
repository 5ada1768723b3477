"""`compose`: what several mechanisms cost together."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from farthing.accounting.algorithm_choice import EngineChoice, Pricing
from farthing.accounting.bounded_range_cost import noise_of_ranges
from farthing.accounting.charges import Charges, Chunk, ComposedLoss, check_range, checked_finite_order, read_charges
from farthing.accounting.cost_estimates import composed_cost, losses_of
from farthing.accounting.regions import Region, region_of
from farthing.accounting.tradeoff_functions import TradeoffFunction
from farthing.errors import InvalidValue
from farthing.numerics import Bounds
from farthing.numerics.bounds import number_text
from farthing.numerics.notebook_tables import html_table
from farthing.privacy.events import (
    BoundedRange,
    DiscreteLaplaceNoise,
    Event,
    GaussianNoise,
    LaplaceNoise,
    checked_delta,
    checked_epsilon,
)

_FEWEST_STEPS = 64
_WIDEST = Fraction(1, 10**10)  # what all of them together may add to epsilon

_SHORTEST_RANGE, _LONGEST_RANGE = 1e-9, 10.0  # of choices that are priced as Gaussian noise
_FEWEST_CHOICES, _MOST_RANGES = 3, 4
_MOST_ANSWERS = 64  # that a composition remembers

T = TypeVar("T")
_Question = tuple[str, float, bool]


def enclosing_laplace(noise_multiplier: float, steps: int) -> tuple[LaplaceNoise, LaplaceNoise]:
    """Real Laplace noises that cost no more and no less than discrete Laplace noise.

    >>> less, more = enclosing_laplace(2.0, 1000)
    >>> less.noise_multiplier, more.noise_multiplier
    (2.0, 1.999999...)

    Statement:
        Let integer noise have mass proportional to r^|n|, r = exp(-a), and let one number move by s steps; put
        epsilon = a s. Its pair dominates real Laplace noise of that epsilon, and is dominated by real Laplace noise of
        epsilon + 2 ln cosh(a / 2), which is at most epsilon + a^2 / 4.
    Source: own derivation. At the loss epsilon - y, 0 <= y <= 2 epsilon, the real distribution has 1 - delta = exp(-y /
        2). The discrete one has the same at y = 2 j a, and between these points its delta is linear in exp(-y): 1 -
        delta = r^j (r + exp(-(y - 2 j a))) / (1 + r), which is smaller, because exp(-y / 2) is concave in exp(-y).
        Hence the first half. The ratio of the two is largest at y = (2 j + 1) a, where it is (1 + r) / (2 exp(-a / 2))
        = cosh(a / 2); moving y by 2 ln cosh(a / 2) makes up for it. For losses below -epsilon the discrete delta is 1 -
        exp(loss), which is the least any pair has.
    Assumes: s >= 1 whole; one number, or a vector moved by s in l1, which one number dominates.
    Direction: the second multiplier is rounded down, with a^2 / 4 for 2 ln cosh(a / 2).
    Checked by: tests/theorems/test_fine_laplace.py
    """
    exact = Fraction(noise_multiplier)  # epsilon = 1 / multiplier, a = epsilon / steps
    more = exact / (1 + 1 / (4 * exact * steps**2))
    rounded = float(more)
    down = rounded if Fraction(rounded) <= more else math.nextafter(rounded, 0.0)
    return LaplaceNoise(noise_multiplier), LaplaceNoise(down)


def enclosed(charges: Charges) -> tuple[Charges, Charges] | None:
    """The charges with every fine discrete Laplace noise replaced, from below and from above; None without any.

    Only where all of them together widen epsilon by less than 1e-10: coarser ones are priced as they are.
    """
    fine = {
        event: count
        for event, count in charges.events.items()
        if isinstance(event, DiscreteLaplaceNoise) and event.l1_sensitivity >= _FEWEST_STEPS
    }
    while fine:
        widths = {event: count * _widening(event) for event, count in fine.items()}
        if sum(widths.values()) <= _WIDEST:
            break
        del fine[max(widths, key=widths.__getitem__)]
    if not fine:
        return None
    below, above = dict(charges.events), dict(charges.events)
    for event, count in fine.items():
        less, more = enclosing_laplace(event.noise_multiplier, event.l1_sensitivity)
        for events, noise in ((below, less), (above, more)):
            del events[event]
            _add(events, noise, count)
    return Charges(charges.chunks, below, charges.k), Charges(charges.chunks, above, charges.k)


def _widening(event: DiscreteLaplaceNoise) -> Fraction:
    return 1 / (4 * (Fraction(event.noise_multiplier) * event.l1_sensitivity) ** 2)


def ranges_as_noise(charges: Charges, proof: bool) -> Charges | None:
    """The charges with choices of bounded range replaced by Gaussian noise that dominates them; None without any.

    Ranges with few choices stay, and all but the `_MOST_RANGES` that weigh most: each takes milliseconds to prove.
    """
    repeated = [
        (event, count)
        for event, count in charges.events.items()
        if isinstance(event, BoundedRange)
        and _SHORTEST_RANGE <= event.epsilon <= _LONGEST_RANGE
        and count >= _FEWEST_CHOICES
    ]
    heaviest = sorted(repeated, key=lambda pair: -pair[1] * pair[0].epsilon ** 2)[:_MOST_RANGES]
    events = dict(charges.events)
    for event, count in heaviest:
        noise = noise_of_ranges(Fraction(event.epsilon), count, 8 if len(heaviest) == 1 else 2, proof)
        if noise is not None:
            del events[event]
            _add(events, GaussianNoise(_multiplier_below(noise)), 1)
    return Charges(charges.chunks, events, charges.k) if events.keys() != charges.events.keys() else None


def ranges_as_responses(charges: Charges) -> Charges:
    """The charges with every choice of bounded range replaced by randomized response of half the range, which is one.

    So they cost at least this.
    """
    choices = [(event.epsilon / 2, n) for event, n in charges.events.items() if isinstance(event, BoundedRange)]
    events = {event: n for event, n in charges.events.items() if not isinstance(event, BoundedRange)}
    halves, counts = np.array([half for half, _ in choices]), np.array([n for _, n in choices], dtype=np.int64)
    return Charges((*charges.chunks, Chunk(halves, np.zeros(len(choices)), counts)), events, charges.k)


def _multiplier_below(mu_squared: Fraction) -> float:
    """A noise multiplier that is at most 1 / mu."""
    guess = 1 / math.sqrt(mu_squared)
    while Fraction(guess) ** 2 * mu_squared > 1:
        guess = math.nextafter(guess, 0.0)
    return guess


def _add(events: dict[Event, int], event: Event, count: int) -> None:
    events[event] = events.get(event, 0) + count


def compose(charges: Any, deltas: Any = None, counts: Any = None) -> Composition:
    """The composition of `charges`: a value that answers what they cost together.

    The parameters must have been fixed in advance: when they depend on earlier answers, use a filter instead
    (`farthing.accounting.filters`).

    Args:
        charges: A sequence of epsilons (a NumPy array is fastest), of (epsilon, delta) pairs, or of events from
            `farthing.privacy`, mixed freely.
        deltas: The delta of each charge, where `charges` are epsilons; 0 by default.
        counts: How often each charge is made; once by default.

    Returns:
        The composition. Nothing is computed until it is asked for `epsilon_at`, `delta_at` or a curve.

    Raises:
        InvalidValue: If something is not a charge, or costs more than epsilon 1e6.

    >>> hundred = compose([0.1], counts=[100])
    >>> hundred.epsilon_at(1e-6).upper < 4.774568
    True
    >>> compose([]).epsilon_at(1e-6)
    Bounds(lower=0.0, upper=0.0, estimate=0.0, proven=True)
    >>> compose([0.1, float("nan")])
    Traceback (most recent call last):
        ...
    farthing.errors.InvalidValue: charges[1]=nan: must be a finite number >= 0.
    """
    read = read_charges(charges, deltas, counts)
    check_range(read)
    return Composition(ComposedLoss(read))


def _cost(pricing: Pricing, question: str, target: float, proof: bool) -> Bounds:
    return pricing.epsilon_at(target, proof) if question == "epsilon" else pricing.delta_at(target, proof)


def _remembered(known: dict[_Question, T], key: _Question, computed: Callable[[], T]) -> T:
    if key not in known:
        if len(known) >= _MOST_ANSWERS:
            known.clear()
        known[key] = computed()
    return known[key]


@dataclass(frozen=True, eq=False)
class Composition:
    """Charges composed: their cost as a curve of (epsilon, delta), with bounds that are proven.

    Args:
        loss: The charges, read and grouped; `compose` makes it.

    >>> from farthing.privacy import GaussianNoise, LaplaceNoise
    >>> both = compose([LaplaceNoise(2.0), GaussianNoise(4.0)]).plus([0.1, 0.2])
    >>> both.k
    4
    >>> bounds = both.epsilon_at(1e-6)
    >>> bounds.proven and bounds.width < 1e-6
    True
    """

    loss: ComposedLoss

    def __repr__(self) -> str:
        return f"Composition(k={self.k})"

    def _repr_html_(self) -> str:
        rows = []
        for delta in (0.0, 1e-9, 1e-6, 1e-5):
            bounds = self.epsilon_at(delta, proof=False)
            rows.append([f"{delta:g}", number_text(bounds.upper, 6)])
        noun = "charge" if self.k == 1 else "charges"
        title, notes = f"{self.k:,} {noun} together", ["estimates; epsilon_at(delta) proves them"]
        return html_table(["delta", "epsilon"], rows, title=title, notes=notes, numbers=[0, 1])

    @property
    def k(self) -> int:
        """How many charges were composed."""
        return self.loss.charges.k

    @cached_property
    def pricing(self) -> Pricing:
        """The engines set up for these charges (made once, then kept)."""
        return Pricing(self.loss)

    @cached_property
    def _enclosed(self) -> tuple[Charges, Charges]:
        """Charges that cost a hair less and a hair more, and are priced fast; mostly these charges themselves."""
        return enclosed(self.loss.charges) or (self.loss.charges, self.loss.charges)

    @cached_property
    def _below(self) -> Pricing:
        """The engines for pairs that each charge dominates, but for choices of bounded range: see `_least`."""
        below, above = self._enclosed
        return self._above if below is above else Pricing(ComposedLoss(below))

    @cached_property
    def _least(self) -> Pricing:
        """The engines for mechanisms of these kinds: their costs are lower ends."""
        below = self._enclosed[0]
        # Of one choice alone the envelope is the worst case itself.
        choices = self.k > 1 and any(isinstance(event, BoundedRange) for event in below.events)
        return Pricing(ComposedLoss(ranges_as_responses(below))) if choices else self._below

    @cached_property
    def _above(self) -> Pricing:
        """The engines for one pair that dominates each charge: their costs are upper ends."""
        above = self._enclosed[1]
        return self.pricing if above is self.loss.charges else Pricing(ComposedLoss(above))

    @cached_property
    def _noise_estimate(self) -> Pricing | None:
        """The same with ranges as Gaussian noise, at prices that are not yet proven."""
        charges = ranges_as_noise(self._enclosed[1], proof=False)
        return None if charges is None else Pricing(ComposedLoss(charges))

    @cached_property
    def _noise(self) -> Pricing:
        charges = ranges_as_noise(self._enclosed[1], proof=True)
        return self._above if charges is None else Pricing(ComposedLoss(charges))

    def _cheapest(self, question: str, target: float, proof: bool) -> Pricing:
        """The engines with the least upper end, by estimates."""
        if self._noise_estimate is None or not self._less_as_noise(self._noise_estimate, question, target):
            return self._above
        return self._noise if proof else self._noise_estimate

    def _less_as_noise(self, noise: Pricing, question: str, target: float) -> bool:
        """Whether choices cost less as Gaussian noise. A wrong answer makes the upper end larger, but not wrong."""
        if question == "epsilon" and target > 0:
            losses = [losses_of(each.loss.charges) for each in (noise, self._above)]
            costs = [composed_cost(each, target) for each in losses if each is not None]
            if len(costs) == 2 and all(cost.reliable for cost in costs):
                return costs[0].epsilon < costs[1].epsilon
        return _cost(noise, question, target, False).estimate < _cost(self._above, question, target, False).estimate

    @cached_property
    def _answers(self) -> dict[_Question, Bounds]:
        """What was asked before, and the answer."""
        return {}

    @cached_property
    def _uppers(self) -> dict[_Question, tuple[Pricing, Bounds]]:
        """The engines that had the least upper end, and their bounds."""
        return {}

    def _bounds(self, question: str, target: float, proof: bool) -> Bounds:
        """`epsilon_at` or `delta_at` the target: the least upper end known, and with proof the lower end beside it."""

        def computed() -> Bounds:
            above, upper = self._upper(question, target, proof)
            # A choice of bounded range may reach its whole range, if seldom: without delta that is its cost.
            least = self._below if question == "epsilon" and target == 0 else self._least
            if not proof or least is above:
                return upper
            return Bounds(
                min(_cost(least, question, target, True).lower, upper.lower), upper.upper, upper.estimate, upper.proven
            )

        return _remembered(self._answers, (question, target, proof), computed)

    def _upper(self, question: str, target: float, proof: bool) -> tuple[Pricing, Bounds]:
        def computed() -> tuple[Pricing, Bounds]:
            above = self._cheapest(question, target, proof)
            return above, _cost(above, question, target, proof)

        return _remembered(self._uppers, (question, target, proof), computed)

    def epsilon_upper(self, delta: float) -> float:
        """The upper end of `epsilon_at`, proven: what to charge. Beside choices it takes half as long as both ends.

        Args:
            delta: The delta of all charges together, from 0 to 1.

        Returns:
            The epsilon; infinite when the charges leak more than `delta`, or where nothing is proven.

        Raises:
            InvalidValue: If `delta` is not a number from 0 to 1.

        >>> both = compose([0.1, 0.2])
        >>> both.epsilon_upper(1e-6) == both.epsilon_at(1e-6).upper
        True
        """
        _, bounds = self._upper("epsilon", checked_delta(delta), True)
        return bounds.upper if bounds.proven else math.inf

    def epsilon_at(self, delta: float, proof: bool = True) -> Bounds:
        """The least epsilon such that all charges together are (epsilon, delta)-DP.

        Args:
            delta: The delta of all charges together, from 0 to 1.
            proof: Whether the bounds must be proven. Without, they are a fast estimate with an honest margin, marked
                `proven=False`, for planning and sliders only.

        Returns:
            Bounds that hold the optimum, floating-point error included; `upper` is what to charge. Infinite when the
            charges leak more than `delta`.

        Raises:
            InvalidValue: If `delta` is not a number from 0 to 1.

        >>> compose([(1.0, 1e-5)] * 3).epsilon_at(1e-6)
        Bounds(lower=inf, upper=inf, estimate=inf, proven=True)
        """
        return self._bounds("epsilon", checked_delta(delta), proof)

    def delta_at(self, epsilon: float, proof: bool = True) -> Bounds:
        """The least delta such that all charges together are (epsilon, delta)-DP.

        Args:
            epsilon: The epsilon of all charges together, at least 0.
            proof: Whether the bounds must be proven; without, they are a fast estimate.

        Returns:
            Bounds that hold the optimum; `upper` is what to charge.

        Raises:
            InvalidValue: If `epsilon` is not a finite number >= 0.

        >>> round(compose([1.0]).delta_at(0.0).upper, 12) == round((math.e - 1) / (math.e + 1), 12)
        True
        """
        return self._bounds("delta", checked_epsilon(epsilon), proof)

    def plus(self, charges: Any, deltas: Any = None, counts: Any = None) -> Composition:
        """This composition with more charges; the estimate's state is carried over, not rebuilt.

        Args:
            charges: More charges, as `compose` takes them.
            deltas: The delta of each, where `charges` are epsilons.
            counts: How often each is made; once by default.

        Returns:
            The composition of all charges; this one stays as it is.

        Raises:
            InvalidValue: If something is not a charge.

        >>> compose([0.1]).plus([0.2, 0.3]).k
        3
        """
        return self.merge(compose(charges, deltas, counts))

    def merge(self, other: Composition) -> Composition:
        """The composition of this one's charges and another one's.

        Args:
            other: Another composition; charges go through `plus`.

        Returns:
            The composition of all charges; both stay as they are.

        Raises:
            InvalidValue: If `other` is not a composition.

        >>> compose([0.1]).merge(compose([0.2], counts=[5])).k
        6
        """
        if not isinstance(other, Composition):
            raise InvalidValue("other", other, "must be a Composition", "use plus() for charges")
        return Composition(self.loss.merge(other.loss))

    @property
    def leak(self) -> Bounds:
        """The least delta at which any epsilon exists: 1 - prod(1 - delta_i) over the (epsilon, delta) charges.

        >>> compose([(0.5, 0.1), (0.5, 0.2)]).leak.estimate
        0.28
        """
        return self.pricing.leak()

    def renyi_at(self, alpha: float) -> Bounds:
        """The Renyi divergence of order `alpha` > 1: the sum of the charges' own divergences.

        Args:
            alpha: The order, a finite number > 1.

        Returns:
            Bounds on the divergence. Infinite as soon as one charge has delta > 0.

        Raises:
            InvalidValue: If `alpha` is not a finite number > 1.

        >>> from farthing.privacy import GaussianNoise
        >>> compose([GaussianNoise(2.0)]).renyi_at(3.0).estimate
        0.375
        """
        return self.pricing.renyi_at(checked_finite_order(alpha))

    def tradeoff(self) -> TradeoffFunction:
        """The f-DP curve: the least missed-detection rate of any test with a given false-alarm rate.

        >>> curve = compose([1.0]).tradeoff()
        >>> round(float(curve(0.0)), 9), float(curve(1.0))
        (1.0, 0.0)
        """
        return self.region().tradeoff()

    def region(self) -> Region:
        """The region of (P_FA, P_MD) that the composition guarantees: the testing view, as a polygon.

        >>> compose([1.0]).region().vertices.shape[1]
        2
        """
        return region_of(self._above)

    def engine_at(self, delta: float) -> EngineChoice:
        """Which engine proves the answer at `delta`, and why it was chosen.

        Args:
            delta: The delta at which the epsilon is proven.

        Returns:
            The engine's name and the reason.

        Raises:
            InvalidValue: If `delta` is not a number from 0 to 1.

        >>> compose([0.1], counts=[100]).engine_at(1e-6).name
        'lattice'
        """
        target = checked_delta(delta)
        pricing = self._cheapest("epsilon", target, proof=False)
        choice = pricing.engine_at(target)
        if pricing is not self._noise_estimate:
            return choice
        return EngineChoice(choice.name, f"choices of bounded range cost least as Gaussian noise; {choice.reason}")

    def explain(self, delta: float = 1e-6) -> str:
        """In words: what is composed, which engine answers at `delta`, and why.

        Args:
            delta: The delta at which the epsilon is proven.

        Returns:
            Two lines of text.

        Raises:
            InvalidValue: If `delta` is not a number from 0 to 1.

        >>> print(compose([0.1], counts=[100]).explain())
        100 charges: 100 x randomized response (1 distinct epsilon).
        At delta = 1e-06 the engine is lattice: ...
        """
        choice = self.engine_at(delta)
        noun = "charge" if self.k == 1 else "charges"
        start = f"{self.k:,} {noun}: {self._described()}."
        return f"{start}\nAt delta = {delta:g} the engine is {choice.name}: {choice.reason}"

    def _described(self) -> str:
        kinds = self.loss.kinds
        pairs = sum(int(chunk.counts.sum()) for chunk in self.loss.chunks)
        parts = []
        if pairs:
            distinct = self.loss.distinct
            leaky = any(chunk.leaky for chunk in self.loss.chunks)
            name = "(epsilon, delta) mechanisms" if leaky else "randomized response"
            parts.append(f"{pairs:,} x {name} ({distinct:,} distinct epsilon{'' if distinct == 1 else 's'})")
        if len(kinds.laplace):
            parts.append(f"{int(kinds.laplace_counts.sum()):,} x Laplace noise")
        if len(kinds.ranges):
            parts.append(f"{int(kinds.range_counts.sum()):,} x choice of bounded range")
        if len(kinds.stepped.epsilons):
            parts.append(f"{int(kinds.stepped.counts.sum()):,} x discrete Laplace noise")
        if kinds.gaussian:
            parts.append(f"{sum(n for _, n in kinds.gaussian):,} x Gaussian noise")
        parts += [f"{count:,} x {event}" for event, count in kinds.grid]
        return ", ".join(parts) or "nothing"
