"""Counts over many releases: errors as large as predicted and no larger, intervals that hold their share.

Counts are sums of cells, and shares are of such sums: 40,000 releases are added up in vectors, and the first of them
are compared with the answers. The mean square of one Laplace number has a standard error of 1.1% then; it lies eight
of these from the band of a tenth (squares of 0.9 to 1.1), and that of noise which is a tenth off, in eight cells and
more, seven and more of its own on the other side (4,000 releases). Coverage has a standard error of 0.11%, and is
eight of these from its band. So false alarm and miss are below 1e-11, for any seed.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pyarrow
import pytest

from farthing.data import dataset
from farthing.statistics import constructors as st
from farthing.statistics.counts.count_outputs import CountOutput
from farthing.statistics.design import design_of
from farthing.statistics.measurements import Noise

pytestmark = pytest.mark.slow

RELEASES, COMPARED = 40_000, 40
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


def _drawn(numbers: np.random.Generator, scale: float, size: tuple[int, int]) -> np.ndarray:
    """Discrete Laplace noise as the difference of two geometric numbers: not the sampler that is used in earnest."""
    stop = 1 - np.exp(-1 / scale)
    return numbers.geometric(stop, size) - numbers.geometric(stop, size)


def values_of(output: Any, cells: np.ndarray) -> np.ndarray:
    """The counts or shares of many releases; nothing here is so small that it would be moved."""
    shape = output.expected.shape
    sums = cells @ (output.members[:, None] == np.arange(np.prod(shape, dtype=int))).astype(float)
    if isinstance(output, CountOutput):
        return sums
    totals = np.cumsum(sums.reshape(-1, *shape), axis=2)
    return (totals / totals[:, :, -1:]).reshape(len(cells), -1)


@pytest.fixture(scope="module")
def released() -> dict[float, dict[str, tuple[float, float]]]:
    """For noise scaled by a factor: the mean of relative squared errors, and how many lie within the error, by name."""
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
    with pytest.MonkeyPatch.context() as patched:  # estimates from several slots have tests of their own
        patched.setattr("farthing.statistics.design.linked_outputs", lambda outputs, *_: dict(outputs))
        design = design_of(ASKED, people, known, pure=True)
    noises = {slot.name: Noise("laplace", EPSILON) for slot in design.slots}
    exact = people.exact({slot.name: slot.aggregate for slot in design.slots})
    silent = {slot.name: Noise("laplace", 300.0) for slot in design.slots}
    found: dict[float, dict[str, tuple[float, float]]] = {factor: {} for factor in (0.9, 1.0, 1.1)}
    for factor, output in product(found, design.outputs):
        if factor != 1.0 and output.name not in CELLS:
            continue
        (slot,) = output.slots
        size = RELEASES if factor == 1.0 else RELEASES // 10, len(exact[slot.name])
        cells = exact[slot.name] + _drawn(numbers, factor * slot.scale(noises[slot.name]), size)
        truth = np.atleast_1d(output.answer(exact, silent).values)
        distribution = output.predicted(noises)
        limits, told = (
            distribution.errors(0.95),
            distribution.standard_errors > 0,
        )  # the last share of a cdf is 1
        errors = values_of(output, cells) - truth
        within = np.abs(errors) <= limits
        for place in range(COMPARED):
            answer = output.answer({slot.name: cells[place]}, noises)
            assert np.atleast_1d(answer.values) - truth == pytest.approx(errors[place], abs=1e-9)
            for end, side in (
                (answer.lower, -1),
                (answer.upper, 1),
            ):  # the interval of a share is a little skewed
                reach = side * (end - np.atleast_1d(answer.values))
                assert reach[told] == pytest.approx(limits[told], rel=0.05)
        squares = ((errors[:, told] / distribution.standard_errors[told]) ** 2).mean()
        found[factor][output.name] = float(squares), float(within[:, told].mean())
    return found


@pytest.mark.parametrize("name", [statistic.name for statistic in ASKED])
def test_squared_errors_are_as_predicted(name: str, released: dict) -> None:
    assert 0.9 < released[1.0][name][0] < 1.1


@pytest.mark.parametrize("name", CELLS)
def test_noise_that_is_a_tenth_off_would_be_noticed(name: str, released: dict) -> None:
    assert released[0.9][name][0] < 0.9
    assert released[1.1][name][0] > 1.1


@pytest.mark.parametrize("name", [statistic.name for statistic in ASKED])
def test_ninety_five_of_a_hundred_lie_within_the_error(name: str, released: dict) -> None:
    """At least 95, and no more than the steps of whole numbers ask for."""
    assert 0.94 <= released[1.0][name][1] <= 0.98
