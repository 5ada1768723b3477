"""Ranges and cdfs by a strategy: the right cells, smaller errors, mistakes told, and nothing measured in vain."""

from __future__ import annotations

import datetime
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest

from farthing.data import Categories, Dataset, Integers, dataset
from farthing.errors import FarthingError
from farthing.matrix.strategies.matrix_strategy import MatrixStrategy
from farthing.matrix.strategies.optimisation import optimised, workload_optimum
from farthing.matrix.strategies.tree_strategies import TreeStrategy
from farthing.matrix.strategies.wavelet import WaveletStrategy
from farthing.matrix.workloads import prefix
from farthing.statistics.cells.statistic_cells import CellAxis
from farthing.statistics.constructors import cdf, count, histogram, ranges
from farthing.statistics.counts.cumulative_shares import CdfOutput
from farthing.statistics.design import Design, design_of
from farthing.statistics.measurements import Noise
from farthing.statistics.ranges.cdf_outputs import StrategyCdfOutput
from farthing.statistics.ranges.cell_conditions import mask_of
from farthing.statistics.ranges.error_shapes import Shape
from farthing.statistics.ranges.range_outputs import RangesOutput
from farthing.statistics.ranges.range_queries import RangeQueries, restored_ranges
from farthing.statistics.ranges.strategy_codec import restored_transform, stored_transform
from farthing.statistics.ranges.strategy_transforms import StrategyTransform

ROWS = 2_000
DRAW = np.random.default_rng(3)
AGES = DRAW.integers(0, 111, ROWS)
SEXES = DRAW.choice(["F", "M"], ROWS)
BMI = DRAW.normal(26, 4, ROWS)
DAYS = [datetime.date(2024, 1, 1) + datetime.timedelta(days=int(day)) for day in DRAW.integers(0, 60, ROWS)]


@cache
def the_people() -> Dataset:
    return dataset(
        pyarrow.table({"sex": SEXES.tolist(), "age": AGES, "bmi": BMI, "day": DAYS}),
        schema={
            "sex": ["F", "M"],
            "age": (0, 110),
            "bmi": (10.0, 60.0),
            "day": (datetime.date(2024, 1, 1), datetime.date(2024, 2, 29)),
        },
    )


def _exact_answer(design: Design, name: str, kind: Any = "laplace") -> Any:
    """The answer when the noise is left out: what is estimated must be what was counted."""
    output = design.output(name)
    (slot,) = output.slots
    exact = slot.own(the_people().exact(dict(slot.aggregates)))
    noises = {slot.name: Noise(kind, 1.0)}
    return output.answer({slot.name: slot.transforms[kind].apply(exact)}, noises)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("by", [None, "sex"])
def test_without_noise_every_cell_and_every_question_is_exact(kind: str, by: str | None) -> None:
    design = design_of([ranges("age", by=by, name="r"), cdf("age", by=by, name="c")], the_people())
    assert len(design.slots) == 1  # the same cells are measured once
    answer = _exact_answer(design, "r", kind)
    groups = [AGES] if by is None else [AGES[SEXES == "F"], AGES[SEXES == "M"]]
    cells = np.concatenate([np.bincount(group, minlength=111) for group in groups])
    np.testing.assert_allclose(answer.values, cells, atol=1e-6)
    assert answer.query("10 <= age < 25").values == pytest.approx(((AGES >= 10) & (AGES < 25)).sum())
    assert answer.query((10, 25)).values == pytest.approx(((AGES >= 10) & (AGES < 25)).sum())
    assert answer.query("age < 5 or age = 99").values == pytest.approx(((AGES < 5) | (AGES == 99)).sum())
    if by:
        women = answer.query({"sex": "F", "age": (0, 50)})
        assert women.values == pytest.approx(((SEXES == "F") & (AGES < 50)).sum())
        assert answer.query("sex = 'F'").values == pytest.approx((SEXES == "F").sum())
    shares = _exact_answer(design, "c", kind)
    np.testing.assert_allclose(
        shares.values,
        np.concatenate([np.cumsum(np.bincount(g, minlength=111)) / len(g) for g in groups]),
        atol=1e-9,
    )


