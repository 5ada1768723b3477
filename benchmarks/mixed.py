"""Ordinary statistics beside every peer that installs: `python -m benchmarks --mixed [--releases N] [--adult FILE]`.

Each case is a table, a set of statistics and a budget. farthing plans the set as a whole; a peer gives every statistic
an even share of epsilon and delta. Everybody releases the same set many times, and the errors are compared:

- RMSE: the root mean squared error over releases and cells. Groups of fewer than 300 rows are left out of means;
- best peer: for each statistic the peer with the least RMSE. It is chosen by half of the releases and measured by the
  other half, both ways: the least of seven noisy numbers would look better than it is;
- ratio: farthing's RMSE over the best peer's, below 1 where farthing is better. A set has the geometric mean of its
  ratios, and the geometric mean over the one tool that is best in the whole set. A ratio is off by chance by about its
  `spread`: a promise is met where the figure is within it, missed beyond two of them, else in doubt;
- predicted over measured, and coverage: what farthing's plan says of itself. Measured are the cells that the plan's
  line speaks of, and numbers before those below zero were moved to it: what predictions are about.

A peer that is slow gets as many releases as fit into its time, which `--cap` sets; the number is shown. One that is
not installed, that was stopped, or that does not have a statistic is named with the reason.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from benchmarks.mixed_contenders import TOO_FEW
from benchmarks.mixed_farthing import KNOWN, ROWS, TRUTH, WRONG
from benchmarks.mixed_farthing import released as released_by_farthing
from benchmarks.mixed_tables import QUESTIONS, Asked, People
from benchmarks.peer_environments import Environment
from benchmarks.peer_figures import NEEDS_DELTA, PeerFigures, key_of
from benchmarks.race import ask
from benchmarks.targets import Target

RELEASES, QUICK = 30, 10
SECONDS = 120.0  # for the releases of one peer in one case
OURS = {ROWS: "farthing", TRUTH: "farthing, truth", WRONG: "farthing, off by 2"}
MOST_RATIO, MOST_MEAN, MOST_TOLD, MOST_SIXTY = 1.03, 0.7, 0.65, 0.6
OFF, LEAST, MOST = 0.10, 0.93, 0.98
AGREES = 5.0  # standard errors by which the releases may differ from the law of their noise
Say = Callable[[str], None]


@dataclass(frozen=True)
class Setting:
    """What is asked of which table, for what."""

    table: str
    questions: str
    epsilon: float
    delta: float

    @property
    def title(self) -> str:
        """In words."""
        return f"{self.questions}, {self.table}, epsilon {self.epsilon:g}, delta {self.delta:g}"


@dataclass(frozen=True)
class Error:
    """The error of one statistic by one contender: RMSE, what chance makes of it, and two halves of the squares."""

    rmse: float
    spread: float  # standard error, as a share of the RMSE
    halves: tuple[float, float]  # mean squares of every other release
    releases: int
    measured: float  # the RMSE of the releases, also where the law of the noise gives it exactly

    @classmethod
    def of(cls, asked: Asked, people: People, answers: Any, known: Any = None) -> Error:
        """From all releases of a statistic, and from the expected squared error of each number where that is known.

        The releases have to agree with a known law, or it is not believed.
        """
        compared = asked.compared(people)
        errors = (asked.sensible(answers) - asked.truth(people))[:, compared]
        squares = np.mean(errors**2, axis=1)
        mean = float(squares.mean())
        spread = float(squares.std() / (2 * mean * len(squares) ** 0.5)) if mean > 0 else 0.0
        halves = (float(squares[::2].mean()), float(squares[1::2].mean()) if len(squares) > 1 else mean)
        rmse = math.sqrt(mean)
        if known is not None:
            exact = float(np.mean(np.asarray(known, dtype=float)[compared]))
            if abs(math.sqrt(exact) / rmse - 1) <= AGREES * max(spread, (5 / (4 * errors.size)) ** 0.5):
                return cls(math.sqrt(exact), 0.0, (exact, exact), len(squares), rmse)
        return cls(rmse, spread, halves, len(squares), rmse)

    @classmethod
    def again(cls, kept: dict[str, Any]) -> Error:
        """From its fields as plain data."""
        return cls(**{**kept, "halves": tuple(kept["halves"])})


@dataclass(frozen=True)
class Outcome:
    """One contender in one setting."""

    setting: Setting
    contender: str
    errors: dict[str, Error] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    failure: str = ""
    predicted: dict[str, float] = field(default_factory=dict)
    delivered: dict[str, float] = field(default_factory=dict)  # what `predicted` is about
    coverage: dict[str, float] = field(default_factory=dict)

    @property
    def ours(self) -> bool:
        """Whether it is farthing."""
        return self.contender in OURS.values()

    @property
    def said(self) -> dict[str, float]:
        """The predicted over the delivered error of each statistic."""
        came = {name: self.delivered.get(name, error.rmse) for name, error in self.errors.items()}
        return {name: self.predicted[name] / came[name] for name in self.predicted if came.get(name, 0.0) > 0}

    @property
    def releases(self) -> int:
        """How many releases there were, of the statistic with the fewest."""
        return min((error.releases for error in self.errors.values()), default=0)


def settings(quick: bool, first: str, second: str) -> list[Setting]:
    """The twelve on both tables at three budgets, and the other sets on the first."""
    budgets = ((1.0, 1e-9),) if quick else ((1.0, 1e-9), (1.0, 0.0), (0.1, 1e-9))
    found = [Setting(table, "twelve", *budget) for table in (first, second) for budget in budgets]
    return found + [Setting(first, name, 1.0, 1e-9) for name in QUESTIONS if name != "twelve"]


def compared(
    chosen: Sequence[Setting],
    tables: Sequence[People],
    environments: Sequence[Environment],
    releases: int,
    say: Say,
    seconds: float = SECONDS,
    figures: PeerFigures | None = None,
) -> Iterator[list[Outcome]]:
    """All contenders in all settings, one setting after the other."""
    by_name, figures = {people.name: people for people in tables}, figures or PeerFigures()
    for setting in chosen:
        people, ours = by_name[setting.table], []
        for known in KNOWN:
            say(f"{setting.title}: {OURS[known]}")
            ours.append(of_farthing(setting, people, known, releases, 2 * seconds))
        yield ours + outcomes_of_peers(setting, people, environments, releases, say, seconds, figures)


def of_farthing(setting: Setting, people: People, known: str, releases: int, seconds: float) -> Outcome:
    """farthing in one setting. What it cannot plan stands in the table like anybody's failure."""
    questions = QUESTIONS[setting.questions]()
    try:
        found = released_by_farthing(people, questions, setting.epsilon, setting.delta, known, releases, seconds)
    except Exception as error:
        found = {"failure": f"{type(error).__name__}: {error}"[:160]}
    return outcome(setting, OURS[known], people, questions, found)


