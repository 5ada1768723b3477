"""CSV files: what the first line says, where rows end, and whether each row can be read without asking the others.

A file is read by these rules, which look at no row to read another one:

    a row        ends at a line feed outside quotes; a carriage return before it belongs to the end
    a quoted cell begins and ends with a double quote; inside it a quote is doubled, and line breaks are text
    dropped      a row with too few cells, one of more than 2 MB
    cut          cells beyond the last column
    a letter     a byte that is not UTF-8: read as Windows-1252, which includes the letters of Latin-1
    a space      a carriage return outside quotes that no line feed follows (Python before 3.13 and pandas write such)

A program that writes a table by RFC 4180 (or as those two do) writes rows that are complete, whatever is in
their cells. A quote elsewhere, or one that is never closed, shows that the writer does not: one cell may then hold the
rows of others. Such a file is not read at all. Whether that happens depends on the writer and not on a row of a table.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import numpy as np

from farthing.data.schema import folded
from farthing.errors import InvalidData, InvalidValue

CSV = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
LONGEST_HEADER = 2**20
LONGEST_ROW = 2_000_000
"""Bytes of a row with its line break; a longer row is dropped."""

_BLOCK = 2**20  # shorter than a row may be, so that no row that begins and ends in one block is too long
_BOM = b"\xef\xbb\xbf"
_QUOTE, _FEED, _RETURN = b'"\n\r'

T = TypeVar("T")
Stamp = tuple[int, int, int, int, int]


@dataclass(frozen=True)
class Layout:
    """How the rows of a file lie in it. PRIVATE: computed from all rows, for the steward alone."""

    rows: int
    longest: int
    bare_returns: int = 0
    one_line_end: bool = True
    is_utf8: bool = True
    fault: str | None = None
    line: int = 0

    @property
    def is_plain(self) -> bool:
        """Whether every reader that knows quotes and line feeds finds the same rows."""
        return self.longest <= LONGEST_ROW and not self.bare_returns and self.one_line_end and self.is_utf8


def header(path: str) -> tuple[list[str], str]:
    """The names of the columns of a CSV file and what separates them, from its first line and nothing else."""
    # Bytes: a text reader would decode, and refuse, rows beyond the first line.
    first = read_safely(path, lambda: _first_line(path))
    try:
        line = None if b"\0" in first else first.decode("utf-8-sig")  # of UTF-16, every second byte is 0
    except UnicodeDecodeError:
        line = None
    if line is None:  # raised here, where no context holds the bytes that could not be decoded
        raise InvalidValue("source", path, "must be UTF-8 text, and its first line is not", "save it as UTF-8")
    separator = delimiter(line)
    names: list[str] = []
    # A longer one is a file whose lines end otherwise, rows and all; an odd quote opens a name that goes on below.
    if len(first) <= LONGEST_HEADER and line.count('"') % 2 == 0:
        with contextlib.suppress(csv.Error):
            names = next(csv.reader([line.strip("\r\n")], delimiter=separator, strict=True), [])
    if names and all(names) and len(set(map(folded, names))) != len(names):
        raise InvalidValue(
            "source",
            path,
            "must not have two columns of one name in its first line, ignoring case (age and AGE are the same)",
            "rename one of the two, or add a header line if the first line is a row",
        )
    if not names or not all(names):
        way_out = "add a header line" + (", and end lines with line feeds" if "\r" in line.rstrip("\r\n") else "")
        raise InvalidValue("source", path, "must start with a line of column names, each once", way_out)
    return names, separator


def delimiter(line: str) -> str:
    """What separates the names in a header line: the most frequent of comma, semicolon, tab and bar."""
    return max(",;\t|", key=line.count)


def layout(path: str) -> Layout:
    """Read a file to its end, and say where its rows are and whether its quotes are in place."""
    _, separator = header(path)
    return read_safely(path, lambda: _layout(_blocks(path), ord(separator)))


@dataclass(frozen=True)
class Ragged:
    """Rows of another length than the header, and the line on which the first of each begins. PRIVATE, as a layout is.

    A blank line is none of them.
    """

    short: int = 0
    short_line: int = 0
    long: int = 0
    long_line: int = 0


def ragged(path: str) -> Ragged:
    """The rows with fewer and with more cells than the header has, of a file whose quotes close."""
    names, separator = header(path)
    short = first_short = long = first_long = inside = seen = length = 0
    line = row_line = 1
    for _, body, _, last in _blocks(path):
        here = np.frombuffer(body, dtype=np.uint8)
        feeds, quotes = np.flatnonzero(here == _FEED), np.flatnonzero(here == _QUOTE)
        cuts = np.flatnonzero(here == ord(separator))
        ends, cuts = (places[(np.searchsorted(quotes, places) + inside) % 2 == 0] for places in (feeds, cuts))
        begun = len(here) - 1 - int(ends[-1]) if len(ends) else length + len(here)
        if last and begun:
            ends = np.append(ends, len(here))  # the end of a file ends its last row
        if len(ends):
            cells = np.diff(np.searchsorted(cuts, ends), prepend=0) + 1
            sizes = np.diff(ends, prepend=-1) - 1
            cells[0] += seen
            sizes[0] += length
            returns = (here[np.maximum(ends - 1, 0)] == _RETURN) & (ends > 0)
            blank = (cells == 1) & (sizes <= returns)
            lines = np.append(row_line, line + np.searchsorted(feeds, ends[:-1], side="right"))
            few, many = (cells < len(names)) & ~blank, cells > len(names)
            first_short = first_short or (int(lines[np.argmax(few)]) if few.any() else 0)
            first_long = first_long or (int(lines[np.argmax(many)]) if many.any() else 0)
            short, long = short + int(few.sum()), long + int(many.sum())
            seen, length = len(cuts) - int(np.searchsorted(cuts, ends[-1])), begun
            row_line = line + int(np.searchsorted(feeds, ends[-1], side="right"))
        else:
            seen, length = seen + len(cuts), length + len(here)
        inside, line = (inside + len(quotes)) % 2, line + len(feeds)
    return Ragged(short, first_short, long, first_long)


def refuse_broken(path: str, scan: Layout) -> None:
    """Refuse a file whose quotes are not in place; the line is not named, since rows decide it."""
    if scan.fault is not None:
        raise InvalidData(
            f"source {os.path.basename(path)!r}",
            "a quote is not closed, or stands where no cell begins or ends, so one row could swallow others",
            "write the file again with quotes doubled inside cells, or as Parquet; farthing check names the line",
        )


def rewrite(path: str, target: str) -> None:
    """A copy of plain rows in UTF-8: none is too long, each ends with a line feed, bare carriage returns are spaces."""
    _, separator = header(path)

    def copied() -> None:
        # Not readable for others from its first byte on.
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as file:
            for piece in _plain_rows(_blocks(path, _as_utf8), ord(separator)):
                file.write(piece)

    read_safely(path, copied)


def stamp(path: str) -> Stamp:
    """What changes when a file is written or replaced."""
    facts = read_safely(path, lambda: os.stat(path))
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


def read_safely(path: str, reading: Callable[[], T]) -> T:
    """What `reading` finds, or a refusal that holds nothing of what was read."""
    refusal: InvalidValue | None = None
    try:
        return reading()
    except (OSError, EOFError, zlib.error) as problem:
        reason = getattr(problem, "strerror", None) or type(problem).__name__
        refusal = InvalidValue("source", path, f"cannot be read ({reason})", "check the file")
    raise refusal  # here, where no context holds the original one


def _opened(path: str) -> Any:
    return gzip.open(path, "rb") if path.lower().endswith(".gz") else open(path, "rb")


def _first_line(path: str) -> bytes:
    with _opened(path) as file:
        return bytes(file.readline(LONGEST_HEADER + 1))


@dataclass(frozen=True)
class _Block:
    """A part of a file, and what stands in it outside of quotes."""

    body: Any
    ends: Any  # the line feeds that end a row
    paired: Any  # carriage returns before those
    bare: Any  # carriage returns that end nothing
    fault: str | None
    line: int


def _blocks(
    path: str, text: Callable[[Iterable[bytes]], Iterable[bytes]] = lambda pieces: pieces
) -> Iterator[tuple[bytes, bytes, bytes, bool]]:
    """Parts of a file with the byte before, the two bytes after, and whether it is the last."""
    before, held, at_start = b"\n", b"", True
    with _opened(path) as file:
        for more in text(iter(lambda: file.read(_BLOCK), b"")):
            held += more.removeprefix(_BOM) if at_start else more
            at_start = False
            if len(held) > 2:
                yield before, held[:-2], held[-2:], False
                before, held = held[-3:-2], held[-2:]
    yield before, held, b"\n\n", True  # the end of a file ends its last row


def _as_utf8(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same text in UTF-8: each byte that is not UTF-8 is read as a letter of Windows-1252.

    Quotes, separators and line ends stay where they are: none of their bytes is part of anything longer.
    """
    decoder = codecs.getincrementaldecoder("utf-8")(_letters_of_windows())
    for piece in pieces:
        yield decoder.decode(piece).encode()
    yield decoder.decode(b"", True).encode()


