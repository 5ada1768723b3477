"""Read a whole ledger and say whether it is the one that was written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from farthing.errors import LedgerTampered
from farthing.ledger.entries import Entry, Receipt
from farthing.ledger.ledger_change import Memory, Question, Reader, checked_account, checked_answer_of, entry_of
from farthing.ledger.ledger_replay import Replay
from farthing.ledger.ledger_store import Link, Run, Store
from farthing.ledger.ledger_tables import ACCOUNTS, ANSWERS, COLUMNS, ENTRIES
from farthing.ledger.tamper_evidence import GENESIS, Chain, fingerprint


def shape_of(store: Store, run: Run) -> dict[str, str]:
    """What stands on the ledger's tables, by kind and name, each with a fingerprint of its definition."""
    shape = {f"{kind} {name}": fingerprint(str(text)) for kind, name, text in run(store.list_shape).fetchall()}
    return dict(sorted(shape.items()))


def check_shape(store: Store, run: Run, created: object) -> list[str]:
    """Refuse tables whose shape is not the one that the first entry holds; the guards that are gone."""
    if not isinstance(created, dict):
        raise LedgerTampered("the first entry cannot be read", sequence=1)
    shape = shape_of(store, run)
    wrong = [what for what, digest in shape.items() if created.get(what) != digest]
    gone = [what for what in created if what not in shape and not what.startswith("trigger ")]
    if wrong or gone:
        raise LedgerTampered(f"the {(wrong + gone)[0]} is not as it was made")
    return [what for what in created if what not in shape]


