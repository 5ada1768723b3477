"""The releases of a ledger as a list: what each is called and asks, whom it protects, of which version, by whom."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from farthing.ledger import Entry, Ledger, Receipt
from farthing.ledger.table_versions import Version
from farthing.study.release import answer_facts, answer_subject


@dataclass(frozen=True)
class ReleaseRecord:
    """One release in a ledger. Made by `release_list`.

    Args:
        request_id: The name of its request; `Study.released` has the answers.
        accounts: The accounts that paid.
        title: What people call it: as they said, or what it is about.
        statistics: The names of its statistics; of sessions and synthetic tables none.
        unit: Whom it protects.
        version: Which version of its table was read; None for analysts, and where nobody can tell.
        who: Who asked: an analyst, or the curator.
        when: When it was recorded, in UTC.
        epsilon: The epsilon that was charged.
        delta: The delta that was charged.

    >>> from datetime import UTC
    >>> at = datetime(2026, 3, 1, tzinfo=UTC)
    >>> one = ReleaseRecord("r", ("people",), "the yearbook", ("count",), "row, add-remove", None, "ada", at, 0.5, 0.0)
    >>> one.to_dict()["when"]
    '2026-03-01T00:00:00+00:00'
    """

    request_id: str
    accounts: tuple[str, ...]
    title: str
    statistics: tuple[str, ...]
    unit: str
    version: Version | None
    who: str
    when: datetime
    epsilon: float
    delta: float

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready data; an infinite epsilon is None.

        Returns:
            The facts by name.
        """
        version = None if self.version is None else {**self.version._asdict(), "text": str(self.version)}
        return {
            "request_id": self.request_id,
            "accounts": list(self.accounts),
            "title": self.title,
            "statistics": list(self.statistics),
            "unit": self.unit,
            "version": version,
            "who": self.who,
            "when": self.when.isoformat(),
            "epsilon": None if self.epsilon == float("inf") else self.epsilon,
            "delta": self.delta,
        }


def release_list(
    ledger: Ledger, account: str | Collection[str] | None = None, last: int | None = None
) -> list[ReleaseRecord]:
    """The releases of a ledger, or of one account, oldest first; an analyst sees their own, without versions.

    Args:
        ledger: The open ledger.
        account: Only releases that this account, or one of these, paid for.
        last: Only so many, the last ones.

    Returns:
        Plans, sessions, series and synthetic tables that were paid for and have an answer.

    >>> import pyarrow, tempfile, farthing as ft
    >>> from farthing.study.release_list import release_list
    >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)}, name="people")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db")
    ...     _ = study.plan(ft.count(), ft.mean("age")).release(title="the yearbook")
    ...     (one,) = release_list(study.ledger)
    ...     print(one.title, one.statistics, one.version.number)
    ...     study.close()
    the yearbook ('count', 'mean of age') 1
    """
    kept: deque[Entry] = deque(maxlen=last)
    approved: dict[str, int] = {}
    wanted = {account} if isinstance(account, str) else account
    for entry in ledger.entries():
        if wanted is not None and not any(map(entry.is_about, wanted)):
            continue
        if entry.kind == "charge" and entry.right is not None and "request" in entry.right:
            approved[entry.request_id] = int(entry.right["request"])
        # Rounds of a session come in large numbers, and cost nothing.
        if entry.kind == "released" and (entry.body["nano"], entry.body["units"]) != (0, 0):
            kept.append(entry)
    versions = {} if ledger.role == "analyst" else ledger.versions().by_request
    return [_record(ledger, each, versions.get(each.request_id), approved.get(each.request_id)) for each in kept]


def _record(ledger: Ledger, entry: Entry, version: Version | None, request: int | None) -> ReleaseRecord:
    facts, receipt = answer_facts(ledger, entry.request_id), Receipt.of(ledger.id, entry)
    assert receipt is not None  # of what was released there is one
    plan = facts["plan"] if isinstance(facts.get("plan"), Mapping) else {}
    asked_as = "" if request is None else ledger.requests.one(request).title
    return ReleaseRecord(
        entry.request_id,
        (entry.dataset, *entry.others),
        str(plan.get("title") or asked_as or answer_subject(facts, entry.request_id)),
        tuple(str(answer["name"]) for answer in facts.get("answers", ())),
        str(plan.get("unit") or ledger.budget(entry.dataset).unit),
        version,
        entry.analyst or entry.actor,
        entry.when,
        receipt.epsilon,
        receipt.delta,
    )
