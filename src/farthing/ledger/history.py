"""How accounts came to be what they are: the ledger read from its first entry, as moments that can be drawn."""

from __future__ import annotations

from typing import NamedTuple

from farthing.ledger.entries import Entry
from farthing.ledger.holdings import Holding
from farthing.ledger.replay import Replay

_SILENT = ("released", "forfeited", "source")  # what was spent stays spent


class Moment(NamedTuple):
    """An entry and how an account stood after it."""

    entry: Entry
    holding: Holding


class Thinning:
    """Keeps policy and between `most` and twice as many of the rest, evenly; the last one always."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._policy: list[Moment] = []
        self._rest: list[Moment] = []
        self._stride, self._seen = 1, 0
        self._last: Moment | None = None

    def add(self, entry: Entry, holding: Holding) -> None:
        """Take the next entry."""
        self._last = Moment(entry, holding)
        if entry.kind not in ("charge", "refused"):
            self._policy.append(self._last)
            return
        if self._seen % self._stride == 0:
            self._rest.append(self._last)
        self._seen += 1
        if len(self._rest) >= 2 * self._most:
            self._rest, self._stride = self._rest[::2], 2 * self._stride

    def all(self) -> list[Moment]:
        """What was kept, in order."""
        kept = {moment.entry.sequence: moment for moment in [*self._policy, *self._rest]}
        if self._last is not None:
            kept[self._last.entry.sequence] = self._last
        return [kept[sequence] for sequence in sorted(kept)]


class History:
    """The moments of every budget and every grant, read on from where the last reading ended.

    >>> import tempfile
    >>> from farthing.ledger import open_ledger
    >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
    ...     _ = ledger.register("census", epsilon=1.0)
    ...     _ = ledger.charge("census", 0.25, request_id="r-1")
    ...     history = History()
    ...     for entry in ledger.entries(since=history.sequence):
    ...         history.follow(entry)
    ...     [(moment.entry.kind, moment.holding.account.spent_upper) for moment in history.moments("census")]
    [('dataset', 0.0), ('charge', 0.25)]
    """

    def __init__(self, most: int = 1_000) -> None:
        self._most = most
        self._replay = Replay()
        self._kept: dict[tuple[str, str], Thinning] = {}

    @property
    def sequence(self) -> int:
        """The last entry that was followed."""
        return self._replay.sequence

    def follow(self, entry: Entry) -> None:
        """Take the next entry of the ledger; all of them must come, in order."""
        self._replay.follow(entry)
        if entry.kind in _SILENT or not entry.dataset:
            return
        for dataset in (entry.dataset, *entry.others):
            if entry.kind != "grant":
                self._add(entry, dataset, "")
            if entry.analyst:
                self._add(entry, dataset, entry.analyst)

    def moments(self, dataset: str, analyst: str = "") -> list[Moment]:
        """The entries that a budget or a grant tells about; of very many charges some, and the last."""
        kept = self._kept.get((dataset, analyst))
        return [] if kept is None else kept.all()

    def _add(self, entry: Entry, dataset: str, analyst: str) -> None:
        whose = dataset, analyst
        try:
            holding = self._replay.holding(*whose)
        except KeyError:
            return  # somebody without a grant was refused
        self._kept.setdefault(whose, Thinning(self._most)).add(entry, holding)
