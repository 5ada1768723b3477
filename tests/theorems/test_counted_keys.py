"""CountedKeys beside the definition, by enumeration: privacy, what being seen adds, and intervals of seen counts."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from farthing.errors import InvalidValue
from farthing.mechanisms import counted_keys
from farthing.mechanisms.counted_keys import CountedKeys
from farthing.mechanisms.key_selection import KeySelection

Floats = NDArray[np.float64]

CASES = [
    CountedKeys(1.0, 1e-6),
    CountedKeys(1.0, 1e-6, 4),
    CountedKeys(1.0, 1e-6, 12),
    CountedKeys(0.1, 1e-4, 2),
    CountedKeys(6.0, 1e-9, 3),
    CountedKeys(2.0, 1e-3, 20),
]
NAMES = [f"{case.epsilon}, {case.delta}, {case.max_keys_per_unit}: {case.kind}" for case in CASES]


def masses(selection: CountedKeys, factor: float = 1.0) -> tuple[Floats, Floats]:
    """Every value of the noise with its probability, one by one; `factor` makes the noise wider or narrower."""
    spread = float(selection.noise.spread)
    if selection.kind == "laplace":
        places = np.arange(1 - selection.threshold, selection.threshold)
        weights = np.exp(-np.abs(places) / (spread * factor))
    else:
        far = math.ceil(12 * math.sqrt(spread))
        places = np.arange(-far, far + 1)
        weights = np.exp(-(places**2.0) / (2 * spread * factor**2))
    return places.astype(float), weights / weights.sum()


def released(selection: CountedKeys, units: int, factor: float = 1.0) -> dict[object, float]:
    """The distribution of what is released about one key."""
    found: dict[object, float] = {}
    for noise, mass in zip(*masses(selection, factor), strict=True):
        seen = units > 0 and units + noise >= selection.threshold
        outcome = units + noise if seen else "nothing"
        found[outcome] = found.get(outcome, 0.0) + float(mass)
    return found


def hockey_stick(p: dict[object, float], q: dict[object, float], epsilon: float) -> float:
    return sum(max(0.0, p.get(at, 0.0) - math.exp(epsilon) * q.get(at, 0.0)) for at in p.keys() | q.keys())


def product(parts: list[dict[object, float]]) -> dict[object, float]:
    whole: dict[object, float] = {(): 1.0}
    for part in parts:
        whole = {(*at, one): p * q for at, p in whole.items() for one, q in part.items()}  # type: ignore[misc]
    return whole


def worst(selection: CountedKeys, factor: float = 1.0) -> float:
    """The largest delta over ways in which one unit joins two keys: new ones, seen ones, and one of each."""
    near = selection.threshold
    most = 0.0
    for start in ((0, 0), (0, near), (near, near), (near // 2, near + 3)):
        before = product([released(selection, n, factor) for n in start])
        after = product([released(selection, n + 1, factor) for n in start])
        for p, q in ((before, after), (after, before)):
            most = max(most, hockey_stick(p, q, selection.epsilon))
    return most


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_no_unit_shows_in_keys_and_counts_and_less_noise_would_show_it(kind: counted_keys.NoiseKind) -> None:
    """All outcomes of two keys; a tenth less noise at the same threshold leaks more than delta."""
    selection = CountedKeys(1.5, 0.02, 2, kind)
    assert worst(selection) <= 0.02 + 1e-12
    if kind == "laplace":  # which reaches its delta; that of the Gaussian is bounded from above
        assert worst(selection) >= 0.01
        assert worst(selection, 0.9) > 0.02


@pytest.mark.parametrize(("epsilon", "delta", "keys"), [(1.0, 1e-6, 12), (0.3, 1e-9, 40), (2.0, 1e-3, 9)])
def test_gaussian_noise_and_threshold_meet_the_proof_and_hardly_more(epsilon: float, delta: float, keys: int) -> None:
    """(a) by SciPy's normal distribution, (b) by adding up masses; ten percent less noise is too little."""
    selection = CountedKeys(epsilon, delta, keys, "gaussian")

    def stated(factor: float, threshold: int) -> float:
        sigma = math.sqrt(selection.noise.spread) * factor
        mu = math.sqrt(keys / (sigma**2 - 4))  # what is smoothed away of the lattice
        gaussian = stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu)
        places, weights = masses(selection, factor)
        crossing = keys * weights[places >= threshold - 1].sum()
        return float(gaussian + crossing / (1 - crossing))

    assert 0.9 * delta <= stated(1.0, selection.threshold) <= delta * (1 + 1e-9)
    assert stated(0.9, selection.threshold) > delta
    assert stated(1.0, math.floor(0.97 * selection.threshold)) > delta