@cache
def _letters_of_windows() -> str:
    """The name under which Python knows what to do with other bytes."""
    letters = {byte: bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in range(0x80, 0xA0)}

    def letter(problem: UnicodeError) -> tuple[str, int]:
        assert isinstance(problem, UnicodeDecodeError)
        return problem.object[problem.start : problem.end].decode("latin-1").translate(letters), problem.end

    codecs.register_error("farthing.windows-1252", letter)
    return "farthing.windows-1252"


def _is_utf8(decoder: codecs.IncrementalDecoder, body: bytes, last: bool) -> bool:
    try:
        decoder.decode(body, last)
    except UnicodeDecodeError:
        return False
    return True


def _scanned(parts: Iterator[tuple[bytes, bytes, bytes, bool]], separator: int) -> Iterator[_Block]:
    """The blocks of a file; quotes are counted, so that inside and outside are distinguished by the parity before.

    A quote that makes the count odd opens a cell, or is the second of a doubled one: before it stands a separator, a
    line feed or a quote. One that makes it even closes a cell, or is the first of a doubled one: after it stands a
    separator, the end of a row or a quote. The first quote for which this does not hold is a fault.
    """
    inside, line, opened_at = 0, 1, 1
    for before, body, after, last in parts:
        padded = np.frombuffer(before + body + after, dtype=np.uint8)
        here = padded[1:-2]
        feeds, quotes = np.flatnonzero(here == _FEED), np.flatnonzero(here == _QUOTE)
        returns = np.flatnonzero(here == _RETURN)
        fault: str | None = None
        where = 0
        if len(quotes):
            opens = (np.arange(len(quotes)) + inside) % 2 == 0
            ahead, following = padded[quotes], padded[quotes + 2]
            ends_row = (following == _RETURN) & (padded[quotes + 3] == _FEED)
            misplaced = ~_is_one_of(np.where(opens, ahead, following), (_QUOTE, separator, _FEED))
            misplaced &= opens | ~ends_row
            if misplaced.any():
                worst = int(np.argmax(misplaced))
                fault = _INSIDE_A_CELL if opens[worst] else _AFTER_A_QUOTE
                where = line + int(np.searchsorted(feeds, quotes[worst]))
            if opens.any():
                opened_at = line + int(np.searchsorted(feeds, quotes[opens][-1]))
        outside = feeds[(np.searchsorted(quotes, feeds) + inside) % 2 == 0]
        returns = returns[(np.searchsorted(quotes, returns) + inside) % 2 == 0]
        ending = padded[returns + 2] == _FEED
        inside, line = (inside + len(quotes)) % 2, line + len(feeds)
        if last and inside and fault is None:
            fault, where = _NEVER_CLOSED, opened_at
        yield _Block(here, outside, returns[ending], returns[~ending], fault, where)


