"""Edits of a stored ledger: cells, rows, tails, replays of older rows, single bits of the file."""

from __future__ import annotations

import copy
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from farthing.errors import FarthingError, LedgerError
from system.ledger.history import History, Rows, copied, files_of, made, rows_of, settled, write_rows
from system.ledger.places import DATASET, Place, sqlite_place

Edit = Callable[[Rows, Rows, random.Random], str]


def change_a_cell(rows: Rows, _: Rows, chance: random.Random) -> str:
    """Another number, another character, nothing, or what stands in the same column elsewhere."""
    table, row, column = _cell(rows, chance)
    before = row[column]
    row[column] = _other(before, [r[column] for r in rows[table]], chance)
    return f"{table}.{column}: {before!r} -> {row[column]!r}"


def remove_a_row(rows: Rows, _: Rows, chance: random.Random) -> str:
    """One row less."""
    table = _table(rows, chance)
    return f"{table}: without {rows[table].pop(chance.randrange(len(rows[table])))}"


def cut_the_tail(rows: Rows, _: Rows, chance: random.Random) -> str:
    """The last entries gone."""
    keep = chance.randrange(len(rows["farthing_entries"]))
    del rows["farthing_entries"][keep:]
    return f"entries: the first {keep} only"


def swap_two_rows(rows: Rows, _: Rows, chance: random.Random) -> str:
    """Two rows of one table in each other's place, but for their first column."""
    table = chance.choice([name for name in rows if len(rows[name]) > 1])
    one, two = chance.sample(rows[table], 2)
    columns = list(one)[1:]
    if chance.random() < 0.5:
        columns = chance.sample(columns, 1)
    for column in columns:
        one[column], two[column] = two[column], one[column]
    return f"{table}: {columns} swapped"


def add_a_row(rows: Rows, _: Rows, chance: random.Random) -> str:
    """A copy of a row under another name or number."""
    table = _table(rows, chance)
    row = dict(chance.choice(rows[table]))
    first = next(iter(row))
    row[first] = row[first] + chance.choice((1000, -1000)) if isinstance(row[first], int) else f"{row[first]}-again"
    rows[table].append(row)
    return f"{table}: a copy as {row[first]!r}"


def replay_a_row(rows: Rows, older: Rows, chance: random.Random) -> str:
    """A row as it really was at an earlier moment, marks and all."""
    table = _table(rows, chance)
    first = next(iter(rows[table][0]))
    same = [(now, then) for now in rows[table] for then in older[table] if now[first] == then[first]]
    if not same:
        return "nothing"
    now, then = chance.choice(same)
    now.update(then)
    return f"{table}: {now[first]!r} as it was"


def replay_a_table(rows: Rows, older: Rows, chance: random.Random) -> str:
    """A table, or all but one, as they were."""
    table, others = _table(rows, chance), chance.random() < 0.5
    for name in rows:
        if (name == table) != others:
            rows[name] = older[name]
    return f"{'all but' if others else 'only'} {table} as it was"


EDITS: list[Edit] = [
    change_a_cell, change_a_cell, change_a_cell, change_a_cell, remove_a_row, cut_the_tail, swap_two_rows, add_a_row,
    replay_a_row, replay_a_table,
]  # fmt: skip


def _table(rows: Rows, chance: random.Random) -> str:
    return chance.choice([name for name, own in rows.items() if own])


def _cell(rows: Rows, chance: random.Random) -> tuple[str, dict[str, Any], str]:
    """Every column of every table is as likely as any other."""
    table, column = chance.choice([(name, column) for name, own in rows.items() if own for column in own[0]])
    return table, chance.choice(rows[table]), column


def _other(value: Any, column: list[Any], chance: random.Random) -> Any:
    if chance.random() < 0.2:
        return chance.choice(column)
    if chance.random() < 0.05:
        return None if value is not None else ""
    if isinstance(value, int):
        return chance.choice([value + 1, value - 1, -value, 0, 2 * value, value ^ (1 << chance.randrange(30))])
    if isinstance(value, bytes):
        return _one_bit(value, chance)
    if not value:
        return chance.choice(["x", " ", "0"])
    at = chance.randrange(len(value))
    if value[at].isdigit() or chance.random() < 0.5:
        digit = str((int(value[at]) + chance.randint(1, 9)) % 10) if value[at] in "0123456789" else "_"
        return value[:at] + digit + value[at + 1 :]
    return chance.choice([value + " ", value[:-1], value.swapcase(), value[:at] + value[at + 1 :], ""])


