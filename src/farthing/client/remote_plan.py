"""A plan that a server made: the same controls as a local one, and the same release."""

from __future__ import annotations

import difflib
import json
import secrets
import textwrap
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol

from farthing.client.http_connection import Connection, awaited, part, refusal_of
from farthing.errors import FarthingError, InvalidValue, LedgerUnavailable, TableChanged
from farthing.ledger import PlanRequest, Receipt
from farthing.ledger.request_records import Step
from farthing.numerics import Bounds
from farthing.numerics.bounds import error_text, number_text
from farthing.study import Release
from farthing.study.plan_statistic import AtOnce
from farthing.study.plan_text import aligned, error_rows
from farthing.study.release import changed_sentence, restored_answers
from farthing.study.table_error import TableError

_INFINITE = float("inf")


@dataclass(frozen=True)
class RemoteStatistic:
    """What a server predicts of one statistic."""

    view: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.view["name"])

    @property
    def mechanism(self) -> str:
        """Which noise makes it private."""
        return str(self.view["mechanism"])

    @property
    def epsilon(self) -> float:
        """What it would cost alone."""
        return _number(self.view["epsilon"])

    @property
    def cells(self) -> int:
        """How many numbers it has."""
        return int(self.view["cells"])

    @property
    def standard_error(self) -> float:
        """The root of the mean squared error, in the data's own units."""
        return _number(self.view["standard_error"])

    @property
    def sentence(self) -> str:
        """The error in plain words."""
        return str(self.view["sentence"])

    @property
    def counts(self) -> str:
        """What its numbers count: rows or people, and how much of each unit."""
        return str(self.view.get("counts") or "rows")

    @property
    def shown_error(self) -> str:
        """The 95% error for a table, never rounded down: as a local plan shows it."""
        return str(self.view["shown_error"])

    @property
    def of_table(self) -> TableError | None:
        """Its error against the whole table, the draw included, where it is computed from a sample of it."""
        said = self.view.get("of_table")
        if said is None:
            return None
        deviation, error, times = (_number(said[name]) for name in ("standard_error", "error", "times"))
        return TableError(deviation, error, times, tuple(said["rests_on"]))

    def even_share(self) -> float:
        """What the error would be if every statistic had its own, even share of the budget."""
        return _number(self.view.get("even_share"))

    @property
    def shown_even_share(self) -> str:
        """The same for a table."""
        return str(self.view.get("shown_even_share") or "")

    def error(self, confidence: float = 0.95, *, at_once: bool = False) -> float:
        """Within this distance of the true value in 95 cases of 100; with `at_once`, all of its cells together."""
        if confidence != 0.95:
            raise InvalidValue("confidence", confidence, "must be 0.95 here", "a local plan has the others")
        return _number(self.view["error_at_once" if at_once else "error"])

    def worst_error(self) -> float:
        """The error of the worst cell as it is released, to which `require` applies."""
        return _number(self.view["worst_error"])

    @property
    def rests_on(self) -> tuple[str, ...]:
        """What a required error rests on, as clauses after "if"; nothing where it holds whatever the data."""
        return tuple(self.view.get("rests_on", ()))

    @property
    def required(self) -> str:
        """What is required of it, how often a release keeps it and what that rests on; empty where nothing is."""
        return str(self.view.get("required") or "")

    def __repr__(self) -> str:
        return f"{self.name}: ± {error_text(self.error())} (95%), {self.mechanism}, epsilon {number_text(self.epsilon)}"


@dataclass(frozen=True)
class RemotePrice:
    """A plan under each theorem, as a local `TheoremPrices` has it; infinite where a theorem says nothing."""

    basic: float
    advanced: float
    kov: float
    optimal: float
    own: float
    sentence: str
    adaptive_sentence: str = ""


class PlannedStudy(Protocol):
    """What a plan needs of the study it belongs to (`farthing.client.remote_study.RemoteStudy`)."""

    @property
    def connection(self) -> Connection:
        """The way to the server."""

    def was_released(self, request_id: str) -> bool:
        """Whether there is a release under this request id, whose answers cost nothing any more."""

    def released(self, request_id: str) -> Release:
        """An earlier release, from the server's ledger."""

    def table_changed(self, request_id: str) -> bool | None:
        """Whether the rows have changed since the release."""


