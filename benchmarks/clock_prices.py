"""Prices of the clock against their definition, at 60 digits: `python -m benchmarks.clock_prices [--prices N]`.

A drawn event, what is kept of the clock and, for samples, a leak; the price that a clock pays; and drawn points x at
which the condition is evaluated from the event's densities, in both orders of its pair:

    E[V(x + l, s')] <= (1 + excess) V(x, s' + cost) + leak.

Nothing is shared with the code that finds the prices but the events. Where a price is exact, it is also lowered by a
thousandth, which must be found out at x = 0.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import mpmath
from rich.console import Console

from farthing.accounting.filters.clock_costs import CLOCK_UNITS, clock_cost, level_below
from farthing.accounting.filters.sampled_cost import Spare
from farthing.numerics.bounds import exact
from farthing.privacy import (
    ApproxDP,
    BoundedRange,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    Event,
    GaussianNoise,
    LaplaceNoise,
    RandomizedResponse,
    Sampled,
)

mpf = mpmath.mpf
DIGITS = 60
EXACT = (ApproxDP, RandomizedResponse, LaplaceNoise, GaussianNoise)
MOST_PIECES = 16
ROUNDING = mpf("1e-28")
"""How far an integral may be off, as a share of its value. Sums of atoms are far better."""


def curve(x: Any, s: Any) -> Any:
    """E[(1 - e^(-x - Z))_+] for Z normal with mean s/2 and variance s."""
    if s == 0:
        return max(mpf(0), -mpmath.expm1(-x))
    root = mpmath.sqrt(s)
    return mpmath.ncdf((x + s / 2) / root) - mpmath.exp(-x) * mpmath.ncdf((x - s / 2) / root)


def read(number: float) -> Any:
    """A parameter as the accountant reads it: 0.1 is one tenth."""
    amount = exact(number)
    return mpf(amount.numerator) / amount.denominator


class Pair(NamedTuple):
    """Two distributions: probabilities of atoms under both, and densities of both on some interval.

    There the loss moves by about `rate` from one point to the next, as a share of the way between them.
    """

    atoms: list[tuple[Any, Any]]
    densities: Callable[[Any], tuple[Any, Any]] | None = None
    ends: tuple[Any, Any] = (0, 0)
    rate: Any = 0

    def sampled(self, probability: Any) -> Pair:
        """The pair of a secret sample against no sample at all: the first distribution is mixed with the second."""

        def mixed(both: tuple[Any, Any]) -> tuple[Any, Any]:
            return probability * both[0] + (1 - probability) * both[1], both[1]

        inner = self.densities
        densities = None if inner is None else lambda t: mixed(inner(t))
        return Pair([mixed(atom) for atom in self.atoms], densities, self.ends, probability * self.rate)

    def turned(self) -> Pair:
        """In the other order."""
        inner = self.densities
        densities = None if inner is None else lambda t: inner(t)[::-1]
        return Pair([(q, p) for p, q in self.atoms], densities, self.ends, self.rate)

    def beside(self, x: Any, s: Any) -> Any:
        """E[V(x + l, s)] under the first distribution."""
        total = sum((both[0] * curve(x + loss(both), s) for both in self.atoms), mpf(0))
        if self.densities is None:
            return total
        densities = self.densities

        def integrand(t: Any) -> Any:
            both = densities(t)
            return both[0] * curve(x + loss(both), s)

        low, high = self.ends
        if s == 0:  # the curve has a kink at 0
            kink = _sign_change(lambda t: x + loss(densities(t)), low, high)
            return total + mpmath.quad(integrand, [low, kink, high])
        # The curve bends within a few roots of s of 0: so many pieces that 48 points resolve that.
        pieces = int(mpmath.ceil((high - low) * self.rate / (12 * mpmath.sqrt(s))))
        pieces = min(max(pieces, 4), MOST_PIECES)
        return total + sum(_integral(integrand, low, high, n, pieces) for n in range(pieces))


def loss(both: tuple[Any, Any]) -> Any:
    """The privacy loss, from the probabilities or densities under both."""
    return mpmath.log(both[0] / both[1])


def _sign_change(of: Callable[[Any], Any], low: Any, high: Any) -> Any:
    """Where a monotone function changes its sign; an end if it does not."""
    rising = of(high) > of(low)
    for _ in range(4 * DIGITS):
        middle = (low + high) / 2
        low, high = (low, middle) if (of(middle) > 0) == rising else (middle, high)
    return low


def _integral(integrand: Callable[[Any], Any], low: Any, high: Any, n: int, pieces: int) -> Any:
    """Over the n-th of so many equal pieces, by the rule of Gauss and Legendre with 48 points."""
    half = (high - low) / (2 * pieces)
    middle = low + (2 * n + 1) * half
    return half * sum((weight * integrand(middle + half * t) for t, weight in _rule()), mpf(0))


@cache
def _rule() -> list[tuple[Any, Any]]:
    with mpmath.workdps(DIGITS):
        return list(mpmath.calculus.quadrature.GaussLegendre(mpmath.mp).calc_nodes(5, mpmath.mp.prec))


def pairs_of(event: Event) -> Iterator[Pair]:
    """Pairs of neighbours that the price must cover, each in one order; `turned` is the other."""
    match event:
        case Sampled(event=inner, probability=probability):
            for pair in pairs_of(inner):
                yield pair.sampled(read(probability))
        case ApproxDP(epsilon=e) | RandomizedResponse(epsilon=e):
            truth = 1 / (1 + mpmath.exp(-read(e)))
            yield Pair([(truth, 1 - truth), (1 - truth, truth)])
        case BoundedRange(epsilon=length):
            e = read(length)
            for share in (0.05, 0.3, 0.5, 0.62, 0.9):
                p, q = _end_of_range(e, e * mpf(share))
                yield Pair([(p, q), (1 - p, 1 - q)])
        case DiscreteLaplaceNoise(noise_multiplier=multiplier, l1_sensitivity=steps):
            kept = mpmath.exp(-1 / read(multiplier) / steps)
            between = [(kept**n, kept ** (steps - n)) for n in range(1, steps)]
            ends = [(1 / (1 - kept), kept**steps / (1 - kept)), (kept**steps / (1 - kept), 1 / (1 - kept))]
            scale = (1 - kept) / (1 + kept)
            yield Pair([(scale * p, scale * q) for p, q in (*ends, *between)])
        case LaplaceNoise(noise_multiplier=multiplier):
            e = 1 / read(multiplier)
            far = mpmath.exp(-e)
            yield Pair([(mpf(1) / 2, far / 2), (far / 2, mpf(1) / 2)], _laplace(e), (mpf(0), e), 2)
        case GaussianNoise(noise_multiplier=multiplier):
            mu = 1 / read(multiplier)
            yield Pair([], _gaussian(mu), (mpf(-15), mu + 15), mu)
        case DiscreteGaussianNoise(noise_multiplier=multiplier, l2_sensitivity=shift):
            sigma = read(multiplier) * shift
            reach = range(-int(16 * sigma) - shift, int(16 * sigma) + 2 * shift)
            weights = {n: mpmath.exp(-(mpf(n) ** 2) / (2 * sigma**2)) for n in range(reach[0] - shift, reach[-1] + 1)}
            total = sum(weights.values())
            yield Pair([(weights[n - shift] / total, weights[n] / total) for n in reach])


def _end_of_range(length: Any, loss: Any) -> tuple[Any, Any]:
    """The probabilities of the outcome of loss `loss`; the other has `loss - length`."""
    p = mpmath.expm1(length - loss) / (mpmath.exp(length - loss) - mpmath.exp(-loss))
    return p, p * mpmath.exp(-loss)


def _laplace(epsilon: Any) -> Callable[[Any], tuple[Any, Any]]:
    return lambda t: (mpmath.exp(-t) / 2, mpmath.exp(t - epsilon) / 2)


def _gaussian(mu: Any) -> Callable[[Any], tuple[Any, Any]]:
    return lambda t: (mpmath.npdf(t, mu), mpmath.npdf(t))


class Price(NamedTuple):
    """What a clock pays for an event when it keeps `level`."""

    event: Event
    level: Fraction
    clock: int
    excess: int = 0
    leak: int = 0

    def missing(self, pair: Pair, x: Any) -> Any:
        """By how much the left side exceeds the right at x, as a share of the right side."""
        s, cost = mpf(self.level.numerator) / self.level.denominator, mpf(self.clock) / CLOCK_UNITS
        right = (1 + mpf(self.excess) / CLOCK_UNITS) * curve(x, s + cost) + mpf(self.leak) / CLOCK_UNITS
        return (pair.beside(x, s) - right) / right

    def worst(self, xs: list[Any]) -> Any:
        """The largest share over points, pairs and orders."""
        orders = [order for pair in pairs_of(self.event) for order in (pair, pair.turned())]
        return max(self.missing(order, x) for order in orders for x in xs)


def drawn_price(draw: random.Random) -> Price | None:
    """An event of any kind, and a level between a tenth and ten thousand times what the event is worth."""
    event = drawn_event(draw)
    worth = _worth(event)
    level = level_below(Fraction(min(worth * 10 ** draw.uniform(-1, 4), 50)))  # above, every curve is 1 at 0
    leak = 0
    if isinstance(event, Sampled):
        clock, own = int(level * 2 * CLOCK_UNITS), int(10 ** draw.uniform(24, 36))
        leak = Spare(own, clock, own).leak(event) if draw.random() < 0.7 else 0
    cost = clock_cost(event, level, leak)
    return None if cost is None else Price(event, level, *cost)


def drawn_event(draw: random.Random) -> Event:
    epsilon, steps = float(f"{10 ** draw.uniform(-3, 0.5):.4g}"), draw.randint(1, 9)
    width = float(f"{10 ** draw.uniform(0, 2):.4g}")
    kinds: list[Event] = [
        ApproxDP(epsilon, 1e-9),
        RandomizedResponse(epsilon),
        LaplaceNoise(1 / epsilon),
        DiscreteLaplaceNoise(1 / epsilon, steps),
        BoundedRange(epsilon),
        GaussianNoise(width),
        DiscreteGaussianNoise(max(1.0, 6 / steps), steps),
    ]
    event = draw.choice(kinds)
    probability = float(f"{10 ** draw.uniform(-3, -0.1):.3g}")
    return Sampled(event, probability) if draw.random() < 0.5 else event


def _worth(event: Event) -> float:
    """About its square on a long clock."""
    if isinstance(event, Sampled):
        return _worth(event.event) * event.probability**2
    if isinstance(event, ApproxDP | RandomizedResponse | BoundedRange):
        return event.epsilon**2
    assert isinstance(event, LaplaceNoise | DiscreteLaplaceNoise | GaussianNoise | DiscreteGaussianNoise)
    return event.noise_multiplier**-2


def drawn_points(price: Price, draw: random.Random, count: int) -> list[Any]:
    """0, and points out to ten standard deviations of the clock and twice the event's."""
    scale = (float(price.level) + _worth(price.event)) ** 0.5
    return [mpf(0), *(mpf(draw.choice([draw.gauss(0, 1), draw.uniform(-10, 10)]) * scale) for _ in range(count - 1))]


