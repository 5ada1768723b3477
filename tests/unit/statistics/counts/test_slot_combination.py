"""Counts that are measured in several slots: estimated from all of them, in agreement, with the stated errors."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import numpy as np
import pyarrow
import pytest

from farthing.data import Dataset, connection, dataset
from farthing.data.aggregates.aggregate import aggregate_queries
from farthing.data.engines.duckdb import quiet
from farthing.data.engines.engine import columns_of_rows
from farthing.statistics import constructors as st
from farthing.statistics.constructors import Statistic
from farthing.statistics.counts.slot_combination import CombinedOutput
from farthing.statistics.design import Design, design_of
from farthing.statistics.measurements import Noise

SCHEMA: dict[str, Any] = {"sex": ["F", "M"], "old": bool, "age": (0, 2), "bmi": (10.0, 60.0)}
VALUES: dict[str, list[Any]] = {
    "sex": ["F", "M", None],
    "old": [False, True, None],
    "age": [*range(3), None],
    "bmi": [20.0, 27.0, None],
}
ATOMS = list(itertools.product(*VALUES.values()))


def _table(rows: list[tuple[Any, ...]]) -> pyarrow.Table:
    columns = dict(zip(VALUES, zip(*rows, strict=True), strict=True))
    types = {"sex": pyarrow.string(), "old": pyarrow.bool_(), "age": pyarrow.int64(), "bmi": pyarrow.float64()}
    return pyarrow.table({name: pyarrow.array(list(values), types[name]) for name, values in columns.items()})


def _people(rows: list[tuple[Any, ...]], **options: Any) -> Dataset:
    return dataset(_table(rows), schema=SCHEMA, **options)


@cache
def the_people() -> Dataset:
    return _people(ATOMS)


TABLES = [
    st.count(),
    st.count(by="sex"),
    st.count(by=["sex", "old"]),
    st.histogram("age"),
    st.contingency(["sex", "age"]),
    st.contingency(["old", "age"], {"age": [0, 1, 2]}),
    st.histogram("bmi", [10, 25, 60]),
]
CONDITIONS = [
    st.count(where="age > 1"),
    st.count(where="age > 1 and sex = 'M'"),
    st.count(where="age is null or old"),
    st.count(where="bmi > 25", by="sex"),
    st.count(where="bmi + age > 28"),
]


def _apart(monkeypatch: pytest.MonkeyPatch, statistics: list[Statistic], people: Dataset | None = None) -> Design:
    """Every statistic measured by itself, whatever would be gained by merging."""
    people = people or the_people()
    monkeypatch.setattr("farthing.statistics.counts.cell_partitions._gain", lambda *_: 0.0)
    return design_of(statistics, people, {"rows": 1_000})


def _cells_of_atoms(design: Design) -> dict[str, np.ndarray]:
    """For each slot, what a table of one row of each kind adds to every cell: the engine's own word.

    The SQL is made once and run on every table: making it takes longer than running it.
    """
    engine = connection(threads=1)
    engine.con.register("people", _table(ATOMS))
    with quiet():
        people = dataset(engine.table("people"), schema=SCHEMA)
    groups = aggregate_queries({slot.name: slot.aggregate for slot in design.slots}, people.schema)
    queries = [(group, people._sql(group, "no sample")) for group in groups]
    exact = []
    for atom in ATOMS:
        engine.con.register("people", _table([atom]))
        numbers: dict[str, Any] = {}
        for group, sql in queries:
            numbers |= group.answers(columns_of_rows(engine.con.execute(sql).fetchall(), group.bits))
        exact.append({slot.name: slot.merged(numbers[slot.name]) for slot in design.slots})
    return {slot.name: np.array([each[slot.name] for each in exact]).T for slot in design.slots}


def _dense_weights(design: Design, variances: dict[str, float], cells: dict[str, np.ndarray]) -> np.ndarray:
    """G of generalised least squares over all kinds of rows: the estimate of every cell of every slot."""
    design_matrix = np.concatenate([cells[slot.name] for slot in design.slots])
    weights = np.concatenate([np.full(slot.cells, 1 / variances[slot.name]) for slot in design.slots])
    inverse = np.linalg.pinv((design_matrix.T * weights) @ design_matrix, rcond=1e-12, hermitian=True)
    return np.asarray(design_matrix @ inverse @ (design_matrix.T * weights))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_estimates_are_those_of_least_squares_over_all_kinds_of_rows(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Tables to 1e-9, as their relations follow from pairs; conditions no better, and no worse than alone."""
    numbers = np.random.default_rng(seed)
    exact = seed == 0
    pool = TABLES if exact else [*TABLES, *CONDITIONS]
    chosen = [pool[place] for place in numbers.permutation(len(pool))[:4]]
    design = _apart(monkeypatch, chosen)
    cells = _cells_of_atoms(design)
    for own in cells.values():  # every row in exactly one cell: no neighbour moves more than one number by one
        assert np.array_equal(own.sum(axis=0), np.ones(len(ATOMS)))
    noises = {slot.name: Noise("laplace", float(numbers.uniform(0.1, 1.0))) for slot in design.slots}
    variances = {slot.name: slot.variance(noises[slot.name]) for slot in design.slots}
    dense = _dense_weights(design, variances, cells)
    spread = np.concatenate([np.full(slot.cells, variances[slot.name]) for slot in design.slots])
    starts = dict(zip([s.name for s in design.slots], np.cumsum([0, *(s.cells for s in design.slots)]), strict=False))
    for output in design.outputs:
        assert isinstance(output, CombinedOutput)
        (slot,) = output.slots
        own = dense[starts[slot.name] : starts[slot.name] + slot.cells]
        sums = np.array([(output.members == place).astype(float) for place in range(len(output.reference))])
        best = (sums @ own) ** 2 @ spread
        found = output.predicted(noises).standard_errors ** 2
        if exact:
            assert found == pytest.approx(best, rel=1e-8)
        assert np.all(found >= best * (1 - 1e-9))
        assert np.all(found <= output.parts * variances[slot.name] * (1 + 1e-9))
    measured = {slot.name: numbers.integers(-50, 900, slot.cells) for slot in design.slots}
    if exact:
        whole = dense @ np.concatenate([measured[slot.name] for slot in design.slots])
        output = design.outputs[0]
        (slot,) = output.slots
        own = whole[starts[slot.name] : starts[slot.name] + slot.cells]
        assert output.answer(measured, noises).raw == pytest.approx(output._sums(own), abs=1e-8)


