"""A synthesis as a question for the curator: priced, fingerprinted, checked, run, and told in JSON."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from farthing.adaptive.synthesis.plan import SynthesisPlan
from farthing.data import Dataset
from farthing.data.coded_axes import CodedAxis
from farthing.data.coded_rows import coded_rows, sensitivity_of_coded_rows
from farthing.errors import InvalidValue
from farthing.privacy import Event

_READING = 0.2  # of the progress


@dataclass(frozen=True)
class Synthesise:
    """The rows of a dataset, coded by `axes`, through the mechanisms of `plan`.

    The drawn numbers that a curator records are enough to make the model again: `plan.fitted(answers)`.

    >>> import pyarrow
    >>> from farthing.adaptive.synthesis import synthesis_plan
    >>> from farthing.data import dataset
    >>> from farthing.data.coded_axes import coded_axes
    >>> table = pyarrow.table({"sex": ["F", "M"] * 50, "smokes": [True, False] * 50})
    >>> people = dataset(table, schema={"sex": ["F", "M"], "smokes": bool})
    >>> axes = coded_axes(people.schema, missing=False)
    >>> question = Synthesise(synthesis_plan([len(axis) for axis in axes], 1.0, names=["sex", "smokes"]), axes)
    >>> question.check(people)
    >>> question.plan.fitted(question.run(people, lambda share: None)).sizes
    (2, 2)
    """

    plan: SynthesisPlan
    axes: tuple[CodedAxis, ...]

    def __post_init__(self) -> None:
        if self.plan.sizes != tuple(len(axis) for axis in self.axes):
            raise InvalidValue(
                "axes", [len(axis) for axis in self.axes], f"must have the sizes {self.plan.sizes}"
            )

    @property
    def event(self) -> Event:
        """What it costs."""
        return self.plan.event

    @property
    def digest(self) -> str:
        """A fingerprint of the plan and the axes."""
        return hashlib.sha256(f"{self.plan.digest} {self.axes!r}".encode()).hexdigest()

    def check(self, dataset: Dataset) -> None:
        """The noise was made for neighbours at least as far apart as those of this dataset."""
        found, stated = sensitivity_of_coded_rows(dataset, self.axes), self.plan.prices.sensitivity
        if not (stated.l1 >= found.l1 and stated.l2_squared >= found.l2_squared):
            raise InvalidValue(
                "sensitivity",
                stated,
                f"must be at least {found} for this dataset",
                "make the plan for the dataset that it is run on",
            )

    def run(self, dataset: Dataset, progress: Callable[[float], None]) -> Mapping[str, Any]:
        """One pass over the rows, then all choices and noises."""
        codes, counts = coded_rows(dataset, self.axes, lambda share: progress(_READING * share))
        return self.plan.draw(
            codes, counts, progress=lambda share: progress(_READING + (1 - _READING) * share)
        )

    def finish(self, answers: Mapping[str, Any]) -> Mapping[str, Any]:
        """How each round went."""
        return {"rounds": self.plan.rounds(answers)}
