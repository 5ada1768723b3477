"""What a synthesis finds, on small tables whose truth is known."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from farthing.adaptive.prior_releases import KnownTable
from farthing.adaptive.synthesis import SynthesisPlan, SyntheticModel, synthesis_plan
from farthing.adaptive.synthesis.synthesis_prices import SHARES
from farthing.adaptive.synthesis.synthesis_transcript import Transcript
from farthing.errors import InvalidData, InvalidValue
from sources import TestSource

SIZES = (4, 3, 2, 30)


def rows_of(count: int = 4000) -> NDArray[np.int64]:
    """The second column follows the first, the third both of them, the fourth is skewed and alone."""
    random = np.random.default_rng(7)
    first = random.choice(4, count, p=[0.4, 0.3, 0.2, 0.1])
    second = np.where(random.random(count) < 0.8, first % 3, random.integers(0, 3, count))
    third = ((first + second) % 2 == 0) & (random.random(count) < 0.9)
    fourth = np.minimum(random.geometric(0.2, count) - 1, 29)
    return np.stack([first, second, third.astype(np.int64), fourth], axis=1)


def counted(rows: NDArray[np.int64], columns: tuple[int, ...]) -> NDArray[np.float64]:
    found = np.zeros([SIZES[column] for column in columns])
    np.add.at(found, tuple(rows[:, column] for column in columns), 1.0)
    return found


def variation(model: SyntheticModel, rows: NDArray[np.int64], columns: tuple[int, ...]) -> float:
    return float(np.abs(model.marginal(columns) - counted(rows, columns)).sum()) / 2 / len(rows)


@pytest.fixture(scope="module")
def plan() -> SynthesisPlan:
    return synthesis_plan(SIZES, 2.0, 1e-9, names=["a", "b", "c", "d"])


@pytest.fixture(scope="module")
def drawn(plan: SynthesisPlan) -> dict[str, Any]:
    return plan.draw(rows_of(), source=TestSource(2))


@pytest.fixture(scope="module")
def model(plan: SynthesisPlan, drawn: dict[str, Any]) -> SyntheticModel:
    return plan.fitted(drawn)


@pytest.mark.slow
def test_what_hangs_together_in_the_rows_hangs_together_in_the_model(model: SyntheticModel) -> None:
    rows = rows_of()
    independent = np.einsum("i,j,k->ijk", *(counted(rows, (column,)) for column in range(3))) / 4000**2
    assert np.abs(independent - counted(rows, (0, 1, 2))).sum() / 2 / 4000 > 0.4
    assert variation(model, rows, (0, 1, 2)) < 0.05
    assert variation(model, rows, (3,)) < 0.05


def test_rows_follow_the_model(model: SyntheticModel) -> None:
    rows = model.rows(4000, np.random.default_rng(1))
    scale = 4000 / model.total
    for columns in ((0, 1), (0, 1, 2), (3,)):
        apart = np.abs(model.marginal(columns) * scale - counted(rows, columns)).sum() / 2 / 4000
        assert apart < 0.01, columns


def test_a_conjunction_counts_the_cells_of_the_marginal(model: SyntheticModel) -> None:
    masks = {0: np.array([1, 0, 1, 0]), 2: np.array([0, 1]), 3: np.arange(30) < 5}
    table = model.marginal((0, 2, 3))
    twin = sum(
        table[i, j, k]
        for i, j, k in product(range(4), range(2), range(30))
        if masks[0][i] and masks[2][j] and masks[3][k]
    )
    assert model.query(masks) == pytest.approx(twin, rel=1e-9)
    assert model.query({}) == pytest.approx(model.total)
    with pytest.raises(InvalidValue, match="mask"):
        model.query({0: [True, False]})


def test_recorded_numbers_are_enough_to_make_the_model_again(
    plan: SynthesisPlan, drawn: dict[str, Any], model: SyntheticModel
) -> None:
    stored = json.loads(json.dumps({name: value.tolist() for name, value in drawn.items()}))
    again = plan.fitted({name: np.array(value) for name, value in stored.items()})
    assert np.array_equal(again.marginal((0, 1, 3)), model.marginal((0, 1, 3)))
    first, second = (one.rows(50, np.random.default_rng(3)) for one in (model, again))
    assert np.array_equal(first, second)


def test_rounds_tell_what_was_wrong_before(plan: SynthesisPlan, drawn: dict[str, Any]) -> None:
    rounds = plan.rounds(drawn)
    assert set(rounds[0]["columns"]) <= {"a", "b", "c", "d"}
    assert rounds[0]["error_before"] > 0.3 > rounds[-1]["error_before"]
    json.dumps(rounds)


def _squares(plan: SynthesisPlan, rows: NDArray[np.int64], seed: int) -> NDArray[np.float64]:
    """The squared noise of all tables of columns alone, in units of what the plan says it is."""
    found = Transcript.read(plan.draw(rows, source=TestSource(seed)))
    scaled = []
    for table in found.tables:
        (column,) = table.columns
        noise = table.values - np.bincount(rows[:, column], minlength=len(table.values))
        scaled.append((noise / plan.prices.standard_error(table.shares)) ** 2)
    return np.concatenate(scaled)


@pytest.mark.parametrize("delta", [1e-9, 0.0])
def test_noise_is_as_wide_as_the_plan_says_and_a_tenth_off_is_noticed(delta: float) -> None:
    """Mean of 40,000 squares with a kurtosis of at most 6: 5 deviations are 0.056, the false alarm below 1e-6."""
    honest = synthesis_plan((40_000,), 1.0, delta)
    rows = np.arange(500).reshape(-1, 1)
    assert abs(_squares(honest, rows, 11).mean() - 1) < 0.056
    for factor in (0.9, 1.1):
        unit = honest.prices.unit * factor
        wrong = replace(honest, prices=replace(honest.prices, unit=unit))
        found = Transcript.read(wrong.draw(rows, source=TestSource(12)))
        noise = found.tables[0].values - np.bincount(rows[:, 0], minlength=40_000)
        assert abs(((noise / honest.prices.standard_error(SHARES)) ** 2).mean() - 1) > 0.056


@pytest.mark.slow
def test_choices_go_through_the_mechanism_that_is_charged(plan: SynthesisPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    from farthing.mechanisms import ExponentialMechanism

    asked = []
    draw = ExponentialMechanism._answer

    def spied(self: ExponentialMechanism, value: Any, source: Any) -> int:
        asked.append((self.epsilon, self.sensitivity, np.asarray(value).dtype.kind))
        return draw(self, value, source)

    monkeypatch.setattr(ExponentialMechanism, "_answer", spied)
    plan.draw(rows_of(500), source=TestSource(3))
    assert asked == [(plan.prices.choice_epsilon, 1, "i")] * plan.prices.choices


@pytest.mark.slow
def test_nothing_is_measured_where_noise_would_drown_it() -> None:
    """A choice by chance would fall on a table nine times of ten."""
    plan = synthesis_plan((5, 4, 3), 0.05, 1e-9)
    rows = rows_of(60)[:, :3]
    chosen = [len(plan.rounds(plan.draw(rows, source=TestSource(seed)))) for seed in range(6)]
    assert sum(chosen) <= 0.4 * 6 * plan.prices.choices


@pytest.mark.parametrize("sizes", [(1,), (1, 1), (6,), (3, 1), (2, 2), (70_000, 3)])
@pytest.mark.parametrize(("count", "delta"), [(0, 0.0), (3, 1e-9)])
def test_small_and_odd_tables_are_served(sizes: tuple[int, ...], count: int, delta: float) -> None:
    plan = synthesis_plan(sizes, 1.0, delta)
    model = plan.fitted(plan.draw(np.zeros((count, len(sizes)), dtype=np.int64), source=TestSource(6)))
    rows = model.rows(10, np.random.default_rng(1))
    assert rows.shape == (10, len(sizes))
    assert np.all((rows >= 0) & (rows < np.array(sizes)))


@pytest.mark.slow
def test_known_tables_are_used_free_of_charge() -> None:
    """Far too little budget for the pair, but an earlier release had it."""
    rows = rows_of()
    pair = KnownTable(("b", "a"), counted(rows, (1, 0)), 2.0)
    poor = synthesis_plan(SIZES, 0.02, 1e-9, names=["a", "b", "c", "d"])
    rich = synthesis_plan(SIZES, 0.02, 1e-9, names=["a", "b", "c", "d"], known=[pair])
    assert rich.event == poor.event and rich.digest != poor.digest
    drawn = rich.draw(rows, source=TestSource(9))
    shares = [plan.fitted(drawn).marginal((0, 1)) / plan.fitted(drawn).total for plan in (poor, rich)]
    apart = [np.abs(share - counted(rows, (0, 1)) / 4000).sum() / 2 for share in shares]
    assert apart[1] < 0.06 < 0.2 < apart[0]


@pytest.mark.slow
def test_known_tables_may_leave_cells_out_and_be_coarser() -> None:
    groups = (np.minimum(np.arange(30) // 5, 5), np.array([0, 1, -1]))
    known = KnownTable(("d", "b"), np.full((6, 2), 300.0), 5.0, groups)
    plan = synthesis_plan(SIZES, 1.0, 1e-9, names=["a", "b", "c", "d"], known=[known])
    assert plan.fitted(plan.draw(rows_of(), source=TestSource(1))).total > 3000
    with pytest.raises(InvalidValue, match="known"):
        synthesis_plan((4, 3), 1.0, names=["a", "b"], known=[known])


@pytest.mark.parametrize(
    ("codes", "counts"),
    [
        ([[0, 1, 0, 31]], None),
        ([[0, -1, 0, 0]], None),
        ([[0.5, 1, 0, 0]], None),
        ([[0, 1, 0]], None),
        ([[0, 1, 0, 7]], [-1]),
        ([[0, 1, 0, 7]], [1, 1]),
    ],
)
def test_rows_of_the_wrong_kind_are_refused_without_being_shown(plan: SynthesisPlan, codes: Any, counts: Any) -> None:
    with pytest.raises(InvalidData) as refused:
        plan.draw(codes, counts)
    assert "31" not in str(refused.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"sizes": ()},
        {"sizes": (0, 2)},
        {"sizes": (2,) * 401},
        {"sizes": (2**23,)},
        {"names": ["a"]},
        {"epsilon": 0.0},
        {"delta": 1.0},
    ],
)
def test_plans_refuse_what_cannot_be_planned(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        synthesis_plan(**{"sizes": (2, 3), "epsilon": 1.0, **wrong})


@pytest.mark.slow
def test_thirty_columns_of_ten_values_are_no_obstacle() -> None:
    """10^30 cells."""
    random = np.random.default_rng(5)
    hidden = random.integers(0, 2, (1000, 1))
    rows = 5 * np.where(random.random((1000, 30)) < 0.9, hidden, 0) + random.integers(0, 5, (1000, 30))
    plan = synthesis_plan((10,) * 30, 4.0, 1e-9)
    plan = replace(plan, schedule=replace(plan.schedule, rounds=3))
    model = plan.fitted(plan.draw(rows, source=TestSource(5)))
    assert model.rows(100).shape == (100, 30)


@pytest.mark.slow
def test_known_columns_and_the_known_number_of_rows_are_trusted() -> None:
    """Far too little budget for any column, but earlier releases had the number of rows, and one column finely."""
    rows = rows_of()
    groups = (np.array([*np.arange(29), -1]),)  # the last value was not counted
    known = [KnownTable((), np.array(4000.0), 1.0), KnownTable(("d",), counted(rows, (3,))[:29], 1.0, groups)]
    names = ["a", "b", "c", "d"]
    plans = [synthesis_plan(SIZES, 0.02, 1e-9, names=names, known=part) for part in ((), known)]
    drawn = plans[0].draw(rows, source=TestSource(9))
    poor, rich = (plan.fitted(drawn) for plan in plans)
    apart = [np.abs(one.marginal((3,)) / one.total - counted(rows, (3,)) / 4000).sum() / 2 for one in (poor, rich)]
    assert abs(rich.total - 4000) < 20
    assert apart[1] < 0.1 < apart[0]
    others = [plans[0].fitted(plans[0].draw(rows, source=TestSource(9 + more))).total for more in range(6)]
    assert max(abs(total - 4000) for total in others) > 20  # one alone may be lucky


@pytest.mark.slow
def test_known_tables_that_no_model_can_hold_together_are_used_in_part() -> None:
    """All pairs of twelve columns join everything: 16^12 cells, which once failed after the charge."""
    names = [f"c{place}" for place in range(12)]
    known = [KnownTable(pair, np.full((20, 20), 2.5), 1.0) for pair in combinations(names, 2)]
    plan = synthesis_plan((20,) * 12, 1.0, 1e-9, names=names, known=known)
    assert 11 <= len(plan._joined) < 66 and "do not fit" in str(plan)
    plan = replace(plan, schedule=replace(plan.schedule, rounds=1))
    rows = np.random.default_rng(1).integers(0, 20, (1000, 12))
    assert abs(plan.fitted(plan.draw(rows, source=TestSource(2))).total - 1000) < 50