def test_cells_for_other_rows_never_raise_a_sensitivity(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where rows are replaced, one cell moves by 1 and two move by 2: such a count stays by itself."""
    statistics = [st.count(where="age > 1"), st.count(by="sex"), st.count(by=["sex", "old"])]
    for people in (the_people(), _people(ATOMS, neighbours="replace")):
        whole = _apart(monkeypatch, statistics, people)
        alone = [_apart(monkeypatch, [statistic], people).slots[0] for statistic in statistics]
        assert [slot.sensitivity for slot in whole.slots] == [slot.sensitivity for slot in alone]
        assert all(not slot.row_counts for slot in alone if slot.cells == 1)
    assert [not slot.row_counts for slot in whole.slots] == [True, False, False]


def test_answers_of_different_statistics_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    statistics = [
        st.count(),
        st.count(by="sex", rounded=True),
        st.contingency(["sex", "old"], rounded=True),
        st.contingency(["sex", "age"]),
    ]
    design = _apart(monkeypatch, statistics)
    noises = {slot.name: Noise("laplace", 0.05 * place) for place, slot in enumerate(design.slots, start=1)}
    numbers = np.random.default_rng(3)
    exact = the_people().exact({slot.name: slot.aggregate for slot in design.slots})
    measured = {
        slot.name: np.asarray(exact[slot.name]).reshape(-1) + np.rint(numbers.laplace(0, 20, slot.cells)).astype(int)
        for slot in design.slots
    }
    answers = {output.name: output.answer(measured, noises) for output in design.outputs}
    combination = design.outputs[0].links
    estimates = combination.estimates(measured, noises)
    totals = [float(estimate.sum()) for estimate in estimates.values()]
    assert totals == pytest.approx([totals[0]] * len(totals))
    assert answers["count"].raw == pytest.approx(totals[0])
    for statistic in statistics:
        values = np.ravel(answers[statistic.name].values)
        assert np.all(values >= 0)
        if statistic.rounded:
            assert np.array_equal(values, np.rint(values))


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_drawn_errors_are_as_predicted(monkeypatch: pytest.MonkeyPatch, kind: Any) -> None:
    """20,000 draws: noise that is a tenth off moves the ratio by 0.1, its own deviation is below 0.01."""
    design = _apart(monkeypatch, [st.count(), st.count(by=["sex", "old"]), st.count(by="sex")])
    noises = {
        slot.name: Noise(kind, (0.1 if kind == "laplace" else 20.0) * place)
        for place, slot in enumerate(design.slots, start=1)
    }
    numbers = np.random.default_rng(5)
    drawn = {}
    for slot in design.slots:
        scale, size = slot.scale(noises[slot.name]), (20_000, slot.cells)
        if kind == "gaussian":
            drawn[slot.name] = np.rint(numbers.normal(0, scale, size))
        else:
            stop = 1 - np.exp(-1 / scale)
            drawn[slot.name] = numbers.geometric(stop, size) - numbers.geometric(stop, size)
    combination = design.outputs[0].links
    vectors, estimate = combination.under(noises)
    for output in design.outputs:
        assert isinstance(output, CombinedOutput)
        own = output.slots[0].name
        taken = estimate.multipliers(vectors[own], output.crossed(vectors, estimate.linked).relations)
        errors = -sum(noise @ estimate.linked.spread(vectors[name], taken).T for name, noise in drawn.items())
        sums = np.array([(output.members == place).astype(float) for place in range(len(output.reference))])
        errors = errors + drawn[own] @ sums.T
        distribution = output.predicted(noises)
        assert np.sqrt(np.mean(errors**2)) == pytest.approx(distribution.standard_error, rel=0.06)
        for confidence in (0.5, 0.9, 0.95, 0.99):
            covered = float(np.mean(np.abs(errors) <= distribution.errors(confidence)))
            assert covered == pytest.approx(confidence, abs=0.02)


def test_a_slot_with_next_to_no_budget_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    design = _apart(monkeypatch, [st.count(), st.count(by="sex")])
    first, second = design.slots
    faint = {first.name: Noise("laplace", 1e-9), second.name: Noise("laplace", 0.5)}
    alone = np.sqrt(second.variance(faint[second.name]))
    assert design.output("count by sex").predicted(faint).standard_errors == pytest.approx([alone, alone])


def test_counts_of_rows_that_are_chosen_twice_are_not_estimated_together() -> None:
    """Each query chooses the rows of a unit anew: what one counts is no word on what another counts."""
    draw = np.random.default_rng(0)
    columns = {"a": draw.integers(0, 400, 900), "b": draw.integers(0, 400, 900), "c": draw.integers(0, 4, 900)}
    table = pyarrow.table({"id": np.repeat(np.arange(300), 3), **columns})
    schema = {"a": (0, 399), "b": (0, 399), "c": (0, 3)}
    asked = [st.count(by=["a", "c"]), st.count(by=["b", "c"]), st.count(by="c")]
    by_row = design_of(asked, dataset(table, schema=schema), {"rows": 900})
    assert by_row.output("count by c").links is not None
    people = dataset(table, schema=schema, unit="id", max_rows=1)
    by_unit = design_of(asked, people, {"rows": 300})
    linked = [output.links for output in by_unit.outputs if output.links is not None]
    exact = by_unit.measurements({slot.name: Noise("laplace", 20.0) for slot in by_unit.slots}).exact(people)
    for combination in linked:
        numbers = [np.asarray(slot.merged(slot.own(exact)), dtype=float) for slot in combination.slots]
        assert not np.any(combination.over(tuple(range(len(numbers)))).gaps(numbers))
    assert linked and by_unit.output("count by b and c").links is None  # it takes a query of its own


def _geometric_mean(design: Design, noises: dict[str, Noise]) -> float:
    return float(np.exp(np.mean([np.log(output.predicted(noises).standard_error) for output in design.outputs])))


def test_counts_are_merged_only_where_that_beats_estimating_them_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two partitions of two cells: with Laplace noise merged, with Gaussian noise apart; errors of both say so."""
    asked = [st.count(by="sex"), st.count(by="old")]
    laplace = design_of(asked, the_people(), {"rows": 1_000})
    many = [st.mean("bmi", name=f"mean {n}") for n in range(30)]
    gaussian = design_of([*asked, *many], the_people(), {"rows": 1_000})
    counting = [slot for slot in gaussian.slots if slot.name.startswith("counts")]
    assert len(laplace.slots) == 1 and len(counting) == 2
    apart = _apart(monkeypatch, asked)
    merged_errors = _geometric_mean(laplace, {laplace.slots[0].name: Noise("laplace", 1.0)})
    apart_errors = _geometric_mean(apart, {slot.name: Noise("laplace", 0.5) for slot in apart.slots})
    assert merged_errors < 0.97 * apart_errors
    merged_errors = _geometric_mean(laplace, {laplace.slots[0].name: Noise("gaussian", 20.0)})
    apart_errors = _geometric_mean(apart, {slot.name: Noise("gaussian", 20.0 * 2**0.5) for slot in apart.slots})
    assert apart_errors < 0.8 * merged_errors
