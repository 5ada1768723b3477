"""What the peers came to, kept in a file: they stay as they are while farthing changes.

`python -m benchmarks --mixed --peers FILE` measures what the file does not hold and adds it; a later run with the same
file measures farthing alone. A figure is kept under everything that decides it: the versions of the peer, the code that
calls it, the table, the statistics and the budget. So nothing stale is taken, and only the number of releases is not
asked for again: delete the file to measure with more. What did not run is not kept.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import mixed_tables
from benchmarks.mixed_contenders import PEERS
from benchmarks.mixed_tables import Asked, People

NEEDS_DELTA = ("OpenDP zCDP", "OpenDP model")


class PeerFigures:
    """Figures by key, in memory and, where there is a path, in its file."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._kept = self._stored()
        self._passing: dict[str, dict[str, Any]] = {}

    def get(self, key: str) -> dict[str, Any] | None:
        """What is kept under a key."""
        return self._kept.get(key) or self._passing.get(key)

    def put(self, key: str, figures: dict[str, Any], *, passing: bool = False) -> None:
        """Keep it, at once: a long run that is stopped loses nothing. What is `passing` is not written."""
        if passing:
            self._passing[key] = figures
            return
        self._kept |= self._stored() | {key: figures}  # another run may have added to the file
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            fresh = self._path.with_suffix(".new")
            fresh.write_text(json.dumps(self._kept, indent=1, allow_nan=False), encoding="utf-8")
            fresh.replace(self._path)

    def _stored(self) -> dict[str, dict[str, Any]]:
        if self._path is None or not self._path.is_file():
            return {}
        found: dict[str, dict[str, Any]] = json.loads(self._path.read_text(encoding="utf-8"))
        return found


def key_of(
    contender: str, packages: Sequence[str], people: People, questions: Sequence[Asked], name: str, budget: Any
) -> str:
    """Readable first, then a digest of everything that decides the figures.

    Without delta, noise is the same whatever delta is allowed: such a peer has one key for both.
    """
    epsilon, delta = budget
    peer = PEERS[contender]
    made = peer.func if isinstance(peer, partial) else peer
    parts = [
        list(packages), inspect.getsource(made), inspect.getsource(mixed_tables.Asked), _digest_of(people),
        [asdict(asked) for asked in questions],
    ]  # fmt: skip
    digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
    shown = f", delta {delta:g}" if contender in NEEDS_DELTA else ""
    return f"{contender} ({packages[0]}): {name}, {people.name}, epsilon {epsilon:g}{shown}; {digest}"


def _digest_of(people: People) -> str:
    own = dict(people.columns) | ({} if people.person is None else {"person": people.person})
    whole = hashlib.sha256()
    for name in sorted(own):
        whole.update(name.encode() + b"\0" + own[name].tobytes())
    return whole.hexdigest()
