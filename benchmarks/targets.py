"""The promises about speed as rows: what was promised, what was measured in this run, met or missed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.race import Result, ask


@dataclass(frozen=True)
class Target:
    """One promise; `measured` is None when something it needs did not finish."""

    what: str
    promise: str
    measured: str
    met: bool | None


def targets(results: list[Result], quick: bool, cap: float, say: Callable[[str], None]) -> list[Target]:
    """All promises that this run can judge."""
    rows = _against_google(results)
    say("1,000 decimal charges")
    rows.append(_below("1,000 decimal charges, proven", ask(cap, what="decimals", count=1000), 0.1))
    rows.append(_below("1,000,000 × 0.001, proven", _data(results, "e", "farthing, proven"), 0.02))
    if not quick:
        rows.extend(_million(results, cap, say))
    return rows


def _against_google(results: list[Result]) -> list[Target]:
    """1,000 distinct reals at delta 1e-9, dp-accounting at its default interval, one by one as its accountant does."""
    google = _data(results, "d1000", "dp-accounting, 1e-4")
    tree = _data(results, "d1000", "dp-accounting, 1e-4, by tree")
    proven, quick = (
        _data(results, "d1000", "farthing, proven"),
        _data(results, "d1000", "farthing, proof=False"),
    )
    truth = _data(results, "d1000", "truth").get("epsilon")
    rows = []
    for name, mine, least_speed in (("proof=False", quick, 200), ("proven", proven, 3)):
        for rival, peer, judged in (("", google, True), (" (composed by tree)", tree, False)):
            ratio = _ratio(peer.get("seconds"), mine.get("seconds"))
            what = f"k = 1,000: {name} faster than dp-accounting{rival}"
            rows.append(_at_least(what, ratio, least_speed if judged else None))
    if truth is None or "epsilon" not in google:
        return rows
    theirs = abs(google["epsilon"] - truth)
    if "epsilon" in quick:
        # An error below one unit in the last place of the answer cannot be told from none.
        mine_error = max(abs(quick["epsilon"] - truth), 4.4e-16 * truth)
        rows.append(_at_least("k = 1,000: proof=False, error smaller by", _ratio(theirs, mine_error), 1e6))
    if "upper" in proven:
        width = max(proven["upper"] - proven["lower"], 4.4e-16 * truth)
        rows.append(_at_least("k = 1,000: proven interval tighter by", _ratio(theirs, width), 1e4))
    return rows


def _million(results: list[Result], cap: float, say: Callable[[str], None]) -> list[Target]:
    say("1,000,000 distinct: numpy.sort")
    sort = ask(cap, what="sorting", case="f").get("seconds")
    say("1,000,000 distinct: append one charge")
    append = ask(3 * cap, what="appending", case="f")
    rows = []
    ratio = _ratio(_data(results, "f", "farthing, proof=False").get("seconds"), sort)
    rows.append(_at_most("k = 1,000,000 distinct: proof=False over numpy.sort", ratio, 40, "× the sort"))
    rows.append(_below("k = 1,000,000 distinct, proven", _data(results, "f", "farthing, proven"), 15))
    again = _ratio(append.get("seconds"), append.get("first_seconds"))
    percent = None if again is None else 100 * again
    rows.append(_at_most("append one charge and ask again, of the first cost", percent, 2, " %"))
    return rows


def _data(results: list[Result], case: str, name: str) -> dict[str, float]:
    return next((r.data for r in results if r.case == case and r.name == name and not r.failure), {})


def _ratio(top: float | None, bottom: float | None) -> float | None:
    return None if top is None or not bottom else top / bottom


def _at_least(what: str, ratio: float | None, least: float | None) -> Target:
    promise = "(for the record)" if least is None else f"at least {least:,.0f}×"
    met = None if ratio is None or least is None else ratio >= least
    return Target(what, promise, "did not finish" if ratio is None else f"{ratio:,.3g}×", met)


def _at_most(what: str, value: float | None, most: float, unit: str) -> Target:
    measured = "did not finish" if value is None else f"{value:.3g}{unit}"
    return Target(what, f"at most {most:g}{unit}", measured, None if value is None else value <= most)


def _below(what: str, data: dict[str, float], most_seconds: float) -> Target:
    seconds = data.get("seconds")
    measured = "did not finish" if seconds is None else f"{1000 * seconds:,.3g} ms"
    return Target(
        what,
        f"under {1000 * most_seconds:,.0f} ms",
        measured,
        None if seconds is None else seconds < most_seconds,
    )