_PAGE = 1000
_FIELDS = ", ".join(f"e.{column}" for column in COLUMNS)
_NEXT = (
    f"SELECT {_FIELDS}, a.body FROM {ENTRIES} e LEFT JOIN {ANSWERS} a ON a.sequence = e.sequence "
    f"WHERE e.sequence > ? ORDER BY e.sequence LIMIT {_PAGE}"
)
_PAGE_OF_ENTRIES = f"SELECT {_FIELDS} FROM {ENTRIES} e WHERE e.sequence > ? ORDER BY e.sequence LIMIT {_PAGE}"
_ACCOUNTS = f"SELECT dataset, analyst, sequence, state, mac FROM {ACCOUNTS}"
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether a ledger verifies, and what is wrong with it. Made by `Ledger.verify`.

    Args:
        ok: Whether it is the ledger that was written.
        entries: How many entries it has.
        head: The signature of the last one.
        problems: What is wrong, in words.
        first_bad: The number of the first entry that is not what was written.
        notes: What is not wrong with the ledger but about it: a guard that was taken away, a key that others can read.

    >>> Verification(True, 3, "ab" * 32).ok
    True
    """

    ok: bool
    entries: int
    head: str
    problems: tuple[str, ...] = ()
    first_bad: int | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Known:
    """What must be found in a ledger besides its own consistency: the witness, receipts, what was seen before."""

    witness: tuple[int, str] | None = None
    witness_place: str = ""
    receipt: Receipt | None = None
    memory: Memory | None = None
    notes: tuple[str, ...] = ()

    def sequences(self) -> set[int]:
        """The numbers of the entries that are known."""
        return {
            *([] if self.witness is None else [self.witness[0]]),
            *([] if self.receipt is None else [self.receipt.sequence]),
            *([] if self.memory is None else [self.memory.sequence]),
        }

    def check(self, ledger: str, entry: Entry) -> None:
        """Refuse an entry that is not the one that is known by its number."""
        sequence = entry.sequence
        if self.witness is not None and self.witness[0] == sequence and self.witness[1] != entry.mac:
            raise LedgerTampered(
                f"entry {sequence} is not the one that the witness {self.witness_place} saw",
                sequence=sequence,
            )
        if self.memory is not None and self.memory.sequence == sequence:
            Reader.check_seen(self.memory.last, "this process", sequence, entry.mac)
        receipt = self.receipt
        if receipt and sequence == receipt.sequence and not receipt.is_of(ledger, entry):
            raise LedgerTampered(f"entry {sequence} is not the one of the receipt", sequence=sequence)


def verify_store(
    store: Store, chain: Chain, known: Known, progress: Progress | None = None
) -> tuple[Verification, Replay]:
    """Check every entry, the totals, the accounts, the answers and the head in one snapshot, in constant memory."""
    replay, notes = Replay(), list(known.notes)
    try:
        with store.snapshot() as link:
            notes += store.notes(link.run)
            _check(store, link, chain, known, replay, progress, notes)
    except LedgerTampered as problem:
        verification = Verification(
            False, replay.sequence, replay.mac, (problem.problem,), problem.sequence, tuple(notes)
        )
        return verification, replay
    return Verification(True, replay.sequence, replay.mac, notes=tuple(notes)), replay


def _check(
    store: Store,
    link: Link,
    chain: Chain,
    known: Known,
    replay: Replay,
    progress: Progress | None,
    notes: list[str],
) -> None:
    question = Question()
    last, mac = Reader(question, store.snapshot_of(link, question), chain, known.memory or Memory(0, GENESIS)).last
    damage = store.integrity(link.run)
    if damage:
        raise LedgerTampered(damage)
    (first,) = link.run(f"SELECT MIN(sequence) FROM {ENTRIES}").fetchone()
    if first is not None and first < 1:  # where nobody reads, and yet a request id is looked for
        raise LedgerTampered(f"entry {first} is before the first", sequence=first)
    expected = known.sequences()
    for row in rows(store, link.run):
        entry, answer = entry_of(chain, row[:-1]), row[-1]
        sequence = entry.sequence
        if sequence == 1:
            gone = _check_first(store, link.run, chain, entry)
            notes += [f"the {what}, which keeps entries from being changed, was removed" for what in gone]
        replay.follow(entry)
        if entry.kind == "released":
            checked_answer_of(chain, entry, answer)
        elif answer is not None:
            raise LedgerTampered(f"entry {sequence} has an answer it never got", sequence=sequence)
        if sequence in expected:
            known.check(chain.ledger, entry)
        if progress is not None and sequence % _PAGE == 0:
            progress(sequence, last)
    _check_end(known, replay, chain.ledger)
    if (replay.sequence, replay.mac) != (last, mac):
        raise LedgerTampered(
            f"the last entry is {replay.sequence} and the head says {last}",
            sequence=min(replay.sequence, last) + 1,
        )
    (stored,) = link.run(f"SELECT COUNT(*) FROM {ANSWERS}").fetchone()
    if stored != replay.released:
        raise LedgerTampered(f"{stored} answers are stored and {replay.released} were released")
    _check_accounts(link.run, chain, replay, known.memory)
    if progress is not None:
        progress(last, last)


def rows(store: Store, run: Run, since: int = 0, *, one_page: bool = False) -> Iterator[tuple[Any, ...]]:
    """All entries after `since` with their answers, a page at a time, or the first page without answers."""
    statement = store.sql(_PAGE_OF_ENTRIES if one_page else _NEXT)
    while True:
        page = run(statement, (since,)).fetchall()
        yield from page
        if one_page or len(page) < _PAGE:
            return
        since = page[-1][0]


def _check_first(store: Store, run: Run, chain: Chain, entry: Entry) -> list[str]:
    """The first entry is of this ledger and of these tables; the guards that are gone."""
    body = entry.body
    if body.get("ledger") != chain.ledger:
        raise LedgerTampered("the first entry belongs to another ledger", sequence=1)
    return check_shape(store, run, body.get("shape"))


def _check_end(known: Known, replay: Replay, ledger: str) -> None:
    end = replay.sequence
    if known.witness is not None and known.witness[0] > end:
        raise LedgerTampered(
            f"the ledger ends at entry {end} and the witness {known.witness_place} has seen entry "
            f"{known.witness[0]}: it is an older copy, and what was spent since is not in it",
            sequence=end + 1,
        )
    receipt = known.receipt
    if receipt is not None and receipt.ledger != ledger:
        raise LedgerTampered(f"the receipt is of another ledger, {receipt.ledger}")
    if receipt is not None and not 0 < receipt.sequence <= end:
        raise LedgerTampered(
            f"the ledger ends at entry {end} and the receipt is of entry {receipt.sequence}: "
            "it was cut short or is an older copy",
            sequence=end + 1,
        )


def _check_accounts(run: Run, chain: Chain, replay: Replay, memory: Memory | None) -> None:
    expected = dict(replay.accounts)
    for row in run(_ACCOUNTS).fetchall():
        dataset, analyst, sequence, state, mac = row
        holding = checked_account(chain, memory or Memory(0, GENESIS), dataset, analyst, sequence, state, mac)
        if expected.pop((dataset, analyst), None) != (sequence, holding):
            raise LedgerTampered(f"the account of {dataset!r} is not what its entries add up to")
    if expected:
        raise LedgerTampered(f"the account of {next(iter(expected))[0]!r} is missing")
