"""What is wrong with a body or a query, in words: where, the number that was sent, and the rule."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import TypeAdapter

_WHERE = 60  # characters of a key that are repeated to its sender
_MOST = 20
_WORDS = {
    "Input should be ": "must be ",
    "Field required": "is required",
    "Extra inputs are not permitted": "is not known here",
}
_SECRET = ("password", "token", "word", "secret")


def problems_of(request: Request, refused: RequestValidationError) -> list[dict[str, str]]:
    """Every place once or more, with its rule. Of what was sent only numbers are repeated: text may be a secret."""
    rules_of_place: dict[str, list[tuple[str, str]]] = {}
    for each in refused.errors():
        where = _where(each["loc"], refused.body)
        rules_of_place.setdefault(where, []).append((str(each["type"]), _rule(request, each, refused.body)))
    # Where several kinds of value are allowed, what breaks the rule of its own kind says more than what is of another.
    return [
        {"where": where, "rule": rule}
        for where, rules in rules_of_place.items()
        for rule in dict.fromkeys(_own_kind(rules))
    ][:_MOST]


def _own_kind(rules: Sequence[tuple[str, str]]) -> list[str]:
    own = [rule for kind, rule in rules if not kind.endswith("_type")]
    return own or [rule for _, rule in rules]


def _where(place: Sequence[Any], body: Any) -> str:
    """The place as its sender would write it, without the names of alternatives that only the model has."""
    if not place or place[0] != "body":
        return ".".join(str(part)[:_WHERE] for part in place)
    path, at = ["body"], body
    for number, part in enumerate(place[1:], 2):
        if _holds(at, part):
            at = at[part]
        elif not (number == len(place) and isinstance(at, Mapping)):  # the last may be a key that is missing
            continue
        path.append(str(part)[:_WHERE])
    return ".".join(path)


def _holds(at: Any, part: Any) -> bool:
    """Whether a part of a place leads further into what was sent."""
    if isinstance(at, list):
        return isinstance(part, int) and part < len(at)
    return isinstance(at, Mapping) and part in at


def _rule(request: Request, each: Mapping[str, Any], body: Any) -> str:
    rule = str(each["msg"])[:300]
    for theirs, ours in _WORDS.items():
        rule = rule.replace(theirs, ours)
    key, value = str(each["loc"][-1]), each.get("input")
    if each["type"] == "extra_forbidden":
        return rule + _suggestion(request, key, _siblings(each["loc"], body))
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    is_secret = any(word in str(part) for part in each["loc"] for word in _SECRET)
    return f"{rule}, not {value!r}"[:300] if is_number and not is_secret else rule


def _siblings(place: Sequence[Any], body: Any) -> set[str]:
    """The keys that were sent beside the one at a place."""
    at = body
    for part in place[1:-1]:
        if _holds(at, part):
            at = at[part]
    return set(map(str, at)) if isinstance(at, Mapping) else set()


def _suggestion(request: Request, key: str, beside: set[str]) -> str:
    """The key that was probably meant, if one is close; of the objects of the body, the one most like what was sent."""
    objects = sorted(_objects(request), key=lambda names: -len(names & beside))
    if not objects:
        return ""
    close = difflib.get_close_matches(key, sorted(objects[0] - beside), n=1, cutoff=0.7)
    return f"; did you mean {close[0]!r}?" if close else ""


def _objects(request: Request) -> Iterable[set[str]]:
    """The keys of each kind of object that the route's body may hold."""
    route = request.scope.get("route")
    for field in getattr(getattr(route, "dependant", None), "body_params", ()):
        schema = TypeAdapter(field.field_info.annotation).json_schema()
        for each in (schema, *schema.get("$defs", {}).values()):
            if "properties" in each:
                yield set(each["properties"])
