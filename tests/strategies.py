"""Hypothesis strategies that every property test shares: epsilons, leaks, charges, events, targets.

Ranges are those of the promises: epsilon from 0.001 to 5 (and 0), delta_g from 0.1 down to 1e-300. Values mix what
people type (decimals, repeats) with what floats are (one ulp apart, near-lattices), because faults hide there.
"""

from __future__ import annotations

import math

from hypothesis import strategies as st

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


def epsilons(low: float = 0.001, high: float = 5.0) -> st.SearchStrategy[float]:
    """One epsilon: a decimal, any double, or a double one ulp away from a decimal."""
    step = 10.0 ** math.floor(math.log10(low))
    decimals = st.integers(math.ceil(low / step), math.floor(high / step)).map(
        lambda n: min(high, max(low, round(n * step, 12)))
    )
    doubles = st.floats(low, high)
    beside = decimals.map(lambda x: min(high, math.nextafter(x, math.inf)))
    return st.one_of(decimals, doubles, beside)


def leaks() -> st.SearchStrategy[float]:
    """One delta_i of a charge: none, tiny, or large enough to matter."""
    return st.one_of(st.just(0.0), _powers_of_ten(-300, -3), st.floats(0.0, 0.1))


def target_deltas(largest: float = 0.1) -> st.SearchStrategy[float]:
    """One delta_g to ask at, spread evenly over the exponents from 1e-300 to `largest`."""
    return _powers_of_ten(-300, math.log10(largest)).map(lambda x: min(x, largest))


def target_epsilons(high: float = 20.0) -> st.SearchStrategy[float]:
    """One epsilon_g to ask at, 0 included."""
    return st.one_of(st.just(0.0), st.floats(0.0, high))


def epsilon_lists(max_size: int = 15, min_size: int = 0) -> st.SearchStrategy[list[float]]:
    """Epsilons of a whole composition: distinct reals, decimals on a lattice, or few values repeated."""
    repeated = st.lists(epsilons(), min_size=1, max_size=3).flatmap(
        lambda values: st.lists(st.sampled_from(values), min_size=min_size, max_size=max_size)
    )
    return st.one_of(st.lists(epsilons(), min_size=min_size, max_size=max_size), repeated)


def pairs(max_size: int = 15, min_size: int = 0) -> st.SearchStrategy[list[tuple[float, float]]]:
    """(epsilon, delta) charges with random leaks."""
    return st.lists(st.tuples(epsilons(), leaks()), min_size=min_size, max_size=max_size)


def events() -> st.SearchStrategy[Event]:
    """One event of any kind that `compose` prices."""
    return st.one_of(_plain_events(), _sampled_events())


def event_lists(max_size: int = 6, min_size: int = 0) -> st.SearchStrategy[list[Event]]:
    """Events mixed freely."""
    return st.lists(events(), min_size=min_size, max_size=max_size)


def _plain_events() -> st.SearchStrategy[Event]:
    multipliers = st.floats(0.5, 50.0)
    return st.one_of(
        st.builds(ApproxDP, epsilons(), leaks()),
        st.builds(RandomizedResponse, epsilons()),
        st.builds(BoundedRange, epsilons()),
        st.builds(LaplaceNoise, multipliers),
        st.builds(GaussianNoise, multipliers),
        st.builds(DiscreteLaplaceNoise, multipliers, st.integers(1, 3)),
        st.builds(DiscreteGaussianNoise, multipliers, st.integers(1, 3)),
    )


def _sampled_events() -> st.SearchStrategy[Event]:
    multipliers = st.floats(0.5, 20.0)
    inner = st.one_of(st.builds(LaplaceNoise, multipliers), st.builds(GaussianNoise, multipliers))
    return st.builds(Sampled, inner, st.floats(0.001, 1.0))


def _powers_of_ten(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high).map(lambda exponent: 10.0**exponent)
