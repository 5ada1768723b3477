"""The grammar of a charge word, `0.1x100` or `sampled:0.01:gaussian:1.1x1000`, and nothing else.

    word    = charge [ "x" count ]
    charge  = epsilon [ "," delta ]
            | "rr:" epsilon
            | "bounded-range:" epsilon
            | "laplace:" noise_multiplier
            | "gaussian:" noise_multiplier
            | "discrete-laplace:" noise_multiplier [ ":" l1_sensitivity ]
            | "discrete-gaussian:" noise_multiplier [ ":" l2_sensitivity ]
            | "sampled:" probability ":" charge

Numbers are plain decimals (`0.1`, `1e-7`); counts are whole numbers (`20`, `1e6`).
"""

from __future__ import annotations

import io
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from farthing.accounting.comparison import Charges, charges_of_pairs, joined
from farthing.errors import InvalidValue
from farthing.privacy import (
    ApproxDP,
    BoundedRange,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    Event,
    GaussianNoise,
    LaplaceNoise,
    RandomizedResponse,
    Sampled,
)

GRAMMAR = """\
\b
A charge word is CHARGE or CHARGExCOUNT, where CHARGE is one of
  EPSILON[,DELTA]            any (epsilon, delta)-DP mechanism   0.1x100  0.05,1e-7x20
  rr:EPSILON                 randomized response                 rr:0.5x4
  bounded-range:EPSILON      a choice by exponential weights     bounded-range:0.1x20
  laplace:B                  Laplace noise                       laplace:2
  gaussian:B                 Gaussian noise                      gaussian:4x10
  discrete-laplace:B[:S]     integer Laplace noise               discrete-laplace:2x3
  discrete-gaussian:B[:S]    integer Gaussian noise              discrete-gaussian:5
  sampled:P:CHARGE           on a secret sample of rate P        sampled:0.01:gaussian:1.1x1000
B is the noise multiplier (noise scale / sensitivity), S the integer sensitivity (default 1).
"""

WAY_OUT = "write epsilon[,delta][xCOUNT] or kind:noise_multiplier[xCOUNT], as in 0.1x100 or gaussian:4x10"

# One charge word may stand for very many mechanisms, but beyond 2^53 a count is no longer an exact double.
LARGEST_COUNT = 2**53 - 1

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?\Z", re.ASCII | re.IGNORECASE)


def charge_of(word: str, name: str = "charge") -> tuple[Event, int]:
    """The event a charge word stands for, and how many times; `name` is how a refusal calls the word.

    >>> charge_of("0.05,1e-7x20")
    (ApproxDP(epsilon=0.05, delta=1e-07), 20)
    >>> charge_of("sampled:0.01:gaussian:1.1")
    (Sampled(event=GaussianNoise(noise_multiplier=1.1), probability=0.01), 1)
    >>> charge_of("0.1x1.5")
    Traceback (most recent call last):
        ...
    farthing.errors.InvalidValue: charge='0.1x1.5': count '1.5' must be a whole number >= 0; write ...
    """
    text = word.strip().lower()
    body, separator, count = text.rpartition("x")
    try:
        if not separator:
            return _event_of(text), 1
        return _event_of(body), whole_number(count, "count")
    except InvalidValue as refusal:
        raise InvalidValue(name, word, _rule_of(refusal), WAY_OUT) from None


def decimal_number(text: str, name: str) -> float:
    """`text` as a double; words such as `nan` and `inf`, which Python would take, are no numbers here.

    >>> decimal_number("1e-7", "delta")
    1e-07
    """
    if not _NUMBER.match(text.strip()):
        raise InvalidValue(name, text, "must be a plain number such as 0.1 or 1e-7")
    return float(text)


def whole_number(text: str, name: str) -> int:
    """`text` as a whole number >= 0; `1e6` and `20.0` are whole numbers too.

    >>> whole_number("1e6", "count")
    1000000
    """
    number = float(text) if _NUMBER.match(text.strip()) else -1.0
    if not (number >= 0 and number.is_integer()):
        raise InvalidValue(name, text, "must be a whole number >= 0")
    if not number <= LARGEST_COUNT:
        raise InvalidValue(name, text, "must be below 2^53")
    return int(number)


