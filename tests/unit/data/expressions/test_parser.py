"""Text becomes the tree that SQL readers expect, and faults are found where they stand."""

from __future__ import annotations

import sys

import duckdb
import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import expressions as sql

from farthing.data.expressions import read
from farthing.data.expressions.parser import DEEPEST, FUNCTIONS, LONGEST_TEXT, MOST_TOKENS, REASONS, parse
from farthing.data.expressions.syntax_tree import Node, written
from farthing.data.schema import Schema
from farthing.errors import InvalidExpression

SCHEMA = Schema.read({"a": (1, 9), "b": (1, 9), "c": (1, 9), "p": bool, "q": bool})

_NUMBERS = st.lists(
    st.tuples(st.sampled_from(["+", "-", "*", "%", "//"]), st.sampled_from(["a", "b", "c", "-a", "2", "(b - c)"])),
    min_size=1,
    max_size=6,
).map(lambda parts: "a " + " ".join(f"{operator} {operand}" for operator, operand in parts))
_COMPARED = st.builds(
    "{}{} {} {}".format,
    st.sampled_from(["", "not "]),
    _NUMBERS,
    st.sampled_from(["<", ">=", "=", "<>"]),
    _NUMBERS,
)
_FLAT = st.lists(
    st.tuples(
        st.sampled_from(["and", "or", "and not"]), st.one_of(_COMPARED, st.sampled_from(["p", "not q", "p is null"]))
    ),
    min_size=0,
    max_size=4,
)
_CONDITIONS = st.builds(
    lambda first, rest: " ".join([first, *(f"{word} {part}" for word, part in rest)]), _COMPARED, _FLAT
)

_SAME = {
    sql.Add: "+", sql.Sub: "-", sql.Mul: "*", sql.Mod: "%", sql.IntDiv: "//", sql.Neg: "negative", sql.Not: "not",
    sql.LT: "<", sql.GTE: ">=", sql.EQ: "=", sql.NEQ: "<>", sql.And: "and", sql.Or: "or",
}  # fmt: skip


def by_sqlglot(node: sql.Expression) -> Node:
    """The tree that SQLGlot reads, in our words: a parser written by others, as a twin of ours."""
    if isinstance(node, sql.Paren):
        return by_sqlglot(node.this)
    if isinstance(node, sql.Column):
        return Node("column", (), node.name)
    if isinstance(node, sql.Literal):
        return Node("constant", (), int(node.name))
    if isinstance(node, sql.Is):
        return Node("is null", (by_sqlglot(node.this),))
    if isinstance(node, sql.And | sql.Or):
        word = _SAME[type(node)]
        sides = [by_sqlglot(side) for side in (node.left, node.right)]
        # SQLGlot nests to the left what we keep in one row.
        return Node(word, ((*sides[0].arguments, sides[1]) if sides[0].operator == word else tuple(sides)))
    return Node(
        _SAME[type(node)],
        tuple(by_sqlglot(part) for part in node.args.values() if isinstance(part, sql.Expression)),
    )


@pytest.mark.slow
@given(_CONDITIONS)
@settings(max_examples=150)
def test_precedence_is_that_of_sql(text: str) -> None:
    assert parse(text) == by_sqlglot(sqlglot.parse_one(text, dialect="duckdb"))


@pytest.mark.slow
@given(_CONDITIONS)
@settings(max_examples=100)
def test_writing_and_reading_again_changes_nothing(text: str) -> None:
    node = parse(text)
    assert parse(written(node)) == node


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("A", "A"), ('"a b"', '"a b"'), ('"select"', "select"), ('"case"', '"case"'), ('"a""b"', '"a""b"'),
        ("ünï + 1", '"ünï" + 1'), ("(((a)))", "a"), ("a!=b", "a <> b"), ("a==b", "a = b"), ("+a", "a"), ("- a", "-a"),
        ("a - (b - c)", "a - (b - c)"), ("(a - b) - c", "a - b - c"), ("-(-(a))", "-(-a)"), ("a - -1", "a - (-1)"),
        ("CEILING(a)", "ceil(a)"), ("pow(a, 2)", "power(a, 2)"), ("not a not in (1)", "not not a in (1)"),
        ("a is not null", "not a is null"), ("x = 'it''s'", "x = 'it''s'"),
        ("CAST(a AS BIGINT)", "cast(a as integer)"),
        ("case a when 1 then 2 end", "case when a = 1 then 2 else null end"), (".5 + 1. + 1e3", "0.5 + 1.0 + 1000.0"),
        ("DATE '2020-02-29'", "date '2020-02-29'"), ("date", "date"), ("year(date) = year", "year(date) = year"),
        ("(p and q) or (p and not q)", "p and q or p and not q"), ("p and (q or p)", "p and (q or p)"),
        ("(a = b) = (b = c)", "(a = b) = (b = c)"), ("(a = b) is null", "(a = b) is null"),
    ],
)  # fmt: skip
def test_the_normal_text(text: str, normal: str) -> None:
    assert written(parse(text)) == normal
    assert written(parse(normal)) == normal


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("a < error(b)", 4), ("a < 3 ; b", 6), ("a < 3 -- b", 6), ("a <", 3), ("", 0), ("a b", 2), ("a in ()", 2),
        ("(a", 2), ("a < 'x", 4), ("a + missing", 4), ("a + p", 4), ("a = 'x'", 2), ("abs(a, b)", 0),
        ("1 < a < 3", 6),
        ("p and a", 6), ("case when a then 1 end", 10), ("a in (1, b)", 9), ("a between 1 or 3", 12),
        ("round(a, b)", 9),
        ("cast(a as text)", 10), ("a = null", 4), ("1_000", 1), ("0x1F", 1), ("a.b", 1), ("a < 1.2.3", 7), ("é", 0),
    ],
)  # fmt: skip
def test_the_position_is_that_of_the_fault(text: str, position: int) -> None:
    with pytest.raises(InvalidExpression) as caught:
        read(text, SCHEMA)
    assert caught.value.position == position
    assert f"character {position + 1}" in str(caught.value)


