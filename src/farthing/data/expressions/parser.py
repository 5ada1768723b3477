"""Text to tree, by precedence climbing over a closed grammar.

The grammar is the allow-list: a construct that no rule here builds cannot reach an engine, whatever an engine or a
general SQL parser would make of it. Nesting is counted, so that a long text cannot exhaust the stack.

Before that, the text is cut into words (`tokens`). The alphabet is short on purpose: what is not on it is refused
where it stands. There are no comments, because a comment can hide from a reader what an engine will run.
"""

from __future__ import annotations

import datetime
import difflib
import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from farthing.data.expressions.syntax_tree import RESERVED, Node, column, constant
from farthing.errors import InvalidExpression

_AGGREGATE = (
    "a statistic of many rows cannot be used in an expression about one row",
    "ask for it as a statistic",
)
_FILE = ("an expression cannot read files or other tables", "register that table as a dataset of its own")
_RANDOM = ("the result must depend on the row alone", "use sample(...) of the dataset for random rows")
_CLOCK = ("the result must depend on the row alone", "write the date, for example date '2026-01-31'")
_WORDS_PATTERN = (
    "patterns are matched by like only",
    "use like '%...%', which is tried on the public categories",
)
_QUERY = ("sub-queries are not allowed", "join the other table to the dataset first")
_STATEMENT = ("this is a statement, not an expression about one row", "remove it")
_FAILS = ("a function that can fail would show the row that failed", "leave it out")
_WINDOW = ("an expression sees one row at a time", "leave it out")
_TEXT = ("new text cannot be made from text", "use case when ... then ... for new categories")
_SPECIAL = ("numbers that are not finite are not understood", "a missing number is found by x is null")

_GROUPS = {
    _AGGREGATE: "sum avg mean count min max median stddev variance mode quantile list string_agg array_agg "
    "any_value first last",
    _FILE: "read_csv read_csv_auto read_parquet read_text read_blob read_json read_json_auto glob pg_read_file "
    "pg_read_binary_file pg_ls_dir lo_import dblink parquet_scan sniff_csv postgres_scan sqlite_scan query query_table",
    _RANDOM: "random rand randn uuid gen_random_uuid setseed nextval",
    _CLOCK: "now today current_date current_timestamp current_time clock_timestamp localtimestamp getdate",
    _WORDS_PATTERN: "regexp_matches regexp_full_match regexp_replace regexp_extract rlike regexp similar ilike "
    "glob_match",
    _QUERY: "select exists with from union any some values",
    _STATEMENT: "attach detach copy install load pragma set drop create insert update delete export import call use "
    "alter grant explain",
    _FAILS: "error raise_error assert_true raise pg_sleep sleep getenv current_setting pg_terminate_backend "
    "strptime to_date to_timestamp json_extract try try_cast to_number",
    _WINDOW: "over partition row_number rank dense_rank lag lead ntile",
    _TEXT: "concat concat_ws replace substring substr trim ltrim rtrim reverse repeat format printf "
    "chr ascii md5 sha256 hash",
    _SPECIAL: "nan inf infinity",
}

REASONS: dict[str, tuple[str, str]] = {word: reason for reason, words in _GROUPS.items() for word in words.split()}


LONGEST_TEXT = 20_000
MOST_TOKENS = 4_000
LONGEST_NUMBER = 40
LONGEST_STRING = 1_000

_PATTERN = re.compile(
    r"""(?P<space>[ \t\r\n]+)
      | (?P<comment>--|/\*|\*/|\#)
      | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
      | (?P<string>'(?:[^']|'')*')
      | (?P<quoted>"(?:[^"]|"")*")
      | (?P<word>[^\W\d]\w*)
      | (?P<symbol><=|>=|<>|!=|==|//|[-+*/%=<>(),])
    """,
    re.VERBOSE,
)
_SAME = {"!=": "<>", "==": "="}
_REFUSED = {
    ";": ("one expression is read, not a list of statements", "remove the semicolon"),
    ":": ("'::' and ':' are not understood", "write cast(x as integer) or cast(x as double)"),
    ".": ("a name has no parts here", "write the column's name alone, or quote it"),
    "|": ("text cannot be concatenated", "use case when ... then ... for new categories"),
    "^": ("'^' means different things on different engines", "write power(x, 2)"),
    "'": ("the text is not closed", "close it with ' and write '' for a quote inside"),
    '"': ("the quoted name is not closed", 'close it with " and write "" for a quote inside'),
    "[": ("lists and elements are not understood", "use in (...)"),
    "$": ("parameters are not understood", "write the value itself"),
    "?": ("parameters are not understood", "write the value itself"),
    "`": ("backquotes are not understood", 'quote a name with "'),
    "!": ("'!' is not understood", "write not, or <>"),
    "&": ("'&' is not understood", "write and"),
}


