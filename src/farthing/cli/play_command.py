"""`farthing play`: the adaptive composition game in a terminal, about a made-up secret bit."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import click

from farthing.cli.charge_grammar import charge_of, decimal_number, whole_number
from farthing.errors import InvalidValue
from farthing.numerics.bounds import number_text
from farthing.privacy.events import checked_delta, checked_epsilon

if TYPE_CHECKING:
    from farthing.accounting.composition_game import CompositionGame, Outcome, Round
    from farthing.accounting.game_strategies import Tally
    from farthing.privacy import Event

MOST_ROUNDS = 10_000

HELP = """\
The adaptive composition game: there is a secret bit, and every answer says a little about it. Choose the next charge
after seeing the last answer. A filter, the clock, refuses what would be too much. At the end you see the bit and the
odds.

\b
A charge is
  EPSILON        a randomized response: the bit, or its opposite     0.1
  laplace:B      the bit with Laplace noise of scale B               laplace:10
  gaussian:B     the bit with Gaussian noise, standard deviation B   gaussian:8
and xCOUNT repeats it: 0.1x5 asks five times. Enter alone, or Ctrl-C at the prompt, ends the game.

The bit is made up and none of your data is read, so a game may be repeated with --seed.

\b
Examples:
  farthing play
  farthing play --charges "0.3 0.1x5 gaussian:4" --seed 7
  farthing play --charges 0.1x100 --games 1000

