"""Charges from a file or from standard input: CSV columns, or charge words one per line.

    epsilon,delta,count        a header is optional; with one, the columns may stand in any order
    0.05,1e-7,20
    0.1                        delta and count may be left out
    gaussian:4x10              a charge word, as on the command line
    # a comment

Blocks of plain numbers go through NumPy's reader. A block it will not take, or whose numbers break a rule, is read
line by line instead: that way every refusal carries its line number and both readers accept the same lines.
"""

from __future__ import annotations

import io
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from farthing.accounting.comparison import Charges, charges_of_pairs, joined
from farthing.cli.words import LARGEST_COUNT, charge_of, decimal_number, whole_number
from farthing.errors import InvalidValue
from farthing.privacy import ApproxDP, Event

COLUMNS = ("epsilon", "delta", "count")
BLOCK = 100_000  # lines; small enough to move a progress bar, large enough for the reader to be fast


def charges_of_file(path: str, progress: Callable[[float], None] = lambda _: None) -> Charges:
    """The charges in the file at `path`, or on standard input when it is `-`; `progress` hears the share read."""
    name = "stdin" if path == "-" else Path(path).name
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as problem:
        raise InvalidValue("file", path, f"cannot be read ({problem.strerror})", "check the path") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        raise InvalidValue(
            f"{name} line {line}", data[problem.start : problem.end], "must be UTF-8 text"
        ) from None
    return charges_of_text(text, name, progress)


def charges_of_text(
    text: str, name: str = "text", progress: Callable[[float], None] = lambda _: None
) -> Charges:
    r"""The charges in a CSV text.

    >>> charges_of_text("epsilon,count\n0.1,100\n0.2,5\n").k
    105
    >>> charges_of_text("0.1\n0.1,-1\n", "charges.csv")
    Traceback (most recent call last):
        ...
    farthing.errors.InvalidValue: charges.csv line 2: charge='0.1,-1': delta must be >= 0 and < 1; write ...
    """
    lines = text.splitlines() if "\r" in text else text.split("\n")
    start, columns = _header(lines, name)
    parts: list[Charges] = []
    for first in range(start, len(lines), BLOCK):
        block = lines[first : first + BLOCK]
        part = _block_of_numbers(block, columns)
        parts.append(part if part is not None else _block_line_by_line(block, columns, name, first + 1))
        progress(min(1.0, (first + BLOCK) / len(lines)))
    return joined(parts)


def _header(lines: list[str], name: str) -> tuple[int, tuple[str, ...]]:
    """Where the charges start, and the names of the columns."""
    for number, line in enumerate(lines):
        fields = _fields(line)
        if not fields:
            continue
        words = tuple(field.lower() for field in fields)
        if not set(words) & set(COLUMNS):
            break  # the first line is a charge already
        if not (set(words) <= set(COLUMNS) and len(set(words)) == len(words) and "epsilon" in words):
            raise InvalidValue(
                f"{name} line {number + 1}: header", line, "must name epsilon and may name delta and count, once each",
                "keep only these columns",
            )  # fmt: skip
        return number + 1, words
    return 0, COLUMNS


def _block_of_numbers(block: list[str], columns: tuple[str, ...]) -> Charges | None:
    """The block as arrays when every line holds the same number of plain, valid numbers, else None."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a block of blank lines only
            table = np.loadtxt(io.StringIO("\n".join(block)), delimiter=",", ndmin=2)
    except ValueError:
        return None
    if table.shape[1] > len(columns) or (table.size and "epsilon" not in columns[: table.shape[1]]):
        return None
    rows = table.shape[0]
    found = dict(zip(columns, table.T, strict=False))
    epsilons = found.get("epsilon", np.zeros(rows))
    deltas = found.get("delta", np.zeros(rows))
    counts = found.get("count", np.ones(rows))
    # Comparisons that NaN fails; what is refused here is looked at again, line by line, for its message.
    valid = np.isfinite(epsilons) & (epsilons >= 0) & (deltas >= 0) & (deltas < 1)
    valid &= (counts >= 0) & (counts <= LARGEST_COUNT) & (counts == np.floor(counts))
    if not valid.all():
        return None
    return Charges(epsilons.copy(), deltas.copy(), counts.astype(np.int64))


def _block_line_by_line(block: list[str], columns: tuple[str, ...], name: str, first: int) -> Charges:
    pairs: list[tuple[Event, int]] = []
    for number, line in enumerate(block, start=first):
        fields = _fields(line)
        if fields:
            pairs.append(_charge_of_line(fields, columns, f"{name} line {number}: charge"))
    return charges_of_pairs(pairs)


def _charge_of_line(fields: list[str], columns: tuple[str, ...], name: str) -> tuple[Event, int]:
    line = ",".join(fields)
    if any(letter in line.lower() for letter in ":x"):
        return charge_of(line, name)
    way_out = f"write {','.join(columns)} or a charge word such as 0.1x100"
    if len(fields) > len(columns):
        raise InvalidValue(
            name, line, f"has {len(fields)} fields and at most {len(columns)} are known", way_out
        )
    found = dict(zip(columns, fields, strict=False))
    try:
        epsilon = decimal_number(found.get("epsilon", ""), "epsilon")
        delta = decimal_number(found.get("delta") or "0", "delta")
        count = whole_number(found.get("count") or "1", "count")
        return ApproxDP(epsilon, delta), count
    except InvalidValue as refusal:
        raise InvalidValue(name, line, f"{refusal.name} {refusal.rule}", way_out) from None


def _fields(line: str) -> list[str]:
    """The comma-separated fields of a line without its comment, unquoted; none for a blank line."""
    content = line.partition("#")[0].strip()
    return [field.strip().strip("\"'").strip() for field in content.split(",")] if content else []