@dataclass(frozen=True, slots=True)
class Token:
    """One word: its kind (number, string, name, word, symbol, end), its meaning and where it begins."""

    kind: str
    text: str
    position: int


def tokens(text: str) -> list[Token]:
    """The words of `text`, ending with one of kind `end`."""
    if len(text) > LONGEST_TEXT:
        raise InvalidExpression(
            text, LONGEST_TEXT, f"must be at most {LONGEST_TEXT} characters long", "derive a column for a part of it"
        )
    token_list: list[Token] = []
    position = 0
    while position < len(text):
        match = _PATTERN.match(text, position)
        if match is None or match.lastgroup is None:
            raise _stray(text, position)
        kind, piece = match.lastgroup, match.group()
        if kind == "comment":
            raise InvalidExpression(text, position, "comments are not allowed", "for a double minus write a - (-b)")
        if kind != "space":
            token_list.append(_token(text, kind, piece, position))
        position = match.end()
        if kind == "number" and re.match(r"[\w.]", text[position : position + 1]):
            raise InvalidExpression(text, position, "a number ends here", "write it as 1000, 2.5 or 1e-3")
        if len(token_list) > MOST_TOKENS:
            raise InvalidExpression(
                text, position, f"must have at most {MOST_TOKENS} words", "derive a column for a part of it"
            )
    return [*token_list, Token("end", "", len(text))]


def _token(text: str, kind: str, piece: str, position: int) -> Token:
    if kind == "string":
        return Token("string", _unquoted(text, piece, position), position)
    if kind == "quoted":
        return Token("name", _unquoted(text, piece, position), position)
    if kind == "number" and len(piece) > LONGEST_NUMBER:
        raise InvalidExpression(text, position, f"a number has at most {LONGEST_NUMBER} characters")
    if kind == "word" and not piece.isascii():
        return Token("name", piece, position)  # never a keyword, whatever it looks like
    return Token(kind, _SAME.get(piece, piece), position)


def _unquoted(text: str, piece: str, position: int) -> str:
    quote = piece[0]
    inner = piece[1:-1].replace(quote * 2, quote)
    if len(inner) > LONGEST_STRING:
        raise InvalidExpression(text, position, f"a text has at most {LONGEST_STRING} characters")
    if "\0" in inner or any(0xD800 <= ord(character) <= 0xDFFF for character in inner):
        raise InvalidExpression(
            text, position, "the text holds what no engine can store", "remove NUL and half surrogates"
        )
    return inner


def _stray(text: str, position: int) -> InvalidExpression:
    character = text[position]
    if character in _REFUSED:
        return InvalidExpression(text, position, *_REFUSED[character])
    name = unicodedata.name(character, f"U+{ord(character):04X}").lower()
    return InvalidExpression(text, position, f"the character {name} is not understood", "remove it or quote the name")


DEEPEST = 32
"""Parentheses, calls, cases and signs inside one another."""

FUNCTIONS = {
    "abs": (1, 1), "floor": (1, 1), "ceil": (1, 1), "round": (1, 2), "sign": (1, 1), "sqrt": (1, 1), "ln": (1, 1),
    "log10": (1, 1), "log2": (1, 1), "log": (2, 2), "exp": (1, 1), "power": (2, 2),
    "least": (2, 20), "greatest": (2, 20), "coalesce": (2, 20), "nullif": (2, 2), "clip": (3, 3),
    "year": (1, 1), "month": (1, 1), "day": (1, 1), "days_between": (2, 2),
    "lower": (1, 1), "upper": (1, 1), "length": (1, 1),
}  # fmt: skip
"""Every function, with the fewest and the most arguments it takes."""

SYNONYMS = {"ceiling": "ceil", "pow": "power", "lcase": "lower", "ucase": "upper", "char_length": "length"}
TARGETS = {
    **dict.fromkeys(("integer", "int", "bigint", "int64"), "integer"),
    **dict.fromkeys(("double", "real", "float", "float64"), "double"),
}
_ORDER = {"<", "<=", ">", ">="}
_COMPARISONS = {"=", "<>", *_ORDER}


@lru_cache(maxsize=2048)
def parse(text: str, *, chains: bool = False) -> Node:
    """The tree of `text`; what the grammar does not know is refused where it stands.

    With `chains`, `10 <= age < 25` is read as it is in mathematics, as two comparisons joined by and. Where a text may
    also be tried on an engine, it is refused: SQL would compare a truth value with 25.
    """
    return _Parser(text, chains).whole()


def unknown_function(name: str) -> tuple[str, str]:
    """The rule and the way out for a function that is not supported."""
    if name in REASONS:
        rule, way_out = REASONS[name]
        return f"{name}: {rule}", way_out
    near = difflib.get_close_matches(name, FUNCTIONS, 1)
    return (
        f"the function {name[:40]} is not supported",
        f"did you mean {near[0]}" if near else f"use one of {', '.join(sorted(FUNCTIONS))}",
    )


