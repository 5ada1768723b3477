"""What an analyst may spend besides a grant: requests that a curator approved, each once, and a standing policy.

Rights are part of the analyst's account, so a charge reads and changes them in its own transaction: of two charges that
race for one approval, one finds it used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from types import MappingProxyType
from typing import Any

from farthing.accounting.event_price import delta_down, epsilon_down
from farthing.errors import InvalidValue
from farthing.ledger.tamper_evidence import canonical, fingerprint

OPEN, APPROVED = "open", "approved"
PERIODS = ("week", "month", "quarter", "year")
MOST_OPEN = 20  # requests of one analyst in one dataset that wait or are approved
_SECOND = 10**9
_NUMBERS = ("nano", "units", "until", "cell", "period", "used_nano", "used_units")


@dataclass(frozen=True, slots=True)
class Contents:
    """What a policy looks at in a plan; public facts, none of them computed from rows.

    Args:
        statistics: The kinds of its statistics, such as "count" and "mean".
        columns: Every column that it reads; None where that cannot be told.
        cell: Below how many people, by a released count, the release withholds a cell; None where it has no count of
            every cell.

    >>> Contents(("count",), ("sex",), 500).columns
    ('sex',)
    """

    statistics: tuple[str, ...]
    columns: tuple[str, ...] | None = None
    cell: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """As an entry keeps it."""
        columns = None if self.columns is None else list(self.columns)
        return {"statistics": list(self.statistics), "columns": columns, "cell": self.cell}


@dataclass(frozen=True, slots=True)
class Wish:
    """A request that waits or is approved: which charge it is for, what that may cost, and until when."""

    state: str
    mark: str  # of the charge, see `mark_of`
    nano: int
    units: int
    until: int = 0  # nanoseconds; 0 while it waits
    name: str = ""  # what its plan is called in the ledger once it is released
    version: int = 1

    def to_list(self) -> list[Any]:
        """As a state keeps it."""
        return [self.state, self.mark, self.nano, self.units, self.until, self.name, self.version]


@dataclass(frozen=True, slots=True)
class StandingPolicy:
    """A standing grant: so much in every period, for plans of this kind, until it expires.

    Args:
        nano: Epsilon of one period, in billionths.
        units: Delta of one period, in units of 1e-40.
        per: "week", "month", "quarter" or "year" of the calendar, in UTC.
        until: When it expires, in nanoseconds.
        statistics: The kinds of statistics that are allowed; None for all.
        columns: The columns that may be read; None for all.
        cell: Cells of fewer people, by a released count, are withheld; 0 where that does not matter.
        period: The period in which something was charged last.
        used_nano: The sum of the epsilons that were charged in it.
        used_units: The sum of its deltas.

    >>> policy = StandingPolicy(100_000_000, 0, "quarter", 2**62, statistics=("count",))
    >>> policy.lacks(Contents(("count",)), 60_000_000, 0, 0), policy.lacks(Contents(("mean",)), 1, 0, 0)
    ('', 'mean is not one of the statistics it allows (count)')
    """

    nano: int
    units: int
    per: str
    until: int
    statistics: tuple[str, ...] | None = None
    columns: tuple[str, ...] | None = None
    cell: int = 0
    period: int = 0
    used_nano: int = 0
    used_units: int = 0

    def left(self, now: int) -> tuple[int, int]:
        """What the period has left of epsilon and delta."""
        if now >= self.until:
            return 0, 0
        used = (self.used_nano, self.used_units) if self.period >= period_of(now, self.per) else (0, 0)
        return max(0, self.nano - used[0]), max(0, self.units - used[1])

    def lacks(self, contents: Contents, nano: int | None, units: int, now: int) -> str:
        """Why it does not cover a charge, in words; nothing where it does."""
        if not now < self.until:
            return "it has expired"
        strange = _first_beyond(contents.statistics, self.statistics)
        if strange is not None:
            return f"{strange} is not one of the statistics it allows ({', '.join(self.statistics or ())})"
        if self.columns is not None and contents.columns is None:
            return "which columns are read cannot be told of a table that was filtered or joined first"
        strange = _first_beyond(contents.columns or (), self.columns)
        if strange is not None:
            return f"{strange!r} is not one of the columns it allows ({', '.join(self.columns or ())})"
        if self.cell and contents.cell is None:
            return "every number needs a released count of its cell: add a count by the same columns"
        if self.cell and contents.cell is not None and not contents.cell >= self.cell:
            return f"cells of fewer than {self.cell} people must be withheld"
        left_nano, left_units = self.left(now)
        if nano is None or not (nano <= left_nano and units <= left_units):
            left = f"epsilon={epsilon_down(left_nano):g}, delta={delta_down(left_units):g}"
            return f"this {self.per} has {left} left, which is less than it costs"
        return ""

    def used(self, nano: int, units: int, now: int) -> StandingPolicy:
        """The same after a charge; a clock that was set back opens no new period."""
        period = max(self.period, period_of(now, self.per))
        before = (self.used_nano, self.used_units) if period == self.period else (0, 0)
        return replace(self, period=period, used_nano=before[0] + nano, used_units=before[1] + units)

    def in_place_of(self, earlier: StandingPolicy | None, now: int) -> StandingPolicy:
        """The same with what was used of the one that it replaces: a second policy is no second allowance."""
        used = 0, 0
        if earlier is not None and earlier.period >= period_of(now, earlier.per):
            used = earlier.used_nano, earlier.used_units
        return replace(self, period=period_of(now, self.per), used_nano=used[0], used_units=used[1])

    def to_dict(self) -> dict[str, Any]:
        """As a state keeps it."""
        facts: dict[str, Any] = {name: getattr(self, name) for name in ("per", *_NUMBERS)}
        for name in ("statistics", "columns"):
            allowed = getattr(self, name)
            facts[name] = None if allowed is None else list(allowed)
        return facts

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> StandingPolicy:
        """The policy that a state keeps, as `to_dict` wrote it."""
        facts: dict[str, Any] = {name: int(data[name]) for name in _NUMBERS}
        for name in ("statistics", "columns"):
            facts[name] = None if data[name] is None else tuple(map(str, data[name]))
        return cls(per=str(data["per"]), **facts)


@dataclass(frozen=True, slots=True)
class Rights:
    """Open and approved requests by their number, the policy, and the latest time that was seen.

    >>> rights = Rights({7: Wish(APPROVED, "mark", 10, 0, until=100)})
    >>> right, _ = rights.covering("mark", None, 10, 0, now=50)
    >>> right, rights.used(right, 10, 0).requests
    ({'request': 7, 'now': 50}, {})
    >>> rights.covering("mark", None, 11, 0, now=50)
    (None, 'request 7 was approved for less than it costs now')
    """

    requests: Mapping[int, Wish] = field(default_factory=lambda: MappingProxyType({}))
    policy: StandingPolicy | None = None
    seen: int = 0

    def __bool__(self) -> bool:
        return bool(self.requests) or self.policy is not None

    def moment(self, clock: int) -> int:
        """What the time is: never earlier than it was, so that a clock set back revives nothing."""
        return max(clock, self.seen)

    def covering(
        self, mark: str, contents: Contents | None, nano: int | None, units: int, now: int
    ) -> tuple[dict[str, Any] | None, str]:
        """What covers a charge, as its entry says it; or None and the reasons."""
        reasons = []
        for number, wish in self.requests.items():
            if wish.mark != mark:
                continue
            if wish.state != APPROVED:
                reasons.append(f"request {number} waits for a curator")
            elif not now < wish.until:
                reasons.append(f"the approval of request {number} has expired")
            elif nano is None or not (nano <= wish.nano and units <= wish.units):
                reasons.append(f"request {number} was approved for less than it costs now")
            else:
                return {"request": number, "now": now}, ""
        if self.policy is not None:
            lack = "it covers plans of statistics only"
            if contents is not None:
                lack = self.policy.lacks(contents, nano, units, now)
                if not lack:
                    return {"policy": contents.to_dict(), "now": now}, ""
            reasons.append(f"the policy does not cover it: {lack}")
        approved = [number for number, wish in self.requests.items() if wish.state == APPROVED and now < wish.until]
        if approved and not reasons:
            reasons.append(f"request {approved[0]} is approved, but for a different plan")
        return None, "; ".join(reasons)

    def used(self, right: Mapping[str, Any], nano: int, units: int) -> Rights:
        """The rights after a charge that one of them covered; an approval is gone, because it holds once."""
        now = int(right["now"])
        if "request" in right:
            number = int(right["request"])
            if number not in self.requests or self.requests[number].state != APPROVED:
                raise ValueError("the request was not approved")
            return self.without(number, now)
        if self.policy is None:
            raise ValueError("there is no policy")
        return replace(self, policy=self.policy.used(nano, units, now), seen=max(self.seen, now))

    def having(self, number: int, wish: Wish, now: int) -> Rights:
        """With one request as it is from now on; approvals that have expired are forgotten."""
        kept = {
            other: each
            for other, each in self.requests.items()
            if other != number and (each.state == OPEN or now < each.until)
        }
        if number not in self.requests and len(kept) >= MOST_OPEN:
            raise InvalidValue(
                "requests",
                len(kept),
                f"must be fewer than {MOST_OPEN} that wait or are approved",
                "withdraw one, release one that is approved, or wait for the curator",
            )
        return replace(self, requests=dict(sorted({**kept, number: wish}.items())), seen=max(self.seen, now))

    def without(self, number: int, now: int) -> Rights:
        """Without a request that has come to its end."""
        kept = {other: each for other, each in self.requests.items() if other != number}
        return replace(self, requests=kept, seen=max(self.seen, now))

    def to_dict(self) -> dict[str, Any]:
        """As a state keeps it."""
        return {
            "requests": {str(number): wish.to_list() for number, wish in self.requests.items()},
            "policy": None if self.policy is None else self.policy.to_dict(),
            "seen": self.seen,
        }

    def text(self) -> str:
        """`to_dict` in its one spelling."""
        return canonical(self.to_dict())

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Rights:
        """The rights that a state keeps, as `to_dict` wrote them."""
        wishes = {}
        for number in sorted(map(int, data["requests"])):
            state, mark, nano, units, until, name, version = data["requests"][str(number)]
            wishes[number] = Wish(str(state), str(mark), int(nano), int(units), int(until), str(name), int(version))
        policy = data["policy"]
        return cls(wishes, None if policy is None else StandingPolicy.from_dict(policy), int(data["seen"]))


NONE = Rights()


def mark_of(
    dataset: str,
    analyst: str,
    event: Mapping[str, Any],
    digest: str,
    delta: float | None,
    others: Iterable[str],
    source: str = "",
) -> str:
    """A fingerprint of one charge: whose people, who asks, which noise on which question of which table.

    >>> one = mark_of("census", "bob", {"kind": "x"}, "d", 1e-9, [])
    >>> [one == each for each in (
    ...     mark_of("census", "bob", {"kind": "x"}, "d", None, []),
    ...     mark_of("census", "bob", {"kind": "x"}, "d", 1e-9, [], "a signature"),
    ... )]
    [False, False]
    """
    written = None if delta is None else delta.hex()
    named = [source] if source else []  # a charge that names no table has the mark that it had before tables were named
    return fingerprint(canonical([dataset, analyst, dict(event), digest, written, sorted(others), *named]))


def period_of(now: int, per: str) -> int:
    """The number of the calendar period, in UTC, that a time in nanoseconds lies in.

    >>> [period_of(0, per) for per in PERIODS]
    [102737, 23640, 7880, 1970]
    """
    day = datetime.fromtimestamp(now // _SECOND, UTC).date()
    if per == "week":
        return (day.toordinal() - 1) // 7  # day 1 of the proleptic calendar is a Monday
    if per == "month":
        return 12 * day.year + day.month - 1
    return 4 * day.year + (day.month - 1) // 3 if per == "quarter" else day.year


def checked_until(value: object, now: int, days: int) -> int:
    """A moment after now, in nanoseconds: a date (its whole day, in UTC), a time with its zone, or `days` from now."""
    if value is None:
        return now + days * 86_400 * _SECOND
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value) if len(value) > 10 else date.fromisoformat(value)
        except ValueError:
            raise _no_moment(value) from None
    try:
        if isinstance(value, datetime):
            moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        elif isinstance(value, date):
            moment = datetime.combine(value + timedelta(days=1), time(), UTC)
        else:
            raise _no_moment(value)
        until = int(moment.timestamp()) * _SECOND
    except (OverflowError, OSError):
        raise _no_moment(value) from None
    if not now < until < 2**63:
        raise InvalidValue("expires", str(value), "must be in the future", "name a later day")
    return until


def _no_moment(value: object) -> InvalidValue:
    return InvalidValue("expires", value, "must be a date such as 2027-03-31", "or a time with its zone")


def _first_beyond(used: Iterable[str], allowed: tuple[str, ...] | None) -> str | None:
    return None if allowed is None else next((name for name in used if name not in allowed), None)
