"""Text to statements: SQLGlot reads them, and what is not a SELECT, or not understood, is refused where it stands.

What SQLGlot understands is far more than what may be asked. So nothing of its tree is used unless a rule names it: the
translators find their rule by the `key` of a node, and call `refuse_other_parts` for it; without a rule it is refused.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from farthing.data.expressions.parser import REASONS
from farthing.errors import InvalidSQL

LONGEST_STATEMENT = 20_000
MOST_WORDS = 4_000
DEEPEST = 24
"""Parentheses inside one another."""
DEEPEST_TREE = 250
"""Operations inside one another: places and names are looked up at each of them, in all that stands below."""

_SHAPE = "write it like SELECT sex, COUNT(*) FROM people GROUP BY sex"
_DIALECT = "duckdb"
_SYMBOLS = {"(", ")", ",", ".", "+", "-", "*", "/", "//", "%", "^", "**", "=", "==", "<>", "!=", "<", "<=", ">", ">=",
            "::", ";"}  # fmt: skip
_STRAY = {
    "?": ("parameters are not understood", "write the value itself"),
    "$": ("parameters are not understood", "write the value itself"),
    ":": ("parameters are not understood", "write the value itself"),
    "@": ("variables are not understood", "write the value itself, and abs(x) for the size of a number"),
    "|": ("text cannot be joined", "use CASE WHEN ... THEN ... END for new categories"),
    "[": ("lists and elements are not understood", "use IN (...)"),
    "{": ("structures are not understood", "name a column"),
    "~": ("patterns are matched by LIKE only", "use LIKE '%...%'"),
    "`": ("backquotes are not understood", 'quote a name with "'),
}
_FIRST_WORDS = ("select", "with", "from", "(")
_ALSO = {
    "analyze": ("it would run the statement on the rows", "EXPLAIN alone shows errors, prices and the SQL"),
    "values": ("it reads no table", "write SELECT ... FROM"),
    "describe": ("the catalogue cannot be queried", "farthing plan and study.dataset.schema show what is public"),
    "show": ("the catalogue cannot be queried", "farthing plan and study.dataset.schema show what is public"),
    "pivot": ("is not understood", "write SELECT ... GROUP BY two columns"),
    "summarize": ("it shows the rows", "write SELECT COUNT(*), AVG(x), STDDEV(x) FROM ..."),
    "merge": ("this is a statement that changes tables", "write SELECT"),
    "truncate": ("this is a statement that changes tables", "write SELECT"),
    "prepare": ("prepared statements are not supported", "write SELECT with the values themselves"),
    "execute": ("prepared statements are not supported", "write SELECT with the values themselves"),
    "deallocate": ("prepared statements are not supported", "write SELECT with the values themselves"),
    "begin": ("there are no transactions: a plan is released whole", "write SELECT"),
    "commit": ("there are no transactions: a plan is released whole", "write SELECT"),
    "rollback": ("there are no transactions: a plan is released whole", "write SELECT"),
    "vacuum": ("this is a statement that changes tables", "write SELECT"),
    "do": ("code blocks are not supported", "write SELECT"),
    "table": ("rows never leave the table", "write SELECT COUNT(*) FROM ..."),
}


@dataclass(frozen=True)
class Statement:
    """One SELECT, or several joined by UNION ALL; `text` is the whole text that it stands in."""

    text: str
    tree: Any


@dataclass(frozen=True)
class Script:
    """Everything that was written: one statement or several, and whether it is only to be explained."""

    text: str
    statements: tuple[Statement, ...]
    explain: bool = False


def read_script(text: object) -> Script:
    """The statements of a text.

    >>> script = read_script("EXPLAIN SELECT COUNT(*) FROM people; SELECT AVG(age) FROM people")
    >>> script.explain, len(script.statements)
    (True, 2)
    >>> read_script("DROP TABLE people")
    Traceback (most recent call last):
    farthing.errors.InvalidSQL: SQL, line 1, column 1: DROP: this is a statement, not a question; write SELECT ...
        DROP TABLE people
        ^
    """
    if not isinstance(text, str) or not text.strip():
        raise InvalidSQL("" if not isinstance(text, str) else text, None, "must be a text with a SELECT")
    if len(text) > LONGEST_STATEMENT:
        raise InvalidSQL(text, None, f"must be at most {LONGEST_STATEMENT:,} characters long", "ask in several parts")
    first = re.match(r"\s*explain\b", text, re.IGNORECASE)
    # Blanks keep every position what it is in the whole text.
    source = text if first is None else re.sub(r"\S", " ", first[0]) + text[first.end() :]
    _check_first_words(text, _words(text, source))
    trees = _trees(text, source)
    if not trees:
        raise InvalidSQL(text, None, "must be a text with a SELECT", 'such as "SELECT COUNT(*) FROM people"')
    return Script(text, tuple(Statement(text, tree) for tree in trees), first is not None)


def position_of(node: Any, text: str = "") -> int | None:
    """Where a part of a statement begins: at the first of its words whose place is known."""
    while node is not None:
        starts = [part.meta["start"] for part in node.walk() if "start" in part.meta]
        if starts:
            return _with_call(node, int(min(starts)), text)
        node = node.parent
    return None


def _with_call(node: Any, start: int, text: str) -> int:
    """The place of a function's name, where only that of its first argument is known."""
    if "start" in node.meta or not text:
        return start
    before = re.search(r"[A-Za-z_]\w*\s*\(\s*$", text[:start]) if hasattr(node, "sql_name") else None
    if before is not None:
        return before.start()
    calls = list(re.finditer(rf"\b{node.key}\s*\(", text[:start], re.IGNORECASE))
    return calls[-1].start() if calls else start


