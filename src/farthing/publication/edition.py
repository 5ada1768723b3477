"""An edition: one release with its `PublicationDetails`, from which all files of a publication are derived.

An edition is plain data that was paid for, or is public. Every text and table of a publication is a function of it, so
the same release gives the same bytes, and a reader can write them again and compare.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Protocol

from farthing.errors import InvalidValue
from farthing.inference import Answer
from farthing.ledger import Ledger, Receipt
from farthing.numerics.bounds import rounded_up_text
from farthing.privacy.units import whom
from farthing.publication.publication_details import PublicationDetails

FORMAT = "farthing publication 1"
SOFTWARE = "farthing"

# What a plan says that is public and of use to readers. Everything else stays: the code has paths and addresses in it.
_KEPT = (
    "dataset", "unit", "period", "lifetime", "about", "rows", "assumptions", "notes", "withheld", "confidence",
)  # fmt: skip
_OF_STATISTICS = ("counts", "mechanism", "rests_on")
NUMBERS = ("value", "raw", "standard_error", "lower", "upper", "lower_at_once", "upper_at_once")
"""What a cell of a table can have, beside its name."""
COLUMNS = ("statistic", "cell", "counts", *NUMBERS, "confidence", "unit", "epsilon", "delta", "note")
"""The columns of every published table, in this order."""


def version_of_software() -> str:
    """The version of farthing that is installed."""
    return version(SOFTWARE)


class ReleasedPlan(Protocol):
    """What every text about a release starts from: its answers, its plan, its receipt, its warnings."""

    @property
    def answers(self) -> Mapping[str, Answer]:
        """By the name of their statistic."""

    @property
    def plan(self) -> Mapping[str, Any]:
        """What was predicted, as plain data."""

    @property
    def receipt(self) -> Receipt:
        """The receipt that proves the charge."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Why the budget gives little protection, if so."""


class ReleaseFacts(ReleasedPlan, Protocol):
    """What an edition needs of a release."""

    @property
    def request_id(self) -> str:
        """The name of its request."""

    def records(self) -> list[dict[str, Any]]:
        """One plain record for each cell of each statistic."""