Exit code: 0 at the end of a game; 2 when the input is refused; 130 when interrupted.
"""


@click.command("play", help=HELP, short_help="The adaptive composition game: can you beat a filter?")
@click.option("--epsilon", metavar="E", default="1", help="The epsilon of the filter (default: 1).")
@click.option("--delta", metavar="D", default="0.01", help="The delta of the filter, above 0 (default: 0.01).")
@click.option("--charges", metavar="WORDS", help="Play these, one after the other, without asking you.")
@click.option("--seed", metavar="N", help="Repeat a game: the same secret, and the same answers to the same charges.")
@click.option("--games", metavar="N", help="Play --charges in this many games, and count the right guesses.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; needs --charges.")
def play_command(
    epsilon: str, delta: str, charges: str | None, seed: str | None, games: str | None, as_json: bool
) -> None:
    """Read the options, then play: with somebody, by a list, or many games."""
    from farthing.accounting.composition_game import CompositionGame
    from farthing.accounting.filters import ClockFilter
    from farthing.accounting.game_strategies import tally

    share = checked_delta(decimal_number(delta, "delta"))
    if not 0 < share < 1:
        raise InvalidValue("delta", delta, "must be above 0 and below 1", "such as 0.01")
    budget = ClockFilter(checked_epsilon(decimal_number(epsilon, "epsilon")), share, leak=0)
    number = None if seed is None else whole_number(seed, "seed")
    asked = [_charge(word) for word in (charges or "").split()]
    if sum(count for _, count in asked) > MOST_ROUNDS:
        raise InvalidValue("charges", charges, f"must be at most {MOST_ROUNDS:,} rounds")
    if charges is None and (as_json or games is not None):
        raise InvalidValue(
            "charges", None, "must be given with --json and --games", 'such as --charges "0.1x5 laplace:4"'
        )
    if games is not None:
        times = whole_number(games, "games")
        if not 1 <= times <= 100_000:
            raise InvalidValue("games", games, "must be from 1 to 100,000")
        _print_tally(tally(_listed(asked), budget, times, seed=number), as_json)
        return
    game = CompositionGame(budget, seed=number)
    if charges is None:
        _with_somebody(game)
        return
    if as_json:
        click.echo(json.dumps(_data(game, game.play(_listed(asked))), indent=2, allow_nan=False))
        return
    _greet(game)
    outcome = game.play(_listed(asked))
    for place, played in enumerate(game.rounds, start=1):
        click.echo(_line(place, played))
    click.echo(f"\n{outcome.sentence}")


def _charge(word: str) -> tuple[Event, int]:
    """The charge that a word stands for, if it is played here.

    >>> _charge("laplace:10x3")
    (LaplaceNoise(noise_multiplier=10.0), 3)
    """
    from farthing.privacy import ApproxDP, GaussianNoise, LaplaceNoise

    event, count = charge_of(word)
    pure = isinstance(event, ApproxDP) and not event.delta
    if not (pure or isinstance(event, LaplaceNoise | GaussianNoise)):
        raise InvalidValue("charge", word, "is not played here", "ask with an epsilon, laplace:B or gaussian:B")
    return event, count


def _listed(asked: list[tuple[Event, int]]) -> Any:
    """The strategy that asks a list, whatever the answers."""
    events = [event for event, count in asked for _ in range(count)]
    return lambda game: events[len(game.rounds)] if len(game.rounds) < len(events) else None


def _with_somebody(game: CompositionGame) -> None:
    """Ask for charges until somebody has had enough."""
    _greet(game)
    while True:
        try:
            word = click.prompt("Next charge", default="", show_default=False).strip()
        except click.Abort:  # the end of input, or Ctrl-C: the game is over, and its secret is due
            click.echo()
            word = ""
        if not word:
            break
        try:
            event, count = _charge(word)
            if count > MOST_ROUNDS:
                raise InvalidValue("count", count, f"must be at most {MOST_ROUNDS:,}")
            for _ in range(count):
                click.echo(_line(len(game.rounds) + 1, game.ask(event)))
        except InvalidValue as refusal:  # a slip of the hand is not the end of the game
            click.echo(str(refusal))
    click.echo(f"\n{game.finish().sentence}")


def _greet(game: CompositionGame) -> None:
    click.echo(
        f"A secret bit was drawn. The filter allows epsilon {number_text(game.budget.epsilon)} at delta "
        f"{number_text(game.budget.delta)} in all;\none charge of epsilon {number_text(game.remaining)} would fit. "
        "Losses above 0 speak for 1, below 0 for 0.\n"
    )


def _line(number: int, played: Round) -> str:
    what = _word(played.event)
    if played.answer is None:
        return f"{number:3}. {what}: refused; one charge of epsilon {number_text(played.remaining)} would fit"
    answer = f"{played.answer:.0f}" if float(played.answer).is_integer() else f"{played.answer:.3g}"
    return (
        f"{number:3}. {what}: the answer is {answer}, loss {played.loss:+.3g}; in all {played.total:+.3g}; "
        f"left {number_text(played.remaining)}"
    )


def _word(event: Event) -> str:
    """The charge word of an event that is played.

    >>> from farthing.privacy import ApproxDP, GaussianNoise
    >>> _word(ApproxDP(0.1)), _word(GaussianNoise(4.0))
    ('0.1', 'gaussian:4')
    """
    kind = {"GaussianNoise": "gaussian:", "LaplaceNoise": "laplace:", "RandomizedResponse": "rr:"}
    size = getattr(event, "noise_multiplier", None) or getattr(event, "epsilon", 0.0)
    own = getattr(event, "delta", 0.0)
    return f"{kind.get(type(event).__name__, '')}{size:g}" + (f",{own:g}" if own else "")


def _print_tally(result: Tally, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(vars(result), indent=2, allow_nan=False))
        return
    click.echo(
        f"{result.games:,} games: the guess was right in {100 * result.right:.1f}%; no strategy is right more often "
        f"than {math.ceil(1000 * result.right_at_most) / 10:g}% on average.\n"
        f"Delta reached: {result.delta_reached:.2g} ± {result.standard_error:.1g} (standard error), at most "
        f"{result.delta:.3g} on average."
    )


def _data(game: CompositionGame, outcome: Outcome) -> dict[str, Any]:
    return {
        "epsilon": outcome.epsilon,
        "delta": outcome.delta,
        "rounds": [
            {
                "charge": _word(played.event),
                "refused": played.refused,
                "answer": played.answer,
                "loss": _number(played.loss),
                "total": _number(played.total),
                "remaining": played.remaining,
            }
            for played in game.rounds
        ],
        "secret": outcome.secret,
        "guess": outcome.guess,
        "right": outcome.right,
        "loss": _number(outcome.loss),
        "right_at_most": outcome.right_at_most,
        "sentence": outcome.sentence,
    }


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)
