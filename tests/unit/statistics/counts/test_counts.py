"""Counts end to end: designs found without hints, errors predicted exactly, answers that are counts."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from farthing.data import Dataset, dataset
from farthing.errors import InvalidValue
from farthing.inference import Answer, ErrorDistribution, Term
from farthing.inference.noise_terms import variance_of
from farthing.statistics import constructors as st
from farthing.statistics.constructors import Statistic
from farthing.statistics.counts.count_outputs import (
    WIDE,
    CountOutput,
    RememberedDistribution,
    ScaledDistribution,
    consistent_cells,
    smooth_noise,
)
from farthing.statistics.counts.expected_shares import expected_rows
from farthing.statistics.design import Design, design_of
from farthing.statistics.measurements import Kind, Noise
from farthing.statistics.public_facts import Facts

ROWS = 4_000
SCHEMA = {"sex": ["F", "M"], "age": (0, 110), "bmi": (10.0, 60.0), "region": ["n", "e", "s", "w"]}


def _table() -> pyarrow.Table:
    numbers = np.random.default_rng(20240601)
    return pyarrow.table(
        {
            "sex": numbers.choice(["F", "M"], ROWS).tolist(),
            "age": numbers.integers(0, 111, ROWS),
            "bmi": np.where(numbers.random(ROWS) < 0.1, np.nan, numbers.normal(26, 4, ROWS)),
            "region": numbers.choice(["n", "e", "s", "w"], ROWS).tolist(),
        }
    )


TABLE = _table()


@cache
def the_people() -> Dataset:
    return dataset(TABLE, schema=SCHEMA)


def _laplace(design: Design, epsilon: float = 1.0) -> dict[str, Noise]:
    return {slot.name: Noise("laplace", epsilon / len(design.slots)) for slot in design.slots}


def _total_squared_error(design: Design, epsilon: float) -> float:
    noises = _laplace(design, epsilon)
    return sum(float((output.predicted(noises).standard_errors ** 2).sum()) for output in design.outputs)


FOUR = {
    "as conditions": ["sex='M' and bmi<25", "sex='M'", "sex='F' and bmi<25", "sex='F'"],
    "the other way round": ["sex='F'", "sex='M'", "bmi<25 and sex='F'", "25>bmi and sex='M'"],
    "with not": [
        "not sex='F'",
        "not sex='M'",
        "not (sex='F' or bmi>=25)",
        "sex not in ('M') and not bmi>=25",
    ],
}


@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize("written", [*FOUR, "as groups"])
def test_the_four_counts_of_the_course_cost_12_over_epsilon_squared(written: str, pure: bool) -> None:
    asked = (
        [st.count(by="sex"), st.count(where="bmi < 25", by="sex")]
        if written == "as groups"
        else [st.count(where=condition) for condition in FOUR[written]]
    )
    for expected in ({}, {"rows": 1e6}, {"bmi": (30.0, 2.0)}, {"sex": {"F": 9, "M": 1}}):
        design = design_of(asked, the_people(), expected, pure)
        assert [slot.cells for slot in design.slots] == [4]
        for epsilon in (0.01, 0.3, 1.0):
            assert _total_squared_error(design, epsilon) <= 12 / epsilon**2


def test_a_total_joins_a_small_table_and_large_ones_stay_apart() -> None:
    small = design_of([st.count(), st.count(by="sex")], the_people(), {"rows": 1e5})
    assert [slot.cells for slot in small.slots] == [3]
    # As the sum of 23 cells it would be worse off than with a share of its own.
    large = design_of([st.count(), st.histogram("age", 22), st.histogram("bmi", 25)], the_people(), {"rows": 1e5})
    # Each histogram with a cell for rows without a value, so that every slot counts all rows.
    assert sorted(slot.cells for slot in large.slots) == [1, 23, 26]


@pytest.mark.parametrize("few", [True, False])
def test_merging_leaves_no_question_worse_off_than_with_a_share_of_its_own(few: bool) -> None:
    asked = [
        st.count(),
        st.count(by="sex"),
        st.histogram("age", 5),
        st.contingency(["sex", "region"]),
        st.count(where="bmi<20"),
        *([] if few else [st.count(where=f"age<{year}") for year in range(10, 30)]),
    ]
    design = design_of(asked, the_people(), {"rows": 1e4})
    assert len(design.slots) < len(asked)
    power = 2 if few else 1  # of Laplace and of Gaussian noise
    for slot in design.slots:
        own = [output for output in design.outputs if slot in output.slots]
        for output in own:
            parts = float((output.coefficients[slot.name] / output.alone[slot.name]).mean())
            assert parts <= len(own) ** power * (1 + 1e-9)


MIXED = [
    st.count(),
    st.count(by="sex"),
    st.count(where="bmi < 25 and age >= 18"),
    st.histogram("age", [0, 18, 40, 65, 110]),
    st.histogram("bmi", 10, by="sex"),
    st.contingency(["sex", "region"]),
    st.cdf("age", 11),
    st.cdf("bmi", [20, 25, 30], by="sex", name="cdf by sex"),
]


def _truth(statistic: Statistic) -> np.ndarray:
    people = the_people()
    design = design_of([statistic], people)
    (slot,), (output,) = design.slots, design.outputs
    exact = slot.merged(people.exact({slot.name: slot.aggregate})[slot.name])
    # Noise so small that it is zero: what is left is the arithmetic.
    return np.atleast_1d(output.answer({slot.name: exact}, {slot.name: Noise("laplace", 200.0)}).values)


def test_answers_without_noise_are_the_counts_of_the_rows() -> None:
    frame = TABLE.to_pandas()
    young = frame[(frame.bmi < 25) & (frame.age >= 18)]
    assert _truth(st.count(where="bmi < 25 and age >= 18")).tolist() == [len(young)]
    table = _truth(st.contingency(["sex", "region"])).tolist()
    assert table == [len(frame[(frame.sex == s) & (frame.region == r)]) for s in "FM" for r in "nesw"]
    shares = _truth(st.cdf("bmi", [20, 25, 30], by="sex"))
    present = frame[frame.bmi.notna()]
    wanted = [(present[present.sex == s].bmi < edge).mean() for s in "FM" for edge in (20, 25, 30, 1e9)]
    assert shares == pytest.approx(wanted)


def test_labels_name_the_cells() -> None:
    design = design_of(MIXED, the_people())
    assert design.output("count").labels == ()
    assert design.output("count by sex").labels == ("F", "M")
    assert design.output("histogram of age").labels == ((0, 18), (18, 40), (40, 65), (65, 110))
    assert design.output("histogram of bmi by sex").labels[:2] == (("F", (10.0, 15.0)), ("F", (15.0, 20.0)))
    assert design.output("contingency of sex and region").labels[-1] == ("M", "w")
    assert design.output("cdf of age").labels == tuple(range(10, 111, 10))
    assert design.output("cdf by sex").labels[:4] == (("F", 20.0), ("F", 25.0), ("F", 30.0), ("F", 60.0))


@pytest.mark.slow
def test_a_release_of_a_mixed_design_runs_in_one_go() -> None:
    design = design_of(MIXED, the_people(), {"rows": ROWS})
    noises = _laplace(design, 100.0)
    measured = design.measurements(noises).run(the_people())
    for output in design.outputs:
        answer = output.answer(measured, noises)
        assert answer.labels == output.labels
        assert np.abs(np.atleast_1d(answer.values) - _truth(output.statistic)).max() <= 20


def test_values_of_a_cdf_rise_to_one() -> None:
    design = design_of([st.cdf("age", 8, by="sex")], the_people())
    (slot,), (output,) = design.slots, design.outputs
    for seed in range(6):
        noisy = np.random.default_rng(seed).integers(-40, 60, slot.cells)
        answer = output.answer({slot.name: noisy}, {slot.name: Noise("laplace", 0.02)})
        shares = np.asarray(answer.values).reshape(2, 8)
        assert (np.diff(shares, axis=1) >= 0).all()
        assert (shares >= 0).all() and (shares[:, -1] == 1).all()
        assert (np.asarray(answer.lower) <= shares.reshape(-1)).all()
        assert (shares.reshape(-1) <= np.asarray(answer.upper)).all()


def _answers(asked: list[Statistic], noisy: list[int], epsilon: float = 1.0) -> list[Answer]:
    with pytest.MonkeyPatch.context() as patched:  # from one slot, though a question loses by it
        patched.setattr("farthing.statistics.counts.cell_partitions._LEVEL", math.inf)
        design = design_of(asked, the_people(), {"rows": ROWS})
    (slot,) = design.slots
    noises = {slot.name: Noise("laplace", epsilon)}
    return [output.answer({slot.name: np.array(noisy)}, noises) for output in design.outputs]


def test_counts_far_from_zero_are_the_plain_sums() -> None:
    total, table = _answers([st.count(by="sex"), st.contingency(["sex", "region"])], [*range(100, 110)])
    # In each group the rows without a region come first.
    assert np.asarray(table.values).tolist() == [*range(101, 105), *range(106, 110)]
    assert np.asarray(total.values).sum() == sum(range(100, 110))
    assert table.error() == pytest.approx(np.full(8, 3.0))


def test_negative_counts_become_zero_and_totals_agree_with_parts() -> None:
    noisy = np.array([5, 900, 3, -2, 2, 2, 800, 1, -1, 4])
    total, table = _answers([st.count(by="sex"), st.contingency(["sex", "region"])], noisy.tolist())
    cells = np.asarray(table.values)
    assert (cells >= 0).all() and (cells == cells.round()).all()
    assert np.asarray(total.values).sum() == noisy.sum()
    assert set(cells[cells > 100]) <= {900.0, 800.0}
    for group in range(2):  # the part without a region makes up the rest
        assert 0 <= np.asarray(total.values)[group] - cells[4 * group : 4 * group + 4].sum() <= 5


@pytest.mark.slow
@settings(max_examples=100)
@given(some.lists(some.integers(-20, 60), min_size=1, max_size=30), some.integers(1, 9))
def test_counts_are_whole_and_keep_the_total_of_their_noise(values: list[int], deviation: int) -> None:
    found = consistent_cells(np.array(values), [np.arange(len(values))], float(deviation))
    assert (found >= 0).all()
    assert found.sum() == max(0, sum(values))
    if min(values) >= 0:
        assert found.tolist() == values


def test_every_statistic_of_shared_cells_keeps_its_total() -> None:
    """A histogram with negative cells beside a count of the same rows, some of which have no value (the last cell)."""
    cells = np.array([400, -3, 5, -4, 2, -7])
    everybody, by_age = np.zeros(6, dtype=int), np.array([0, 1, 2, 3, 4, -1])
    found = consistent_cells(cells, [everybody, by_age], 3.0)
    assert found.sum() == cells.sum() and found[:5].sum() == cells[:5].sum()
    assert (found[:5] >= 0).all() and found[0] >= 398


def test_negative_groups_take_from_the_other_groups_of_the_same_total() -> None:
    """Counts by sex stay, as they are not negative; of two ages one is, and of one sex both cells are."""
    by_sex, by_age = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    found = consistent_cells(np.array([50, -9, -3, 5]), [by_sex, by_age], 4.0)
    assert found.tolist() == [41, 0, 0, 2]
    below = consistent_cells(np.array([50, -9, -3, -5]), [by_sex, by_age], 4.0)
    assert (below >= 0).all() and below.sum() == 33


def test_a_sparse_table_has_the_total_that_its_noise_implies() -> None:
    """1,458 keys, most of them empty: cut off one by one they would add up to a fifth too many rows."""
    draw = np.random.default_rng(1458)
    truth = np.zeros(1458, dtype=int)
    truth[:300] = np.sort(draw.pareto(1.2, 300) * 150).astype(int)
    stop = 1 - np.exp(-1 / 110)
    noisy = truth + draw.geometric(stop, 1458) - draw.geometric(stop, 1458)
    found = consistent_cells(noisy, [np.arange(1458)], 110 * 2**0.5)
    assert found.sum() == noisy.sum() and (found >= 0).all()
    large = truth > 2_000
    assert abs(np.mean((found - noisy)[large])) < 5  # a thirtieth of a standard deviation
    assert np.maximum(noisy, 0).sum() > 1.2 * truth.sum()


def test_a_near_empty_table_says_that_its_total_was_below_zero_or_its_counts_were_lowered() -> None:
    (output,) = design_of([st.count(by="g")], _keys(200), {"rows": 5}).outputs
    (slot,) = output.slots
    noises = {slot.name: Noise("laplace", 1.0)}
    noise = np.rint(np.random.default_rng(3).laplace(0, 1, 200)).astype(np.int64)
    noise[:3] += 4
    answer = output.answer({slot.name: noise}, noises)
    assert np.asarray(answer.values).sum() == noise.sum() > 0
    assert " others lowered to keep the total" in answer.note and "`raw`" in answer.note
    below = output.answer({slot.name: noise - 1}, noises)
    assert np.asarray(below.values).sum() == 0 and np.asarray(below.raw).sum() == noise.sum() - 200
    assert below.note.startswith("the noisy total was below zero")
    assert output.answer({slot.name: noise + 40}, noises).note == ""


def _keys(number: int) -> Dataset:
    return dataset(pyarrow.table({"g": ["k0"]}), schema={"g": [f"k{place}" for place in range(number)]})


def test_all_rows_are_exact_where_their_number_is_public() -> None:
    people = dataset(TABLE, schema=SCHEMA, neighbours="replace", rows=ROWS)
    design = design_of([st.count(), st.count(by="sex")], people)
    (slot,) = design.slots
    assert slot.sensitivity.l1 == 2
    output = design.output("count")
    assert output.slots == () and output.predicted({}).standard_error == 0
    assert output.answer({}, {}).values == ROWS
    assert design_of([st.count(where="bmi < 25")], people).slots[0].sensitivity.l1 == 1


def test_rows_that_cannot_be_are_zero_without_a_measurement() -> None:
    design = design_of([st.count(where="bmi < 20 and bmi > 30", by="sex")], the_people())
    assert design.slots == ()
    assert np.asarray(design.outputs[0].answer({}, {}).values).tolist() == [0.0, 0.0]
    with pytest.raises(InvalidValue, match="true for some row"):
        design_of([st.cdf("age", 5, where="bmi < 20 and bmi > 30")], the_people())


def test_units_of_several_rows_are_bounded() -> None:
    many = dataset(TABLE.append_column("id", pyarrow.array(range(ROWS))), unit="id", max_rows=3, schema=SCHEMA)
    assert design_of([st.count(by="sex")], many).slots[0].sensitivity.l1 == 3


def test_sampling_widens_the_interval() -> None:
    design = design_of(
        [st.count(by="sex"), st.count(by="sex", for_population=True, name="p")], the_people(), {"rows": 1e4}
    )
    noises = _laplace(design)
    plain, wide = (output.predicted(noises).standard_errors for output in design.outputs)
    assert wide**2 == pytest.approx(plain**2 + 5_000)
    measured = design.measurements(noises).run(the_people())
    answer = design.output("p").answer(measured, noises)
    assert np.asarray(answer.error()) == pytest.approx(1.96 * math.sqrt(ROWS / 2), rel=0.05)


def test_units_of_several_rows_are_sampled_together() -> None:
    many = dataset(TABLE.append_column("id", pyarrow.array(range(ROWS))), unit="id", max_rows=3, schema=SCHEMA)
    for statistic, variance in (
        (st.count(by="sex", for_population=True), 3 * 5_000),
        (st.cdf("age", [0, 55], for_population=True), 3 * 0.25 / 0.75e4),  # a quarter may lack an age
    ):
        (output,) = design_of([statistic], many, {"rows": 1e4}).outputs
        (slot,) = output.slots
        distribution = output.predicted({slot.name: Noise("laplace", 100.0)})
        assert distribution.standard_errors[0] ** 2 == pytest.approx(variance, rel=0.01)


def test_expected_rows_follow_what_is_known() -> None:
    facts = Facts(
        the_people(), {"rows": 1000, "sex": {"F": 3, "M": 1}, "bmi": (30.0, 5.0), "count by region": [1, 2, 3, 4]}
    )
    assert expected_rows(facts).tolist() == [1000]
    assert expected_rows(facts, None, ("sex",)).tolist() == [750, 250]
    assert expected_rows(facts, "bmi < 30", ("sex",)) == pytest.approx([375, 125], rel=0.01)
    assert expected_rows(facts, None, ("region",)).tolist() == [1, 2, 3, 4]
    assert expected_rows(facts, "age < 11").tolist() == pytest.approx([1000 * 11 / 111])
    assert expected_rows(facts, "age + bmi < 50").tolist() == [500]


@pytest.mark.parametrize(
    ("expected", "words"),
    [
        ({"row": 10}, "did you mean rows"),
        ({"rows": -1}, "number of rows"),
        ({"sex": {"X": 1}}, r"must be a category; for example \{'F': 0.5, 'M': 0.5\}"),
        ({"sex": 3}, r"must map categories.*for example \{'F': 0.5, 'M': 0.5\}"),
        ({"age": (200, 3)}, "mean between 0 and 110"),
        ({"count by sex": [1, 2, 3]}, "a list of 2"),
        ([1], "must be a mapping"),
    ],
)
def test_expectations_that_make_no_sense_are_refused(expected: object, words: str) -> None:
    with pytest.raises(InvalidValue, match=words):
        design_of([st.count(by="sex"), st.histogram("age", 5)], the_people(), expected)  # type: ignore[arg-type]


def test_designs_tell_what_they_took_for_granted() -> None:
    design = design_of([st.count(by="sex")], the_people())
    assert any("10,000 rows" in line for line in design.assumptions)
    assert any(line.startswith("sex is assumed") for line in design.assumptions)
    assert design_of([st.count(by="sex")], the_people(), {"rows": 1e4, "sex": {"F": 1, "M": 1}}).assumptions == ()


def test_a_design_reads_no_row() -> None:
    class Rowless:
        def __init__(self, inner: Dataset) -> None:
            self._inner = inner

        def __getattr__(self, name: str) -> object:
            assert name not in {"exact", "table", "_base"}, "a row could be read"
            return getattr(self._inner, name)

    design_of(MIXED, Rowless(the_people()))  # type: ignore[arg-type]


def test_unknown_outputs_are_named() -> None:
    with pytest.raises(InvalidValue, match="did you mean count by sex"):
        design_of([st.count(by="sex")], the_people()).output("count by sexe")


@pytest.mark.slow
def test_a_total_of_very_many_cells_has_an_error() -> None:
    wide = dataset(TABLE, schema={"age": [*range(300)], "sex": [f"s{number}" for number in range(300)]})
    design = design_of([st.contingency(["age", "sex"])], wide, {"rows": 1e6})
    (table,) = design.outputs
    cells = np.zeros(300 * 300, dtype=np.int64)
    total = CountOutput(st.count(), (), table.slots, np.ones(1), members=cells, together=(cells,), expected=np.ones(1))
    distribution = total.predicted(_laplace(design, 0.5))
    assert distribution.error(0.95) == pytest.approx(1.96 * distribution.standard_error, rel=1e-3)


def test_planning_a_cdf_again_with_other_noise_is_the_same_law_in_another_scale() -> None:
    (output,) = design_of([st.cdf("age", 5)], the_people(), {"rows": 1e4}).outputs
    (slot,) = output.slots
    distributions = [output.predicted({slot.name: Noise("laplace", epsilon)}) for epsilon in (0.01, 0.02)]
    ratio = distributions[0].standard_error / distributions[1].standard_error
    assert distributions[0].error(0.95) / distributions[1].error(0.95) == pytest.approx(ratio)
    assert distributions[0].errors(0.9) == pytest.approx(distributions[1].errors(0.9) * ratio)
    assert distributions[0].standard_errors ** 2 == pytest.approx(
        output.coefficients[slot.name] * slot.variance(Noise("laplace", 0.01))
    )


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("parts", [2, 7, 23])
def test_errors_found_once_and_scaled_hold_and_are_at_most_a_step_too_large(kind: Kind, parts: int) -> None:
    smooth, fine = smooth_noise(kind)
    distribution = RememberedDistribution([Term(smooth, fine, 1.0, parts)])
    for scale in (WIDE, 5.0, 40.0):
        factor = math.sqrt(variance_of(kind, scale) / variance_of(smooth, fine))
        exact = ErrorDistribution([Term(kind, scale, 1.0, parts)])
        for confidence in (0.5, 0.9, 0.95, 0.99):
            found = ScaledDistribution(distribution, factor, whole=True).error(confidence)
            assert exact.error(confidence) <= found <= exact.error(confidence) + 1
