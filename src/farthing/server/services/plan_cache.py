"""What a server keeps of datasets and plans so that the next question about them is answered at once.

Nothing here is the truth: declarations are read from the store and budgets from the ledger every time, and what is kept
is used only where they are the same as when it was made.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from farthing.study import Plan
from farthing.study.documents.data_folder import DataFolder

if TYPE_CHECKING:
    from farthing.server.app_state import State

V = TypeVar("V")
MOST_DATASETS = 64
MOST_PLANS = 64


class Kept(Generic[V]):
    """The values that were used last, by key; safe to use from several threads.

    >>> kept = Kept(2)
    >>> for key in "abca":
    ...     _ = kept.found(key, lambda: key.upper())
    >>> kept.known("c"), kept.known("b")
    ('C', None)
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[Hashable, V] = OrderedDict()
        self._turn = threading.Lock()

    def known(self, key: Hashable) -> V | None:
        """What is kept under a key."""
        with self._turn:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key]

    def keep(self, key: Hashable, value: V) -> V:
        """Keep a value, and let go of what was not used for longest."""
        with self._turn:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._most:
                self._values.popitem(last=False)
            return value

    def found(self, key: Hashable, make: Callable[[], V]) -> V:
        """What is kept under a key, or made now; two who ask at once may both make it."""
        value = self.known(key)
        return self.keep(key, make()) if value is None else value


class Planning:
    """The data folder, and the datasets and plans that were used last."""

    def __init__(self, state: State) -> None:
        self.folder = DataFolder(state.settings.data)
        self.datasets: Kept[tuple[Any, Any]] = Kept(MOST_DATASETS)
        self.latest: Kept[Plan] = Kept(
            MOST_PLANS
        )  # by who asks for which statistics: where the next search starts
        self.proven: Kept[Plan] = Kept(MOST_PLANS)  # by everything that was asked and how the budget stood


_of: weakref.WeakKeyDictionary[State, Planning] = weakref.WeakKeyDictionary()
_making = threading.Lock()


def planning_of(state: State) -> Planning:
    """What this server keeps; made when it is first asked for."""
    with _making:
        found = _of.get(state)
        if found is None:
            found = _of[state] = Planning(state)
        return found
