"""What was asked in sessions and answered, numbered from 1: the first answer that stands here is the answer.

Two servers may answer the same question at once, each with noise of its own. The server that writes the next number
first is right for both: the number can be written once only, by somebody who has seen all before it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import sqlalchemy as sa

from farthing.server.store.store_engine import Store, now
from farthing.server.store.store_tables import asked


@dataclass(frozen=True)
class Asked:
    """One question and its answer; `key` is the same for the same question in other words."""

    number: int
    question: str
    key: str
    value: int
    error: int | None
    paid: bool
    at: int


def after(store: Store, session: str, number: int, limit: int | None = None) -> list[Asked]:
    """Questions of a session after a number, in order."""
    answers = sa.select(asked).where(asked.c.session == session, asked.c.number > number)
    with store.reading() as connection:
        rows = connection.execute(answers.order_by(asked.c.number).limit(limit))
        return [_read(row) for row in rows]


def newest(store: Store, session: str, limit: int) -> list[Asked]:
    """The last questions of a session, in order."""
    answers = sa.select(asked).where(asked.c.session == session)
    with store.reading() as connection:
        rows = connection.execute(answers.order_by(asked.c.number.desc()).limit(limit))
        return [_read(row) for row in rows][::-1]


def counted(store: Store, session: str) -> int:
    """How many questions of a session were answered."""
    with store.reading() as connection:
        most = sa.select(sa.func.max(asked.c.number)).where(asked.c.session == session)
        return int(connection.scalar(most) or 0)


def add(store: Store, session: str, owner: str, one: Asked) -> bool:
    """Write an answer down under its number; False if that number is taken."""
    answer = {"value": one.value, "error": one.error, "paid": one.paid, "key": one.key}
    row = {
        "session": session,
        "number": one.number,
        "owner": owner,
        "question": one.question,
        "answer": json.dumps(answer, allow_nan=False),
        "at": one.at,
    }
    try:
        with store.begin() as connection:
            connection.execute(sa.insert(asked).values(row))
    except sa.exc.IntegrityError:
        return False
    return True


def fresh(number: int, question: str, key: str, value: int, error: int | None, paid: bool) -> Asked:
    """A question that was answered just now."""
    return Asked(number, question, key, value, error, paid, now())


def _read(row: sa.Row[tuple[object, ...]]) -> Asked:
    facts = row._mapping
    answer = json.loads(facts["answer"])
    return Asked(
        int(facts["number"]),
        str(facts["question"]),
        answer["key"],
        answer["value"],
        answer["error"],
        answer["paid"],
        int(facts["at"]),
    )