class _Parser:
    def __init__(self, text: str, chains: bool = False) -> None:
        self.text = text
        self.chains = chains
        self.tokens = tokens(text)
        self.at = 0
        self.depth = 0

    # Reading words

    @property
    def here(self) -> Token:
        return self.tokens[self.at]

    def is_word(self, *words: str) -> bool:
        return self.here.kind == "word" and self.here.text.lower() in words

    def take_word(self, *words: str) -> Token | None:
        return self._step() if self.is_word(*words) else None

    def take_symbol(self, *symbols: str) -> Token | None:
        return self._step() if self.here.kind == "symbol" and self.here.text in symbols else None

    def _step(self) -> Token:
        self.at += 1
        return self.tokens[self.at - 1]

    def expect_word(self, word: str) -> None:
        if not self.take_word(word):
            raise self.unexpected(word)

    def expect_symbol(self, symbol: str) -> None:
        if not self.take_symbol(symbol):
            raise self.unexpected(f"'{symbol}'")

    def fault(self, token: Token, rule: str, way_out: str = "") -> InvalidExpression:
        return InvalidExpression(self.text, token.position, rule, way_out)

    def unexpected(self, missing: str) -> InvalidExpression:
        token = self.here
        # The word before counts too: `attach 'x'` is at fault at its first word.
        for near in self.tokens[max(0, self.at - 1) : self.at + 1]:
            if near.kind == "word" and near.text.lower() in REASONS:
                return self.fault(near, *REASONS[near.text.lower()])
        if token.kind == "end":
            return self.fault(token, f"ends too early, {missing} is missing")
        return self.fault(token, f"{missing} is expected here", "write 'text' in single and \"names\" in double quotes")

    # The grammar, loosest first

    def whole(self) -> Node:
        node = self.disjunction()
        if self.here.kind != "end":
            raise self.unexpected("an operator or the end")
        return node

    def nested(self) -> Node:
        """One expression inside another; the only way in which rules call the top again."""
        self.deeper()
        node = self.disjunction()
        self.depth -= 1
        return node

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.fault(self.here, f"nested more than {DEEPEST} deep", "derive a column for an inner part of it")

    def disjunction(self) -> Node:
        return self.joined("or", self.conjunction)

    def conjunction(self) -> Node:
        return self.joined("and", self.negation)

    def joined(self, word: str, part) -> Node:  # type: ignore[no-untyped-def]
        position = self.here.position
        parts = [part()]
        while self.take_word(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else Node(word, tuple(parts), None, position)

    def negation(self) -> Node:
        token = self.take_word("not")
        if not token:
            return self.comparison()
        self.deeper()
        node = Node("not", (self.negation(),), None, token.position)
        self.depth -= 1
        return node

    def comparison(self) -> Node:
        left = self.sum()
        token = self.here
        if self.take_symbol(*_COMPARISONS):
            right = self.sum()
            node = Node(token.text, (left, right), None, token.position)
            if self.chains and token.text in _ORDER:
                node = self.chained(node, right)
        elif self.take_word("is"):
            negated = self.take_word("not")
            self.expect_word("null")
            node = self.perhaps_not(negated, Node("is null", (left,), None, token.position))
        elif self.is_word("not", "in", "between", "like"):
            negated = self.take_word("not")
            node = self.perhaps_not(negated, self.membership(left))
        else:
            return left
        if (self.here.kind == "symbol" and self.here.text in _COMPARISONS) or self.is_word("is", "in", "between"):
            raise self.fault(self.here, "comparisons do not chain", "join two of them with and")
        return node

    def chained(self, first: Node, middle: Node) -> Node:
        """Further comparisons, each of them with what stood last."""
        links = [first]
        while token := self.take_symbol(*_ORDER):
            right = self.sum()
            links.append(Node(token.text, (middle, right), None, token.position))
            middle = right
        return first if len(links) == 1 else Node("and", tuple(links), None, first.position)

    @staticmethod
    def perhaps_not(negated: Token | None, node: Node) -> Node:
        return Node("not", (node,), None, negated.position) if negated else node

    def membership(self, left: Node) -> Node:
        token = self.here
        if self.take_word("in"):
            self.expect_symbol("(")
            options = self.arguments()
            if not options:
                raise self.fault(token, "in (...) needs at least one value")
            return Node("in", (left, *options), None, token.position)
        if self.take_word("between"):
            low = self.sum()
            self.expect_word("and")
            return Node("between", (left, low, self.sum()), None, token.position)
        if self.take_word("like"):
            pattern = self.sum()
            if self.is_word("escape"):
                raise self.fault(self.here, "escape is not understood", "use in (...) for such categories")
            return Node("like", (left, pattern), None, token.position)
        raise self.unexpected("in, between or like")

    def sum(self) -> Node:
        return self.climbed(("+", "-"), self.product)

    def product(self) -> Node:
        return self.climbed(("*", "/", "//", "%"), self.signed)

    def climbed(self, symbols: tuple[str, ...], part) -> Node:  # type: ignore[no-untyped-def]
        node: Node = part()
        while token := self.take_symbol(*symbols):
            node = Node(token.text, (node, part()), None, token.position)
        return node

    def signed(self) -> Node:
        token = self.take_symbol("-", "+")
        if not token:
            return self.primary()
        self.deeper()
        inner = self.signed()
        self.depth -= 1
        if token.text == "+":
            return inner
        if inner.operator == "constant" and type(inner.value) in {int, float} and inner.value > 0:  # type: ignore[operator]
            return constant(-inner.value, token.position)  # type: ignore[operator]
        return Node("negative", (inner,), None, token.position)

    def primary(self) -> Node:
        token = self.here
        if token.kind == "number":
            return constant(self.number(self._step()), token.position)
        if token.kind == "string":
            return constant(self._step().text, token.position)
        if token.kind == "name":
            return self.not_called(column(self._step().text, token.position))
        if token.kind == "word":
            return self.word()
        if self.take_symbol("("):
            node = self.nested()
            self.expect_symbol(")")
            return node
        raise self.unexpected("a column, a value or '('")

    def word(self) -> Node:
        token = self.here
        word = token.text.lower()
        if word in {"true", "false", "null"}:
            self._step()
            return constant({"true": True, "false": False, "null": None}[word], token.position)
        if word == "case":
            return self.case()
        if word == "cast":
            return self.cast()
        if word in RESERVED:
            raise self.unexpected("a column or a value")
        following = self.tokens[self.at + 1]
        if word == "date" and following.kind == "string":
            self._step()
            return constant(self.date(self._step()), token.position)
        if following.kind == "symbol" and following.text == "(":
            return self.call()
        return column(self._step().text, token.position)

    def not_called(self, node: Node) -> Node:
        if self.here.kind == "symbol" and self.here.text == "(":
            raise self.fault(self.here, "a quoted name is a column, not a function", "remove the quotes")
        return node

    def call(self) -> Node:
        token = self._step()
        name = SYNONYMS.get(token.text.lower(), token.text.lower())
        if name not in FUNCTIONS:
            raise self.fault(token, *unknown_function(name))
        self.expect_symbol("(")
        arguments = self.arguments()
        fewest, most = FUNCTIONS[name]
        if not fewest <= len(arguments) <= most:
            if name == "log":
                raise self.fault(token, "log has a different base on each engine", "write ln(x), log10(x) or log(2, x)")
            count = str(fewest) if fewest == most else f"{fewest} to {most}"
            raise self.fault(token, f"{name} takes {count} arguments, not {len(arguments)}")
        return Node(name, arguments, None, token.position)

    def arguments(self) -> tuple[Node, ...]:
        arguments: list[Node] = []
        if self.take_symbol(")"):
            return ()
        while True:
            arguments.append(self.nested())
            if self.take_symbol(")"):
                return tuple(arguments)
            if not self.take_symbol(","):
                raise self.unexpected("',' or ')'")

    def case(self) -> Node:
        token = self._step()
        subject = None if self.is_word("when") else self.nested()
        parts: list[Node] = []
        while when := self.take_word("when"):
            test = self.nested()
            parts.append(test if subject is None else Node("=", (subject, test), None, when.position))
            self.expect_word("then")
            parts.append(self.nested())
        if not parts:
            raise self.unexpected("when")
        parts.append(self.nested() if self.take_word("else") else constant(None, self.here.position))
        self.expect_word("end")
        return Node("case", tuple(parts), None, token.position)

    def cast(self) -> Node:
        token = self._step()
        self.expect_symbol("(")
        inner = self.nested()
        self.expect_word("as")
        target = self.here
        if target.kind != "word" or target.text.lower() not in TARGETS:
            raise self.fault(target, "a cast makes an integer or a double", "write cast(x as integer)")
        self._step()
        self.expect_symbol(")")
        return Node("cast", (inner,), TARGETS[target.text.lower()], token.position)

    def number(self, token: Token) -> int | float:
        if re.fullmatch(r"[0-9]+", token.text):
            return int(token.text)
        return float(token.text)

    def date(self, token: Token) -> datetime.date:
        return read_date(self.text, token.text, token.position)


def read_date(text: str, spelling: str, position: int | None) -> datetime.date:
    """The day that 'YYYY-MM-DD' names."""
    try:
        if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", spelling):
            raise ValueError
        return datetime.date.fromisoformat(spelling)
    except ValueError:
        raise InvalidExpression(text, position, "there is no such date", "write it as '2026-01-31'") from None