def fault(text: str, node: Any, rule: str, way_out: str = "") -> InvalidSQL:
    """The refusal of a part of a statement."""
    return InvalidSQL(text, position_of(node, text), rule, way_out)


def refuse_other_parts(text: str, node: Any, *known: str) -> None:
    """Refuse a node that has a part without a rule; `known` are the names of those that have one."""
    for name, value in node.args.items():
        if name in known or value is None or value is False or value == []:
            continue
        part = value[0] if isinstance(value, list) else value
        place = part if hasattr(part, "key") else node
        raise fault(text, place, *PARTS.get(name, (f"{_words_of(name)} is not understood here", "leave it out")))


def number_of_rows(text: str, tree: Any, name: str) -> int:
    """What LIMIT or OFFSET says."""
    spelled = str(tree.this) if tree.key == "literal" and not tree.is_string else ""
    if not (spelled.isdecimal() and spelled.isascii() and len(spelled) <= 9):
        raise fault(text, tree, f"{name.upper()} must be a whole number", f"for example {name.upper()} 10")
    return int(spelled)


PARTS = {
    "distinct": ("DISTINCT would show which rows there are", "GROUP BY columns whose values are declared"),
    "qualify": ("QUALIFY asks about other rows", "HAVING asks about released numbers"),
    "windows": ("windows ask about other rows", "GROUP BY makes groups"),
    "into": ("a SELECT writes no table", "leave INTO out, and write the result with --csv"),
    "locks": ("a SELECT locks no rows", "leave it out"),
    "sample": ("a sample is drawn by the dataset", "study dataset.sample(0.1), which also costs less"),
    "laterals": ("LATERAL joins are not understood", "join tables along their keys"),
    "connect": ("CONNECT BY is not understood", "join tables along their keys"),
    "pivots": ("PIVOT is not understood", "GROUP BY two columns"),
    "db": ("the table has no schema or catalogue here", "write its name alone"),
    "catalog": ("the table has no schema or catalogue here", "write its name alone"),
    "recursive": ("a query cannot call itself", "join tables along their keys"),
    "hint": ("hints are not understood", "leave them out"),
    "kind": ("this kind of SELECT is not understood", "list the columns"),
    "cluster": ("this order is not understood", "ORDER BY orders the rows of the result"),
    "sort": ("this order is not understood", "ORDER BY orders the rows of the result"),
    "distribute": ("this order is not understood", "ORDER BY orders the rows of the result"),
    "ignore_nulls": ("IGNORE NULLS is not understood", "missing values are left out anyway"),
    "with_fill": ("this order is not understood", "ORDER BY orders the rows of the result"),
    "except_": ("EXCEPT is not understood", "list the columns"),
    "safe": ("TRY_CAST is not understood", "cells that cannot be read are missing already"),
    "symmetric": ("BETWEEN SYMMETRIC is not understood", "put the smaller number first"),
}


def _words_of(name: str) -> str:
    return name.strip("_").replace("_", " ").upper()