def _one_bit(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(8 * len(data))
    changed = bytearray(data)
    changed[at // 8] ^= 1 << (at % 8)
    return bytes(changed)


class Archive:
    """A ledger with a history, itself at an earlier moment, and fresh copies to spoil."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.place = sqlite_place(folder)
        self.history = made(self.place, 12)
        settled(self.place)
        self.older = copied(self.place, folder / "older")
        self.older_receipts = len(self.history.receipts)
        with self.place.open() as ledger:
            self.history.live(ledger, 6, 12)
        settled(self.place)
        self.rows = rows_of(self.place)
        self.older_rows = rows_of(self.older)

    def fresh(self, *, witness: bool = False) -> Place:
        """A copy; without the witness, so that the chain alone has to tell."""
        shutil.rmtree(self._folder / "spoilt", ignore_errors=True)
        return copied(self.place, self._folder / "spoilt", witness=witness)

    def edited(self, chance: random.Random) -> tuple[Place, str] | None:
        """A copy with one edit of its rows, or None when the edit changed nothing or SQLite itself refused it."""
        rows = copy.deepcopy(self.rows)
        told = chance.choice(EDITS)(rows, self.older_rows, chance)
        place = self.fresh()
        try:
            write_rows(place, rows)
        except sqlite3.DatabaseError:
            return None
        return None if rows_of(place) == self.rows else (place, told)

    def flipped(self, chance: random.Random) -> tuple[Place, str]:
        """A copy with one bit of the database file turned over."""
        place = self.fresh()
        path = Path(place.url)
        data = bytearray(path.read_bytes())
        at = chance.randrange(8 * len(data))
        data[at // 8] ^= 1 << (at % 8)
        path.write_bytes(data)
        return place, f"bit {at % 8} of byte {at // 8}"

    def readable(self, place: Place) -> bool:
        """Whether the tables at `place` still say what they said."""
        try:
            return rows_of(place) == self.rows
        except (sqlite3.DatabaseError, UnicodeDecodeError):
            return False


def verdict(place: Place, history: History, same: bool) -> str:
    """`refused` or `works`, or in capitals what must not happen."""
    try:
        ledger = place.open(actor="auditor")
    except LedgerError:
        return "refused"
    except Exception as error:
        return f"UNCLEAN at opening: {type(error).__name__}: {error}"
    with ledger:
        if not same:
            return "NOT DETECTED"
        try:
            return _works(ledger, history)
        except FarthingError:
            return "refused"
        except Exception as error:
            return f"UNCLEAN in use: {type(error).__name__}: {error}"


def _works(ledger: Any, history: History) -> str:
    """A ledger whose tables read as before must also find everything: an index can be spoilt as well."""
    for request, answer in history.answers.items():
        stored = ledger.stored(request)
        if stored is None or stored.answer != answer:
            return f"LOST {request}"
    again = ledger.charge(DATASET, 0.01, request_id="request-0")
    if not again.repeated:
        return "CHARGED TWICE"
    count = ledger.budget(DATASET).count
    ledger.charge(DATASET, 0.01, request_id="one more")
    if ledger.budget(DATASET).count != count + 1 or not ledger.verify().ok:
        return "COUNTS WRONG"
    return "works"


def spoilt(archive: Archive, times: int, chance: random.Random) -> Iterator[tuple[str, str, str]]:
    """`times` edits and flips in turn: what was done, which kind it is, and the verdict."""
    done = 0
    while done < times:
        if done % 2:
            place, told = archive.flipped(chance)
            same = archive.readable(place)
            kind = "flip that changes nothing" if same else "flip"
        else:
            found = archive.edited(chance)
            if found is None:
                continue
            (place, told), same, kind = found, False, "edit"
        done += 1
        yield told, kind, verdict(place, archive.history, same)


def run_flips(folder: Path, times: int, chance: random.Random) -> Iterator[str]:
    """The long run."""
    archive = Archive(folder)
    counts: dict[tuple[str, str], int] = {}
    for told, kind, seen in spoilt(archive, times, chance):
        counts[kind, seen] = counts.get((kind, seen), 0) + 1
        if seen not in ("refused", "works") or (kind != "flip that changes nothing" and seen != "refused"):
            yield f"{kind}: {told}: {seen}, WRONG"
    yield from (f"{kind}: {n} {seen}" for (kind, seen), n in sorted(counts.items()))
    yield f"{sum(path.stat().st_size for path in files_of(archive.place))} bytes in all"
