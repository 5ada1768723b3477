"""Counts over many releases: errors as large as foretold and no larger, intervals that hold their share.

False alarms below 1e-6: every claim is a mean over independent releases against five standard errors of that mean.
"""

from __future__ import annotations

import numpy as np
import pyarrow
import pytest

from farthing.data import dataset
from farthing.release import statistics as st
from farthing.release.designs import design_of
from farthing.release.noise import Noise

pytestmark = pytest.mark.slow

RELEASES = 600
ROWS = 40_000
EPSILON = 0.2
ASKED = [
    st.count(),
    st.count(by="sex"),
    st.histogram("age", 11),
    st.contingency(["sex", "region"]),
    st.cdf("age", [20, 50, 90], by="sex"),
    st.count(where="age < 50 and sex = 'F'"),
]

CELLS = [
    "histogram of age",
    "contingency of sex and region",
]  # many cells: enough errors to tell a tenth apart


def _drawn(numbers: np.random.Generator, scale: float, cells: int) -> np.ndarray:
    """Discrete Laplace noise as the difference of two geometric numbers: not the sampler that is used in earnest."""
    stop = 1 - np.exp(-1 / scale)
    return numbers.geometric(stop, cells) - numbers.geometric(stop, cells)


@pytest.fixture(scope="module")
def released() -> dict[float, dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]]:
    """For noise scaled by a factor: relative squared errors, and whether errors and intervals held, by name."""
    numbers = np.random.default_rng(7)
    table = pyarrow.table(
        {
            "sex": np.repeat(["F", "M"], ROWS // 2).tolist(),
            "age": np.arange(ROWS) % 111,
            "region": np.tile(["n", "e", "s", "w"], ROWS // 4).tolist(),
        }
    )
    people = dataset(table, schema={"sex": ["F", "M"], "age": (0, 110), "region": ["n", "e", "s", "w"]})
    known = {"rows": ROWS, "age": [float(age) for age in range(111)], "sex": {"F": 1, "M": 1}}
    design = design_of(ASKED, people, known, pure=True)
    noises = {slot.name: Noise("laplace", EPSILON) for slot in design.slots}
    exact = people.exact({slot.name: slot.aggregate for slot in design.slots})
    silent = {slot.name: Noise("laplace", 300.0) for slot in design.slots}
    found: dict[float, dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]] = {}
    for factor in (0.9, 1.0, 1.1):
        scales = {slot.name: factor * slot.scale(noises[slot.name]) for slot in design.slots}
        samples = [
            {name: exact[name] + _drawn(numbers, scale, len(exact[name])) for name, scale in scales.items()}
            for _ in range(RELEASES)
        ]
        found[factor] = {}
        for output in design.outputs:
            if factor != 1.0 and output.name not in CELLS:
                continue
            truth = np.atleast_1d(output.answer(exact, silent).values)
            law = output.predicted(noises)
            limits = law.errors(0.95)
            spread = np.where(law.standard_errors > 0, law.standard_errors, 1.0)
            known = law.standard_errors > 0  # the last share of a cdf is 1
            errors, inside, held = [], [], []
            for sample in samples:
                answer = output.answer(sample, noises)
                error = np.atleast_1d(answer.values) - truth
                errors.append(((error / spread) ** 2)[known].mean())
                inside.append((np.abs(error) <= limits)[known].mean())
                held.append(((answer.lower <= truth) & (truth <= answer.upper))[known].mean())
            found[factor][output.name] = (np.array(errors), np.array(inside), np.array(held))
    return found


def _deviates(sample: np.ndarray, wanted: float) -> float:
    return float((sample.mean() - wanted) / (sample.std() / np.sqrt(len(sample))))


@pytest.mark.parametrize("name", [statistic.name for statistic in ASKED])
def test_squared_errors_are_as_foretold(name: str, released: dict) -> None:
    assert abs(_deviates(released[1.0][name][0], 1.0)) < 5


@pytest.mark.parametrize("name", CELLS)
def test_noise_that_is_a_tenth_off_would_be_noticed(name: str, released: dict) -> None:
    assert _deviates(released[0.9][name][0], 1.0) < -5
    assert _deviates(released[1.1][name][0], 1.0) > 5


@pytest.mark.parametrize("name", [statistic.name for statistic in ASKED])
def test_ninety_five_of_a_hundred_lie_within_the_error(name: str, released: dict) -> None:
    """At least 95, and no more than the steps of whole numbers ask for."""
    for sample in released[1.0][name][1:3]:
        spread = sample.std() / np.sqrt(len(sample))
        assert 0.95 - 5 * spread <= sample.mean() <= 0.97 + 5 * spread