def outcomes_of_peers(
    setting: Setting,
    people: People,
    environments: Sequence[Environment],
    releases: int,
    say: Say,
    seconds: float,
    figures: PeerFigures,
) -> list[Outcome]:
    """All peers in one setting: as they were, where their figures are kept, else measured."""
    kept, questions, outcomes = _kept(setting, people, environments, figures), QUESTIONS[setting.questions](), []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.npz"
        people.save(path)
        for (environment, contender, key), own in kept.items():
            if own is not None:
                outcomes.append(own)
                continue
            say(f"{setting.title}: {contender}")
            slow = figures.get(contender)  # one that was far too slow is not waited for again
            found = slow or _by_peer(environment, contender, setting, path, releases, seconds)
            measured = outcome(setting, contender, people, questions, found)
            outcomes.append(measured)
            if _too_slow(found):
                figures.put(contender, found, passing=True)
            elif not measured.failure:
                errors = {name: asdict(error) for name, error in measured.errors.items()}
                figures.put(key, {"errors": errors, "missing": measured.missing})
    return outcomes


def kept_outcomes(
    setting: Setting, people: People, environments: Sequence[Environment], figures: PeerFigures
) -> list[Outcome]:
    """The peers whose figures are kept, in one setting; nothing is measured."""
    return [own for own in _kept(setting, people, environments, figures).values() if own is not None]


def _kept(
    setting: Setting, people: People, environments: Sequence[Environment], figures: PeerFigures
) -> dict[tuple[Environment, str, str], Outcome | None]:
    """Every peer with its key, and its outcome from what was kept of it."""
    questions, found = QUESTIONS[setting.questions](), {}
    for environment in environments:
        for contender in environment.contenders:
            key = key_of(
                contender, environment.packages, people, questions, setting.questions, (setting.epsilon, setting.delta)
            )
            kept = figures.get(key)
            own = None
            if kept is not None:
                errors = {
                    name: Error(**{**one, "halves": tuple(one["halves"])}) for name, one in kept["errors"].items()
                }
                own = Outcome(setting, contender, errors, kept["missing"])
            found[environment, contender, key] = own
    return found