def test_a_condition_that_leaves_cells_without_rows_is_understood() -> None:
    design = design_of([ranges("age", where="age >= 90 and sex = 'F'", name="old")], the_people())
    answer = _exact_answer(design, "old")
    right = np.bincount(AGES[(SEXES == "F") & (AGES >= 90)], minlength=111)
    np.testing.assert_allclose(answer.values, right, atol=1e-6)


def test_listed_ranges_are_the_cells_of_the_answer() -> None:
    pairs = [(10.0, 20.0), (15.0, 60.0)]
    design = design_of([ranges("bmi", ranges=pairs, by="sex", name="r")], the_people())
    answer = _exact_answer(design, "r")
    assert answer.labels == (("F", pairs[0]), ("F", pairs[1]), ("M", pairs[0]), ("M", pairs[1]))
    clipped = np.maximum(BMI, 10.0)  # as the bounds of the schema do it, in case somebody is so thin
    right = [((s == SEXES) & (a <= clipped) & (b > clipped)).sum() for s in "FM" for a, b in pairs]
    np.testing.assert_allclose(answer.values, right, atol=1e-6)
    days = [(datetime.date(2024, 1, 8), datetime.date(2024, 2, 1))]
    answer = _exact_answer(design_of([ranges("day", ranges=days)], the_people()), "ranges of day")
    assert answer.values[0] == pytest.approx(sum(days[0][0] <= day < days[0][1] for day in DAYS), abs=1e-6)


def test_a_cdf_of_many_cells_is_better_and_one_of_few_is_as_it_was() -> None:
    few = design_of([cdf("age", bins=12)], the_people(), pure=True).outputs[0]
    known = {"bmi": list(np.linspace(10.0, 60.0, 401))}
    many = design_of([cdf("bmi", bins=400)], the_people(), known, pure=True).outputs[0]
    assert isinstance(few, CdfOutput) and isinstance(many, StrategyCdfOutput)
    shared = design_of([cdf("bmi", bins=400), histogram("bmi", bins=400)], the_people(), known, pure=True)
    for output in (many, shared.output("cdf of bmi")):
        noise = {slot.name: Noise("laplace", 0.5) for slot in output.slots}
        error = output.predicted(noise).standard_error
        if output is many:
            by_strategy = error
        else:
            assert isinstance(output, StrategyCdfOutput) or error >= by_strategy
    plain = CdfOutput(
        many.statistic, many.labels, few.slots, many.reference,
        members=np.arange(400), expected=many.expected,
    ).predicted({few.slots[0].name: Noise("laplace", 0.5)})  # fmt: skip
    assert by_strategy < 0.7 * plain.standard_error


@pytest.mark.slow
def test_a_cdf_alone_is_never_worse_than_cell_by_cell() -> None:
    for bins in (17, 100):
        for pure in (True, False):
            known = {"bmi": list(np.linspace(10.0, 60.0, 401))}
            (output,) = design_of([cdf("bmi", bins=bins)], the_people(), known, pure=pure).outputs
            cells = CdfOutput(
                output.statistic, output.labels, output.slots, output.reference,
                members=np.arange(bins), expected=output.expected,
            )  # fmt: skip
            (slot,) = output.slots
            squared = slot.sensitivity.l1**2 if pure else slot.sensitivity.l2_squared
            own = float(np.mean(output.coefficients[slot.name])) * squared
            assert own <= float(np.mean(cells.variances_at_unit)) * (1 + 1e-9)


def test_predicted_errors_are_those_of_the_least_squares_estimate() -> None:
    """By brute force over the measured numbers, for a tree with groups and for both kinds of noise."""
    output = design_of([ranges("age", bins=10, by="sex")], the_people()).outputs[0]
    assert isinstance(output, RangesOutput)
    (slot,) = output.slots
    for kind in ("laplace", "gaussian"):
        transform = slot.transforms[kind]
        unit = np.eye(transform.size, dtype=np.int64)
        coefficients = np.array([transform.estimate(number).ravel() for number in unit])
        noise = Noise(kind, 2.0)
        distribution = output.predicted({slot.name: noise})
        np.testing.assert_allclose(
            distribution.standard_errors,
            np.sqrt((coefficients**2).sum(axis=0) * slot.variance(noise)),
            rtol=1e-9,
        )