@dataclass(frozen=True, eq=False)
class RemotePlan:
    """A frozen value: every control asks the server for a new plan, and none of them spends anything."""

    study: PlannedStudy
    draft: Mapping[str, Any]
    view: Mapping[str, Any]

    @property
    def request_id(self) -> str:
        """The name of its release: a digest of what it asks for, so that the same script is charged once."""
        released = self.view.get("released")
        return str(released).rpartition(":")[2] if released else str(self.view["request_id"])

    @property
    def statistics(self) -> tuple[RemoteStatistic, ...]:
        """Each statistic with its mechanism, its epsilon and its error, in the order they were asked for."""
        return tuple(map(RemoteStatistic, self.view["statistics"]))

    def named(self, name: str) -> RemoteStatistic:
        """The statistic of this name."""
        return self.statistics[self._place(name)]

    __getitem__ = named

    @property
    def cost(self) -> Bounds:
        """The epsilon of the whole plan at its delta, as a proven interval; `upper` is what will be charged."""
        cost = self.view["cost"]
        return Bounds(float(cost["lower"]), _number(cost["upper"]))

    @property
    def delta(self) -> float:
        """The delta at which the cost is stated."""
        return float(self.view["delta"])

    @property
    def price(self) -> RemotePrice:
        """The same plan under summing, advanced, KOV and optimal composition, and by its exact curves."""
        price = self.view["price"]
        return RemotePrice(
            basic=_number(price["basic"]),
            advanced=_number(price["advanced"]),
            kov=_number(price["kov"]),
            optimal=_number(price["optimal"]),
            own=_number(price["own"]),
            sentence=str(price["sentence"]),
            adaptive_sentence=str(price.get("adaptive_sentence") or ""),
        )

    @property
    def adaptive_cost(self) -> float:
        """What the same noises would cost if each measurement were chosen after seeing the answers before it."""
        return _number(self.view["price"].get("adaptive"))

    @property
    def assumed_rows(self) -> int | None:
        """The number of rows that errors are for, where it is neither public, expected nor counted; else None."""
        assumed = self.view.get("assumed_rows")
        return None if assumed is None else int(assumed)

    @property
    def opening(self) -> str | None:
        """What the plan says first: which of its errors are for an assumed size, where some are."""
        opening = self.view.get("opening")
        return None if opening is None else str(opening)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the predicted errors assume because nobody said otherwise."""
        return tuple(self.view["assumptions"])

    @property
    def notes(self) -> tuple[str, ...]:
        """Which statistics would be mostly noise."""
        return tuple(self.view["notes"])

    def at_once(self, confidence: float = 0.95) -> AtOnce:
        """Errors that hold for all numbers of the plan together, at 95%."""
        if confidence != 0.95:
            raise InvalidValue("confidence", confidence, "must be 0.95 here", "a local plan has the others")
        fields_of_view = {name: part for name, part in self.view["at_once"].items() if name != "sentence"}
        errors = {name: _number(error) for name, error in fields_of_view.pop("errors").items()}
        return AtOnce(**fields_of_view, errors=errors)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Why the budget protects little: epsilon above 10, or delta above 1 in 10,000 or 1 in the number of rows."""
        return tuple(self.view["warnings"])

    @property
    def about(self) -> str | None:
        """Which rows the numbers are about, where that is not every row of the table."""
        return None if self.view["about"] is None else str(self.view["about"])

    @property
    def withheld(self) -> str | None:
        """Which numbers a release may withhold, where an analyst's policy asks for so many people in a cell."""
        withheld = self.view.get("withheld")
        return None if withheld is None else str(withheld)

    def weight(self, name: str, weight: float) -> RemotePlan:
        """The statistic counts `weight` times as much as one that was not given a weight."""
        return self._controlled(name, weight=weight)

    def require(self, name: str, within: float, confidence: float = 0.95) -> RemotePlan:
        """The statistic is within `within` of the truth in `confidence` of all cases; the others share the rest."""
        return self._controlled(name, within=within, confidence=confidence)

    def hold(self, name: str) -> RemotePlan:
        """The statistic keeps its present error, whatever happens to the others."""
        return self.require(name, self.named(name).worst_error())

    def reserve(self, epsilon: float) -> RemotePlan:
        """This much of the plan's epsilon is left unspent."""
        return self._priced({**self.draft, "reserve": epsilon})

    def release(
        self,
        request_id: str | None = None,
        progress: Callable[[float], None] | None = None,
        *,
        fresh: bool = False,
    ) -> Release:
        """Charge, run once on the server's engine, record, answer.

        The same request is answered once: asking again returns the stored answers and spends nothing. `fresh=True`
        draws new noise, which is charged again. `request_id` names a release of your own.
        """
        if self.view.get("finds") and (fresh or request_id is not None):
            raise InvalidValue(
                "request_id" if request_id is not None else "fresh",
                request_id if request_id is not None else fresh,
                f"cannot be said of a count that finds the values of {self.view['finds']}: they are found once",
                "leave it out; once they are found, a plan with another epsilon= counts them with new noise",
            )
        if request_id is None and not fresh and self.view.get("released"):
            return self._told_of_changes(self.study.released(str(self.view["released"])))
        if self.view.get("released_with_more"):
            raise InvalidValue(
                "plan",
                self.request_id,
                "no longer fits the budget: it is shown as it was when "
                f"{self.view['released_with_more']!r} was planned",
                "release it with the controls it had then, which costs nothing, or plan again with a smaller epsilon=",
            )
        name = request_id or self.request_id
        if fresh and request_id is None:
            name = f"{self.view['request_id']}-{secrets.token_hex(6)}"
        confirmed = {"confirmed_epsilon": self.cost.upper} if self.cost.upper < _INFINITE else {}
        body = {"draft": self.draft, "request_id": name, **confirmed}
        connection = self.study.connection
        repeated = self.study.was_released(name)
        view = awaited(connection, "/releases", body, progress, f"ask again as {name}")
        if view["state"] != "released":
            raise refusal_of(view["error"] or {"code": "internal", "message": str(view["sentence"])})
        if progress is not None:
            progress(1.0)
        document = connection.text(f"/releases/{part(view['request_id'])}/download", format="json")
        release = release_from(document, repeated=repeated)
        return self._told_of_changes(release) if repeated else release

    def _told_of_changes(self, release: Release) -> Release:
        """Warn a curator whose stored answers are about rows that are others by now, as a local study does.

        Analysts are not told: whether rows have changed depends on the rows.
        """
        if not (self.view.get("budget") or {}).get("analyst"):
            with suppress(FarthingError):  # a table that cannot be reached is no reason to keep answers back
                if self.study.table_changed(release.request_id):
                    words = changed_sentence(release.receipt, "release(fresh=True)")
                    warnings.warn(words, TableChanged, stacklevel=3)
        return release

    def submit(self, purpose: str, title: str = "") -> PlanRequest:
        """Ask a curator to allow the release of this plan; nothing is spent.

        Once it is approved, `release()` of the same plan charges exactly what was approved, once.
        """
        named = {**self.draft, "title": title} if title else dict(self.draft)
        return request_from(self.study.connection.post("/requests", {"draft": named, "purpose": purpose}))

    def explain(self) -> str:
        """In words: what each statistic will be like, and why it costs what it does."""
        price = self.price
        lines = [] if self.opening is None else [self.opening]
        lines += ["What is computed from it:"]
        for one in self.statistics:
            lines.append(f"  {one.name}: {one.mechanism}; {one.sentence}")
            lines += [f"    required: {one.required}"] if one.required else []
        if self.at_once().sentence:
            lines += ["How far off all numbers are at once:", f"  {self.at_once().sentence}"]
        lines += [
            "Cost:",
            f"  epsilon {number_text(self.cost.upper, 6)} at delta {self.delta:g}, proven",
            f"  summed {number_text(price.basic)}, advanced {number_text(price.advanced)}, KOV "
            f"{number_text(price.kov)}, "
            f"optimal {number_text(price.optimal)}, exact curves {number_text(price.own)}",
            f"  {price.sentence}",
        ]
        if self.warnings:
            lines += ["Why the budget protects little:", *(f"  {text}" for text in self.warnings)]
        if self.notes:
            lines += ["Notes:", *(f"  {text}" for text in self.notes)]
        if self.assumptions:
            lines += ["Assumptions:", *(f"  {text}" for text in self.assumptions)]
        return "\n".join(lines)

    def plot(self) -> Any:
        """Errors, shares of the budget and prices, as an Altair chart (needs the extra `plots`)."""
        from farthing.plots import plan_chart

        return plan_chart(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain data, as the server sends it."""
        return dict(self.view)

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2)

    def _controlled(self, name: str, **control: float) -> RemotePlan:
        entries = [dict(entry) for entry in self.draft["statistics"]]
        entries[self._place(name)].update(control)
        return self._priced({**self.draft, "statistics": entries})

    def _priced(self, draft: Mapping[str, Any]) -> RemotePlan:
        return replace(self, draft=draft, view=self.study.connection.post("/plans/price", draft, again=True))

    def _place(self, name: str) -> int:
        names = [str(one["name"]) for one in self.view["statistics"]]
        if name in names:
            return names.index(name)
        near = difflib.get_close_matches(str(name), names, n=3, cutoff=0.4) or names[:5]
        raise InvalidValue("name", name, "must be a statistic of the plan", f"did you mean: {', '.join(near)}")

    def __str__(self) -> str:
        rows = error_rows(self.statistics)
        limit = _number(self.view["epsilon"]) - float(self.draft.get("reserve") or 0.0)
        cost = f"cost: epsilon {number_text(self.cost.upper, 6)} of {number_text(limit, 6)} at delta {self.delta:g}"
        cost = f"{cost}; nothing is spent yet"
        if self.view.get("released"):
            cost = (
                f"cost: nothing. It was released before as {self.view['released']}: releasing it returns those answers."
            )
            cost += "" if self.view.get("finds") else " release(fresh=True) draws new noise and is charged again."
        lines = [] if self.opening is None else [*textwrap.wrap(self.opening, 100, subsequent_indent="  "), ""]
        lines += [*aligned(rows, right=range(rows[0].index("95% error"), len(rows[0]))), "", cost]
        lines += [f"price: {self.view['price']['sentence']}"]
        lines += [f"at once: {text}" for text in [self.at_once().sentence] if text]
        lines += [f"required: {one.name} {one.required}" for one in self.statistics if one.required]
        lines += [f"warning: {text}" for text in self.warnings] + [f"note: {text}" for text in self.notes]
        lines += [f"assumed: {text}" for text in self.assumptions]
        lines += [f"withheld: {self.withheld}"] if self.withheld is not None else []
        lines += [f"about: {self.about}"] if self.about is not None else []
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"RemotePlan({len(self.view['statistics'])} statistics, nothing spent)"


def release_from(text: str, *, repeated: bool = True) -> Release:
    """The release that a server sends as JSON: the same answers, predicted errors and receipt as a local one."""
    try:
        document = json.loads(text)
        receipt = Receipt.from_json(json.dumps(document["receipt"]))
        named = restored_answers(document["answers"], document["plan"], receipt)
        return Release(named, document["plan"], receipt, str(document["request_id"]), repeated=repeated)
    except (ValueError, KeyError, TypeError):
        raise LedgerUnavailable(
            "the server's answer cannot be read by this version of farthing",
            "use the same version on both sides; the answer is safe in the ledger",
        ) from None


def request_from(view: Mapping[str, Any]) -> PlanRequest:
    """The request that a server sends, as the local class has it."""
    names = ("id", "dataset", "analyst", "title", "purpose", "state", "version", "epsilon", "delta", "name")
    parts = ("kind", "words", "statistics", "odds", "assumptions", "draft", "budget", "history")
    steps = [
        Step(step["sequence"], step["kind"], step["actor"], datetime.fromisoformat(step["when"]), step["reason"])
        for step in view.get("steps", ())
    ]
    return PlanRequest(
        **{name: view[name] for name in names},
        document={name: view[name] for name in parts if name in view},
        expires=None if view["expires"] is None else datetime.fromisoformat(view["expires"]),
        request_id=view["request_id"] or "",
        steps=tuple(steps),
    )


def _number(value: Any) -> float:
    """JSON has no infinity: what is null is without bound."""
    return _INFINITE if value is None else float(value)