def _lacks_delta(contender: str, setting: Setting) -> bool:
    return contender in NEEDS_DELTA and not setting.delta > 0


def _again(setting: Setting, contender: str, kept: dict[str, Any]) -> Outcome:
    """A peer's outcome from what was kept of it."""
    errors = {name: Error(**{**one, "halves": tuple(one["halves"])}) for name, one in kept["errors"].items()}
    return Outcome(setting, contender, errors, kept["missing"])


def _too_slow(found: dict[str, Any]) -> bool:
    """Whether a peer gave nothing to compare because it takes too long."""
    reasons = found.get("missing", {}).values()
    none = not found.get("answers") and any(reason.endswith(TOO_FEW) for reason in reasons)
    return none or str(found.get("failure", "")).startswith("stopped")


def _by_peer(
    environment: Environment, contender: str, setting: Setting, table: Path, releases: int, seconds: float
) -> dict[str, Any]:
    if environment.failure:
        return {"failure": environment.failure}
    if _lacks_delta(contender, setting):
        return {"failure": "needs delta > 0"}
    return ask(
        4 * seconds, python=environment.python, what="mixed", contender=contender, table=str(table),
        questions=setting.questions, epsilon=setting.epsilon, delta=setting.delta, releases=releases, seconds=seconds,
    )  # fmt: skip


def outcome(
    setting: Setting, contender: str, people: People, questions: Sequence[Asked], found: dict[str, Any]
) -> Outcome:
    """What a contender's releases come to."""
    answers, known = found.get("answers", {}), found.get("squares", {})
    errors = {
        asked.name: Error.of(asked, people, answers[asked.name], known.get(asked.name))
        for asked in questions
        if answers.get(asked.name)
    }
    return Outcome(
        setting, contender, errors, found.get("missing", {}), found.get("failure", ""), found.get("predicted", {}),
        found.get("delivered", {}), found.get("coverage", {}),
    )  # fmt: skip


def best_peer(outcomes: Sequence[Outcome], name: str) -> tuple[float, float, str] | None:
    """The least RMSE of a peer, its spread, and whose it is: chosen by half of the releases, measured by the rest."""
    rivals = {one.contender: one.errors[name] for one in outcomes if not one.ours and name in one.errors}
    if not rivals:
        return None
    chosen = [min(rivals, key=lambda peer: rivals[peer].halves[half]) for half in (0, 1)]
    squares = [rivals[chosen[half]].halves[1 - half] for half in (0, 1)]
    spread = max(rivals[peer].spread for peer in chosen)
    return math.sqrt(sum(squares) / 2), spread, " or ".join(dict.fromkeys(chosen))


def ratios(outcomes: Sequence[Outcome], contender: str) -> dict[str, tuple[float, float]]:
    """A contender's RMSE over the best peer's and its spread, for each statistic that both have."""
    (mine,) = [one for one in outcomes if one.contender == contender]
    found = {}
    for name, error in mine.errors.items():
        best = best_peer(outcomes, name)
        if best is not None and best[0] > 0 and error.rmse > 0:
            found[name] = (error.rmse / best[0], math.hypot(error.spread, best[1]))
    return found


def geometric_mean(values: Sequence[float]) -> float:
    """Of positive numbers; NaN of none."""
    return math.exp(float(np.mean(np.log(values)))) if len(values) else math.nan


def against(outcomes: Sequence[Outcome], contender: str, peer: str) -> float:
    """A contender's errors over a peer's, as a geometric mean over what both have."""
    mine, theirs = (next(one for one in outcomes if one.contender == name).errors for name in (contender, peer))
    both = [name for name in mine if name in theirs and min(mine[name].rmse, theirs[name].rmse) > 0]
    return geometric_mean([mine[name].rmse / theirs[name].rmse for name in both])


def against_best(outcomes: Sequence[Outcome], contender: str) -> tuple[float, str]:
    """A contender's errors over those of the one tool that is best in the whole set, and which that is."""
    peers = [one.contender for one in outcomes if one.errors and not one.ours]
    found = [(against(outcomes, contender, peer), peer) for peer in peers]
    return max((one for one in found if not math.isnan(one[0])), default=(math.nan, ""))