def test_a_kurtosis_is_that_of_the_coefficients() -> None:
    transform = StrategyTransform(TreeStrategy("tree", 6, (3, 1)), (5, 3))
    dense = np.array([transform.apply(cell) for cell in np.eye(6, dtype=np.int64)]).T.astype(float)
    query = np.array([1.0, 1.0, 0.0, 0.0, 1.0, 0.0])
    found = dense @ np.linalg.inv(dense.T @ dense) @ query
    share = (found**4).sum() / (found**2).sum() ** 2
    assert transform.kurtosis(query[:, None])[0] == pytest.approx(share, rel=1e-6)
    assert 1.959 < Shape(0.0, 0.0).factor(0.95) < Shape(share, share).factor(0.95) < 2.13


@pytest.mark.slow
def test_kinds_of_noise_do_about_the_same_to_the_answers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """So that the planner may choose between them by one number."""
    monkeypatch.setenv("FARTHING_CACHE", str(tmp_path))  # what other tests have found would be used too
    monkeypatch.setattr(workload_optimum, "_MEMORY", {})
    optimised(prefix(32), "l2")  # found before, it is measured beside cells under Laplace noise
    for asked in (ranges("age"), cdf("bmi", bins=300), ranges("bmi", bins=50), cdf("bmi", bins=32)):
        (output,) = design_of([asked], the_people()).outputs
        (slot,) = output.slots
        losses = [output._at_unit(kind).deviations ** 2 for kind in slot.kinds]
        if asked.kind == "ranges":
            losses = [np.array(output._of_any_range(kind)) for kind in slot.kinds]
        assert float(np.mean(losses[1]) / np.mean(losses[0])) == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize(
    "make",
    [
        lambda: TreeStrategy("tree", 5, (4, 2, 1)),
        lambda: WaveletStrategy(5),
        lambda: MatrixStrategy("m", np.array([[2, -1, 0], [1, 1, 1]])),
        lambda: optimised(prefix(12), "l1"),
        lambda: optimised(prefix(12), "l2"),
    ],
    ids=["tree", "wavelet", "matrix", "optimised l1", "optimised l2"],
)
def test_a_stored_transform_is_the_same_transform(make: Any) -> None:
    strategy = make()
    transform = StrategyTransform(strategy, tuple(range(2, 2 + len(strategy.levels))), groups=2)
    again = restored_transform(stored_transform(transform))
    cells = np.arange(2 * strategy.cells)
    np.testing.assert_array_equal(again.apply(cells), transform.apply(cells))


def test_stored_questions_are_answered_as_before() -> None:
    answer = _exact_answer(design_of([ranges("day", name="r")], the_people()), "r")
    assert isinstance(answer.asking, RangeQueries)
    again = restored_ranges(answer.asking.stored(), answer.values)
    for what in ("day < date '2024-02-01'", (datetime.date(2024, 1, 5), datetime.date(2024, 1, 9))):
        one, other = answer.query(what), again.query(what, 0.95)
        assert (one.values, one.lower) == pytest.approx((other.values, other.lower), rel=1e-7)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("asked", [{}, {"by": "sex"}, {"ranges": [(0, 18), (18, 65), (0, 65), (60, 110)]}])