@dataclass(frozen=True)
class Edition:
    """A release as it is published. Made by `edition_of`, or read from a bundle.

    Args:
        release: What was released, as plain data: `release.json`.
        publication: The details that only people know.
        receipt: The receipt of the charge.
        earlier: Receipts of earlier versions of the same publication, oldest first.
    """

    release: Mapping[str, Any]
    publication: PublicationDetails
    receipt: Receipt
    earlier: tuple[Receipt, ...] = ()

    @property
    def tables(self) -> Sequence[Mapping[str, Any]]:
        """The tables: one for each statistic."""
        tables: Sequence[Mapping[str, Any]] = self.release["tables"]
        return tables

    @property
    def day(self) -> str:
        """When it was released, as YYYY-MM-DD in UTC."""
        return f"{self.receipt.when:%Y-%m-%d}"

    @property
    def whom(self) -> str:
        """Who is protected, in words."""
        return whom(str(self.release["unit"]), str(self.release.get("period") or ""))

    @property
    def epsilon(self) -> float:
        """The epsilon that was charged for it."""
        return float(self.release["epsilon"])

    @property
    def delta(self) -> float:
        """The delta that was charged for it."""
        return float(self.release["delta"])

    @property
    def guarantee(self) -> str:
        """The guarantee in one line."""
        if not self.delta:
            return f"epsilon {rounded_up_text(self.epsilon)} (pure differential privacy)"
        return f"epsilon {rounded_up_text(self.epsilon)} at delta {self.delta:.3g}"

    @property
    def software(self) -> str:
        """The program and its version."""
        return f"{SOFTWARE} {self.release['software']['version']}"

    @property
    def citation(self) -> str:
        """How to cite it, in one line."""
        where = f" {self.publication.url}" if self.publication.url else ""
        return (
            f"{self.publication.byline} ({self.day[:4]}). {self.publication.title}, version "
            f"{self.publication.version}. {'; '.join(self.publication.publishers)}.{where}"
        )

    def rows(self, table: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The rows of one published table: each carries its caveats."""
        said = {
            "statistic": table["statistic"],
            "counts": table["counts"],
            "confidence": self.release["confidence"],
            "unit": self.release["unit"],
            "epsilon": self.epsilon,
            "delta": self.delta,
            "note": "; ".join(self.caveats(table)),
        }
        merged = [{**said, **cell} for cell in table["cells"]]
        return [{name: row.get(name) for name in COLUMNS} for row in merged]

    def caveats(self, table: Mapping[str, Any]) -> list[str]:
        """What must be said beside the numbers of a table."""
        notes = [
            f"noise was added to protect {self.whom}; epsilon and delta are those of the whole release",
            "intervals cover the noise only, not sampling or errors in the data",
        ]
        if self.release.get("about"):
            notes.append(str(self.release["about"]))
        if self.release.get("lifetime"):
            notes.append(f"each period has a budget of its own: {self.release['lifetime']}")
        notes += [str(table["note"])] if table["note"] else []
        notes += [str(self.release["withheld"])] if self.release.get("withheld") else []
        return notes + [f"warning: {text}" for text in self.release["warnings"]]


def edition_of(release: ReleaseFacts, publication: PublicationDetails, ledger: Ledger) -> Edition:
    """The edition of a release that a ledger holds.

    Args:
        release: What was released.
        publication: The details that only people know.
        ledger: The ledger to which it was charged, which holds the mechanisms of the charge.

    Returns:
        The edition.

    Raises:
        InvalidValue: If the ledger does not hold the release.
    """
    stored = ledger.stored(release.request_id)
    if stored is None or stored.receipt != release.receipt:
        raise InvalidValue("request_id", release.request_id, "must be that of a release in this ledger")
    plan, receipt = release.plan, release.receipt
    about = {one["name"]: one for one in plan["statistics"]}
    cells: dict[str, list[dict[str, Any]]] = {}
    for record in release.records():
        numbers = {name: _number(record[name]) for name in NUMBERS if name in record}
        cells.setdefault(record["statistic"], []).append({"cell": record["cell"], **numbers})
    tables = []
    for place, (name, answer) in enumerate(release.answers.items(), 1):
        kept = {key: _plain(about[name][key]) for key in _OF_STATISTICS if key in about[name]}
        of_values = [cell["value"] for cell in cells[name] if cell["value"] is not None]
        tables.append(
            {
                **kept,
                "statistic": name,
                "file": f"{place:02d}-{_slug(name)}",
                "counts": kept.get("counts", "rows"),
                "note": answer.note,
                "epsilon_alone": _rounded(about[name].get("epsilon")),
                "total": math.fsum(of_values),
                "cells": cells[name],
            }
        )
    if math.isinf(receipt.epsilon):
        raise InvalidValue("epsilon", receipt.epsilon, "is unbounded, and protects nobody", "publish another release")
    facts = {
        "format": FORMAT,
        "software": {"name": SOFTWARE, "version": version_of_software()},
        **{name: _plain(plan[name]) for name in _KEPT if name in plan},
        **({"withheld": _without_name(str(plan["withheld"]))} if plan.get("withheld") else {}),
        **(
            {"assumptions": [without_advice(str(text)) for text in plan["assumptions"]]}
            if "assumptions" in plan
            else {}
        ),
        "unit": str(plan.get("unit", "row, add-remove")) or "unit",
        "released": receipt.when.isoformat(),
        "epsilon": receipt.epsilon,
        "delta": receipt.delta,
        "plain_sum": _rounded((plan.get("price") or {}).get("basic")),
        "mechanisms": stored.charge.event.to_dict(),
        "warnings": list(release.warnings),
        "tables": tables,
    }
    return Edition(facts, publication.checked(), receipt.without_names())


def _without_name(words: str) -> str:
    """What may be withheld, without the name of the analyst whose policy says so.

    >>> _without_name("cells may be withheld, as the policy of ada says: a number is shown only if")
    'cells may be withheld, as a policy of the curator says: a number is shown only if'
    """
    return re.sub(r"as the policy of .+ says: a number", "as a policy of the curator says: a number", words)


_ADVICE = re.compile(r"; (pass expected=\{|write \S.* = .* under \[expected\]$).*")


def without_advice(text: str) -> str:
    """An assumption without the words in which the author of a plan would say otherwise.

    >>> [without_advice(text) for text in ("a; pass expected={'rows': ...}", "b; write c = ... under [expected]", "c")]
    ['a', 'b', 'c']
    """
    return _ADVICE.sub("", text)


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60].strip("-") or "statistic"


def _number(value: Any) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def _rounded(value: Any) -> float | None:
    """A prediction, with as many digits as are shown."""
    number = _number(value)
    return None if number is None else float(f"{number:.4g}")


def _plain(value: Any) -> Any:
    """Plain data without what JSON cannot say."""
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