def mixed_targets(outcomes: Sequence[Outcome]) -> list[Target]:
    """The promises about one setting."""
    setting, rows = outcomes[0].setting, []
    limits = {"60 overlapping means": MOST_SIXTY, "2-way marginals of six columns": 1.0}
    for known, contender in OURS.items():
        found = ratios(outcomes, contender)
        if not found:
            continue
        middle, rival = against_best(outcomes, contender)
        doubt = 2 * float(np.sqrt(np.sum([s**2 for _, s in found.values()]))) / len(found)
        limit = limits.get(setting.questions, MOST_RATIO)
        if setting.questions == "twelve":
            limit = MOST_MEAN if known == ROWS else MOST_TOLD
        what = f"{setting.title}: {contender} over the best peer"
        rows.append(_judged(what, f"<= {limit:g}", f"{middle:.2f} ({rival})", middle / limit - 1, doubt))
        name = max(found, key=lambda one: found[one][0])
        worst, _ = found[name]
        beyond = max(ratio / MOST_RATIO - 1 - 2 * own for ratio, own in found.values())
        doubt = worst / MOST_RATIO - 1 - beyond
        text = f"{worst:.2f} ({name})"
        rows.append(_judged(f"{what}, worst statistic", f"<= {MOST_RATIO:g}", text, worst / MOST_RATIO - 1, doubt))
    return rows + [row for one in outcomes if one.ours and one.errors for row in _of_itself(one)]


def _judged(what: str, promise: str, measured: str, beyond: float, doubt: float) -> Target:
    """Met where the figure is within its limit, missed where it is beyond by more than chance, else in doubt."""
    if beyond <= 0:
        return Target(what, promise, measured, True)
    return Target(
        what, promise, measured if beyond > doubt else f"{measured}, in doubt", None if beyond <= doubt else False
    )


def _of_itself(one: Outcome) -> list[Target]:
    """Whether a plan said the truth about itself: standard errors within a tenth, and coverage, of every statistic."""
    said = one.said
    if not said:
        return []
    off = {name: max(ratio / (1 + OFF), (1 - OFF) / ratio) - 1 for name, ratio in said.items()}
    worst = max(off, key=lambda name: off[name])
    doubt = off[worst] - max(off[name] - 2 * one.errors[name].spread for name in off)
    covered = sorted(one.coverage, key=lambda name: one.coverage[name])
    low, high = LEAST - one.coverage[covered[0]], one.coverage[covered[-1]] - MOST
    limit = LEAST if low >= high else MOST
    room = 2 * (limit * (1 - limit) / max(1, one.releases)) ** 0.5
    what = f"{one.setting.title}: {one.contender}"
    ends = " to ".join(f"{one.coverage[name]:.1%}" for name in (covered[0], covered[-1]))
    return [
        _judged(f"{what}, predicted over measured", "0.9 to 1.1", f"{said[worst]:.2f} ({worst})", off[worst], doubt),
        _judged(f"{what}, coverage", f"{LEAST:.0%} to {MOST:.0%}", ends, max(low, high), room),
    ]


