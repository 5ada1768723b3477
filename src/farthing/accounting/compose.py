"""`compose`: what several mechanisms cost together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from farthing.accounting.algorithm_choice import EngineChoice, Pricing
from farthing.accounting.charges import Charges, ComposedLoss, check_range, checked_finite_order, read_charges
from farthing.accounting.tradeoff_functions import Region, TradeoffFunction, region_of, tradeoff_of
from farthing.errors import InvalidValue
from farthing.numerics import Bounds
from farthing.privacy.events import (
    DiscreteLaplaceNoise,
    Event,
    LaplaceNoise,
    checked_delta,
    checked_epsilon,
)

_FEWEST_STEPS = 64
_WIDEST = Fraction(1, 10**10)  # what all of them together may add to epsilon


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

    @property
    def k(self) -> int:
        """How many charges were composed."""
        return self.loss.charges.k

    @cached_property
    def pricing(self) -> Pricing:
        """The engines set up for these charges (made once, then kept)."""
        return Pricing(self.loss)

    @cached_property
    def _sandwich(self) -> tuple[Pricing, Pricing] | None:
        """The engines for charges that cost a hair less and a hair more; None where nothing is replaced."""
        pair = enclosed(self.loss.charges)
        return None if pair is None else (Pricing(ComposedLoss(pair[0])), Pricing(ComposedLoss(pair[1])))

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
        target = checked_delta(delta)
        if self._sandwich is None:
            return self.pricing.epsilon_at(target, proof)
        below, above = self._sandwich
        upper = above.epsilon_at(target, proof)
        lower = below.epsilon_at(target, proof).lower if proof else upper.lower
        return Bounds(min(lower, upper.lower), upper.upper, upper.estimate, upper.proven)

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
        target = checked_epsilon(epsilon)
        if self._sandwich is None:
            return self.pricing.delta_at(target, proof)
        below, above = self._sandwich
        upper = above.delta_at(target, proof)
        lower = below.delta_at(target, proof).lower if proof else upper.lower
        return Bounds(min(lower, upper.lower), upper.upper, upper.estimate, upper.proven)

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
        return tradeoff_of(self.pricing if self._sandwich is None else self._sandwich[1])

    def region(self) -> Region:
        """The region of (P_FA, P_MD) that the composition guarantees: the testing view, as a polygon.

        >>> compose([1.0]).region().vertices.shape[1]
        2
        """
        return region_of(self.pricing if self._sandwich is None else self._sandwich[1])

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
        pricing = self.pricing if self._sandwich is None else self._sandwich[1]
        return pricing.engine_at(checked_delta(delta))

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
