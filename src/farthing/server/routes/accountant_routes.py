"""Routes of the accountant: what charges cost together, and what that leaves to an attacker. No row is read."""

from __future__ import annotations

from typing import Any

from farthing.server.auth.permissions import guarded
from farthing.server.http.error_envelope import refusals
from farthing.server.schemas.composition_schema import (
    ComparedAsked,
    ComparedView,
    CompositionAsked,
    CompositionView,
    PartitionsAsked,
    PartitionsView,
    PlayAsked,
    PlayView,
    RegionsAsked,
    RegionsView,
    RivalsAsked,
    RivalsView,
)
from farthing.server.services.app_state import TheState

router = guarded("accountant")


@router.post(
    "/compose",
    response_model=CompositionView,
    responses=refusals("too_large", "rate_limited"),
    summary="What charges cost together: the optimum next to every theorem",
)
def compose(asked: CompositionAsked, state: TheState) -> Any:
    """The proven optimum at `delta`, every theorem people compare with, and what each wastes.

    What takes more than a few seconds to prove is refused with `too_large`.
    """
    return state.accountant.ask("composed", asked.model_dump())


@router.post(
    "/regions",
    response_model=RegionsView,
    responses=refusals("too_large", "rate_limited"),
    summary="The error rates that an attacker can reach, under each theorem",
)
def regions(asked: RegionsAsked, state: TheState) -> Any:
    """Lower boundaries of the region of (false alarm, missed detection) for k mechanisms, and epsilon up to k."""
    return state.accountant.ask("regions", asked.model_dump())


@router.post(
    "/play",
    response_model=PlayView,
    responses=refusals("too_large", "rate_limited"),
    summary="The adaptive composition game, about a made-up secret bit",
)
def play(asked: PlayAsked, state: TheState) -> Any:
    """The game so far: the answer to every charge, what it gave away, and what the filter has left.

    Send the `seed` of the first answer again with one charge more; with `finished` you see the secret. No row is read,
    and nothing is charged.
    """
    return state.accountant.ask("played", asked.model_dump())


@router.post(
    "/rivals",
    response_model=RivalsView,
    responses=refusals("too_large", "rate_limited"),
    summary="Strategies that play the composition game many times",
)
def rivals(asked: RivalsAsked, state: TheState) -> Any:
    """How often each strategy guesses a made-up bit, beside what no strategy can beat on average. No row is read."""
    return state.accountant.ask("rivals", asked.model_dump())


@router.post(
    "/simulate",
    response_model=ComparedView,
    responses=refusals("too_large", "rate_limited"),
    summary="Two mechanisms compared: answers of one made from those of the other, or why not",
)
def simulate(asked: ComparedAsked, state: TheState) -> Any:
    """The regions of two mechanisms, and for both ways the processing that makes one from the other, or a witness.

    A mechanism is the pair of its distributions for two neighbouring tables, or randomized response.
    """
    return state.accountant.ask("compared", asked.model_dump())


@router.post(
    "/partitions",
    response_model=PartitionsView,
    responses=refusals("too_large", "rate_limited"),
    summary="Splits of whole numbers into equal products, counted by pricing privacy",
)
def partitions(asked: PartitionsAsked, state: TheState) -> Any:
    """The reduction of [Why exact is hard](../hardness.md), run on at most ten numbers."""
    return state.accountant.ask("partitions", asked.model_dump())
