"""No SQLite connection lives through a fork.

SQLite remembers in the memory of the process which locks it holds on a file. A child inherits that memory and not
the locks, so whatever it opens later, it believes to hold locks that the kernel gave to its parent. Once the parent
has closed the ledger or ended, others take the file for unused, and what the child commits is lost. So the connections
are closed before a fork; both sides open new ones. Where that is impossible, the child may not use the file.
"""

from __future__ import annotations

import os
import weakref
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from farthing.ledger.sqlite_store import SQLiteStore

_stores: weakref.WeakSet[SQLiteStore] = weakref.WeakSet()
_paused: list[SQLiteStore] = []
_inherited: set[Path] = set()


def watch(store: SQLiteStore) -> None:
    """Close the connections of this store before every fork from now on."""
    _stores.add(store)
    _register()


def is_inherited(path: Path) -> bool:
    """Whether this process was forked while its parent had the file open."""
    return path in _inherited


@cache
def _register() -> None:
    """Once, and not on import."""
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)


def _before() -> None:
    for store in list(_stores):
        if store.pause():
            _paused.append(store)


def _in_parent() -> None:
    while _paused:
        _paused.pop().go_on()


def _in_child() -> None:
    _inherited.update(store.path for store in list(_stores) if store.is_connected)
    _in_parent()