def kind_of(event: Event) -> str:
    inner = event.event if isinstance(event, Sampled) else event
    return ("a sample of " if isinstance(event, Sampled) else "") + type(inner).__name__


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prices", type=int, default=3000)
    parser.add_argument("--points", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    say, draw = Console().print, random.Random(options.seed)
    kinds, with_leak, worst, lowered = Counter[str](), 0, mpf(-1), 0
    with mpmath.workdps(DIGITS):
        while kinds.total() < options.prices:
            price = drawn_price(draw)
            if price is None:
                continue
            kinds[kind_of(price.event)] += 1
            with_leak += bool(price.leak)
            share = price.worst(drawn_points(price, draw, options.points))
            worst = max(worst, share)
            if not share <= ROUNDING:
                raise SystemExit(f"not enough: {price} falls short by {mpmath.nstr(share, 5)} of the right side")
            if isinstance(price.event, EXACT):
                lowered += 1
                if not price._replace(clock=price.clock * 999 // 1000).worst([mpf(0)]) > ROUNDING:
                    raise SystemExit(f"{price} is a thousandth more than enough")
            if kinds.total() % 500 == 0:
                say(f"{kinds.total():,} prices hold; at most {mpmath.nstr(worst, 3)} of the right side is missing")
    say(f"{with_leak:,} of them with a leak; {lowered:,} exact prices, each of which is too little less a thousandth")
    say(dict(kinds))


if __name__ == "__main__":
    main()
