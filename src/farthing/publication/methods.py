"""The methods of a release in plain English, ready for a paper, and its mechanisms in words."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache

from farthing.accounting import compose
from farthing.privacy import Event
from farthing.privacy.events import Composed
from farthing.publication.edition import Edition

_WORDS = {
    "laplace": "Laplace noise",
    "discrete_laplace": "discrete Laplace noise",
    "gaussian": "Gaussian noise",
    "discrete_gaussian": "discrete Gaussian noise",
    "bounded_range": "the exponential mechanism",
    "randomized_response": "randomized response",
    "approx_dp": "a mechanism known by its epsilon and delta",
    "sampled": "mechanisms on a secret sample",
}


def events_in(event: Event) -> Iterable[tuple[Event, int]]:
    """Each mechanism of a charge, and how often it ran."""
    return event.parts if isinstance(event, Composed) else ((event, 1),)


def mechanism_words(event: Event) -> str:
    """The mechanisms of a charge, most frequent first.

    >>> from farthing.privacy import LaplaceNoise
    >>> mechanism_words(LaplaceNoise(2.0))
    'Laplace noise (1 measurement)'
    """
    counts: dict[str, int] = {}
    for one, times in events_in(event):
        words = _WORDS.get(one.tag, one.tag.replace("_", " "))
        counts[words] = counts.get(words, 0) + times
    return ", ".join(
        f"{words} ({times:,} measurement{'s' if times != 1 else ''})"
        for words, times in sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    )


@lru_cache(maxsize=4)
def recomputed_epsilon(event: Event, delta: float) -> float:
    """What the accountant says that the mechanisms cost together, at most."""
    return compose([event]).epsilon_upper(delta)


def composition_words(edition: Edition) -> str:
    """How the measurements were added up."""
    times = sum(count for _, count in events_in(Event.from_dict(dict(edition.release["mechanisms"]))))
    if times == 1:
        return "One measurement was made, so nothing had to be composed."
    plain = edition.release.get("plain_sum")
    beside = f"; adding up their epsilons would give {plain!r}" if plain is not None else ""
    return (
        f"The {times:,} measurements, fixed in advance, were composed with proven bounds on the exact privacy curves"
        f"{beside}."
    )


def processing_words(edition: Edition) -> str:
    """What was done to the numbers after the noise."""
    moved = any(
        cell.get("raw") is not None and cell["raw"] != cell["value"] for one in edition.tables for cell in one["cells"]
    )
    words = "Estimates and intervals were computed from the noisy measurements alone, which costs no privacy."
    if moved:
        words += " Values were then adjusted to what the truth can be; the column raw has them before any adjustment."
    if edition.release.get("withheld"):
        words += f" {edition.release['withheld']}"
    return words


def _statistics(edition: Edition) -> str:
    rows = [
        (
            str(one["statistic"]),
            str(one["mechanism"]),
            "" if one["epsilon_alone"] is None else repr(one["epsilon_alone"]),
            f"{len(one['cells']):,}",
            "; ".join((str(one["counts"]), *map(str, one.get("rests_on") or ()), *filter(None, [str(one["note"])]))),
        )
        for one in edition.tables
    ]
    head = ("statistic", "noise", "epsilon alone", "numbers", "what is counted, what predictions rest on, notes")
    return _table(head, rows)


def _mechanisms(event: Event) -> str:
    rows = []
    for one, times in events_in(event):
        facts = one.to_dict()
        kind = str(facts.pop("type"))
        rows.append((_WORDS.get(kind, kind), json.dumps(facts, sort_keys=True), f"{times:,}"))
    return _table(("mechanism", "parameters", "times"), rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


def methods_text(edition: Edition) -> str:
    """A page in Markdown: the paragraph for a paper, the caveats, how to cite and how to verify."""
    release, form = edition.release, edition.publication
    event = Event.from_dict(dict(release["mechanisms"]))
    count = len(edition.tables)
    counted = sorted({str(one["counts"]) for one in edition.tables})
    paragraph = [
        f"We released {count:,} statistic{'s' if count != 1 else ''} under differential privacy.",
        f"The unit of privacy is {edition.whom} (neighbouring relation and unit: {release['unit']}).",
        f"The release satisfies differential privacy with {edition.guarantee}.",
        f"The mechanisms were {mechanism_words(event)}. Their noise was drawn exactly, on whole numbers, with the "
        "operating system's random number generator.",
        composition_words(edition),
        f"The numbers count {', '.join(counted)}.",
        f"Each interval holds with probability {100 * float(release['confidence']):g}%, and covers the noise only, not "
        "sampling or errors in the data.",
        processing_words(edition),
        f"The privacy budget was charged to an append-only ledger before the data were read (entry "
        f"{edition.receipt.sequence:,}, {edition.day}).",
        f"Software: {edition.software}.",
    ]
    if release.get("about"):
        paragraph.append(f"Note: {release['about']}.")
    notes = [f"- {text}" for text in (*release["warnings"], *release.get("assumptions", ()), *release.get("notes", ()))]
    parts = [
        f"# {form.title}: methods",
        " ".join(paragraph),
        f"## Why this unit and this epsilon\n\n{form.rationale}",
        *(["## Warnings, assumptions and notes\n\n" + "\n".join(notes)] if notes else []),
        f"## Statistics\n\n{_statistics(edition)}",
        f"## Mechanisms\n\n{_mechanisms(event)}",
        f"## How to cite\n\n{edition.citation}",
        "## How to verify\n\n`farthing verify` with this folder or its zip file checks the signature, every checksum, "
        "the receipt, the tables, and that the stated epsilon follows from the stated mechanisms. It needs neither the "
        "data nor the ledger.",
    ]
    return "\n\n".join(parts) + "\n"