@pytest.mark.parametrize("keys", [1, 2, 5])
def test_laplace_noise_and_threshold_are_those_of_key_selection_with_counts(keys: int) -> None:
    selection = CountedKeys(1.0, 1e-6, keys, "laplace")
    twin = KeySelection(1.0, 1e-6, keys, with_counts=True)
    assert selection.threshold == twin.threshold
    for units in (0, 1, 5, selection.threshold - 1, selection.threshold, selection.threshold + 3, 500):
        exact = twin.keep_probability(units)
        assert exact * (1 - 1e-8) <= selection.keep_probability(units) <= exact


def seen(selection: CountedKeys, units: int) -> tuple[NDArray[np.int64], Floats]:
    """Noisy counts that are seen, and their probabilities given that the key is."""
    places, weights = masses(selection)
    noisy = units + places.astype(np.int64)
    reaches = noisy >= selection.threshold
    return noisy[reaches], weights[reaches] / weights[reaches].sum()


def counts_to_try(selection: CountedKeys) -> list[int]:
    """From one unit to far above the threshold."""
    far = selection.threshold + math.ceil(8 * selection.noise.standard_error)
    return sorted({*np.linspace(1, far, 30).astype(int).tolist(), selection.threshold - 1, selection.threshold, 1, 2})


@pytest.mark.parametrize("selection", CASES, ids=NAMES)
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_intervals_hold_for_seen_keys_whatever_their_count(selection: CountedKeys, confidence: float) -> None:
    for units in counts_to_try(selection):
        noisy, weights = seen(selection, units)
        low, high = selection.intervals(noisy, confidence)
        assert weights[(low <= units) & (units <= high)].sum() >= confidence - 1e-12


@pytest.mark.parametrize("selection", CASES, ids=NAMES)
def test_intervals_far_above_the_threshold_are_those_of_the_noise(selection: CountedKeys) -> None:
    """Power: they are no wider than it takes, but for a step."""
    far = selection.threshold + math.ceil(20 * selection.noise.standard_error)
    places, weights = masses(selection)
    least = next(e for e in itertools.count() if weights[np.abs(places) <= e].sum() >= 0.95)
    low, high = selection.intervals([far])
    assert far - least - 2 <= low[0] <= far - least + 1
    assert far + least - 1 <= high[0] <= far + least + 2


@pytest.mark.parametrize("selection", CASES, ids=NAMES)
def test_intervals_that_forget_the_selection_miss_too_often(selection: CountedKeys) -> None:
    """Power of the check above: of a key that is seen by luck, plus and minus the noise does not hold."""
    units = max(1, selection.threshold - math.ceil(3 * selection.noise.standard_error))
    noisy, weights = seen(selection, units)
    error = 2.1 * selection.noise.standard_error
    assert weights[np.abs(noisy - units) <= error].sum() < 0.9


@pytest.mark.parametrize("selection", CASES, ids=NAMES)
def test_estimates_take_back_what_being_seen_has_added(selection: CountedKeys) -> None:
    """Within a quarter of the standard error from the threshold on; noisy counts are off by far more."""
    allowed = 0.25 * selection.noise.standard_error
    for units in counts_to_try(selection):
        noisy, weights = seen(selection, units)
        bias = float((selection.estimates(noisy) * weights).sum()) - units
        raw = float((noisy * weights).sum()) - units
        if units >= selection.threshold:
            assert abs(bias) <= allowed
        if units == selection.threshold:
            assert abs(bias) <= 0.01 * selection.noise.standard_error
            assert raw >= 0.25 * selection.noise.standard_error
        if units < selection.threshold:  # seen by luck: not more than the noisy count says
            assert 0 <= bias <= raw


def test_a_key_that_is_seen_by_luck_is_estimated_at_the_threshold_on_average() -> None:
    for selection in CASES:
        for units in counts_to_try(selection):
            noisy, weights = seen(selection, units)
            mean = float((selection.estimates(noisy) * weights).sum())
            if units < selection.threshold:
                assert mean <= selection.threshold + 0.01 * selection.noise.standard_error
            if selection.threshold // 2 < units < selection.threshold and selection.kind == "laplace":
                assert mean >= selection.threshold - 0.5 * selection.noise.standard_error


def test_estimates_and_intervals_rise_with_the_count() -> None:
    for selection in CASES:
        noisy = np.arange(selection.threshold, selection.threshold + 200)
        for numbers in (selection.estimates(noisy), *selection.intervals(noisy)):
            assert np.all(np.diff(numbers) >= 0) and numbers[0] >= 1