@pytest.mark.parametrize("word", [*REASONS, "eval", "__import__", "a.b", "system"])
def test_no_function_outside_the_list_is_called(word: str) -> None:
    assert word not in FUNCTIONS
    with pytest.raises(InvalidExpression):
        read(f"{word}(a) > 1", SCHEMA)


@pytest.mark.slow
@given(st.text(max_size=60))
@settings(max_examples=150)
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        read(text, SCHEMA)
    except InvalidExpression as error:
        assert error.position is None or 0 <= error.position <= len(text)


_PIECES = st.sampled_from(
    [
        *"()+-*/%,<>='\"", "//", "a", "b", "p", "1", "2.5", "not", "and", "case", "when", "then", "end", "in", "is",
        "null", "between", "like", "cast", "as", "integer", "abs(", "round(", "date", "'x'",
    ]
)  # fmt: skip


@pytest.mark.slow
@given(st.lists(_PIECES, max_size=25))
@settings(max_examples=200)
def test_any_row_of_words_is_read_or_refused(pieces: list[str]) -> None:
    try:
        expression = read(" ".join(pieces), SCHEMA)
    except InvalidExpression:
        return
    assert read(expression.text, SCHEMA).text == expression.text


def _deep_stack(frames: int, text: str) -> None:
    if frames:
        _deep_stack(frames - 1, text)
    else:
        read(text, SCHEMA)


@pytest.mark.parametrize(
    "text",
    [
        "(" * DEEPEST + "a" + ")" * DEEPEST,
        "abs(" * DEEPEST + "a" + ")" * DEEPEST,
        "not " * DEEPEST + "p",
        " + ".join(["a"] * 100),
        " or ".join(["a < 3"] * 400),
        "a in (" + ", ".join(map(str, range(1500))) + ")",
    ],
    ids=["parentheses", "calls", "not", "sum", "or", "in"],
)
def test_the_deepest_allowed_text_fits_into_half_of_the_stack(text: str) -> None:
    assert sys.getrecursionlimit() == 1000
    _deep_stack(400, text)


def test_limits_are_refused_by_name() -> None:
    for text, rule in [
        ("(" * (DEEPEST + 1) + "a" + ")" * (DEEPEST + 1), f"nested more than {DEEPEST} deep"),
        ("a" + " " * LONGEST_TEXT, f"at most {LONGEST_TEXT} characters"),
        ("a," * (MOST_TOKENS // 2 + 1), f"at most {MOST_TOKENS} words"),
        (" + ".join(["a"] * 200), "operations inside one another"),
        ("'" + "x" * 1001 + "'", "at most 1000 characters"),
    ]:
        with pytest.raises(InvalidExpression, match=rule):
            read(text, SCHEMA)


def test_columns_named_like_keywords_functions_and_statements_can_be_used() -> None:
    names = [
        "case",
        "select",
        "date",
        "year",
        "sum",
        "null",
        "order",
        "a b",
        'q"q',
        "日本",
        "1st",
        "drop table t; --",
    ]
    schema = Schema.read(dict.fromkeys(names, (0, 9)))
    for name in names:
        quoted = '"' + name.replace('"', '""') + '"'
        expression = read(f"{quoted} + 1", schema)
        assert expression.columns == (name,)
        assert read(expression.text, schema).text == expression.text


def test_what_is_read_is_what_duckdb_reads() -> None:
    """A last check of operators in one row, by value and by an engine that reads the text by itself."""
    row = {"a": 7, "b": 3, "c": 2, "p": True, "q": False}
    connection = duckdb.connect()
    connection.execute("create table t as select 7 as a, 3 as b, 2 as c, true as p, false as q")
    for text in [
        "a - b - c * a % b // c",
        "not a < b or p and q",
        "a - -b * -c",
        "not p = q",
        "a % b between c - 1 and c",
    ]:
        assert read(text, SCHEMA).value(row) == connection.execute(f"select {text} from t").fetchall()[0][0]
