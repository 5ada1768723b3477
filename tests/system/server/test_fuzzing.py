"""Schemathesis against a real server: every operation, every role and way of coming in, and secrets in every table.

A short run of what `python -m system.server.fuzzing` does at length, and a run against a server with faults planted in
it, which must all be found.
"""

from __future__ import annotations

import base64
import json
import random
import secrets
from pathlib import Path
from urllib.parse import quote

import pytest

from farthing.server.auth.permissions import PERMISSIONS, PUBLIC
from system.server.fuzzing.canaries import Canaries
from system.server.fuzzing.cases import INTENTS, SLOW, wanted
from system.server.fuzzing.meant import MEANT
from system.server.fuzzing.people import LET_IN, WAYS
from system.server.fuzzing.run import run
from system.server.fuzzing.served import fuzzed

SEED = 3  # the long run, `python -m system.server.fuzzing`, looks for new cases
CASES = 300
OUTSIDE_THE_DESCRIPTION = {("GET", "/"), ("GET", "/static/{path:path}"), ("GET", "/openapi.json")}  # files
OPERATIONS = (set(PERMISSIONS) | PUBLIC) - OUTSIDE_THE_DESCRIPTION


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)  # the cases have a seed; the noise of the server is not looked at
def test_nothing_that_is_sent_by_anybody_breaks_the_server_or_makes_it_tell_a_secret(tmp_path: Path) -> None:
    with fuzzed(tmp_path, random.Random(SEED)) as server:
        tally = run(server, CASES, random.Random(SEED))
    assert not [str(fault) for fault in tally.faults], f"seed {SEED}"
    assert not server.traces(), f"seed {SEED}"
    assert not tally.without_success(), f"seed {SEED}"
    assert {call for call, _, _ in tally.statuses} == OPERATIONS
    assert {way for _, way, _ in tally.statuses} == set(WAYS)


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)  # the cases have a seed; the noise of the server is not looked at
def test_a_run_finds_every_fault_that_is_planted(tmp_path: Path) -> None:
    planted = ("fails", "echoes", "logs", "lets in", "misdescribes", "workers")
    touched = {
        ("GET", "/api/v1/ledger"): "ServerError",
        ("GET", "/api/v1/studies/{id}"): "tells a cell",
        ("GET", "/api/v1/sources"): "debug.log tells a cell",
        ("GET", "/api/v1/users"): "where the table of permissions says 403",
        ("POST", "/api/v1/plans/price"): "JsonSchemaError",
    }
    with fuzzed(tmp_path, random.Random(SEED), *planted) as server:
        tally = run(server, 40, random.Random(SEED), only=set(touched))
    found = {call: [fault.words for fault in tally.faults if fault.call == call] for call in touched}
    for call, words in touched.items():
        assert any(words in each for each in found[call]), (call, found[call])
    assert any("streams.log tells a cell" in fault.words for fault in tally.faults)
    assert "a cell" in server.traces()["logs/streams.log"]


def test_somebody_who_means_well_knows_every_operation() -> None:
    assert set(MEANT) == OPERATIONS


@pytest.mark.parametrize(
    "spelled",
    [
        lambda cell: cell,
        lambda cell: cell.upper(),
        lambda cell: f"prefix{cell[:14]}",  # cut short
        lambda cell: "".join(f"\\u{ord(letter):04x}" for letter in cell),
        lambda cell: "".join(f"%{ord(letter):02X}" for letter in cell),
        lambda cell: "".join(f"&#{ord(letter)};" for letter in cell),
        lambda cell: base64.b64encode(f"ab{cell}c".encode()).decode(),
        lambda cell: base64.urlsafe_b64encode(f"a{cell}".encode()).decode().rstrip("="),
        lambda cell: f"x{cell}".encode().hex(),
        lambda cell: json.dumps({"a": quote(cell)}),
    ],
)
def test_a_cell_is_found_in_any_spelling(spelled: object) -> None:
    canaries = Canaries()
    assert canaries.found(f"said {spelled(canaries.text())} here")  # type: ignore[operator]


def test_numbers_dates_and_secrets_are_found_in_other_spellings_and_others_are_not() -> None:
    canaries = Canaries()
    whole, huge, inside, date = canaries.whole(), canaries.huge(), canaries.inside(10, 60), canaries.date()
    secret = canaries.secret("token", "ft_" + secrets.token_urlsafe(32))
    for text in (
        f"{whole}", f"-{whole}", f"{whole:,}", f"{whole:e}", f"{whole:g}", f"[1,{whole},2]", f"x_{whole}",
        f"{float(whole)}",
        f"{huge!r}", f"{huge:.8g}", f"{-huge:E}", f"{inside!r}", f"[1.5,{inside:.12f}]", f"on {date}T00:00:00",
        f"Bearer {secret}", f"...{secret[:20]}...", base64.b64encode(f"u:{secret}".encode()).decode(),
    ):  # fmt: skip
        assert canaries.found(text), text
    for text in (
        f"{whole * 1.01:.0f}", f"{inside:.3f}", f"{inside + 1e-9!r}", "2026-11-17", "1.5e-9", secret[:8], "0" * 40, "",
    ):  # fmt: skip
        assert not canaries.found(text), text


def test_a_run_has_as_many_cases_as_were_asked_for_and_every_operation_meets_every_way() -> None:
    calls = sorted(OPERATIONS)
    made = wanted(calls, 3_000, random.Random(SEED))
    assert len(made) == 3_000
    assert {(call, way.name) for call, way, _ in made} == {(call, way) for call in calls for way in WAYS}
    assert {intent for _, _, intent in made} == set(INTENTS)


def test_a_short_run_meets_every_operation_with_every_role_that_may_call_it() -> None:
    calls = sorted(OPERATIONS)
    made = wanted(calls, CASES, random.Random(SEED))
    assert len(made) == CASES
    for call in set(calls) - SLOW:
        let_in = {way.role for way in WAYS.values() if way.ends(*call) == LET_IN}
        assert {way.role for each, way, _ in made if each == call and way.ends(*call) == LET_IN} == let_in
