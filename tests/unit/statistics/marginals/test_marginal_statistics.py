"""Marginals as a statistic: the right tables, consistent, any condition answered, and mistakes told."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import numpy as np
import pyarrow
import pytest

from farthing.data import Dataset, dataset
from farthing.errors import FarthingError
from farthing.matrix.strategies.marginals import plan_marginals
from farthing.statistics.constructors import marginals
from farthing.statistics.design import Design, design_of
from farthing.statistics.marginals.marginal_queries import MarginalQueries, restored_marginals
from farthing.statistics.marginals.marginal_transforms import MarginalTransform
from farthing.statistics.measurements import Noise

ROWS = 1_500
DRAW = np.random.default_rng(5)
SEX = DRAW.choice(["F", "M"], ROWS)
AGE = DRAW.integers(0, 40, ROWS)
REGION = DRAW.choice(["n", "e", "s"], ROWS)
SMOKER = DRAW.random(ROWS) < 0.3
MISSING = DRAW.random(ROWS) < 0.1
TABLE = pyarrow.table(
    {
        "sex": SEX.tolist(),
        "age": AGE,
        "region": REGION.tolist(),
        "smoker": [None if gone else bool(value) for gone, value in zip(MISSING, SMOKER, strict=True)],
    }
)
SCHEMA = {"sex": ["F", "M"], "age": (0, 39), "region": ["n", "e", "s"], "smoker": bool}


@cache
def the_people() -> Dataset:
    return dataset(TABLE, schema=SCHEMA)


BINS = {"age": [0, 10, 25, 39]}
WHOLE = ~MISSING  # only rows that have all of the columns are counted


def _exact_answer(design: Design, kind: Any) -> Any:
    (output,) = design.outputs
    (slot,) = output.slots
    exact = slot.own(the_people().exact(dict(slot.aggregates)))
    return output.answer({slot.name: slot.transforms[kind].apply(exact)}, {slot.name: Noise(kind, 1.0)})


def _truth(names: tuple[str, ...], rows: np.ndarray) -> np.ndarray:
    """The table of some columns, by counting."""
    codes = {
        "sex": (SEX == "M").astype(int),
        "age": np.digitize(AGE, [10, 25]),
        "region": np.array([["n", "e", "s"].index(value) for value in REGION]),
        "smoker": SMOKER.astype(int),
    }
    table = np.zeros([{"sex": 2, "age": 3, "region": 3, "smoker": 2}[name] for name in names])
    np.add.at(table, tuple(codes[name][rows] for name in names), 1)
    return table


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("by", [None, "sex"])
@pytest.mark.parametrize("way", [1, 2])
def test_without_noise_every_table_is_exact(kind: str, by: str | None, way: int) -> None:
    names = ("age", "region", "smoker") if by else ("sex", "age", "region", "smoker")
    answer = _exact_answer(design_of([marginals(names, way=way, bins=BINS, by=by)], the_people()), kind)
    groups = [WHOLE & (value == SEX) for value in ("F", "M")] if by else [WHOLE]
    right = [
        np.concatenate([_truth(chosen, rows).ravel() for rows in groups])
        for chosen in itertools.combinations(names, way)
    ]
    np.testing.assert_allclose(answer.values, np.concatenate(right), atol=1e-5)
    first = "sex = F, age = 0 to 10" if by or way == 2 else "sex = F"
    assert answer.labels[0].startswith(first)


def test_conditions_on_columns_of_one_table_are_counted() -> None:
    answer = _exact_answer(
        design_of([marginals(["sex", "age", "region", "smoker"], bins=BINS)], the_people()), "gaussian"
    )
    asked = {
        "sex = 'M' and age < 25": WHOLE & (SEX == "M") & (AGE < 25),
        "smoker": WHOLE & SMOKER,
        "region in ('n', 's') or sex = 'F'": WHOLE & (np.isin(REGION, ["n", "s"]) | (SEX == "F")),
        "10 <= age < 25": WHOLE & (AGE >= 10) & (AGE < 25),
    }
    for what, rows in asked.items():
        assert answer.query(what).values == pytest.approx(rows.sum(), abs=1e-4), what
    assert answer.query({"sex": "F", "age": (0, 25)}).values == pytest.approx((WHOLE & (SEX == "F") & (AGE < 25)).sum())
    assert isinstance(answer.asking, MarginalQueries)
    again = restored_marginals(answer.asking.stored(), answer.asking.estimate)
    one, other = answer.query("smoker and age >= 25"), again.query("smoker and age >= 25", 0.95)
    assert (one.values, one.standard_errors, one.upper) == (other.values, other.standard_errors, other.upper)
    assert again.labels() == answer.labels


def test_errors_are_those_of_the_estimate() -> None:
    """Cells and questions, against the coefficients of the measured numbers."""
    (output,) = design_of([marginals(["sex", "age", "smoker"], bins=BINS, by="region")], the_people()).outputs
    (slot,) = output.slots
    for kind in slot.kinds:
        noise = Noise(kind, 2.0)
        transform = slot.transforms[kind]
        unit = np.eye(transform.size, dtype=np.int64)
        rows = []
        for number in unit:
            tables = transform.estimate(number)
            rows.append(
                np.concatenate([np.concatenate([group[s].ravel() for group in tables]) for s in output.cells.subsets])
            )
        coefficients = np.array(rows)
        errors = np.sqrt((coefficients**2).sum(axis=0) * slot.variance(noise))
        np.testing.assert_allclose(output.predicted({slot.name: noise}).standard_errors, errors, rtol=1e-9)
        answer = output.answer({slot.name: unit[0]}, {slot.name: noise})
        chosen = [place for place, label in enumerate(answer.labels) if "sex = F, age" in label and "25" in label]
        chosen = [place for place in chosen if "region = n" in answer.labels[place]]
        own = np.sqrt((coefficients[:, chosen].sum(axis=1) ** 2).sum() * slot.variance(noise))
        asked = answer.query("sex = 'F' and region = 'n' and age >= 10")
        assert asked.standard_errors == pytest.approx(own, rel=1e-9)


def test_kinds_of_noise_do_about_the_same_to_the_answers() -> None:
    (output,) = design_of([marginals(["sex", "age", "smoker"], bins=BINS)], the_people()).outputs
    means = [float(np.mean(output._at_unit(kind).deviations ** 2)) for kind in output.slots[0].kinds]
    assert means[1] / means[0] == pytest.approx(1.0, abs=0.02)


@pytest.mark.slow
def test_many_columns_need_no_table_of_all_of_them() -> None:
    names = [f"x{place}" for place in range(14)]
    wide = dataset(
        pyarrow.table({name: np.random.default_rng(6).integers(0, 20, 50) for name in names}),
        schema=dict.fromkeys(names, (0, 19)),
    )
    design = design_of([marginals(names)], wide)
    (slot,) = design.slots
    assert len(slot.aggregates) == 91 and design.outputs[0].name == "2-way marginals of x0, x1, x2, x3 and 10 more"
    assert len(design.outputs[0].labels) == 91 * 400


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: marginals([]), "must name at least one column"),
        (lambda: marginals(["sex", "age"], way=3), "way=3: must be a whole number from 1 to 2"),
        (lambda: marginals(["sex", "age"], way=True), "way=True: must be a whole number"),
        (lambda: marginals(["sex", "hair"]), "column='hair': must be a column of the schema"),
        (lambda: marginals(["sex", "age"], by="sex"), "by='sex': must not be what"),
        (lambda: marginals(["sex", "age"], bins={"bmi": 3}), "bins='bmi': must name columns of the table"),
        (lambda: marginals(["sex", "age"], bins=3), "must say which column is cut how"),
    ],
)
def test_mistakes_are_told_before_anything_is_planned(make: Any, message: str) -> None:
    with pytest.raises(FarthingError) as caught:
        design_of([make()], the_people())
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("sex = 'F' and age < 25 and smoker", "query='sex, age, smoker': must be at most 2 columns"),
        ("age < 12", "must not cut through a cell, here 10 to 25"),
        ((0, 25), "must say which column it is about"),
        ("income > 3", "there is no column 'income'"),
    ],
)
def test_questions_that_cannot_be_answered_are_refused(what: Any, message: str) -> None:
    answer = _exact_answer(design_of([marginals(["sex", "age", "smoker"], bins=BINS)], the_people()), "gaussian")
    with pytest.raises(FarthingError) as caught:
        answer.query(what)
    assert message in str(caught.value)


@pytest.mark.parametrize("whole", [False, True])
def test_tables_without_negative_counts_still_agree_and_are_nearer_to_the_truth(whole: bool) -> None:
    names = ("sex", "age", "region")
    flags = {"rounded": True} if whole else {"nonnegative": True}
    (output,) = design_of([marginals(names, **flags)], the_people()).outputs
    (slot,) = output.slots
    exact = slot.own(the_people().exact(dict(slot.aggregates)))
    noises = {slot.name: Noise("gaussian", 20.0)}
    numbers = slot.transforms["gaussian"].apply(exact)
    drawn = numbers + np.rint(
        np.random.default_rng(7).normal(0, slot.variance(noises[slot.name]) ** 0.5, len(numbers))
    ).astype(int)
    moved, truth = output.answer({slot.name: drawn}, noises), output.answer({slot.name: numbers}, noises)
    plain = moved.interval_at.centre
    assert plain.min() < 0 <= moved.values.min()
    assert np.linalg.norm(moved.values - truth.interval_at.centre) < np.linalg.norm(plain - truth.interval_at.centre)
    tables = output.cells.tables(moved.values)
    np.testing.assert_allclose(tables[0, 1].sum(axis=2), tables[0, 2].sum(axis=2), atol=1e-6)
    np.testing.assert_allclose(tables[0, 1].sum(axis=1), tables[1, 2].sum(axis=2), atol=1e-6)
    assert not whole or np.array_equal(moved.values, moved.values.round())


def test_tables_without_negative_counts_keep_the_total_of_their_noise() -> None:
    design = design_of([marginals(("age", "region", "smoker"), way=2, by="sex", nonnegative=True)], the_people())
    (output,), (slot,) = design.outputs, design.slots
    exact = slot.transforms["laplace"].apply(slot.own(the_people().exact(dict(slot.aggregates))))  # type: ignore[attr-defined]
    noisy = exact + np.rint(np.random.default_rng(2).laplace(0, 900, exact.shape)).astype(np.int64)
    answer = output.answer({slot.name: noisy}, {slot.name: Noise("laplace", 1.0)})
    assert np.min(answer.raw) < 0 <= np.min(answer.values)
    assert np.sum(answer.values) == pytest.approx(np.sum(answer.raw), rel=1e-6)


def test_every_table_counts_the_same_whatever_its_size() -> None:
    """Small tables are not left with the largest errors: the mean logarithm is less than if all cells were alike."""
    design = design_of([marginals(["sex", "age", "region", "smoker"], way=2)], the_people(), {"rows": ROWS})
    (output,) = design.outputs
    for kind in ("laplace", "gaussian"):
        transform = output.slots[0].transforms[kind]
        subsets, lengths = output.cells.subsets, np.array(output.cells.lengths)
        plain = plan_marginals(
            output.cells.sizes, subsets, norm="l1" if kind == "laplace" else "l2", largest_table=1_000
        )
        alike = MarginalTransform.weighted(plain)
        logarithms, means = [], []
        for each in (transform, alike):
            size = each.columns.l1 if kind == "laplace" else each.columns.l2_squared**0.5
            variances = np.array([each.fit.variance_per_cell(subset) for subset in subsets]) * size**2
            logarithms.append(float(np.log(variances).mean()))
            means.append(float(variances @ lengths))
        assert logarithms[0] < logarithms[1] - 0.05
        assert means[0] >= means[1] * 0.999  # all cells alike is what the other one is best at
