"""The table of theorems: every row an upper bound, by enumeration; quick at any size."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from farthing import compose
from farthing.accounting.theorems import Row, mv_enumeration, table
from farthing.errors import InvalidValue
from farthing.privacy import GaussianNoise
from strategies import epsilon_lists, pairs, target_deltas
from theorems.transcripts import fails, holds, leak_exceeds

NAMES = [
    "basic sum", "advanced", "advanced, pure", "KOV closed form", "zCDP", "Renyi", "Renyi, improved",
    "MV dynamic programme", "MV enumeration", "KOV exact",
]  # fmt: skip


def rows_of(*arguments: object) -> dict[str, Row]:
    rows = table(*arguments)  # type: ignore[arg-type]
    assert [row.name for row in rows] == NAMES
    assert not any(math.isnan(row.epsilon) for row in rows)
    return {row.name: row for row in rows}


@pytest.mark.slow
@settings(max_examples=60)
@given(pairs(max_size=6), target_deltas(0.9))
@example([(50.0, 0.0), (70.0, 0.0)], 0.3)
@example([(1.0, 0.1), (2.0, 0.0)], 0.1)
def test_every_row_holds_for_every_transcript(charges: list[tuple[float, float]], delta_g: float) -> None:
    epsilons, deltas = [e for e, _ in charges], [d for _, d in charges]
    infeasible = leak_exceeds(deltas, delta_g)
    for row in table(epsilons, deltas, None, delta_g):
        assert holds(epsilons, deltas, row.epsilon, delta_g), row
        assert not infeasible or row.epsilon == math.inf
        assert row.applies or (row.epsilon == math.inf and row.note)


@pytest.mark.slow
@settings(max_examples=60)
@given(epsilon_lists(max_size=12), target_deltas(0.9), st.floats(-12, -3))
def test_no_row_is_below_the_optimum(epsilons: list[float], delta_g: float, log_leak: float) -> None:
    deltas = [10**log_leak] * len(epsilons)
    optimum = mv_enumeration(epsilons, delta_g, deltas).lower
    for row in table(epsilons, deltas, None, delta_g):
        assert row.epsilon >= optimum, row


@pytest.mark.slow
@settings(max_examples=250)  # a row that is wrong in one case of 50 is missed by one run in 150
@given(
    st.lists(st.tuples(st.floats(-8, 2).map(lambda x: 10.0**x), st.floats(-20, -1).map(lambda x: 10.0**x)), max_size=7),
    st.booleans(),
    st.one_of(target_deltas(0.999), st.floats(0, 1, exclude_max=True)),
)
def test_no_row_is_below_the_optimum_far_out(charges: list[tuple[float, float]], leaky: bool, delta_g: float) -> None:
    """Epsilons from 1e-8 to 100, leaks, and delta_g anywhere."""
    epsilons, deltas = [e for e, _ in charges], [d if leaky else 0.0 for _, d in charges]
    for row in table(epsilons, deltas, None, delta_g):
        assert holds(epsilons, deltas, row.epsilon, delta_g), row


def test_the_exact_rows_are_tight() -> None:
    rows = rows_of([0.5], [1e-4], [6], 0.01)
    for name in ("MV enumeration", "KOV exact"):
        assert fails([0.5] * 6, [1e-4] * 6, rows[name].epsilon * (1 - 1e-14), 0.01)
    assert rows["MV dynamic programme"].epsilon < rows["KOV exact"].epsilon + 0.015


@pytest.mark.slow
@given(pairs(max_size=6), pairs(min_size=1, max_size=1), target_deltas())
@settings(max_examples=25)
def test_one_more_charge_never_lowers_a_row(
    charges: list[tuple[float, float]], more: list[tuple[float, float]], delta_g: float
) -> None:
    before, after = (table(c, None, None, delta_g) for c in (charges, charges + more))
    for old, new in zip(before, after, strict=True):
        margin = 0.02 if old.name == "MV dynamic programme" else 1e-9  # its lattice moves with the charges
        assert not new.applies or new.epsilon >= old.epsilon - margin * max(1.0, min(old.epsilon, 1e9))


def test_nothing_costs_nothing_in_every_row() -> None:
    for charges in ([], [0.0, 0.0]):
        for delta_g in (0.0, 1e-300, 0.5):
            assert {row.epsilon for row in table(charges, None, None, delta_g)} == {0.0}


def test_a_delta_below_the_leak_is_infinite_and_says_so() -> None:
    for row in table([0.1], [1e-7], [20], 1e-6):
        assert row.epsilon == math.inf
        assert row.note


@pytest.mark.slow
@settings(max_examples=40)
@given(epsilon_lists(max_size=40), target_deltas(0.5))
def test_the_accountant_is_below_every_theorem_and_meets_the_exact_ones(epsilons: list[float], delta_g: float) -> None:
    bounds = compose(epsilons).epsilon_at(delta_g)
    for row in table(epsilons, None, None, delta_g):
        assert bounds.lower <= row.epsilon, row
        if row.applies and row.name in ("MV enumeration", "KOV exact"):
            assert row.epsilon <= bounds.upper + 1e-9


def test_a_million_charges_of_one_kind_are_priced_by_their_count() -> None:
    rows = rows_of([0.001], None, [10**6], 1e-9)
    assert rows["KOV exact"].epsilon == pytest.approx(6.191514677, abs=0.1)
    assert not rows["MV enumeration"].applies and not rows["MV dynamic programme"].applies
    best = rows["KOV exact"].epsilon
    assert all(row.epsilon >= best for row in rows.values())


def test_sizes_without_end_are_priced_or_left_out_but_never_waited_for() -> None:
    rows = rows_of([0.001], None, [2**52], 1e-9)
    assert not rows["KOV exact"].applies
    assert rows["Renyi, improved"].epsilon <= rows["basic sum"].epsilon == pytest.approx(0.001 * 2**52)
    assert {row.epsilon for row in table([1e308], None, [10], 1e-9)} == {math.inf}
    with pytest.raises(InvalidValue, match="charges in total"):
        table([0.001] * 1024, None, [2**52] * 1024, 1e-9)


def test_a_slack_known_to_few_digits_ends_the_search_for_more() -> None:
    """Thousands of distinct leaks are added in floats; the exact row then is as good as they are."""
    leaks = np.random.default_rng(6).uniform(0, 1e-10, 5000)
    rows = rows_of(np.full(5000, 0.01), leaks, None, 1e-6)
    assert rows["KOV exact"].epsilon <= rows["Renyi, improved"].epsilon
    at_the_edge = table(np.full(5000, 0.01), leaks, None, float(-np.expm1(np.log1p(-leaks).sum())))
    assert all(row.epsilon == math.inf or row.epsilon >= 1 for row in at_the_edge)


def test_many_distinct_charges_are_ordered_as_the_theorems_are() -> None:
    epsilons = np.random.default_rng(5).uniform(0, 0.01, 100_000)
    rows = rows_of(epsilons, np.full(100_000, 1e-15), None, 1e-9)
    chain = ["Renyi, improved", "Renyi", "KOV closed form", "advanced, pure", "advanced", "basic sum"]
    values = [rows[name].epsilon for name in chain]
    assert values == sorted(values) and values[-1] < math.inf
    assert rows["KOV exact"].note == "the charges have different epsilons"


def test_equal_epsilons_with_different_leaks_still_have_an_exact_row() -> None:
    rows = rows_of([0.5] * 4, [0.0, 1e-4, 1e-3, 0.0], None, 0.01)
    assert rows["KOV exact"].epsilon == pytest.approx(rows["MV enumeration"].epsilon, rel=1e-14)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.1], None, None, 1.0), "delta_g=1.0: must be >= 0 and < 1"),
        (([0.1], None, None, math.nan), "delta_g=nan"),
        (([-0.1], None, None, 1e-6), "must be a finite number >= 0"),
        (([0.1], [1.0], None, 1e-6), "must be >= 0 and < 1"),
        (([0.1], None, [1.5], 1e-6), "must be a whole number"),
        (([GaussianNoise(1.0)], None, None, 1e-6), "guarantee alone; use farthing.compose"),
    ],
)
def test_bad_input_is_refused_with_rule_and_way_out(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        table(*arguments)  # type: ignore[arg-type]
