"""What must hold of a ledger after any disaster, given everything that its clients saw."""

from __future__ import annotations

from collections import Counter
from typing import Any

from farthing.errors import LedgerError
from system.ledger.places import DATASET, OTHERS, Place

NANO = 1_000_000_000


def problems(place: Place, said: list[dict[str, Any]], epsilon: float, fits: int) -> list[str]:
    """Everything that is wrong with the ledger at `place`, whose budget holds `fits` charges of `epsilon`."""
    try:
        with place.open(actor="auditor", role="auditor") as ledger:
            verification = ledger.verify()
            found = [f"does not verify: {problem}" for problem in verification.problems]
            entries = list(ledger.entries())
            stored = {request: ledger.stored(request) for request in _requests(said)}
            budget = ledger.budget(DATASET)
            others = [ledger.budget(name) for name in OTHERS if name in ledger.datasets()]
            spent = budget.spent.upper
    except LedgerError as refusal:
        return [f"does not open: {refusal}"]
    found += _order(entries)
    charged = Counter(entry.request_id for entry in entries if entry.kind == "charge")
    released = Counter(entry.request_id for entry in entries if entry.kind == "released")
    found += [f"{request} was charged {n} times" for request, n in charged.items() if n > 1]
    found += [f"{request} was released {n} times" for request, n in released.items() if n > 1]
    found += [f"{request} was released and never charged" for request in released.keys() - charged.keys()]
    if charged.total() > fits:
        found.append(f"{charged.total()} charges in a budget for {fits}")
    if budget.count != charged.total():
        found.append(f"the budget counts {budget.count} charges and the ledger holds {charged.total()}")
    if not spent <= budget.total.epsilon * (1 + 1e-12):
        found.append(f"spent {spent} of {budget.total.epsilon}")
    if not spent >= charged.total() * epsilon * (1 - 1e-12):
        found.append(f"{charged.total()} charges of {epsilon} came to only {spent}")
    for other in others:  # each has paid for what names it, with the first account or not at all
        paid = sum(entry.kind == "charge" and other.dataset in entry.others for entry in entries)
        if other.count != paid or not paid * epsilon * (1 - 1e-12) <= other.spent_upper <= other.total.epsilon:
            found.append(f"{other.dataset} counts {other.count} charges, {other.spent_upper}, and {paid} name it")
    partly = [
        entry.request_id for entry in entries if entry.kind == "released" and entry.others != _payers(entry, entries)
    ]
    found += [f"{request} was released by other accounts than it was charged to" for request in partly]
    return found + _unrecorded(said, charged, stored)


def _payers(entry: Any, entries: list[Any]) -> tuple[str, ...]:
    """The further accounts that were charged for what an entry releases."""
    others: tuple[str, ...] = entries[entry.body["charge"] - 1].others
    return others


def _order(entries: list[Any]) -> list[str]:
    numbers = [entry.sequence for entry in entries]
    whole = numbers == list(range(numbers[0], numbers[0] + len(numbers))) if numbers else False
    return [] if whole else ["the sequence has a gap, or is empty"]


def _requests(said: list[dict[str, Any]]) -> set[str]:
    return {line["request"] for line in said if "request" in line}


def _unrecorded(said: list[dict[str, Any]], charged: Counter[str], stored: dict[str, Any]) -> list[str]:
    """Charges and answers that a client saw and the ledger does not know, or knows otherwise."""
    found = []
    answers: dict[str, str] = {}
    for line in said:
        if "charged" in line and line["charged"] not in charged:
            found.append(f"a client was told that {line['charged']} is charged, and it is not")
        if "request" not in line:
            continue
        request, answer = line["request"], line["answer"]
        if answers.setdefault(request, answer) != answer:
            found.append(f"{request} was answered twice, differently")
        record = stored[request]
        if request not in charged or record is None:
            found.append(f"the answer to {request} was seen and never charged")
        elif (record.state, record.answer) != ("released", answer):
            found.append(f"the answer to {request} that was seen is not the one in the ledger")
    return found
