"""Marks that stand for everything that must not be told, and a finder that knows them in other spellings.

All are random and made when a run begins: Hypothesis and Schemathesis feed constants of source files back as inputs,
so that a mark written down here would come back in answers that merely repeat a question.
"""

from __future__ import annotations

import base64
import html
import random
import re
import secrets
import string
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from urllib.parse import unquote

_NUMBER = re.compile(r"(?<![A-Za-z0-9.])\d[\d,]*\.?\d*(?:[eE][-+]?\d+)?(?![A-Za-z0-9])")
_GROUPED = re.compile(r"\d{1,3}(?:[,_ ]\d{3})+(?:\.\d+)?")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))")
_FEW = 60
_START = 12  # so many letters of a secret are one
_RUN = re.compile(rf"[A-Za-z0-9_+/=-]{{{_START},}}")
_COARSE, _FINE = (
    5,
    11,
)  # digits after the first: for numbers of odd sizes, and for those among which answers lie


def word(length: int) -> str:
    """Random small letters."""
    return "".join(secrets.choice(string.ascii_lowercase) for _ in range(length))


@dataclass
class Canaries:
    """What is secret in this run. Texts share a beginning, so that one that was cut short is found too."""

    cell: str = field(default_factory=lambda: word(12))  # how every text of a cell begins
    header: str = field(default_factory=lambda: word(12))  # how every name of an undeclared column begins
    coarse: set[str] = field(default_factory=set)
    fine: set[str] = field(default_factory=set)
    dates: set[str] = field(default_factory=set)
    _draw: random.Random = field(default_factory=lambda: random.Random(secrets.randbits(64)))
    _starts: dict[str, str] = field(default_factory=dict)  # the first letters of every spelling -> what it is

    def __post_init__(self) -> None:
        for mark, what in ((self.cell, "a cell in base64"), (self.header, "a column's name in base64")):
            self._starts.update((each[:_START], what) for each in base64_of(mark))

    def text(self) -> str:
        """A text for a cell, with characters that are escaped on the way."""
        return f"{self.cell}{word(6)} ü\"'<&%"

    def key(self) -> str:
        """A text for a cell that names a person."""
        return f"{self.cell}{word(8)}"

    def column(self) -> str:
        """A name for a column that nobody declares."""
        return f"{self.header}{word(4)}"

    def whole(self) -> int:
        """A whole number far outside of all bounds, and of a size that no answer and no clock has.

        Only some are known by their first digits alone: one random id in two thousand is all digits, and among a
        thousand of these numbers one would begin like it now and then.
        """
        among, digits = (self.coarse, _COARSE) if len(self.coarse) < _FEW else (self.fine, _FINE)
        return int(_kept(among, lambda: self._draw.randrange(2 * 10**15, 9 * 10**15), digits))

    def huge(self) -> float:
        """A real number far outside of all bounds."""
        size = 10.0 ** self._draw.randrange(22, 27)
        return _kept(self.coarse, lambda: self._draw.uniform(2, 9) * size, _COARSE)

    def inside(self, lower: float, upper: float) -> float:
        """A real number between bounds, known by its digits."""
        return _kept(self.fine, lambda: self._draw.uniform(lower, upper), _FINE)

    def date(self) -> str:
        """A day that no clock shows."""
        year, month, day = (self._draw.randrange(*ends) for ends in ((5_000, 10_000), (1, 13), (1, 29)))
        found = f"{year}-{month:02}-{day:02}"
        self.dates.add(found)
        return found

    def secret(self, what: str, text: str) -> str:
        """Note a secret of the server."""
        for each in (text, *base64_of(text)):
            self._starts[each[:_START]] = f"secret: {what}"
        return text

    def found(self, text: str) -> set[str]:
        """What of all this is in a text, in whatever spelling."""
        seen: set[str] = set()
        for view in views(text):
            low = view.lower()
            seen |= {what for mark, what in self._marks() if mark in low}
            seen |= {f"date {match}" for match in self.dates if match in low}
            seen |= set(self._numbers(view))
            seen |= set(self._secrets(view))
        return seen

    def _marks(self) -> Iterator[tuple[str, str]]:
        yield self.cell, "a cell"
        yield self.header, "the name of an undeclared column"
        yield self.cell.encode().hex(), "a cell, in hexadecimal digits"

    def _secrets(self, text: str) -> Iterator[str]:
        for run in _RUN.findall(text):
            for place in range(len(run) - _START + 1):
                what = self._starts.get(run[place : place + _START])
                if what is not None:
                    yield what

    def _numbers(self, text: str) -> Iterator[str]:
        for match in _long_numbers(text):
            digits = sum(each.isdigit() for each in match.lower().partition("e")[0].lstrip("0."))
            try:
                number = float(match)
            except ValueError:
                continue
            if digits > _COARSE and f"{number:.{_COARSE}e}" in self.coarse:
                yield f"number {match}"
            if digits > _FINE and f"{number:.{_FINE}e}" in self.fine:
                yield f"number {match}"


def _kept(among: set[str], draw: Callable[[], float], digits: int) -> float:
    """A number, noted by its first digits, also as it comes out when it was rounded to a few more before.

    The last of these digits is no zero, which would be left out where the number is written.
    """
    while True:
        number = draw()
        hair = 0.05 * 10.0**-digits
        noted = {f"{each:.{digits}e}" for each in (number * (1 - hair), number, number * (1 + hair))}
        if not any(each.partition("e")[0].endswith("0") for each in noted):
            among |= noted
            return number


def views(text: str) -> Iterable[str]:
    """A text as it is, and with its escapes undone: of JSON and Python, of addresses, of HTML."""
    found = [text]
    if "\\" in text:
        found.append(_ESCAPE.sub(lambda match: chr(int(match[1] or match[2], 16)), text))
    if "%" in text:
        found.append(unquote(text))
    if "&" in text:
        found.append(html.unescape(text))
    return dict.fromkeys(found)


def base64_of(text: str) -> list[str]:
    """How a text looks inside of anything in base64, wherever it begins.

    >>> mark = "abcdefghijkl"
    >>> [part in base64.b64encode(b"x" * n + mark.encode() + b"yz").decode() for n, part in enumerate(base64_of(mark))]
    [True, True, True]
    """
    found = []
    for offset in range(3):
        coded = base64.b64encode(b"\0" * offset + text.encode()).decode().rstrip("=")
        rest = (offset + len(text.encode())) % 3  # the last letters hold bits of what follows
        found.append(coded[(0, 2, 3)[offset] : -1 if rest else None])
    return found


def _long_numbers(text: str) -> Iterator[str]:
    for match in _NUMBER.findall(text):
        if len(match) > _COARSE:
            yield match if "," not in match else match.partition(",")[0]
            yield from (part for part in match.split(",")[1:] if len(part) > _COARSE)
    for match in _GROUPED.findall(text):
        yield re.sub("[,_ ]", "", match)