def test_what_is_shown_adds_up_to_what_is_asked(asked: dict[str, Any], whole: bool) -> None:
    """Cells cut off at zero one by one would add up to more rows than there are."""
    (output,) = design_of([ranges("age", name="r", rounded=whole, **asked)], the_people()).outputs
    (slot,) = output.slots
    transform = slot.transforms["laplace"]
    noises = {slot.name: Noise("laplace", 0.05)}
    draw = np.random.default_rng(5).laplace(0, 1, transform.size) * slot.variance(noises[slot.name]) ** 0.5
    few = 300 * (np.arange(slot.aggregate.cells) < 10)
    numbers = transform.apply(few) + np.rint(draw).astype(np.int64)
    answer = output.answer({slot.name: numbers}, noises)
    assert np.all(answer.values >= 0) and (not whole or np.all(answer.values == np.rint(answer.values)))
    again = restored_ranges(json.loads(json.dumps(answer.asking.stored())), answer.values)
    for label, value in zip(answer.labels, answer.values, strict=True):
        if "by" in asked:
            what: Any = dict(zip(("sex", "age"), label, strict=True))
        else:
            what = label if isinstance(label, tuple) else {"age": label}
        assert answer.query(what).values == pytest.approx(value, rel=1e-9, abs=1e-9)
        assert again.query(what, 0.95).values == pytest.approx(value, rel=1e-7, abs=1e-7)
    everybody = answer.query("age >= 0")
    assert everybody.lower <= np.sum(transform.estimate(numbers)) <= everybody.upper
    if "ranges" not in asked:
        assert np.sum(answer.values) == pytest.approx(everybody.values)
        assert np.maximum(transform.estimate(numbers), 0).sum() > 1.5 * everybody.values  # what cutting off would say


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ranges("age", ranges=[(5, 5)]), "ranges=(5, 5): must have its lower end first"),
        (lambda: ranges("age", ranges=[(5, 9), (5, 9)]), "must not hold the same range twice"),
        (lambda: ranges("age", ranges=[5, 9]), "ranges=5: must be pairs (lower, upper)"),
        (lambda: ranges("age", ranges=[(1, 2), ("a", "b")]), "must have ends of one kind"),
        (lambda: ranges("age", strategy=3), "strategy=3: must be the name of a strategy"),
        (lambda: ranges("sex", ranges=[("F", "M")]), "must be left out for 'sex', which has categories"),
        (lambda: ranges("age", ranges=[(5, 200)]), "must lie within the bounds of 'age', 0 to 110"),
        (
            lambda: ranges("age", bins=[0, 50, 110], ranges=[(5, 50)]),
            "bins=[0, 50, 110]: must be left out where ranges are listed",
        ),
        (lambda: ranges("bmi"), "bins=None: must be given for column 'bmi'"),
        (lambda: ranges("age", where="age > 200"), "must be true for some row"),
    ],
)
def test_mistakes_are_told_before_anything_is_planned(make: Any, message: str) -> None:
    with pytest.raises(FarthingError) as caught:
        design_of([make()], the_people())
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("bmi < 30", "there is no column 'bmi'"),
        ("age", "must be true or false"),
        ((200, 300), "must be cells of 'age'"),
        ({"income": 3}, "must name a column of the statistic; there are: age"),
        ({"age": 300}, "must be cells of 'age'"),
        ("binned", 'must not cut through a cell, here 0 to 55; cut at 0 or at 55, for example "age >= 55"'),
        (
            (3, "x"),
            "a pair (lower, upper) holds lower <= value < upper, and the column's upper bound if it ends",
        ),
    ],
)
def test_questions_that_cannot_be_answered_are_refused(what: Any, message: str) -> None:
    binned = what == "binned"
    answer = _exact_answer(design_of([ranges("age", bins=2 if binned else None)], the_people()), "ranges of age")
    with pytest.raises(FarthingError) as caught:
        answer.query("age < 30" if binned else what)
    assert message in str(caught.value)


def test_edges_of_cells_decide_what_may_be_asked() -> None:
    (axis,) = design_of([ranges("age", bins=[0, 18, 65, 110])], the_people()).outputs[0].axes
    assert mask_of("age < 18", [axis]).tolist() == [True, False, False]
    assert mask_of("age >= 18", [axis]).tolist() == [False, True, True]
    assert mask_of((18, 110), [axis]).tolist() == [False, True, True]
    assert mask_of("18 <= age < 65 or age >= 65", [axis]).tolist() == [False, True, True]
    with pytest.raises(
        FarthingError, match=r"where cells of 'age' do; .* the cells beside 20 begin or end at 18 and 65"
    ):
        mask_of((20, 65), [axis])
    with pytest.raises(FarthingError, match=r"sex.*did you mean 'Male'"):
        mask_of({"sex": "male"}, [CellAxis("sex", Categories(("Female", "Male")))])