_INSIDE_A_CELL = "a quote stands inside a cell that is not quoted"
_AFTER_A_QUOTE = "text follows the closing quote of a cell"
_NEVER_CLOSED = "a quote is never closed"


def _is_one_of(values: Any, choices: tuple[int, ...]) -> Any:
    matches = values == choices[0]
    for value in choices[1:]:
        matches = matches | (values == value)
    return matches


def _layout(parts: Iterator[tuple[bytes, bytes, bytes, bool]], separator: int) -> Layout:
    rows = longest = begun = bare = paired = 0
    is_utf8, decoder = True, codecs.getincrementaldecoder("utf-8")()

    def decoded() -> Iterator[tuple[bytes, bytes, bytes, bool]]:
        nonlocal is_utf8
        for part in parts:
            is_utf8 = is_utf8 and _is_utf8(decoder, part[1], part[3])
            yield part

    for block in _scanned(decoded(), separator):
        if len(block.ends):
            lengths = np.diff(block.ends, prepend=-1)
            longest = max(longest, begun + int(lengths[0]), int(lengths.max()))
            begun = len(block.body) - 1 - int(block.ends[-1])
            rows += len(block.ends)
        else:
            begun += len(block.body)
        bare, paired = bare + len(block.bare), paired + len(block.paired)
        if block.fault is not None:
            return Layout(rows, longest, fault=block.fault, line=block.line)
    # In a file of one column, DuckDB takes a second kind of end for two rows.
    one_line_end = paired in (
        0,
        rows,
    )
    return Layout(max(0, rows + (begun > 0) - 1), max(longest, begun), bare, one_line_end, is_utf8)


def _plain_rows(parts: Iterator[tuple[bytes, bytes, bytes, bool]], separator: int) -> Iterator[bytes]:
    begun: list[bytes] = []
    length = 0
    for block in _scanned(parts, separator):
        body = block.body.copy()
        body[block.bare] = ord(" ")
        body = np.delete(body, block.paired)
        ends = block.ends - np.searchsorted(block.paired, block.ends)
        if not len(ends):
            length += len(body)
            # Too long already: let go of it.
            begun = [*begun, body.tobytes()] if length <= LONGEST_ROW else []
            continue
        first, last = int(ends[0]) + 1, int(ends[-1]) + 1
        if length + first <= LONGEST_ROW:
            yield from begun
            yield body[:first].tobytes()
        yield body[first:last].tobytes()
        begun, length = [body[last:].tobytes()], len(body) - last
    if length <= LONGEST_ROW:
        yield from begun