def test_noise_beyond_the_reach_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    selection = CountedKeys(1.0, 0.01)
    beyond = selection.threshold
    script = [np.array([beyond, 2, -beyond]), np.array([1, beyond]), np.array([-3])]
    monkeypatch.setattr(counted_keys, "discrete_laplace_noise", lambda scale, size, source: script.pop(0))
    is_seen, noisy = selection._noisy([50, 50, 50], None)  # type: ignore[arg-type]
    assert noisy.tolist() == [51, 52, 47] and is_seen.all() and not script


def test_the_noise_in_use_has_the_smaller_error_and_keys_without_units_are_never_seen() -> None:
    for keys in (1, 3, 9, 10, 40):
        both = [CountedKeys(1.0, 1e-6, keys, kind).noise.standard_error for kind in ("laplace", "gaussian")]
        assert CountedKeys(1.0, 1e-6, keys).noise.standard_error == min(both)
    is_seen, _ = CountedKeys(1.0, 0.9).noisy(np.zeros(1_000, dtype=np.int64))
    assert not is_seen.any()
    assert CountedKeys(1.0, 0.5).release({}) == {}


def test_needed_is_the_least_count_that_appears_so_often() -> None:
    for selection in CASES:
        least = selection.needed(0.95)
        noisy, _ = seen(selection, least)
        places, weights = masses(selection)
        assert weights[least + places >= selection.threshold].sum() >= 0.95 - 1e-9 and noisy.size
        assert weights[least - 2 + places >= selection.threshold].sum() < 0.95


@pytest.mark.parametrize("selection", CASES, ids=NAMES)
def test_promised_errors_hold_from_the_promised_count_on(selection: CountedKeys) -> None:
    units, error = selection.promise()
    places, weights = masses(selection)

    def kept(n: int) -> float:
        noisy = n + places.astype(np.int64)
        reaches = noisy >= selection.threshold
        return float(weights[reaches][np.abs(selection.estimates(noisy[reaches]) - n) <= error].sum())

    for n in (units, units + 1, units + 7, 2 * units, 10 * units):
        assert kept(n) >= 0.95
    assert (
        kept(units - 3 - (4 if selection.kind == "gaussian" else 0)) < 0.95
        and units <= selection.threshold + 6 * selection.noise.standard_error + 2
    )


@pytest.mark.parametrize("selection", CASES, ids=NAMES)
def test_promises_that_look_at_no_count_hold_too(selection: CountedKeys, monkeypatch: pytest.MonkeyPatch) -> None:
    scanned, error = selection.promise()
    monkeypatch.setattr(counted_keys, "_MOST_SCANNED", 0)
    units, same = selection.promise()
    assert same == error and scanned <= units <= scanned + 2 * error + 2
    places, weights = masses(selection)
    for count in (units, units + 1, units + error, 10 * units):
        seen = count + places >= selection.threshold
        near = np.abs(selection.estimates(count + places[seen]) - count) <= error
        assert weights[seen][near].sum() >= 0.95


@pytest.mark.parametrize("epsilon, delta, keys", [(1e-9, 1e-12, 1), (1e-18, 0.5, 1), (1e-18, 1e-6, 1), (1e-6, 1e-9, 9)])
def test_a_promise_of_very_much_noise_takes_no_memory(epsilon: float, delta: float, keys: int) -> None:
    selection = CountedKeys(epsilon, delta, keys)
    units, error = selection.promise()
    assert selection.keep_probability(units) >= 0.95 and 0 < error <= units
    low, high = selection.intervals([selection.threshold, units])
    assert np.all(low >= 1) and np.all(high >= low)


@pytest.mark.parametrize("epsilon, delta", [(0.05, 0.05), (1e-4, 1e-3), (1e-12, 1e-4), (1e-18, 1e-4)])
def test_tails_and_estimates_are_those_of_noise_that_is_cut_off_early(epsilon: float, delta: float) -> None:
    selection = CountedKeys(epsilon, delta)
    places, weights = masses(selection)
    tails = weights[::-1].cumsum()[::-1]
    below, above = selection._tail(places.astype(np.int64))
    assert np.all(below <= tails + 1e-12) and np.all(above >= tails - 1e-12) and np.all(above - below < 1e-8)
    seen, threshold = places >= 0, selection.threshold
    mean = (weights[seen] * selection.estimates(threshold + places[seen])).sum() / weights[seen].sum()
    assert mean == pytest.approx(threshold, rel=1e-6)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((0.0, 1e-6), "epsilon"),
        ((1.0, 0.0), "delta"),
        ((1.0, 1e-6, 0), "max_keys_per_unit"),
        ((1.0, 1e-6, 1, "x"), "kind"),
    ],
)
def test_wrong_parameters_are_refused(arguments: tuple[object, ...], name: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        CountedKeys(*arguments)  # type: ignore[arg-type]
    assert refused.value.name == name
    assert Fraction(CASES[0].epsilon) == 1