@pytest.mark.slow
def test_a_pair_means_the_same_with_and_without_bins() -> None:
    """lower <= value < upper; one that ends at the upper bound holds the bound, and so does one that ends after it."""
    values = CellAxis("age", Integers(0, 110))
    bins = CellAxis("age", Integers(0, 110), (0, 18, 65, 110))
    for pair, ages in {(18, 65): 47, (65, 110): 46, (65, 111): 46, (0, 111): 111}.items():
        assert mask_of(pair, [values]).sum() == ages
        cells = np.array([18, 47, 46])[mask_of(pair, [bins])]
        assert cells.sum() == ages
        listed = _exact_answer(design_of([ranges("age", ranges=[pair])], the_people()), "ranges of age")
        assert listed.values[0] == pytest.approx(np.isin(AGES, np.arange(pair[0], pair[0] + ages)).sum())
    for axis in (values, bins):  # beyond the bounds there is nothing
        assert mask_of((65, 500), [axis]).sum() == mask_of((65, 110), [axis]).sum()
        with pytest.raises(FarthingError, match="must be cells of 'age'"):
            mask_of((110, 110), [axis])
    with pytest.raises(FarthingError, match="must not hold the same range twice"):
        design_of([ranges("age", ranges=[(65, 110), (65, 111)])], the_people())


def test_counts_and_ranges_stand_beside_each_other() -> None:
    design = design_of([count(by="sex"), ranges("age"), histogram("age")], the_people())
    assert [output.name for output in design.outputs] == ["count by sex", "ranges of age", "histogram of age"]
    assert {slot.name for slot in design.output("ranges of age").slots}.isdisjoint(
        slot.name for slot in design.output("histogram of age").slots
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_a_named_strategy_is_what_is_measured(kind: Any) -> None:
    errors = {}
    for name in ("identity", "hierarchical-4", "wavelet", "tree", "optimised"):
        (output,) = design_of([ranges("bmi", bins=32, strategy=name, name="r")], the_people()).outputs
        (slot,) = output.slots
        assert slot.transforms[kind].strategy.name in (name, name.split("-")[0])
        own = output._of_any_range(kind)
        errors[name] = own * (slot.sensitivity.l1**2 if kind == "laplace" else slot.sensitivity.l2_squared)
        answer = _exact_answer(design_of([ranges("bmi", bins=32, strategy=name, name="r")], the_people()), "r", kind)
        np.testing.assert_allclose(answer.values, np.histogram(BMI, 32, (10, 60))[0], atol=1e-5)
    assert min(errors, key=lambda name: errors[name]) == "optimised"
    with pytest.raises(FarthingError, match="strategy='haar': must be one of auto, identity, hierarchical"):
        design_of([ranges("age", strategy="haar")], the_people())


def test_what_was_not_measured_has_an_error_without_limit() -> None:
    """A strategy may leave out details that nobody asked for; a question that needs them is told so."""
    transform = StrategyTransform(TreeStrategy("tree", 4, (2, 1)), (3, 0))
    asking = RangeQueries(
        "r",
        (CellAxis("x", Integers(0, 3)),),
        np.full((1, 4), 5.0),
        np.full((1, 4), 5.0),
        transform,
        "laplace",
        2.0,
    )
    assert asking.query("x < 2", 0.95).upper < np.inf
    vague = asking.query("x < 1", 0.95)
    assert (vague.lower, vague.upper) == (0.0, np.inf)


@pytest.mark.parametrize("by", [None, "sex"])
def test_cells_of_ranges_keep_the_total_of_their_noise(by: str | None) -> None:
    """Most cells are empty: where the ends of the sums are left free, an empty end gains rows from its noise."""
    design = design_of([ranges("bmi", bins=64, by=by)], the_people())
    (output,), (slot,) = design.outputs, design.slots
    exact = slot.transforms["laplace"].apply(slot.own(the_people().exact(dict(slot.aggregates))))  # type: ignore[attr-defined]
    draw = np.random.default_rng(5)
    for _ in range(20):
        noisy = exact + np.rint(draw.laplace(0, 40, exact.shape)).astype(np.int64)
        answer = output.answer({slot.name: noisy}, {slot.name: Noise("laplace", 1.0)})
        assert np.min(answer.raw) < 0 <= np.min(answer.values)
        assert np.sum(answer.values) == pytest.approx(np.sum(answer.raw))