def _event_of(text: str) -> Event:
    kind, separator, rest = text.partition(":")
    if not separator:
        return _guarantee(text)
    make = _KINDS.get(kind)
    if make is None:
        raise InvalidValue("kind", kind, f"must be one of {', '.join(sorted(_KINDS))}")
    return make(rest)


def _guarantee(text: str) -> Event:
    epsilon, separator, delta = text.partition(",")
    return ApproxDP(decimal_number(epsilon, "epsilon"), decimal_number(delta, "delta") if separator else 0.0)


def _integer_noise(kind: type[DiscreteLaplaceNoise] | type[DiscreteGaussianNoise]) -> Callable[[str], Event]:
    def make(text: str) -> Event:
        multiplier, separator, sensitivity = text.partition(":")
        whole = whole_number(sensitivity, "sensitivity") if separator else 1
        return kind(decimal_number(multiplier, "noise_multiplier"), whole)

    return make


def _sampled(text: str) -> Event:
    probability, separator, inner = text.partition(":")
    rate = decimal_number(probability, "probability")
    if not separator:
        raise InvalidValue("charge", "", "is missing after sampled:P:, as in sampled:0.01:gaussian:1.1")
    if inner.startswith("sampled:"):
        raise InvalidValue("charge", inner, "must not be sampled twice: multiply the two probabilities")
    return Sampled(_event_of(inner), rate)


def _rule_of(refusal: InvalidValue) -> str:
    value = f" {refusal.value!r}" if isinstance(refusal.value, str) else ""
    return f"{refusal.name}{value} {refusal.rule}"


_KINDS: dict[str, Callable[[str], Event]] = {
    "rr": lambda text: RandomizedResponse(decimal_number(text, "epsilon")),
    "bounded-range": lambda text: BoundedRange(decimal_number(text, "epsilon")),
    "laplace": lambda text: LaplaceNoise(decimal_number(text, "noise_multiplier")),
    "gaussian": lambda text: GaussianNoise(decimal_number(text, "noise_multiplier")),
    "discrete-laplace": _integer_noise(DiscreteLaplaceNoise),
    "discrete-gaussian": _integer_noise(DiscreteGaussianNoise),
    "sampled": _sampled,
}


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
        raise InvalidValue(f"{name} line {line}", data[problem.start : problem.end], "must be UTF-8 text") from None
    return charges_of_text(text, name, progress)


def charges_of_text(text: str, name: str = "text", progress: Callable[[float], None] = lambda _: None) -> Charges:
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
                f"{name} line {number + 1}: header",
                line,
                "must name epsilon and may name delta and count, once each",
                "keep only these columns",
            )
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
    fields_by_name = dict(zip(columns, table.T, strict=False))
    epsilons = fields_by_name.get("epsilon", np.zeros(rows))
    deltas = fields_by_name.get("delta", np.zeros(rows))
    counts = fields_by_name.get("count", np.ones(rows))
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
        raise InvalidValue(name, line, f"has {len(fields)} fields and at most {len(columns)} are known", way_out)
    fields_by_name = dict(zip(columns, fields, strict=False))
    try:
        epsilon = decimal_number(fields_by_name.get("epsilon", ""), "epsilon")
        delta = decimal_number(fields_by_name.get("delta") or "0", "delta")
        count = whole_number(fields_by_name.get("count") or "1", "count")
        return ApproxDP(epsilon, delta), count
    except InvalidValue as refusal:
        raise InvalidValue(name, line, f"{refusal.name} {refusal.rule}", way_out) from None


def _fields(line: str) -> list[str]:
    """The comma-separated fields of a line without its comment, unquoted; none for a blank line."""
    content = line.partition("#")[0].strip()
    return [field.strip().strip("\"'").strip() for field in content.split(",")] if content else []
