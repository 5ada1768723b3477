"""The counts that come with found values, as an answer: estimates, and intervals that hold for what is found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.inference import Answer
from farthing.mechanisms.counted_keys import CountedKeys
from farthing.numerics.bounds import number_text

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class FoundInterval:
    """The interval of every found value at a confidence."""

    selection: CountedKeys
    noisy: tuple[int, ...]

    def __call__(self, confidence: float) -> tuple[Floats, Floats]:
        """Lower and upper ends at a confidence."""
        return self.selection.intervals(self.noisy, confidence)


def found_counts(selection: CountedKeys, facts: Mapping[str, Any], name: str, *, rounded: bool = False) -> Answer:
    """The counts of found values.

    Args:
        selection: The rule by which they were found.
        facts: What the search has recorded: values, and their noisy counts.
        name: What the answer is called.
        rounded: Whether counts are whole numbers.

    Returns:
        An answer with a number for each value; `raw` has the noisy counts as they were drawn.

    >>> facts = {"values": ["cold", "flu"], "counts": [16, 40]}
    >>> print(found_counts(CountedKeys(1.0, 1e-6), facts, "count by diagnosis", rounded=True))
    count by diagnosis (95%)
      cold  16 (2 to 19)
      flu   40 ± 3
    note: a value is shown only if its noisy count reaches 15: ...
    """
    noisy = tuple(map(int, facts["counts"]))
    values = selection.estimates(noisy)
    threshold = number_text(selection.threshold)
    note = (
        f"a value is shown only if its noisy count reaches {threshold}: what that adds to counts near {threshold} is "
        "taken back on average, and intervals allow for it"
    )
    return Answer.within(
        name,
        np.round(values) if rounded else values,
        selection.noise.standard_error,
        FoundInterval(selection, noisy),
        tuple(facts["values"]),
        note=note,
        raw=noisy,
    )
