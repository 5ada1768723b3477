"""Every exception farthing raises on purpose.

    FarthingError
    ├── InvalidValue      (also ValueError)   an argument breaks its rule
    ├── InvalidData       (also ValueError)   a private value is of the wrong kind; the value is never shown
    ├── InvalidExpression (also ValueError)   an expression is not one that farthing can run safely
    │   └── InvalidSQL                        the same of a statement of SQL, with its line and column
    ├── EngineError                           a database failed; its own text is kept out, it may quote a row
    ├── MissingExtra      (also ImportError)  a part of farthing whose optional packages are not installed
    ├── BudgetExceeded                        a filter or ledger refused a charge
    │   └── SessionEnded                      what a session paid for in advance is used up
    ├── Infeasible                            a plan cannot meet what was required of it
    ├── AnswerForfeited                       a request was charged and will never have an answer
    ├── RequestRefused                        a server refused a request, for a reason that has no class here
    └── LedgerError                           the ledger refused; nothing was released
        ├── LedgerTampered                    the ledger does not verify
        ├── LedgerUnavailable                 it cannot be read or written now; retry with the same request id
        └── NotAllowed                        the role may not do this

And two warnings, for stewards: TableChanged, when stored answers are about a table whose rows have changed since;
SamePeople, when a table whose people another account protects gets an account of its own.

Messages state the value, the rule and the way out. They never hold a private row or anything computed
from one. The same facts are on the exception as fields, so that nobody has to parse text.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = [
    "AnswerForfeited",
    "BudgetExceeded",
    "EngineError",
    "FarthingError",
    "Infeasible",
    "InvalidData",
    "InvalidExpression",
    "InvalidSQL",
    "InvalidValue",
    "LedgerError",
    "LedgerTampered",
    "LedgerUnavailable",
    "MissingExtra",
    "NotAllowed",
    "RequestRefused",
    "SamePeople",
    "SessionEnded",
    "TableChanged",
]


class FarthingError(Exception):
    """The root of the tree: catch this to catch everything farthing refuses.

    >>> issubclass(InvalidValue, FarthingError), issubclass(BudgetExceeded, FarthingError)
    (True, True)
    """


class InvalidValue(FarthingError, ValueError):
    """An argument breaks its rule: `name=value: rule; way out.`

    >>> error = InvalidValue("delta", 2, "must be >= 0 and < 1", "use a small probability such as 1e-9")
    >>> print(error)
    delta=2: must be >= 0 and < 1; use a small probability such as 1e-9.
    >>> error.name, error.value, error.rule
    ('delta', 2, 'must be >= 0 and < 1')
    """

    def __init__(self, name: str, value: object, rule: str, way_out: str = "") -> None:
        self.name = name
        self.value = value
        self.rule = rule
        self.way_out = way_out
        tail = f"; {way_out}" if way_out else ""
        super().__init__(f"{name}={_short_text(value)}: {rule}{tail}.")


class InvalidData(FarthingError, ValueError):
    """A private value is of the wrong kind. It is not in the message and not on the exception.

    >>> error = InvalidData("value", "must be whole numbers, not float64", "round them on a public grid first")
    >>> print(error)
    value: must be whole numbers, not float64; round them on a public grid first.
    >>> error.name, error.rule
    ('value', 'must be whole numbers, not float64')
    """

    def __init__(self, name: str, rule: str, way_out: str = "") -> None:
        self.name = name
        self.rule = rule
        self.way_out = way_out
        tail = f"; {way_out}" if way_out else ""
        super().__init__(f"{name}: {rule}{tail}.")


class InvalidExpression(FarthingError, ValueError):
    """An expression is not one that farthing can run safely on every row; the caret shows where.

    The text and the position are public: they come from the author of the expression, never from a row.

    >>> error = InvalidExpression("age < 'x'", 6, "a number cannot be compared with text", "write a number")
    >>> print(error)
    expression, character 7: a number cannot be compared with text; write a number.
        age < 'x'
              ^
    >>> error.position, error.rule
    (6, 'a number cannot be compared with text')
    """

    def __init__(
        self, text: str, position: int | None, rule: str, way_out: str = "", *, column: str | None = None
    ) -> None:
        self.text = text
        self.position = position
        self.rule = rule
        self.column = column  # that is not there, where the rule is about one
        self.way_out = way_out
        tail = f"; {way_out}" if way_out else ""
        where = "" if position is None else f", character {position + 1}"
        super().__init__(f"expression{where}: {rule}{tail}.{_with_caret(text, position)}")


class InvalidSQL(InvalidExpression):
    """A statement of SQL is not one that farthing can answer; the caret shows where.

    It depends on the text and on what is public about the tables, never on a row. Nothing is charged.

    >>> error = InvalidSQL("SELECT income\\nFROM people", 7, "rows never leave the table", "take AVG(income)")
    >>> print(error)
    SQL, line 1, column 8: rows never leave the table; take AVG(income).
        SELECT income
               ^
    >>> error.line, error.place
    (1, 8)
    """

    def __init__(
        self, text: str, position: int | None, rule: str, way_out: str = "", *, column: str | None = None
    ) -> None:
        super().__init__(text, position, rule, way_out, column=column)
        start = text.rfind("\n", 0, position or 0) + 1
        self.line = text.count("\n", 0, start) + 1
        self.place = (position or 0) - start + 1
        tail = f"; {way_out}" if way_out else ""
        if position is None:
            self.args = (f"SQL: {rule}{tail}.",)
            return
        end = text.find("\n", start)
        line = text[start:] if end < 0 else text[start:end]
        where = f"SQL, line {self.line}, column {self.place}"
        self.args = (f"{where}: {rule}{tail}.{_with_caret(line, position - start)}",)


class EngineError(FarthingError):
    """A database refused or failed. Its own text is kept out: engines quote cells in their messages.

    >>> print(EngineError("duckdb", "IOException", "check that the file can still be read"))
    duckdb failed (IOException); check that the file can still be read.
    """

    def __init__(self, engine: str, kind: str, way_out: str = "") -> None:
        self.engine = engine
        self.kind = kind
        self.way_out = way_out
        tail = f"; {way_out}" if way_out else ""
        super().__init__(f"{engine} failed ({kind}){tail}.")


class BudgetExceeded(FarthingError):
    """A charge was refused because it does not fit into what is left; nothing was changed.

    >>> error = BudgetExceeded("epsilon=0.3 exceeds the 0.12 left; lower it.", requested=0.3, remaining=0.12)
    >>> error.requested, error.remaining
    (0.3, 0.12)

    `budget_id` names the budget that refused, where there are several: a dataset, or `dataset/analyst`.
    """

    def __init__(self, message: str, *, requested: object, remaining: object, budget_id: str = "") -> None:
        self.requested = requested
        self.remaining = remaining
        self.budget_id = budget_id
        super().__init__(message)


class SessionEnded(BudgetExceeded):
    """All rounds that a session paid for are used up; nothing was charged, and what is recorded stays.

    `rounds` is how many there were, `way_out` what can still be answered.

    >>> error = SessionEnded("updates", 40, "ask what was asked before, or open another session")
    >>> print(error)
    all 40 updates of this session are used up; ask what was asked before, or open another session.
    >>> error.rounds, error.remaining
    (40, 0)
    """

    def __init__(self, what: str, rounds: int, way_out: str) -> None:
        self.rounds = rounds
        self.way_out = way_out
        all_of_it = f"the only {what.removesuffix('s')}" if rounds == 1 else f"all {rounds:,} {what}"
        used = f"{all_of_it} of this session {'is' if rounds == 1 else 'are'}"
        super().__init__(f"{used} used up; {way_out}.", requested=1, remaining=0)


class Infeasible(FarthingError):
    """A plan cannot meet what was required of it; nothing was spent.

    `blocking` names the statistics whose holds or requirements stand in the way, `closest` is the least error that
    fits for the hardest of them (None when it is not one of them alone), `hardest` is the name of that one (None where
    `closest` is), `epsilon` what all of them would cost. `offers` maps statistics to the closest error that fits for
    each while the others stay as they are; what a planner offers it has tried, and accepts. `holds` says in how many
    releases an offered error is kept, where that is not all of them: a single release may well be closer.

    >>> error = Infeasible("'count' within 2 ...", blocking=("count",), closest=2.9, epsilon=1.5)
    >>> error.blocking, error.closest, error.epsilon
    (('count',), 2.9, 1.5)
    """

    def __init__(
        self,
        message: str,
        *,
        blocking: tuple[str, ...],
        closest: float | None,
        epsilon: float,
        hardest: str | None = None,
        offers: Mapping[str, float] | None = None,
        holds: Mapping[str, str] | None = None,
    ) -> None:
        self.offers = dict(offers or {})
        self.holds = dict(holds or {})
        self.blocking = blocking
        self.closest = closest
        self.hardest = hardest
        self.epsilon = epsilon
        super().__init__(message)


_ANEW = "ask again under a new request id, which is charged separately"


class AnswerForfeited(FarthingError):
    """A request was charged and will never have an answer: the charge stays, and nothing is drawn twice.

    `reason` says what happened, and holds nothing computed from a row.

    >>> print(AnswerForfeited("req-1", "stopped after 30 s"))  # doctest: +NORMALIZE_WHITESPACE
    request 'req-1' was charged and has no answer: stopped after 30 s; the charge stays.
    Ask again under a new request id, which is charged separately.
    """

    def __init__(self, request_id: str, reason: str, way_out: str = _ANEW) -> None:
        self.request_id = request_id
        self.reason = reason
        super().__init__(
            f"request {_short_text(request_id)} was charged and has no answer: {reason}; the charge stays. "
            f"{way_out[0].upper()}{way_out[1:]}."
        )


class LedgerError(FarthingError):
    """The ledger refused, and nothing was released: the root of what can go wrong with a ledger itself.

    >>> issubclass(LedgerTampered, LedgerError), issubclass(LedgerUnavailable, LedgerError)
    (True, True)
    """


class LedgerTampered(LedgerError):
    """The ledger does not verify: it was edited, cut short, or put back to an older state.

    `sequence` is the first entry that is wrong, where one can be named.

    >>> error = LedgerTampered("entry 7 does not carry the signature it was written with", sequence=7)
    >>> print(error)
    entry 7 does not carry the signature it was written with; nothing is charged or released until it verifies.
    >>> error.sequence
    7
    """

    def __init__(self, problem: str, *, sequence: int | None = None) -> None:
        self.problem = problem
        self.sequence = sequence
        super().__init__(f"{problem}; nothing is charged or released until it verifies.")


class LedgerUnavailable(LedgerError):
    """The ledger cannot be read or written now (disk full, locked, read-only, connection lost).

    Nothing was released. A charge whose outcome is unknown is found again by its request id.

    >>> print(LedgerUnavailable("the disk is full", "make room, then retry with the same request id"))
    ledger unavailable: the disk is full; make room, then retry with the same request id.
    """

    def __init__(self, reason: str, way_out: str = "retry with the same request id") -> None:
        self.reason = reason
        self.way_out = way_out
        super().__init__(f"ledger unavailable: {reason}; {way_out}.")


class NotAllowed(LedgerError):
    """The role under which the ledger was opened may not do this.

    >>> print(NotAllowed("auditor", "charge", "open the ledger as curator or analyst"))
    role 'auditor' may not charge; open the ledger as curator or analyst.
    """

    def __init__(self, role: str, action: str, way_out: str = "ask a curator") -> None:
        self.role = role
        self.action = action
        super().__init__(f"role {role!r} may not {action}; {way_out}.")


class RequestRefused(FarthingError):
    """A server refused a request: `code` says why in one stable word, `fields` holds the facts.

    >>> error = RequestRefused("not_found", "there is no dataset 'x'; look at the list.", {"name": "x"})
    >>> print(error.code, error.fields, error)
    not_found {'name': 'x'} there is no dataset 'x'; look at the list.
    """

    def __init__(self, code: str, message: str, fields: Mapping[str, object] | None = None) -> None:
        self.code = code
        self.fields: dict[str, object] = dict(fields or {})
        super().__init__(message)


class MissingExtra(FarthingError, ImportError):
    """A part of farthing was asked for whose optional packages are not installed.

    >>> str(MissingExtra("pictures", "altair", "plots"))
    "pictures need the package altair, which is not installed; run: pip install 'farthing[plots]'"
    """

    def __init__(self, what: str, package: str, extra: str) -> None:
        self.package = package
        self.extra = extra
        super().__init__(
            f"{what} need the package {package}, which is not installed; run: pip install 'farthing[{extra}]'"
        )


class TableChanged(UserWarning):
    """A request was answered from the ledger, and the table has changed since. Only a steward is warned.

    >>> issubclass(TableChanged, FarthingError)
    False
    """


class SamePeople(UserWarning):
    """A table gets an account of its own although many of its people are in another. Only a steward is warned.

    >>> issubclass(SamePeople, FarthingError)
    False
    """


def _short_text(value: object) -> str:
    """A short repr: long inputs are cut so that a message stays one line."""
    text = repr(_without_numpy(value))
    return text if len(text) <= 80 else text[:77] + "..."


def _without_numpy(value: object) -> object:
    """What a scalar of numpy holds, also in a list: 'age' in place of np.str_('age')."""
    if type(value) in (list, tuple):
        return type(value)(map(_without_numpy, value))  # type: ignore[call-arg,call-overload]
    is_scalar = type(value).__module__ == "numpy" and getattr(value, "shape", None) == ()
    return value.item() if is_scalar else value  # type: ignore[attr-defined]


def _with_caret(text: str, position: int | None) -> str:
    """The text around `position` on one line, and a caret below it."""
    start = max(0, (position or 0) - 60)
    window = text[start : start + 100]
    printable = "".join(character if character.isprintable() else " " for character in window)
    lines = f"\n    {printable}"
    return lines if position is None else f"{lines}\n    {' ' * (position - start)}^"
