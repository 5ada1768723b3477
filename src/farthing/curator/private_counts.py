"""The private counts of a public domain, read from the rows when a session first needs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from farthing.curator.questions import run_apart
from farthing.data import Dataset
from farthing.data.coded_rows import CodedAxis, coded_rows
from farthing.errors import FarthingError

Progress = Callable[[float], None]


class PrivateCells:
    """Call it for how many rows lie in each cell; it keeps nothing, and its failures show nothing private.

    A failure uses nothing up: it can be called again.

    >>> import pyarrow
    >>> from farthing.data import dataset
    >>> from farthing.data.coded_rows import coded_axes
    >>> people = dataset(pyarrow.table({"sex": ["F", "F", "M"]}), schema={"sex": ["F", "M"]})
    >>> cells = PrivateCells(people, coded_axes(people.schema, missing=False))
    >>> cells().tolist(), cells
    ([2, 1], PrivateCells(sex))
    """

    def __init__(
        self,
        dataset: Dataset,
        axes: Sequence[CodedAxis],
        timeout: float | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._dataset, self._axes, self._timeout = dataset, tuple(axes), timeout
        self._progress = progress

    def listen(self, progress: Progress) -> None:
        """From now on report to `progress` how far a reading is; the listener may stop it."""
        self._progress = progress

    def __call__(self) -> NDArray[np.int64]:
        """The counts, one dimension for each axis."""
        counts: list[NDArray[np.int64]] = []

        def work(tell: Progress) -> str:
            counts.append(self._counted(tell))
            return ""

        outcome = run_apart(work, self._timeout, self._progress)
        if outcome.text is None:
            raise outcome.error or FarthingError(
                f"the rows were not read: {outcome.reason}; nothing was used up, ask again."
            )
        return counts[0]

    def _counted(self, tell: Progress) -> NDArray[np.int64]:
        shape = tuple(len(axis) for axis in self._axes)
        codes, counts = coded_rows(self._dataset, self._axes, tell)
        cells = np.zeros(shape, dtype=np.int64)
        np.add.at(cells.reshape(-1), np.ravel_multi_index(tuple(codes.T.astype(np.int64)), shape), counts)
        return cells

    def __repr__(self) -> str:
        return f"PrivateCells({', '.join(axis.column for axis in self._axes)})"
