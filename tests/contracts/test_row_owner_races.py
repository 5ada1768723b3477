"""Two who say at once whose the rows of a table are: the ledger keeps the word of one, and refuses the other."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import farthing as ft
from farthing.errors import InvalidValue
from farthing.ledger.budget_policy import OWNED
from system.ledger.places import Place

ROUNDS = 6
WAYS = ("sender", "receiver")


def at_once(place: Place, act: Any) -> list[Any]:
    """What `act` came to for each of the ways, in threads with a ledger each that begin together."""
    came: dict[str, Any] = {}
    begin = threading.Barrier(len(WAYS))

    def one(way: str) -> None:
        with place.open() as ledger:
            begin.wait(600)
            try:
                came[way] = act(ledger, way)
            except InvalidValue as problem:
                came[way] = problem

    threads = [threading.Thread(target=one, args=(way,)) for way in WAYS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [came[way] for way in WAYS]


def test_of_two_owners_a_ledger_keeps_one(place: Place) -> None:
    with place.open() as ledger:
        ledger.register("payments", 1.0)
    for number in range(ROUNDS):
        text = f"owners of file {number}"
        came = at_once(
            place, lambda ledger, way, text=text: ledger.attach("payments", [(text, f'{OWNED}{{"by":["{way}"]}}')])
        )
        refused = [each for each in came if isinstance(each, InvalidValue)]
        assert len(refused) == 1 and "a row has one owner" in str(refused[0])
    with place.open() as ledger:
        assert len(ledger.sources()["payments"] or ()) == ROUNDS and ledger.verify().ok


def test_of_two_owners_one_is_charged(place: Place, tmp_path: Path) -> None:
    with place.open() as ledger:
        ledger.register("payments", 1.0)
    for number in range(ROUNDS):
        path = tmp_path / f"pay-{number}.csv"
        path.write_text("sender,receiver,amount\n1,2,3\n2,1,4\n")

        def spend(ledger: Any, way: str, path: Path = path) -> Any:
            rows = ft.dataset(path, unit=way, max_rows=1, schema={"amount": (0, 9)})
            study = ft.Study(rows, epsilon=1.0, ledger=ledger, account="payments")
            return study.plan(ft.count(), epsilon=0.125).release(fresh=True)

        refused = [each for each in at_once(place, spend) if isinstance(each, InvalidValue)]
        assert len(refused) == 1 and "one owner" in str(refused[0])
    with place.open() as ledger:
        assert ledger.budget("payments").count == ROUNDS and ledger.verify().ok