def header_of(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """The columns of a setting's table."""
    return ("statistic", *(one.contender for one in outcomes if one.errors), "best peer", "ratio")


def rows_of_setting(outcomes: Sequence[Outcome]) -> list[tuple[str, ...]]:
    """RMSE of every statistic, then geometric means; of sets of many statistics only the means."""
    there = [one for one in outcomes if one.errors]
    names = list(dict.fromkeys(name for one in there for name in one.errors))
    rows = []
    for name in names if len(names) <= 15 else []:
        best = best_peer(outcomes, name)
        cells = [_short(one.errors[name].rmse) if name in one.errors else "–" for one in there]
        ratio = ratios(outcomes, OURS[ROWS]).get(name)
        rows.append(
            (
                name,
                *cells,
                "–" if best is None else _short(best[0]),
                "–" if ratio is None else f"{ratio[0]:.2f} ± {ratio[0] * ratio[1]:.2f}",
            )
        )
    means = (_mean_ratio(outcomes, one) for one in there)
    rows.append(("geometric mean of ratios", *means, "1", ""))
    rows.append(("releases", *(str(one.releases) for one in there), "", ""))
    return rows


def _mean_ratio(outcomes: Sequence[Outcome], one: Outcome) -> str:
    """A contender's errors over those of the best peer."""
    found = [ratio for ratio, _ in ratios(outcomes, one.contender).values()]
    return f"{geometric_mean(found):.2f}"


SELF_COLUMNS = (
    "statistic",
    *(f"{what}, {known}" for known in KNOWN for what in ("predicted", "coverage")),
)


def rows_of_predictions(outcomes: Sequence[Outcome]) -> list[tuple[str, ...]]:
    """What farthing's plans said of themselves, beside what came out; of many statistics in geometric mean."""
    ours = [one for one in outcomes if one.ours]
    names = list(dict.fromkeys(name for one in ours for name in one.errors))

    def cells(chosen: Sequence[str]) -> list[str]:
        found = []
        for one in ours:
            own = [name for name in chosen if name in one.errors and one.errors[name].rmse > 0]
            if not own:
                found += ["–", "–"]
                continue
            said = geometric_mean([one.said[name] for name in own if name in one.said])
            found += [f"{said:.2f}", f"{np.mean([one.coverage[name] for name in own]):.0%}"]
        return found

    if len(names) > 15:
        return [("all", *cells(names))]
    return [(name, *cells([name])) for name in names]


def remarks(outcomes: Sequence[Outcome]) -> list[str]:
    """Who is not in the table, and what is missing in it."""
    lines = []
    for one in outcomes:
        if one.failure:
            lines.append(f"{one.contender}: {one.failure}")
        reasons = dict.fromkeys(one.missing.values())
        for reason in reasons:
            names = [name for name, why in one.missing.items() if why == reason]
            shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
            lines.append(f"{one.contender}: {shown}: {reason}")
    return lines


def show_mixed(console: Console, outcomes: Sequence[Outcome]) -> None:
    """The tables of one setting."""
    title = f"{outcomes[0].setting.title}: RMSE"
    for header, rows, name in (
        (header_of(outcomes), rows_of_setting(outcomes), title),
        (
            SELF_COLUMNS,
            rows_of_predictions(outcomes),
            "farthing: predicted standard error over RMSE, and coverage",
        ),
    ):
        table = Table(*header, title=name, title_justify="left", title_style="bold", box=SIMPLE, padding=(0, 1, 0, 0))
        for place, column in enumerate(table.columns):
            column.justify, column.no_wrap = ("left" if place == 0 else "right"), True
        for row in rows:
            table.add_row(*row)
        console.print(table)
    for line in remarks(outcomes):
        console.print(f"  {line}", style="dim", highlight=False)


SUMMARY_COLUMNS = ("set of statistics", *OURS.values(), "each by its best peer", "worst statistic", "by peer")


def summary_row(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """One line for a setting: farthing over the best tool, over the best for each statistic, and over each peer."""
    found = ratios(outcomes, OURS[ROWS])
    worst = max(found, key=lambda name: found[name][0], default="")
    means = [f"{against_best(outcomes, one.contender)[0]:.2f}" for one in outcomes if one.ours]
    peers = [one.contender for one in outcomes if one.errors and not one.ours]
    each = ", ".join(f"{peer} {against(outcomes, OURS[ROWS], peer):.2f}" for peer in peers)
    single = f"{geometric_mean([ratio for ratio, _ in found.values()]):.2f}"
    told = f"{worst} {found[worst][0]:.2f}" if worst else "–"
    return (outcomes[0].setting.title, *means, single, told, each)


def plain(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """As plain data, for JSON."""
    return [
        {
            **asdict(one),
            "ratios": {name: ratio for name, (ratio, _) in ratios(outcomes, one.contender).items()},
        }
        for one in outcomes
    ]


def about(tables: Sequence[People], environments: Sequence[Environment]) -> list[str]:
    """Which tables were compared, and which peers are installed."""
    lines = [
        f"{people.name}: {people.rows:,} rows{', made up' if people.made else ''}"
        f"{'' if people.person is None else f', 1 to {people.most_rows} a person'}"
        for people in tables
    ]
    return lines + [
        f"{environment.packages[0].replace('==', ' ')}: {environment.failure or 'installed'}"
        for environment in environments
    ]


def _short(value: float) -> str:
    return f"{value:,.0f}" if 1000 <= value < 100_000 else f"{value:.3g}".replace("e+0", "e")
