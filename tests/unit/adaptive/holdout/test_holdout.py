"""The reusable holdout: what it answers, what it uses up, when it stops, and what it never shows."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farthing.accounting import compose
from farthing.adaptive.holdout import Holdout, HoldoutPlan
from farthing.adaptive.holdout.holdout_sums import STEPS, steps_of
from farthing.adaptive.session_journal import MemoryJournal
from farthing.errors import InvalidData, InvalidValue, LedgerUnavailable, SessionEnded
from farthing.privacy import ApproxDP, Composed
from sources import TestSource

ROWS = 2_000


def tables(gap: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Column 0 has the same mean in both; column 1 is `gap` higher in the training rows."""
    column = np.arange(ROWS) / ROWS
    training = np.column_stack([column, np.full(ROWS, 0.2 + gap)])
    return training, np.column_stack([column[::-1], np.full(ROWS, 0.2)])


def opened(journal: Any = None, **options: Any) -> Holdout:
    settings = {"epsilon": 20.0, "queries": 100, "corrections": 3, "threshold": 0.1} | options
    session = Holdout(*tables(), journal=journal, **settings)
    session._source = TestSource(5)
    return session


def honest(table: np.ndarray) -> np.ndarray:
    return table[:, 0]


def overfitted(table: np.ndarray) -> np.ndarray:
    return table[:, 1]


def test_what_agrees_is_free_and_what_does_not_is_corrected() -> None:
    session = opened()
    free, paid = session.ask(honest), session.ask(overfitted)
    assert not free.paid and free.value == pytest.approx(0.49975, abs=1e-5)
    assert free.error == session.guarantee.error_free and free.overfit == 0
    assert paid.paid and paid.value == pytest.approx(0.2, abs=0.01)
    assert paid.error == session.guarantee.error_paid and paid.overfit == pytest.approx(0.5, abs=0.01)
    assert (session.questions, session.corrections_left) == (2, 2)


def test_the_last_correction_ends_the_session_and_says_so() -> None:
    session = opened()
    for left in (2, 1, 0):
        assert session.ask(overfitted).paid and session.corrections_left == left
    for statistic in (overfitted, honest):
        with pytest.raises(SessionEnded, match=r"all 3 corrections .* fresh holdout rows"):
            session.ask(statistic)
    assert session.questions == 3


def test_more_questions_than_planned_are_refused() -> None:
    session = opened(queries=2)
    session.ask(honest), session.ask(honest)
    with pytest.raises(SessionEnded, match="all 2 questions"):
        session.ask(honest)


def test_a_refused_statistic_changes_nothing() -> None:
    session = opened()
    for bad in ("x > 1", 3, None):
        with pytest.raises(InvalidValue, match="must be a function"):
            session.ask(bad)  # type: ignore[arg-type]
    for wrong in (
        lambda t: t,
        lambda t: 0.5,
        lambda t: t[1:, 0],
        lambda t: ["a"] * len(t),
        lambda t: t[:, 0] * 1j,
    ):
        with pytest.raises(InvalidData, match="statistic: must give"):
            session.ask(wrong)
    assert (session.questions, session.corrections_left) == (0, 3)