@contextmanager
def _silent() -> Iterator[None]:
    """SQLGlot writes to a log when it gives up on a statement; it is refused here, with a reason."""
    logger = logging.getLogger("sqlglot")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def _words(text: str, source: str) -> list[Any]:
    import sqlglot
    from sqlglot.errors import TokenError

    try:
        words = list(sqlglot.tokenize(source, dialect=_DIALECT))
    except (TokenError, RecursionError):
        rule, way_out = "a quote or a comment is not closed", "close it, and write '' for a quote inside"
        raise InvalidSQL(text, None, rule, way_out) from None
    if len(words) > MOST_WORDS:
        rule = f"must have at most {MOST_WORDS:,} words"
        raise InvalidSQL(text, words[MOST_WORDS].start, rule, "ask in several parts")
    depth = 0
    for word in words:
        depth += (word.text == "(") - (word.text == ")")
        if depth > DEEPEST:
            rule = f"parentheses are nested more than {DEEPEST} deep"
            raise InvalidSQL(text, word.start, rule, "name an inner part with WITH")
        _refuse_symbol(text, word)
    return words


def _refuse_symbol(text: str, word: Any) -> None:
    """Refuse a sign of no meaning here, before any parser gives it one."""
    first = text[word.start]
    if first.isalnum() or first in "_'\"." or word.text in _SYMBOLS:
        return
    rule = _STRAY.get(first, (f"{first!r} is not understood", "leave it out"))
    raise InvalidSQL(text, word.start, *rule)


def _check_first_words(text: str, words: list[Any]) -> None:
    """Refuse whatever does not begin as a SELECT does: no parser gets to see it."""
    begins = True
    for word in words:
        if begins and word.text != ";":
            first = word.text.lower()
            if first not in _FIRST_WORDS:
                rule, way_out = _ALSO.get(first) or REASONS.get(first) or ("this is not a question", "write SELECT")
                if first in REASONS and first not in _ALSO:
                    rule, way_out = "this is a statement, not a question", "write SELECT ... FROM"
                raise InvalidSQL(text, word.start, f"{word.text[:40].upper()}: {rule}", way_out)
        begins = word.text == ";"


def _trees(text: str, source: str) -> list[Any]:
    import sqlglot
    from sqlglot.errors import ParseError, TokenError

    try:
        with _silent():
            parsed = sqlglot.parse(source, dialect=_DIALECT)
            trees = [None if tree is None else tree.transform(_standard) for tree in parsed]
    except ParseError as error:
        raise _unreadable(text, error) from None
    except (TokenError, RecursionError, ValueError, TypeError, AttributeError, KeyError, IndexError):
        # What a parser makes of nonsense is its own affair; that it gave up is all that matters.
        raise InvalidSQL(
            text, None, "cannot be read", "write it like SELECT sex, COUNT(*) FROM people GROUP BY sex"
        ) from None
    for tree in trees:
        _refuse_deep(text, tree)
    return [tree for tree in trees if tree is not None]


def _refuse_deep(text: str, tree: Any) -> None:
    level = [] if tree is None else [tree]
    for _ in range(DEEPEST_TREE):
        level = [child for node in level for child in node.iter_expressions()]
    if level:
        raise InvalidSQL(text, None, "operations are nested too deep", "name inner parts with WITH")


def _standard(node: Any) -> Any:
    """VAR, STD and MEAN, which other engines have, under the names that the parser knows."""
    from sqlglot import exp

    known = {"var": exp.Variance, "std": exp.Stddev, "mean": exp.Avg}
    if node.key != "anonymous" or str(node.this).lower() not in known or len(node.expressions) != 1:
        return node
    standard = known[str(node.this).lower()](this=node.expressions[0])
    standard.meta.update(node.meta)
    return standard


def _unreadable(text: str, error: Any) -> InvalidSQL:
    first = error.errors[0] if error.errors else {}
    line, column = first.get("line"), first.get("col")
    position = None
    if line and column:
        starts = [0, *(place + 1 for place, letter in enumerate(text) if letter == "\n")]
        ends = starts[min(int(line), len(starts)) - 1] + int(column)  # of the word, as SQLGlot counts
        highlight = str(first.get("highlight") or "")
        position = max(0, min(len(text), ends) - max(1, len(highlight)))
    return InvalidSQL(
        text, position, "cannot be read from here on", "write it like SELECT sex, COUNT(*) FROM people GROUP BY sex"
    )
