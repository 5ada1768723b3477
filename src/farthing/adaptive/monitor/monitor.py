"""A monitor: look at many counts as often as you like, and pay for the alerts only."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from farthing.adaptive.monitor.monitor_plan import MonitorPlan
from farthing.adaptive.session_journal import Journal
from farthing.errors import FarthingError, InvalidValue, LedgerUnavailable, SessionEnded
from farthing.mechanisms.randomness import SYSTEM, Source
from farthing.mechanisms.threshold_session import Above, ThresholdSession
from farthing.privacy.events import checked_count

Read = Callable[..., Sequence[int]]
Words = Callable[..., str]


@dataclass(frozen=True)
class Alert:
    """A look found that a series had reached its threshold.

    Among many series, those that are reported tend to have had lucky noise.

    Attributes:
        series: The name of the series.
        step: The number of the look.
        above_by: A noisy guess at how far it was above; `estimate` is the same as a count.
        threshold: The threshold of the series.

    >>> Alert("cases in north", 7, 33, 500).estimate
    533
    """

    series: str
    step: int
    above_by: int
    threshold: int

    @property
    def estimate(self) -> int:
        """The noisy count: the threshold plus the noisy excess."""
        return self.threshold + self.above_by

    def __str__(self) -> str:
        return f"look {self.step}: {self.series} has reached {self.threshold:,} (about {self.estimate:,})"


@dataclass(frozen=True)
class Look(Sequence[Alert]):
    """The alerts of one look, in order, and how far off its answers may be.

    A look is true if there is an alert in it.

    Attributes:
        step: The number of the look.
        alerts: Which series had reached their thresholds.
        error: How far off all answers may be.
        unseen: The series that were not looked at, because the last alert had been given or the look was to end with
            one.
        repeated: Whether this is an earlier look, from the journal: nothing was read, and nothing used up.

    >>> bool(Look(3, (), error=40)), Look(3, (), error=40).complete
    (False, True)
    """

    step: int
    alerts: tuple[Alert, ...]
    error: int
    unseen: tuple[str, ...] = ()
    repeated: bool = False

    @property
    def complete(self) -> bool:
        """Whether every series was looked at."""
        return not self.unseen

    def __getitem__(self, place: Any) -> Any:
        return self.alerts[place]

    def __len__(self) -> int:
        return len(self.alerts)

    def __iter__(self) -> Iterator[Alert]:
        return iter(self.alerts)


@dataclass
class _Round:
    """A round that is running: its number, the secret noise, and how many looks it has been through."""

    number: int
    session: ThresholdSession
    looks: int = 0


@dataclass
class _PendingAlert:
    """An alert that is not recorded yet, and hence not shown."""

    number: int
    record: Mapping[str, Any] = field(repr=False)


class Monitor:
    """Counts that are looked at again and again; `look()` returns the alerts.

    Made by `Study.monitor`. Rounds, their number and their price are fixed when it is opened. A round is begun in the
    journal before its first question and ends with an alert, which is recorded before it is shown. The noise of the
    running round lives in this object only: a monitor that is opened again begins another round, and the one
    that was running is lost.

    A monitor that is opened again first repeats the looks that the journal has, one by one, and then goes on: a script
    that is run again gets the same looks and begins no round. `look(fresh=True)` looks at the table as it is now.

    Args:
        plan: The series, their thresholds and the prices.
        read: Counts the series; it is called with the arguments of `look`.
        journal: Keeps the rounds.
        words: A text for the arguments of `look`, equal for equal ones: only looks of the same words are repeated.
        notice: Called with the table before the first look that is repeated.

    >>> from farthing.adaptive.session_journal import MemoryJournal
    >>> from farthing.adaptive.monitor import Series, plan_monitor
    >>> plan = plan_monitor(
    ...     [Series("north", "cases"), Series("south", "cases")], [500, 500], alerts=2, steps=52, epsilon=1.0
    ... )
    >>> counts = [12, 90]
    >>> monitor = Monitor(plan, lambda **_: counts, MemoryJournal())
    >>> len(monitor.look())
    0
    >>> counts[0] = 4_000
    >>> [alert.series for alert in monitor.look()], monitor.alerts_left
    (['north'], 1)
    >>> len(monitor.look())  # north was reported, and is muted
    0
    """

    _source: Source = SYSTEM

    def __init__(
        self,
        plan: MonitorPlan,
        read: Read,
        journal: Journal,
        words: Words = lambda **_: "",
        notice: Callable[[Any], None] = lambda table: None,
    ) -> None:
        self.plan = plan
        self._read = read
        self._words, self._notice = words, notice
        self._journal = journal
        self._lock = threading.Lock()
        self._round: _Round | None = None
        self._pending: _PendingAlert | None = None
        self._thresholds = {one.name: t for one, t in zip(plan.series, plan.thresholds, strict=True)}
        journal.opening(dict)
        self._next = journal.begun() + 1  # others have begun those before
        self._looks: dict[str, list[Look]] = {}  # of earlier objects, by their words
        self._repeated_to: Counter[str] = Counter()  # how far this object has repeated them
        self._noticed = False
        for note in journal.notes():
            self._looks.setdefault(note["words"], []).append(self._noted(note))
        steps = [look.step for looks in self._looks.values() for look in looks]
        self._step = max([*steps, *(alert.step for alert in self.alerts)], default=0)

    @property
    def alerts(self) -> list[Alert]:
        """Every alert that was given, by whichever process of this session, in the order of recording."""
        return [self._alert(record) for _, record in self._journal.history()]

    @property
    def alerts_left(self) -> int:
        """How many more alerts there can be; what others have begun since this was opened shows when its turn comes."""
        ended = max((number for number, _ in self._journal.history()), default=0)
        return self.plan.alerts - max(self._next - 1, ended) + self.running

    @property
    def latest(self) -> int:
        """The number of the last look, by whichever object of this session; 0 before the first."""
        return self._step

    @property
    def watched(self) -> list[str]:
        """The series that are asked about: all of them, or those that were not reported yet."""
        muted = {alert.series for alert in self.alerts} if self.plan.mute else set()
        return [series.name for series in self.plan.series if series.name not in muted]

    @property
    def running(self) -> bool:
        """Whether a round is running: it is lost when this object is."""
        return self._round is not None

    def look(
        self,
        table: Any = None,
        *,
        where: Any = None,
        step: int | None = None,
        single: bool = False,
        fresh: bool = False,
    ) -> Look:
        """Read all counts once and report which have reached their thresholds.

        The looks that were made before this monitor was opened again come first, as they were. A table that is passed
        in is always looked at, unless `step` is the number of an earlier look.

        When the last alert has been given, the rest of that look is `unseen`, and the next one is refused. If the
        ledger fails in between, its error is raised: what was recorded is in `alerts`, and an alert that was not yet
        recorded is shown by the next look, once it has been.

        Args:
            table: The dataset as it is now, where it is not the source itself that grows.
            where: Limits this look to some rows, such as those of the last days.
            step: The number of the look, by default one more than the last; an earlier look of that number is repeated.
            single: Whether the look ends with its first alert, and the other series are `unseen`: the rest would need
                another round, which is lost if this is the last look of the process.
            fresh: Look at the table as it is now, and repeat no earlier look, now or later.

        Returns:
            The alerts, and the error.

        Raises:
            InvalidValue: If `step` is not a whole number >= 1.
            SessionEnded: If the last alert was given before.
        """
        number = self._step + 1 if step is None else checked_count(step, "step")
        if not number >= 1:
            raise InvalidValue("step", step, "must be a whole number >= 1")
        with self._lock:
            words = self._words(table=table, where=where)
            # Nobody can compare a table that is passed in with the one that an earlier look has seen.
            is_new = fresh or (table is not None and step is None)
            earlier = None if is_new else self._earlier(words, step)
            if earlier is not None:
                if not self._noticed:
                    self._noticed = True
                    self._notice(table)
                return earlier
            if fresh:
                self._looks.clear()
            alerts = [] if self._pending is None else [self._record()]
            if not self.watched:
                return Look(number, tuple(alerts), self.plan.error)
            if self._begin() is None and not alerts:
                raise SessionEnded(
                    "rounds",
                    self.plan.alerts,
                    "what was found is in `alerts`; open another monitor under a request id of its own, which is "
                    "charged separately",
                )
            values = self._read(table=table, where=where)
            self._step = number
            look = self._looked(number, values, alerts, single)
            self._journal.note(
                {
                    "words": words,
                    "look": number,
                    "alerts": [[alert.series, alert.step, alert.above_by] for alert in look],
                    "error": look.error,
                    "unseen": list(look.unseen),
                }
            )
            return look

    def _earlier(self, words: str, step: int | None) -> Look | None:
        """The next of the looks that were made before, or the one of this number."""
        looks = self._looks.get(words, [])
        if step is None:
            place = self._repeated_to[words]
        else:
            place = next((place for place, look in enumerate(looks) if look.step == step), len(looks))
        if place >= len(looks):
            return None
        self._repeated_to[words] = place + 1
        return looks[place]

    def _noted(self, note: Mapping[str, Any]) -> Look:
        alerts = tuple(Alert(name, step, above, self._thresholds[name]) for name, step, above in note["alerts"])
        return Look(note["look"], alerts, note["error"], tuple(note["unseen"]), repeated=True)

    def _looked(self, number: int, values: Sequence[int], alerts: list[Alert], single: bool) -> Look:
        watched = set(self.watched)
        unseen: list[str] = []
        looks = 1
        for series, value, threshold in zip(self.plan.series, values, self.plan.thresholds, strict=True):
            if series.name not in watched:
                continue
            running = None if single and alerts else self._begin()
            if running is None:
                unseen.append(series.name)
                continue
            looks = max(looks, running.looks + 1)
            # Thresholds are public: a count less its threshold moves as far as the count.
            answer = running.session.ask(int(value) - threshold)
            if isinstance(answer, Above):
                record = {"series": series.name, "step": number, "above_by": int(answer.gap or 0)}
                self._round, self._pending = None, _PendingAlert(running.number, record)
                alerts.append(self._record())
        if self._round is not None:
            self._round.looks += 1
        error = self.plan.error if looks <= self.plan.steps else self.plan.error_of(looks)
        return Look(number, tuple(alerts), error, tuple(unseen))

    def _begin(self) -> _Round | None:
        """The round that is running, or else the next one that nobody has begun; None when all are used up."""
        if self._round is not None and self._round.session.stopped:
            self._round = None  # interrupted between its answer and the record: it is lost
        while self._round is None and self._next <= self.plan.alerts:
            number = self._next
            mine = self._journal.begin(number)
            self._next += 1  # after it: a journal that is away is asked for the same round again
            if mine:
                self._round = _Round(number, self.plan.mechanism._start(self._source))
        return self._round

    def _record(self) -> Alert:
        """Make an alert durable; only then is it an alert."""
        assert self._pending is not None
        try:
            self._journal.end(self._pending.number, self._pending.record)
        except LedgerUnavailable:
            raise
        except FarthingError:  # the round is not ours any more, and its finding is nobody's
            self._pending = None
            raise
        record, self._pending = self._pending.record, None
        return self._alert(record)

    def _alert(self, record: Mapping[str, Any]) -> Alert:
        name = record["series"]
        return Alert(name, record["step"], record["above_by"], self._thresholds[name])

    def __repr__(self) -> str:
        return f"Monitor({len(self.plan.series)} series, up to {self.plan.alerts} alerts)"