def test_what_a_statistic_raises_on_the_holdout_is_not_shown() -> None:
    def telling(table: np.ndarray) -> np.ndarray:
        if table[0, 1] < 0.5:  # the holdout only
            raise ValueError(f"row 0 is {table[0]}")
        return table[:, 0]

    with pytest.raises(InvalidData) as caught:
        opened().ask(telling)
    assert str(caught.value) == "statistic: failed on the holdout rows (ValueError); try it on the training rows."
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("values", "total"),
    [
        ([True, False, True], 2 * STEPS),
        ([1, 0, 5], 2 * STEPS),
        ([-3, 0, 0], 0),
        ([0.25, 0.5, 1e300], STEPS // 4 + STEPS // 2 + STEPS),
        ([math.nan, math.inf, -math.inf], STEPS),
        ([None, 0.5, True], STEPS // 2 + STEPS),
        (np.array([0.1, 0.2, 0.3], dtype=np.float32), None),
    ],
)
def test_values_are_clamped_floored_and_missing_ones_count_as_zero(values: Any, total: int | None) -> None:
    array = np.asarray(values)
    wanted = total if total is not None else sum(math.floor(float(v) * STEPS) for v in array)
    assert steps_of(lambda table: values, array, 3, "training") == wanted


FLOATS = st.floats(allow_nan=True, allow_infinity=True)


@pytest.mark.slow
@given(st.lists(FLOATS, min_size=1, max_size=8), FLOATS, st.integers(0, 7))
def test_replacing_a_row_moves_the_sum_by_at_most_one_row(rows: list[float], other: float, place: int) -> None:
    changed = list(rows)
    changed[place % len(rows)] = other
    sums = [steps_of(lambda table: table, np.array(t), len(rows), "holdout") for t in (rows, changed)]
    assert abs(sums[0] - sums[1]) <= STEPS


@pytest.mark.parametrize(("epsilon", "delta", "corrections"), [(1.0, 0.0, 5), (1.0, 1e-6, 200), (8.0, 1e-9, 1)])
def test_the_session_costs_what_was_agreed_and_nearly_all_of_it(epsilon: float, delta: float, corrections: int) -> None:
    plan = HoldoutPlan(10**6, 10**6, epsilon, delta, corrections=corrections)
    cost = compose([plan.event]).epsilon_at(delta)
    assert 0.999 * epsilon < cost.upper <= epsilon
    # The event holds the prices of the mechanisms that are run, no others.
    measured = plan.measurement
    parts = ((ApproxDP(plan.comparison.epsilon), corrections), (ApproxDP(measured.epsilon), corrections))
    assert plan.event == Composed(parts)
    assert measured.l1_sensitivity == STEPS == plan.comparison._mechanism.l1_sensitivity


def test_another_process_goes_on_with_the_next_round() -> None:
    """The round that was running is lost, with its noise; what was recorded stays."""
    journal = MemoryJournal()
    first = opened(journal)
    first.ask(overfitted)  # round 1 is recorded
    first.ask(honest)  # round 2 is begun
    second = opened(journal)
    second.ask(overfitted)
    assert [number for number, _ in journal.history()] == [1, 3]
    assert second.corrections_left == 0
    assert first.ask(overfitted).paid  # it still owns round 2
    assert sorted(number for number, _ in journal.history()) == [1, 2, 3]
    for session in (first, second):
        with pytest.raises(SessionEnded):
            session.ask(honest)


def test_questions_are_counted_across_processes_up_to_the_last_correction() -> None:
    journal = MemoryJournal()
    first = opened(journal, queries=4)
    first.ask(honest), first.ask(overfitted), first.ask(honest)
    second = opened(journal, queries=4)
    assert second.questions == 2
    second.ask(honest), second.ask(honest)
    with pytest.raises(SessionEnded, match="all 4 questions"):
        second.ask(honest)


def test_an_interrupt_between_a_positive_and_its_record_costs_the_round_only() -> None:
    journal = MemoryJournal()
    session = opened(journal)
    with pytest.MonkeyPatch.context() as patched:

        def interrupted(*_: object) -> int:
            raise KeyboardInterrupt

        patched.setattr(session, "_corrected_level", interrupted)
        with pytest.raises(KeyboardInterrupt):
            session.ask(overfitted)
    assert session.ask(overfitted).paid
    assert [number for number, _ in journal.history()] == [2] and session.corrections_left == 1


class Failing(MemoryJournal):
    """A ledger that is away at the wrong moment."""

    def __init__(self) -> None:
        super().__init__()
        self.away = ""

    def begin(self, round_number: int) -> bool:
        if self.away == "begin":
            raise LedgerUnavailable("away")
        return super().begin(round_number)

    def end(self, round_number: int, record: Mapping[str, Any]) -> None:
        if self.away == "end":
            raise LedgerUnavailable("away")
        super().end(round_number, record)


@pytest.mark.parametrize("away", ["begin", "end"])
def test_nothing_is_shown_when_the_journal_is_away(away: str) -> None:
    journal = Failing()
    session = opened(journal)
    journal.away = away
    with pytest.raises(LedgerUnavailable):
        session.ask(overfitted)
    journal.away = ""
    lost = away == "end"  # its finding was drawn and cannot be drawn again
    assert session.ask(overfitted).paid
    assert [number for number, _ in journal.history()] == [1 + lost]
    assert session.corrections_left == 2 - lost


def test_a_session_shows_none_of_its_rows_and_cannot_be_copied() -> None:
    session = opened()
    assert repr(session) == "Holdout(2000 rows, 0 of 100 questions asked, 3 of 3 corrections left)"
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="with the same noise"):
            copied(session)


