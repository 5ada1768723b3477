"""Adaptive sessions under audit: planted loops stand when nothing is wrong, real ones fall when something is."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from farthing.accounting import compose
from farthing.adaptive.holdout import Holdout
from farthing.adaptive.holdout import holdout_plan as holdout_plan
from farthing.adaptive.query_session import QuerySession
from farthing.adaptive.synthesis.synthesis_prices import SHARES, Prices, prices_within
from farthing.auditing.audit import audit
from farthing.auditing.mechanism_targets import adaptive_sessions
from farthing.auditing.planted_bugs import _bugs_of_discovery, _discovery, _loop, _Rounds, adaptive_bugs
from farthing.auditing.self_test import Check, all_checks, examine
from farthing.data import Sensitivity
from farthing.mechanisms import DiscreteLaplace
from farthing.privacy import Composed

NEIGHBOURS = {bug.name: bug.neighbours for bug in (*adaptive_bugs(), *_bugs_of_discovery())}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("batch", "claim", "like"),
    [
        (_Rounds(0.5, 0.5, positives=4, sides=2), 4.0, "query session, old threshold"),
        # One noise for four rounds is no leak when all four positives are paid for.
        (_Rounds(0.5, 0.5, positives=4, refreshed=False, sides=2), 2.5, "query session, old threshold"),
        (_Rounds(0.5, 0.5, positives=2, sides=2), 2.0, "query session, free updates"),
        (_Rounds(0.6, 1.4, positives=1, sides=2), 2.0, "query session, one threshold"),
        (_Rounds(0.4, 0.3, positives=3, answer_rate=0.5), 4.5, "holdout, old threshold"),
        (_Rounds(0.4, 0.3, positives=2, answer_rate=0.5), 3.0, "holdout, free corrections"),
        (_Rounds(0.4, 0.3, positives=1, answer_rate=1.5), 2.5, "holdout, half the noise"),
        (_loop(0.25, 0.5, rounds=1), 1.0, "synthesis, choice without noise"),
        (_loop(0.25, 1.0, rounds=1), 1.5, "synthesis, half the sensitivity"),
        (_loop(0.25, 0.5, rounds=3), 3.0, "synthesis, rounds charged once"),
        *((_discovery(threshold=6.0), (1.0, 0.01), bug.name) for bug in _bugs_of_discovery()),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_same_loop_without_its_fault_stands(batch: Any, claim: Any, like: str) -> None:
    """It is the fault that the auditor sees, on the same neighbours and with nearly as many samples."""
    report = audit(
        batch,
        claim,
        NEIGHBOURS[like],
        samples=30_000,
        confidence=1 - 1e-7,
        batch=batch,
        workers=1,
        progress=False,
    )
    assert not report.violation


@pytest.mark.slow
def test_a_real_holdout_whose_corrections_lack_noise_is_called_out(monkeypatch: pytest.MonkeyPatch) -> None:
    [check] = [check for check in all_checks() if check.name == "reusable holdout"]
    wrong = DiscreteLaplace(40.0, l1_sensitivity=holdout_plan.STEPS)
    holdout_plan.shared_plan.cache_clear()  # plans remember their mechanisms
    with monkeypatch.context() as patched:
        patched.setattr(holdout_plan.HoldoutPlan, "measurement", wrong)
        [outcome] = examine([check], samples=1_000)
    holdout_plan.shared_plan.cache_clear()
    assert outcome.verdict == "CONTRADICTED"


def _query_session_that_charges_nothing(refreshed: bool) -> Any:
    """Instead of `QuerySession._current_round`: the next round is begun, however many were paid for."""

    def current_round(self: Any) -> Any:
        if self._asking is None:
            self._rows()
            self._round = self._own = self._round + 1
            self._journal.begin(self._own)
            if refreshed or not hasattr(self, "_noise"):
                self._noise = self.plan.round._start(self._source)
            self._noise._over = False
            self._asking = self._noise
        return self._asking

    return current_round


def _holdout_that_charges_nothing(refreshed: bool) -> Any:
    """Instead of `Holdout._running`."""

    def running(self: Any) -> Any:
        if self._session is None:
            self._round += 1
            self._journal.begin(self._round)
            if refreshed or not hasattr(self, "_noise"):
                self._noise = self._plan.comparison.start(self._plan.threshold_steps, self._source)
            self._noise._left = 1
            self._session = self._noise
        return self._session

    return running


ANSWERER, HOLDOUT = "query session, one update", "reusable holdout, one correction"


def _high_answers(told: list[float]) -> bool:
    """Half of the answers about the cell that has one row more are above what it had."""
    return sum(answer > 1000 for answer in told[0::2]) >= 5


def _higher_minimum(told: list[float]) -> bool:
    """An old threshold's noise is in all answers: it is gone from the difference of the lowest."""
    return min(told[0::2]) > min(told[1::2])


