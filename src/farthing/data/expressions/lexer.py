"""The words of an expression and where each begins.

The alphabet is short on purpose: what is not on it is refused where it stands. There are no comments, because a
comment can hide from a reader what an engine will run.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from farthing.errors import InvalidExpression

_AGGREGATE = (
    "a statistic of many rows cannot stand inside an expression about one row",
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
}  # fmt: skip

REASONS: dict[str, tuple[str, str]] = {
    word: reason for reason, words in _GROUPS.items() for word in words.split()
}


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
    "|": ("text cannot be put together", "use case when ... then ... for new categories"),
    "^": ("'^' means different things on different engines", "write power(x, 2)"),
    "'": ("the text has no end", "close it with ' and write '' for a quote inside"),
    '"': ("the quoted name has no end", 'close it with " and write "" for a quote inside'),
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
        )  # fmt: skip
    found: list[Token] = []
    position = 0
    while position < len(text):
        match = _PATTERN.match(text, position)
        if match is None or match.lastgroup is None:
            raise _stray(text, position)
        kind, piece = match.lastgroup, match.group()
        if kind == "comment":
            raise InvalidExpression(
                text, position, "comments are not allowed", "for a double minus write a - (-b)"
            )
        if kind != "space":
            found.append(_token(text, kind, piece, position))
        position = match.end()
        if kind == "number" and re.match(r"[\w.]", text[position : position + 1]):
            raise InvalidExpression(text, position, "a number ends here", "write it as 1000, 2.5 or 1e-3")
        if len(found) > MOST_TOKENS:
            raise InvalidExpression(
                text, position, f"must have at most {MOST_TOKENS} words", "derive a column for a part of it"
            )
    return [*found, Token("end", "", len(text))]


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
    return InvalidExpression(
        text, position, f"the character {name} is not understood", "remove it or quote the name"
    )