@pytest.mark.parametrize(
    "options",
    [{"epsilon": 0.0}, {"epsilon": math.nan}, {"delta": 1.0}, {"queries": 0}, {"corrections": 0}, {"threshold": 0.0},
     {"threshold": math.nan}, {"confidence": 1.0}, {"corrections": True}],
)  # fmt: skip
def test_bad_parameters_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue, match=next(iter(options))):
        opened(**options)


@pytest.mark.parametrize("table", [np.empty(0), [], {}, {"a": [1, 2], "b": [1]}, (np.ones(2), np.ones(3)), "rows", 7])
def test_tables_without_rows_or_of_several_lengths_are_refused(table: Any) -> None:
    with pytest.raises(InvalidData, match="training: must be a table"):
        Holdout(table, np.ones(5), epsilon=1.0)


def test_tables_may_be_frames_mappings_and_tuples() -> None:
    import pandas
    import pyarrow

    values = np.linspace(0.0, 1.0, ROWS)
    for table in (
        {"x": values},
        (values, values),
        pandas.DataFrame({"x": values}),
        pyarrow.table({"x": values}),
    ):
        session = Holdout(table, table, epsilon=20.0, corrections=1, threshold=0.2)
        name = 0 if isinstance(table, tuple) else "x"
        assert session.ask(lambda t, name=name: t[name]).value == pytest.approx(0.5, abs=0.001)


def test_too_few_rows_for_the_noise_are_refused() -> None:
    with pytest.raises(InvalidValue, match=r"30 rows.*hides every difference"):
        Holdout(np.ones(30), np.ones(30), epsilon=0.1)


def test_needed_rows_are_enough_and_not_many_more_than_enough() -> None:
    for tolerance, options in ((0.1, {"corrections": 2}), (0.05, {"queries": 10**6, "delta": 1e-6})):
        rows = Holdout.needed(tolerance, 1.0, **options)
        delta = options.pop("delta", 0.0)
        assert Holdout.plan(rows, 1.0, delta, **options).guarantee.error_free <= tolerance
        assert Holdout.plan(int(0.99 * rows), 1.0, delta, **options).guarantee.error_free > tolerance
    with pytest.raises(InvalidValue, match="smaller than any number of rows can reach"):
        Holdout.needed(0.001, 1.0)


@pytest.mark.slow
def test_the_better_theorem_is_chosen() -> None:
    few = Holdout.plan(100_000, 1.0, queries=1_000, corrections=5)
    assert few.guarantee == few.by_descriptions and few.by_descriptions.error_free < few.by_privacy.error_free
    many = Holdout.plan(10**7, 0.5, 1e-5, queries=10**6, corrections=60_000)
    assert many.guarantee == many.by_privacy and many.by_privacy.error_free < many.by_descriptions.error_free


class Forgetful(MemoryJournal):
    """Keeps nothing, so that one round can be measured again and again."""

    def end(self, round_number: int, record: Mapping[str, Any]) -> None:
        pass


@pytest.mark.slow
def test_noise_a_tenth_off_is_noticed_in_corrected_answers() -> None:
    """Levels of 8,000 corrected answers against the exact law of the noise; scales x 0.9 and x 1.1 are rejected."""
    from scipy.stats import chisquare

    rows = 20
    session = Holdout(np.ones(rows), np.ones(rows), epsilon=4.0, corrections=1, threshold=0.01, journal=Forgetful())
    session._source = TestSource(11)
    levels = [session._corrected_level(STEPS, -rows * STEPS // 2, {}) for _ in range(8_000)]
    edges = np.array([72.5, 96.5, 112.5, 120.5, 127.5, 135.5, 143.5, 159.5, 183.5])
    seen, _ = np.histogram(levels, [-1, *edges, 257])

    def p_value(factor: float) -> float:
        scale = factor * session._plan.measurement.scale / STEPS / rows * 256
        off = edges - 128
        distribution = np.where(off < 0, np.exp(off / scale) / 2, 1 - np.exp(-off / scale) / 2)
        return float(chisquare(seen, len(levels) * np.diff([0.0, *distribution, 1.0])).pvalue)

    assert p_value(1.0) > 1e-6
    assert p_value(0.9) < 1e-6 and p_value(1.1) < 1e-6
