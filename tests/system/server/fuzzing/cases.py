"""Which cases a run tries: every one is drawn by Schemathesis, and some are then bent towards what exists.

meant      what somebody who means well would send
nearly     the same with one thing spoiled
addressed  to and about something that exists, with whatever fits the description otherwise
wild       anything that fits the description
negative   something that does not
malformed  a body that is no JSON, or in another type
stray      another method, or another host
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.schemas import APIOperation

from system.server.fuzzing.people import LET_IN, WAYS, Way

Call = tuple[str, str]  # method and template of the address
INTENTS = {"meant": 10, "nearly": 4, "addressed": 3, "wild": 2, "negative": 4, "malformed": 1, "stray": 1}
# These make what others then look at; in this order.
MAKERS = (
    "/users",
    "/tokens",
    "/datasets",
    "/studies",
    "/plans",
    "/releases",
    "/sessions",
    "/series",
    "/synthetic-tables",
)
# Some cases of these take seconds of a core, so that they get fewer of the random ones; makers get more.
SLOW = {
    ("POST", f"/api/v1{path}")
    for path in ("/compose", "/regions", "/play", "/rivals", "/simulate", "/sessions/price", "/sessions")
}

_SPECIAL = [
    "", "\x00", "\ud800", "a\u202eb", "'; drop table users; --", "%s%n%00", "../../../etc/passwd", "${7*7}", "9" * 400,
    "1e999", "null", "people", "sex = 'F'", 0, -1, 2**31, 2**63, 2**64, 10**40, -0.0, 5e-324, 1e308, float("nan"),
    float("inf"), True, None, [], {}, [[[[[[[[]]]]]]]], {"": {"": None}}, "x" * 5_000, ["people"] * 200,
]  # fmt: skip
JUNK = st.sampled_from(_SPECIAL) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=10), inside, max_size=3),
    max_leaves=5,
)


@dataclass(frozen=True)
class Trial:
    """One case: who does what, how it was drawn, and dice of its own for what is decided when it is sent."""

    number: int
    call: Call
    way: Way
    intent: str
    case: Case
    junk: Any
    dice: int

    @property
    def must_end(self) -> int:
        """Let in, or the status of a refusal."""
        return self.way.ends(*self.call)


def operations(document: dict[str, Any]) -> dict[Call, APIOperation]:
    """Every operation of the description. Who comes in is ours to say, so that part is taken out."""
    bare = {**document, "components": {**document["components"], "securitySchemes": {}}}
    bare["paths"] = {
        path: {method: {**words, "security": []} for method, words in item.items()}
        for path, item in document["paths"].items()
    }
    found = [result.ok() for result in schemathesis.openapi.from_dict(bare).get_all_operations()]
    return {(each.method.upper(), each.path): each for each in found}


Wanted = tuple[Call, Way, str]


def trials(calls: dict[Call, APIOperation], cases: int, dice: random.Random) -> list[Trial]:
    """So many cases, those that make something first."""
    chosen = wanted(list(calls), cases, dice)
    ready = {
        call: _supply(operation, [intent for each, _, intent in chosen if each == call], dice)
        for call, operation in calls.items()
    }
    made = [
        Trial(number, call, way, intent, *ready[call][intent == "negative"].pop(), dice.getrandbits(64))
        for number, (call, way, intent) in enumerate(chosen)
    ]
    return sorted(made, key=_order)


def wanted(calls: list[Call], cases: int, dice: random.Random) -> list[Wanted]:
    """Which operation is tried how by whom: every role that is let in and somebody who is not; then every way."""
    chosen = [each for call in calls for each in _essential(call, dice)]
    others = [
        (call, way, "meant" if way.ends(*call) == LET_IN else "addressed")
        for call in calls
        for way in WAYS.values()
        if (call, way, "meant") not in chosen and (call, way, "addressed") not in chosen
    ]
    if len(chosen) + len(others) > cases:
        dice.shuffle(others)
        others.sort(key=lambda each: each[0] in SLOW)
    chosen += others[: max(0, cases - len(chosen))]
    weights = [1 if call in SLOW else 6 if _makes(call) else 3 for call in calls]
    for call in dice.choices(calls, weights, k=cases - len(chosen)) if cases > len(chosen) else ():
        likely = [3 if way.ends(*call) == LET_IN else 1 for way in WAYS.values()]
        way, intent = (
            dice.choices(list(WAYS.values()), likely)[0],
            dice.choices(list(INTENTS), list(INTENTS.values()))[0],
        )
        chosen.append((call, way, intent))
    dice.shuffle(chosen)
    return chosen


def _essential(call: Call, dice: random.Random) -> Iterator[Wanted]:
    ways = list(WAYS.values())
    dice.shuffle(ways)
    roles: set[str | None] = set()
    for way in ways:
        if way.ends(*call) == LET_IN and way.role not in roles and (call not in SLOW or not roles):
            roles.add(way.role)
            yield call, way, "meant"
    yield from ((call, way, "addressed") for way in [each for each in ways if each.ends(*call) != LET_IN][:1])


def _makes(call: Call) -> bool:
    return call[0] == "POST" and call[1].removeprefix("/api/v1") in MAKERS


def _order(trial: Trial) -> tuple[int, int]:
    """The first makers come first, so that there is something to look at; the rest as the dice fell."""
    if _makes(trial.call) and trial.intent == "meant" and trial.number < 400:
        return MAKERS.index(trial.call[1].removeprefix("/api/v1")), trial.number
    return len(MAKERS), trial.number


def _supply(operation: APIOperation, intents: list[str], dice: random.Random) -> tuple[list[Any], list[Any]]:
    bad = intents.count("negative")
    fitting = drawn(operation, GenerationMode.POSITIVE, len(intents) - bad, dice.getrandbits(32))
    # An operation that takes nothing can be given nothing that is wrong.
    takes = any(True for _ in operation.iter_parameters()) or operation.body
    mode = GenerationMode.NEGATIVE if takes else GenerationMode.POSITIVE
    return fitting, drawn(operation, mode, bad, dice.getrandbits(32))


def drawn(operation: APIOperation, mode: GenerationMode, count: int, chance: int) -> list[tuple[Case, Any]]:
    """So many cases from Schemathesis, each with a piece of junk."""
    found: list[tuple[Case, Any]] = []
    if not count:
        return found

    # The number makes every one new: an operation without parameters would be drawn once.
    @seed(chance)
    @settings(
        max_examples=count, database=None, deadline=None, derandomize=False, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(operation.as_strategy(mode), JUNK, st.integers(0, 2**62))
    def collect(case: Case, junk: Any, _: int) -> None:
        found.append((case, junk))

    collect()
    while len(found) < count:  # where it ran out of ideas
        found.append(found[0])
    return found[:count]
