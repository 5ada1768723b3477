"""The two doors to a ledger, the curator and the command line, do the same on a file and on a server."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from asking import plan, the_people
from farthing.cli.commands import main
from farthing.curator import Curator
from system.ledger.places import Place


def run(place: Place, *words: str) -> tuple[int, str]:
    key = ["--key", place.key] if place.key else []
    result = CliRunner().invoke(main, ["ledger", *words, "--ledger", place.url, *key])
    return result.exit_code, result.output


@pytest.mark.slow
def test_a_release_is_charged_recorded_and_found_again(place: Place) -> None:
    with place.open() as ledger:
        curator = Curator(ledger)
        curator.register(the_people(), "survey", epsilon=1.0, delta=1e-9)
        first = curator.release(the_people(), plan(), ledger_name="survey", request_id="r-1")
    with place.open() as ledger:
        again = Curator(ledger).release(the_people(), plan(), ledger_name="survey", request_id="r-1")
        assert again.repeated and again.receipt == first.receipt and ledger.budget("survey").count == 1
        assert again.answers["years"].tolist() == first.answers["years"].tolist()
        assert ledger.verify(first.receipt).ok


def test_budgets_are_set_shown_and_verified_from_the_command_line(place: Place) -> None:
    assert run(place, "budget", "set", "census", "--epsilon", "1", "--new")[0] == 0
    assert run(place, "grant", "census", "bob", "--epsilon", "0.5")[0] == 0
    code, printed = run(place, "reserve", "census", "--epsilon", "0.25")
    assert code == 0 and "set aside 0.25, left 0.75" in printed
    code, printed = run(place, "show")
    assert code == 0 and "census / bob" in printed and "4 entries, verified" in printed
    assert place.url not in printed or "://" not in place.url  # an address holds a password
    code, printed = run(place, "verify", "--json")
    assert code == 0 and json.loads(printed)["ok"] is True
    assert len(run(place, "export")[1].splitlines()) == 4
