"""group_privacy, sampled_approx_dp and sampled_without_replacement against enumeration of small mechanisms."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import pytest
from mpmath import mp, mpf

from farthing.accounting.amplification import group_privacy, sampled_approx_dp, sampled_without_replacement
from farthing.errors import InvalidValue
from farthing.numerics.bounds import exact
from farthing.privacy import (
    ApproxDP,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    Event,
    GaussianNoise,
    LaplaceNoise,
    RandomizedResponse,
    Sampled,
)

Distribution = list[float]


def hockey_stick(p: Distribution, q: Distribution, epsilon: float) -> float:
    """The least delta at `epsilon` for one ordered pair of distributions."""
    return math.fsum(max(0.0, a - math.exp(epsilon) * b) for a, b in zip(p, q, strict=True))


def worst(distributions: list[tuple[Distribution, Distribution]], epsilon: float) -> float:
    """The least delta that holds for all pairs in both directions."""
    return max(max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon)) for p, q in distributions)


def random_distribution(rng: random.Random, atoms: int = 4) -> Distribution:
    weights = [rng.random() ** 2 for _ in range(atoms)]
    return [w / math.fsum(weights) for w in weights]


def mixture(p: float, a: Distribution, b: Distribution) -> Distribution:
    return [p * x + (1 - p) * y for x, y in zip(a, b, strict=True)]


@pytest.mark.parametrize("seed", range(50))
def test_chains_of_random_laws_obey_group_privacy(seed: int) -> None:
    rng = random.Random(seed)
    chain = [random_distribution(rng) for _ in range(4)]
    for epsilon in (0.0, 0.2, 0.7):
        delta = worst(list(itertools.pairwise(chain)), epsilon)
        for size in (1, 2, 3):
            bound = delta * sum(math.exp(i * epsilon) for i in range(size))
            if bound < 1:
                cost = group_privacy((epsilon, delta), size)
                assert isinstance(cost, ApproxDP)
                assert worst([(chain[0], chain[size])], cost.epsilon) <= cost.delta + 1e-15
                assert cost.delta == pytest.approx(bound, rel=1e-12)


def test_group_privacy_is_reached() -> None:
    """A yes/no answer whose chance of yes obeys x = e^epsilon y + delta along the chain uses it all."""
    epsilon, delta, size = 0.5, 1e-3, 4
    chances = [1e-3]
    for _ in range(size):
        chances.append(math.exp(epsilon) * chances[-1] + delta)
    distributions = [[x, 1 - x] for x in chances]
    assert worst(list(itertools.pairwise(distributions)), epsilon) == pytest.approx(delta, rel=1e-9)
    cost = group_privacy((epsilon, delta), size)
    assert isinstance(cost, ApproxDP)
    assert worst([(distributions[0], distributions[-1])], cost.epsilon) == pytest.approx(cost.delta, rel=1e-9)


def test_group_privacy_beats_the_textbook_form() -> None:
    cost = group_privacy((1.0, 1e-9), 10)
    assert isinstance(cost, ApproxDP)
    assert cost.delta < 10 * math.exp(9) * 1e-9 / 5


@pytest.mark.parametrize(
    ("event", "grouped"),
    [
        (GaussianNoise(4.0), GaussianNoise(2.0)),
        (LaplaceNoise(5.0), LaplaceNoise(2.5)),
        (DiscreteGaussianNoise(4.0, 3), DiscreteGaussianNoise(2.0, 6)),
        (DiscreteLaplaceNoise(4.0, 3), DiscreteLaplaceNoise(2.0, 6)),
        (RandomizedResponse(0.1), ApproxDP(0.2)),
        (ApproxDP(0.1, 1e-9), None),
    ],
)
def test_group_of_one_changes_nothing_and_of_two_is_known(event: Event, grouped: Event | None) -> None:
    alone = group_privacy(event, 1)
    assert alone == (ApproxDP(0.1) if isinstance(event, RandomizedResponse) else event)
    if grouped is not None:
        assert group_privacy(event, 2) == grouped


def test_discrete_noise_of_a_group_is_the_same_noise() -> None:
    """Scale = multiplier * sensitivity stays; only the shift grows."""
    event = group_privacy(DiscreteLaplaceNoise(1.0, 2), 3)
    assert isinstance(event, DiscreteLaplaceNoise)
    assert event.l1_sensitivity == 6
    assert event.noise_multiplier * 6 <= 2.0
    assert event.noise_multiplier * 6 == pytest.approx(2.0, rel=1e-15)


@pytest.mark.parametrize("kind", [GaussianNoise, LaplaceNoise, DiscreteGaussianNoise, DiscreteLaplaceNoise])
def test_multipliers_round_down(kind: type) -> None:
    for size in range(1, 100):
        multiplier = group_privacy(kind(1.0), size).noise_multiplier  # type: ignore[attr-defined]
        assert exact(multiplier) <= Fraction(1, size)
        assert multiplier == pytest.approx(1 / size, rel=1e-15)


def test_costs_round_up() -> None:
    for size in range(1, 60):
        pair = group_privacy((1 / 3, 1e-9 / 3), size)
        assert isinstance(pair, ApproxDP)
        assert exact(pair.epsilon) >= size * Fraction(1 / 3)
        with mp.workdps(40):
            powers = mp.fsum(mp.exp(i * mpf(1 / 3)) for i in range(size))
            assert mpf(pair.delta) >= mpf(1e-9 / 3) * powers


def test_group_of_a_sampled_event_goes_through_its_pair() -> None:
    cost = group_privacy(Sampled(ApproxDP(1.0, 1e-6), 0.1), 2)
    one = sampled_approx_dp(1.0, 1e-6, 0.1)
    assert isinstance(cost, ApproxDP)
    assert cost.epsilon == pytest.approx(2 * one.epsilon, rel=1e-15)
    assert cost.delta == pytest.approx(one.delta * (1 + math.exp(one.epsilon)), rel=1e-12)
    with pytest.raises(InvalidValue, match="state an"):
        group_privacy(Sampled(GaussianNoise(1.0), 0.1), 2)


@pytest.mark.parametrize("size", [0, -1, 1.5, True, math.nan, "2"])
def test_bad_group_sizes_are_refused(size: object) -> None:
    with pytest.raises(InvalidValue, match="size="):
        group_privacy(1.0, size)  # type: ignore[arg-type]


def test_a_group_beyond_any_promise_is_refused() -> None:
    with pytest.raises(InvalidValue, match=r"size=100: leaves delta >= 1"):
        group_privacy((1.0, 1e-6), 100)
    assert group_privacy((0.0, 1e-6), 1000) == ApproxDP(0.0, 1e-3)
    assert group_privacy((1.0, 0.0), 1000) == ApproxDP(1000.0)


def leaky_response(epsilon: float, delta: float) -> tuple[Distribution, Distribution]:
    """The worst pair of (epsilon, delta)-DP distributions; atoms: reveals 0, 0, 1, reveals 1."""
    truth = 1 / (1 + math.exp(-epsilon))
    a, b = (1 - delta) * truth, (1 - delta) * (1 - truth)
    return [delta, a, b, 0.0], [0.0, b, a, delta]


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 2.0])
@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.2])
@pytest.mark.parametrize("probability", [0.0, 0.01, 0.5, 1.0])
def test_poisson_sampling_is_exact_for_the_worst_mechanism(epsilon: float, delta: float, probability: float) -> None:
    inside, outside = leaky_response(epsilon, delta)
    cost = sampled_approx_dp(epsilon, delta, probability)
    reached = worst([(mixture(probability, inside, outside), outside)], cost.epsilon)
    assert reached == pytest.approx(cost.delta, rel=1e-9, abs=1e-15)
    if cost.epsilon > 0:  # and a smaller epsilon would not do
        assert worst([(mixture(probability, inside, outside), outside)], cost.epsilon * 0.99) > cost.delta


@pytest.mark.parametrize("seed", range(50))
def test_random_mechanisms_obey_poisson_sampling(seed: int) -> None:
    """Two units besides the one that comes or goes, so that the mechanism sees samples of every size."""
    rng = random.Random(seed)
    p = rng.choice([0.1, 0.5, 0.8])
    base = {others: random_distribution(rng) for n in range(3) for others in itertools.combinations("ab", n)}
    withs = {others: random_distribution(rng) for others in base}
    near = [(distribution, withs[others]) for others, distribution in base.items()]
    near += [(d[x], d[y]) for d in (base, withs) for x in base for y in base if len(set(x) ^ set(y)) == 1]

    def on_sample(has_unit: bool) -> Distribution:
        total = [0.0] * 4
        for others, distribution in base.items():
            weight = p ** len(others) * (1 - p) ** (2 - len(others))
            seen = mixture(p, withs[others], distribution) if has_unit else distribution
            total = [t + weight * s for t, s in zip(total, seen, strict=True)]
        return total

    for epsilon in (0.1, 0.5, 1.5):
        delta = worst(near, epsilon)
        cost = sampled_approx_dp(epsilon, delta, p)
        assert worst([(on_sample(True), on_sample(False))], cost.epsilon) <= cost.delta + 1e-15


@pytest.mark.parametrize("seed", range(50))
def test_random_mechanisms_obey_sampling_without_replacement(seed: int) -> None:
    """Populations {1, 2, 3, x} and {1, 2, 3, y}; the mechanism is any table of distributions by sample."""
    rng = random.Random(seed)
    drawn = rng.choice([1, 2, 3])
    samples = [s for s in itertools.combinations("123xy", drawn) if not {"x", "y"} <= set(s)]
    distribution = {s: random_distribution(rng) for s in samples}
    near = [(distribution[s], distribution[t]) for s in samples for t in samples if len(set(s) - set(t)) == 1]

    def on_sample(last: str) -> Distribution:
        mine = [distribution[s] for s in itertools.combinations("123" + last, drawn)]
        return [math.fsum(column) / len(mine) for column in zip(*mine, strict=True)]

    for epsilon in (0.1, 0.5, 1.5):
        delta = worst(near, epsilon)
        cost = sampled_without_replacement(epsilon, delta, drawn, 4)
        assert worst([(on_sample("x"), on_sample("y"))], cost.epsilon) <= cost.delta + 1e-15


def test_poisson_bound_fails_under_replacement() -> None:
    """Why the relation is part of the statement: replacing a unit moves the sampled distribution twice."""
    p, epsilon = 0.5, 1.0
    without, with_x = [0.5, 0.5], [1 - 1 / (2 * math.e), 1 / (2 * math.e)]
    with_y = with_x[::-1]
    assert worst([(with_x, without), (with_y, without)], epsilon) == pytest.approx(0, abs=1e-15)
    bound = sampled_approx_dp(epsilon, 0.0, p)
    assert worst([(mixture(p, with_x, without), without)], bound.epsilon) == pytest.approx(0, abs=1e-15)
    assert worst([(mixture(p, with_x, without), mixture(p, with_y, without))], bound.epsilon) > 0.01


def test_sampling_is_monotone_and_meets_its_ends() -> None:
    costs = [sampled_approx_dp(0.7, 1e-6, p) for p in (0.0, 1e-9, 0.1, 0.9, 1.0)]
    assert [c.epsilon for c in costs] == sorted(c.epsilon for c in costs)
    assert [c.delta for c in costs] == sorted(c.delta for c in costs)
    assert costs[0] == ApproxDP(0.0, 0.0)
    assert costs[-1] == ApproxDP(0.7, 1e-6)
    assert 0 < costs[1].epsilon < 1.02e-9
    assert sampled_without_replacement(0.7, 1e-6, 5, 5) == ApproxDP(0.7, 1e-6)
    assert sampled_without_replacement(0.7, 1e-6, 0, 5) == ApproxDP(0.0, 0.0)
    assert sampled_approx_dp(800.0, 0.0, 1e-300).epsilon == pytest.approx(800 - 300 * math.log(10), rel=1e-12)


@pytest.mark.parametrize("probability", [-0.1, 1.1, math.nan, True, "x"])
def test_bad_probabilities_are_refused(probability: object) -> None:
    with pytest.raises(InvalidValue, match="probability="):
        sampled_approx_dp(1.0, 0.0, probability)  # type: ignore[arg-type]


@pytest.mark.parametrize(("drawn", "out_of"), [(5, 4), (-1, 4), (0, 0), (1.5, 4), (1, True)])
def test_bad_sample_sizes_are_refused(drawn: object, out_of: object) -> None:
    with pytest.raises(InvalidValue):
        sampled_without_replacement(1.0, 0.0, drawn, out_of)  # type: ignore[arg-type]


@pytest.mark.parametrize(("epsilon", "delta"), [(math.nan, 0.0), (-1.0, 0.0), (1.0, 1.0), (1.0, math.nan)])
def test_bad_pairs_are_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(InvalidValue):
        sampled_approx_dp(epsilon, delta, 0.5)
