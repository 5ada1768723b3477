"""The values of a column that nobody listed: those that enough units share, found for an epsilon and a delta.

As a rule only the list of values is found. How many units have each of them is measured afterwards, with noise of its
own, so that no count is biased by having been large enough to be found. A search that counts releases the noisy counts
by which it finds (`found_counts`), and what being found has added to them is taken back.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.adaptive.discovery.search import (
    Finding,
    Progress,
    checked_price,
    digest_of,
    refuse_beyond_table,
    units_word,
)
from farthing.data import Categories, Dataset
from farthing.data.key_counts import each_key, key_query
from farthing.data.schema import BLANKS, MOST_CATEGORIES, Unknown
from farthing.data.stability import REPLACE
from farthing.errors import InvalidValue
from farthing.inference.label_order import natural_key
from farthing.mechanisms import KeySelection, WeightedKeySelection
from farthing.mechanisms.counted_keys import CountedKeys
from farthing.mechanisms.weighted_keys import MOST_KEYS, selection_for
from farthing.privacy import Event
from farthing.privacy.events import checked_count

USUAL_KEYS = 4
"""How many values of one unit count by default; no more than its rows."""

VALUES_FOUND = "were found in the data"
"""What the note of every number says that is by values that were found."""

_BYTES, _LENGTHS, _NUMBERS, _COUNTS = "bytes of the values", "lengths of the values", "values", "counts"
_NAMED = 6  # values in a sentence


@dataclass(frozen=True)
class KeySearch:
    """A search for the values of a column of text or whole numbers. Made by `key_search`.

    Args:
        name: The column.
        epsilon: What it costs.
        delta: The delta of that, > 0.
        max_keys: How many values of one unit count at most, chosen at random.
        rules: How cells are read: which blanks and capitals do not matter.
        replaced: Whether neighbours replace a unit, so that twice as many values change.
        units: What units are called.
        counted: Whether the noisy counts by which values are found are released with them.

    >>> import pyarrow, farthing as ft
    >>> visits = pyarrow.table({"who": [1, 1, 2], "diagnosis": ["flu", "Flu ", "cold"]})
    >>> visits = ft.dataset(
    ...     visits, unit="who", max_rows=3, schema={"diagnosis": ft.unknown("text", trim=True, lower=True)}
    ... )
    >>> print(key_search(visits, "diagnosis", epsilon=1.0, delta=1e-6).prediction)
    the values of diagnosis that enough units (who) share: a value that 47 or more units (who) have among the 3 values
    kept of each, chosen at random, appears 95 times in 100; a value that only one has appears with probability 1e-06 at
    most; in free text, where hardly any two cells are the same, nothing is found
    """

    name: str
    epsilon: float
    delta: float
    max_keys: int
    rules: Unknown
    replaced: bool
    units: str
    counted: bool = False

    @cached_property
    def selection(self) -> KeySelection | WeightedKeySelection | CountedKeys:
        """The rule by which values are kept."""
        if self.counted:
            return self.counts
        if self.replaced:  # the counts of as many values fall as rise, each by one
            return KeySelection(self.epsilon, self.delta, 2 * self.max_keys)
        return selection_for(self.epsilon, self.delta, self.max_keys)

    @cached_property
    def counts(self) -> CountedKeys:
        """The rule of a search that counts; where neighbours replace a unit, what is proven is Laplace noise."""
        if self.replaced:
            return CountedKeys(self.epsilon, self.delta, 2 * self.max_keys, "laplace")
        return CountedKeys(self.epsilon, self.delta, self.max_keys)

    @property
    def event(self) -> Event:
        """One selection, however many values there are."""
        return self.selection.event

    @cached_property
    def needed(self) -> int:
        """How many units a value needs to appear 95 times in 100, even if each of them has as many values as count."""
        return self.selection.needed(0.95)

    @property
    def prediction(self) -> str:
        """How many units a value needs to appear."""
        text = f"the values of {self.name} that enough {self.units} share: "
        text += f"{value_of(self.needed, self.units, self.max_keys)} appears 95 times in 100"
        if isinstance(self.selection, WeightedKeySelection) and self.max_keys > 1:
            text += f" ({self.selection.needed(0.95, keys=1):,} are enough if they have no other value)"
        text += f"; a value that only one has appears with probability {self.delta:g} at most"
        return f"{text}; in free text, where hardly any two cells are the same, nothing is found"

    @cached_property
    def digest(self) -> str:
        """Of the column, how it is read, and the price."""
        price = [self.epsilon.hex(), self.delta.hex(), self.max_keys, self.replaced]
        return digest_of(["values", self.name, repr(self.rules), *price, *(["counts"] if self.counted else [])])

    def check(self, dataset: Dataset) -> None:
        """Refuse a dataset whose neighbours differ in more than is priced, or whose column has no values to find."""
        if dataset.stability().group > 1 or dataset.probability < 1:
            raise InvalidValue(
                "column",
                self.name,
                "must be discovered in the table itself, without group_privacy or sample",
                "discover it first, then apply them",
            )
        if self.replaced != (dataset.neighbours == REPLACE):
            raise InvalidValue("neighbours", dataset.neighbours, "must be those that the search was made for")
        if not dataset.unit and self.max_keys != 1:
            raise InvalidValue("max_keys", self.max_keys, "must be 1 where the unit is one row", "name the unit")
        refuse_beyond_table(dataset, self.epsilon, self.needed, "raise epsilon or delta, or lower max_keys")
        key_query(dataset, self.name, self._weights, trim=self.rules.trim, lower=self.rules.lower)

    @property
    def _weights(self) -> Sequence[int]:
        return self.selection.weights[: self.max_keys]

    def run(self, dataset: Dataset, progress: Progress) -> Mapping[str, Any]:
        """One pass over the rows; values are decided part by part, and only those that are kept are remembered."""
        kept: list[tuple[Any, int]] = []

        def take(keys: list[Any], weights: NDArray[np.int64]) -> None:
            if isinstance(self.selection, CountedKeys):
                seen, noisy = self.selection.noisy(weights)
            else:
                seen, noisy = self.selection.kept(weights), np.zeros_like(weights)
            kept.extend((keys[place], int(noisy[place])) for place in np.flatnonzero(seen))

        each_key(
            dataset, self.name, self._weights, take, trim=self.rules.trim, lower=self.rules.lower, progress=progress
        )
        order = natural_key([key for key, _ in kept])  # of what was found alone
        kept.sort(key=lambda pair: order(pair[0]))
        counts = {_COUNTS: np.array([count for _, count in kept], dtype=np.int64)} if self.counted else {}
        return {**_written([key for key, _ in kept]), **counts}

    def finish(self, answers: Mapping[str, Any]) -> Mapping[str, Any]:
        """The values, as a list of categories can hold them."""
        items = _read(answers)
        values = _as_categories(items, self.rules)
        noisy = dict(zip(items, answers[_COUNTS], strict=True)) if self.counted else {}
        facts: dict[str, Any] = {"name": self.name, "kind": "text", "found": bool(values), "values": values}
        facts |= {"left_out": len(items) - len(values), "trim": self.rules.trim, "lower": self.rules.lower}
        facts |= {"epsilon": self.epsilon, "delta": self.delta, "max_keys": self.max_keys}
        facts |= {"counts": [int(noisy[value]) for value in values]} if self.counted else {}
        return {"finding": facts | {"needed": self.needed, "units": self.units}}


def key_search(
    dataset: Dataset, name: str, epsilon: float, delta: float, max_keys: int | None = None, *, counted: bool = False
) -> KeySearch:
    """The search for the values of an unknown column, at a price.

    Args:
        dataset: The table, in which the column is declared as unknown text.
        name: The column.
        epsilon: What the search may cost.
        delta: The delta of that, > 0.
        max_keys: How many values of one unit count at most; by default 4, or its rows where these are fewer.
        counted: Whether the noisy counts by which values are found are released with them.

    Returns:
        The search.

    Raises:
        InvalidValue: If there is no such unknown column, delta is 0, or a number is wrong.

    >>> import pyarrow, farthing as ft
    >>> people = ft.dataset(pyarrow.table({"town": ["A", "B"]}), schema={"town": ft.unknown("text")})
    >>> key_search(people, "town", 1.0, 1e-6).needed
    16
    >>> key_search(people, "town", 1.0, 0.0)
    Traceback (most recent call last):
    farthing.errors.InvalidValue: delta=0.0: must be > 0 to find the values of 'town'; ...
    """
    rules = dataset.unknown.get(name)
    if rules is None or rules.kind != "text":
        raise InvalidValue("column", name, "must be declared as unknown text", 'such as ft.unknown("text")')
    price = checked_price(epsilon, delta)
    if not price[1] > 0:
        raise InvalidValue(
            "delta", delta, f"must be > 0 to find the values of {name!r}", "give the study a delta, or list the values"
        )
    most = min(USUAL_KEYS, dataset.bound) if max_keys is None else checked_count(max_keys, "max_keys")
    if not 1 <= most <= MOST_KEYS:
        raise InvalidValue("max_keys", max_keys, f"must be from 1 to {MOST_KEYS:,}")
    replaced, units = dataset.neighbours == REPLACE, units_word(dataset)
    search = KeySearch(name, *price, most, rules, replaced, units, counted)
    _ = search.needed  # a price that no value could be found for is refused at once
    return search


def key_finding(facts: Mapping[str, Any]) -> Finding:
    """What a search for values has found, from what was recorded of it.

    Args:
        facts: The record, as `KeySearch.finish` made it.

    Returns:
        The finding.

    >>> facts = {"name": "town", "kind": "text", "values": ["A", "B"], "left_out": 0, "trim": False, "lower": False}
    >>> facts |= {"found": True, "needed": 16, "units": "rows", "max_keys": 1, "delta": 1e-6}
    >>> print(key_finding(facts))
    town: 2 values found (A, B); other values count as missing; as a rule they have fewer than 16 rows
    """
    name, values = facts["name"], facts["values"]
    needed, units = f"{facts['needed']:,} {facts['units']}", str(facts["units"])
    kept = kept_of_each(units, facts["max_keys"])
    rest = "other values count as missing; as a rule "
    rest += f"fewer than {needed} have them {kept}" if kept else f"they have fewer than {needed}"
    if not values:
        none = f"{name}: no value found; as a rule fewer than {needed} "
        none += f"have the same one {kept}" if kept else "share one"
        return Finding(name, facts["kind"], False, none, None, facts)
    named = ", ".join(map(str, sorted(values, key=natural_key(values))[:_NAMED])) + (
        ", ..." if len(values) > _NAMED else ""
    )
    many = "1 value" if len(values) == 1 else f"{len(values):,} values"
    more = f"; {facts['left_out']:,} more cannot be used" if facts["left_out"] else ""
    domain = Categories(values, trim=facts["trim"], lower=facts["lower"])
    likely = value_of(facts["needed"], units, facts["max_keys"])
    note = f"the values of {name} {VALUES_FOUND}: others count as missing; {likely} is found 95 times in 100"
    return Finding(name, facts["kind"], True, f"{name}: {many} found ({named}); {rest}{more}", domain, facts, note)


def kept_of_each(units: str, max_keys: int) -> str:
    """That only some values of each unit count, where it may have more; empty where the unit is one row.

    Args:
        units: What units are called.
        max_keys: How many values of one unit count at most.

    Returns:
        Words that follow "have".

    >>> kept_of_each("units (who)", 4), kept_of_each("units (who)", 1), kept_of_each("rows", 1)
    ('among the 4 values kept of each, chosen at random', 'as the one value kept of each, chosen at random', '')
    """
    if units == "rows":
        return ""
    kept = "as the one value" if max_keys == 1 else f"among the {max_keys:,} values"
    return f"{kept} kept of each, chosen at random"


def value_of(needed: int, units: str, max_keys: int) -> str:
    """A value with enough units to be found, as the subject of a sentence.

    Args:
        needed: How many units it takes.
        units: What units are called.
        max_keys: How many values of one unit count at most.

    Returns:
        The words.

    >>> value_of(211, "units (who)", 4)
    'a value that 211 or more units (who) have among the 4 values kept of each, chosen at random,'
    >>> value_of(16, "rows", 1)
    'a value that 16 or more rows share'
    """
    kept = kept_of_each(units, max_keys)
    return f"a value that {needed:,} or more {units} " + (f"have {kept}," if kept else "share")


def _written(keys: Sequence[Any]) -> dict[str, Any]:
    """Values as whole numbers, which is what a ledger records: text by its bytes."""
    if keys and isinstance(keys[0], int):
        return {_NUMBERS: np.array(keys, dtype=np.int64)}
    parts = [str(key).encode() for key in keys]
    joined = np.frombuffer(b"".join(parts), dtype=np.uint8).astype(np.int64)
    return {_BYTES: joined, _LENGTHS: np.array([len(part) for part in parts], dtype=np.int64)}


def _read(answers: Mapping[str, Any]) -> list[str | int]:
    if _NUMBERS in answers:
        return [int(number) for number in answers[_NUMBERS]]
    data, items, start = bytes(int(byte) for byte in answers[_BYTES]), [], 0
    for length in answers[_LENGTHS]:
        items.append(data[start : start + int(length)].decode())
        start += int(length)
    return list(items)


def _as_categories(items: Sequence[str | int], rules: Unknown) -> list[str | int]:
    """The values that a list of categories can hold: spelled one way, and not more than it may have."""
    values: dict[Any, str | int] = {}
    for value in items:
        if isinstance(value, str):
            folded = (not rules.trim or value == value.strip(BLANKS)) and (not rules.lower or value == value.lower())
            if "\0" in value or not folded:
                continue
            values.setdefault(unicodedata.normalize("NFC", value), value)
        else:
            values[value] = value
    return list(values.values())[:MOST_CATEGORIES]