def _moved_answers(told: list[float]) -> bool:
    """Of sixty answers, 38 lie on the side to which one row moves them."""
    return sum(answer < 0.5 for answer in told[0::2]) + sum(answer > 0.5 for answer in told[1::2]) >= 38


def _another_row(drawn: dict[str, list[int]]) -> bool:
    """One count is at least what it is on the second side: 0.82 there and 0.18 on the first, at epsilon = 1.5."""
    return drawn["table 0 values"][1] >= 2


MOST_PAIRS = 4_000


def _contradicted(
    check: Check, event: Callable[[Any], bool], epsilon: float, share: float, pairs: int = MOST_PAIRS
) -> bool:
    """Whether the event is too frequent on the second side for the claim of epsilon, but for once in a million.

    A bet: a pair of sessions, one of each side, pays +1 if the event happens on the second and -exp(epsilon) if on the
    first, so that under the claim no pair pays anything on average. Whoever stakes on each pair the same share of what
    can be lost holds a million times the start with probability 1e-6 at most, whenever they stop (Ville 1939). So the
    pairs end as soon as there are enough of them.
    """
    assert isinstance(check.claim, Composed) and compose([check.claim]).epsilon_at(0.0).upper <= epsilon
    [(first, second)] = check.neighbours
    loss = math.exp(epsilon)
    logarithm = 0.0
    for _ in range(pairs):
        paid = event(check.mechanism.release(second)) - loss * event(check.mechanism.release(first))
        logarithm += math.log1p(share / loss * paid)
        if logarithm >= math.log(1e6):
            return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "refreshed", "event"),
    [
        pytest.param(ANSWERER, True, _high_answers, id="query session, fresh thresholds"),
        pytest.param(ANSWERER, False, _higher_minimum, id="query session, old thresholds"),
        pytest.param(HOLDOUT, True, _moved_answers, id="reusable holdout, fresh thresholds"),
        pytest.param(HOLDOUT, False, _moved_answers, id="reusable holdout, old thresholds"),
    ],
)
def test_a_real_session_whose_rounds_are_not_charged_is_called_out(
    kind: str, refreshed: bool, event: Callable[[list[float]], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted bugs are copies; here the fault is planted in the very code that people use.

    The events are fixed: 600 samples were too few to find one and to show it. Their rates are at most 0.02 and at least
    0.8, so that a bet of 0.9 grows by 0.06 a pair on average: some 180 pairs are enough, and 4,000 fall short for fewer
    than one seed in 1e9.
    """
    [check] = [check for check in all_checks() if check.name.startswith(kind)]
    monkeypatch.setattr(QuerySession, "_current_round", _query_session_that_charges_nothing(refreshed))
    monkeypatch.setattr(Holdout, "_running", _holdout_that_charges_nothing(refreshed))
    monkeypatch.setattr(Holdout, "_refuse_if_over", lambda self: None)
    assert _contradicted(check, event, 2.0, 0.9)


@pytest.mark.slow
def test_a_real_synthesis_whose_tables_lack_a_third_of_their_noise_is_called_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    [check] = [check for check in all_checks() if check.name == "synthesis of one column"]
    monkeypatch.setattr(Prices, "noise", lambda self, shares, cells: DiscreteLaplace(1.5, cells=cells))
    assert _contradicted(check, _another_row, 1.0, 0.55)


@pytest.mark.slow
def test_a_session_that_keeps_its_claim_is_not_called_out() -> None:
    """The bets can be lost: where nothing is wrong, as many pairs as show the fault show nothing."""
    [check] = [check for check in all_checks() if check.name == "synthesis of one column"]
    assert not _contradicted(check, _another_row, 1.0, 0.55, pairs=400)


def test_a_session_is_examined_with_the_event_that_it_is_charged() -> None:
    names = [session.name for session in adaptive_sessions()]
    assert len(names) == len(set(names))
    for word in ("query session", "reusable holdout", "synthesis"):
        assert any(word in name for name in names)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5, 0.9])
def test_a_pure_synthesis_costs_as_much_as_one_table_that_takes_all_shares(epsilon: float) -> None:
    """Also where delta > 0, as in the account of a ledger; an audit contradicted an event of many small parts."""
    prices = prices_within(1.0, 0.0, 0, 60, Sensitivity(1, 1, 1, 1))
    one = compose([prices.noise(SHARES, 1).event])
    assert one.delta_at(epsilon).lower <= compose([prices.event]).delta_at(epsilon).upper
