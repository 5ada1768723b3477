"""Tracing finds somebody whose key was used, and never a stranger."""

from __future__ import annotations

import math

import pytest

from farthing.auditing.attacks import Broadcast, TracingScheme, trace
from farthing.errors import InvalidValue


@pytest.mark.draws(false_alarm=0, miss=0)
@pytest.mark.parametrize("members", [[0], [4], [1, 2], [0, 2, 4], [0, 1, 2, 3, 4]])
def test_trace_accuses_a_member_and_nobody_else(members: list[int]) -> None:
    """Exact answers depend on the members' keys alone, whatever the pads are."""
    scheme = TracingScheme(5)
    rows = [scheme.keys[user] for user in members]
    found = trace(scheme, lambda question: question.share_of(rows), repeats=2)
    assert found.user in members
    assert found.jump == pytest.approx(1 / len(members)) and found.least_jump == pytest.approx(1 / 5)


@pytest.mark.draws(false_alarm=0, miss=0)
def test_rounded_answers_are_traced_as_well() -> None:
    """To the nearest quarter: the answers rise from 0 to 1 somewhere, and only where a member is."""
    scheme = TracingScheme(8)
    rows = [scheme.keys[user] for user in (1, 5, 6)]
    found = trace(scheme, lambda question: round(4 * question.share_of(rows)) / 4, repeats=1)
    assert found.user in (1, 5, 6) and found.jump >= found.least_jump


@pytest.mark.draws(false_alarm=0, miss=0)
def test_an_answerer_that_uses_no_key_is_not_accurate_and_has_no_jump() -> None:
    found = trace(TracingScheme(6), lambda question: 0.5, repeats=1)
    assert found.jump == 0 and found.least_jump == 0


@pytest.mark.draws(false_alarm=1e-30, miss=1e-30)
def test_without_the_key_a_broadcast_looks_like_any_other() -> None:
    """The sealed bit of user 3 is even over 4,000 broadcasts, whatever it hides: Hoeffding at 0.1 is below 1e-34."""
    scheme = TracingScheme(5)
    for ones in (3, 4):
        share = sum(scheme.broadcast(ones).sealed[3] for _ in range(4000)) / 4000
        assert abs(share - 0.5) < 0.1
    assert 2 * math.exp(-2 * 4000 * 0.1**2) < 1e-34


def test_what_is_no_scheme_is_refused() -> None:
    with pytest.raises(InvalidValue, match="users"):
        TracingScheme(0)
    scheme = TracingScheme(2)
    with pytest.raises(InvalidValue, match="ones"):
        scheme.broadcast(3)
    with pytest.raises(InvalidValue, match="repeats"):
        trace(scheme, lambda question: 0.0, repeats=0)
    assert isinstance(scheme.broadcast(0), Broadcast)
