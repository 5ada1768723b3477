"""`Release`: what was answered, with its errors, its cost and its receipt."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any

from farthing.adaptive.discovery.key_search import VALUES_FOUND
from farthing.curator import Answered
from farthing.curator.same_people import warn_caller
from farthing.data import Dataset
from farthing.errors import AnswerForfeited, BudgetExceeded, InvalidValue, TableChanged
from farthing.inference import Answer
from farthing.inference.label_order import in_natural_order
from farthing.ledger import Budget, Ledger, Receipt, Stored
from farthing.ledger.entries import checked_name
from farthing.ledger.lifetime import lifetime_words
from farthing.ledger.partitions import partition_answer
from farthing.ledger.table_versions import Version
from farthing.numerics.bounds import number_text
from farthing.numerics.notebook_tables import html_table
from farthing.publication.publication_details import PublicationDetails
from farthing.statistics import Statistic
from farthing.statistics.answer_records import PostProcessing, label_texts, plain, records_of, restored, shown_form
from farthing.statistics.coverage import counts_all_values, limited
from farthing.statistics.statistic import ROWS
from farthing.statistics.withheld_cells import people_in
from farthing.study.attacker_odds import budget_cautions
from farthing.study.findings import found_notes
from farthing.study.hypothesis_tests import HypothesisTests
from farthing.study.plan_contents import columns_of, contents_of, least_in_cell
from farthing.study.plan_text import PlanFacts, plan_data, release_table
from farthing.study.release_request import awaited_answer, fresh_answer, fresh_name, without_answer
from farthing.study.study_account import StudyAccount, register_to_spend

_SESSIONS = {
    "answers": "a session of questions",
    "monitor": "a monitor",
    "series": "a running series",
    "holdout": "a reusable holdout",
}
_ANEW = "for new noise, which is charged again, use release(fresh=True)"
_ANEW_FILE = "for new noise, which is charged again, use farthing release --fresh"


@dataclass(frozen=True, eq=False)
class Release(HypothesisTests):
    """Answers by the name of their statistic. Everything in it is public: it was paid for. Made by `Plan.release`.

    `release["mean of income"]` is an Answer.

    Args:
        answers: The answers by name.
        plan: What was predicted, as plain data.
        receipt: The receipt that proves the charge.
        request_id: The name of its request.
        repeated: Whether it was answered before, and cost nothing now.
        ledger: The ledger that holds it, where that is open here: `publish` signs with its key.

    >>> import pyarrow, tempfile, farthing as ft
    >>> table = pyarrow.table({"age": [30, 41, 52]})
    >>> folder = tempfile.TemporaryDirectory()
    >>> study = ft.Study(
    ...     ft.dataset(table, schema={"age": (0, 110)}, name="people"), epsilon=1.0, ledger=folder.name + "/study.db"
    ... )
    >>> release = study.plan(ft.count()).release()
    >>> list(release), round(release.cost, 6), release["count"].standard_errors < 1.5
    (['count'], 1.0, True)
    >>> study.released(release.request_id)["count"].values == release["count"].values
    True
    >>> study.ledger.close(); folder.cleanup()
    """

    answers: Mapping[str, Answer]
    plan: Mapping[str, Any]
    receipt: Receipt
    request_id: str
    repeated: bool = False
    ledger: Ledger | None = field(default=None, repr=False)

    def __getitem__(self, name: str) -> Answer:
        if name not in self.answers:
            raise InvalidValue("name", name, "must be a statistic of the release", f"there are: {', '.join(self)}")
        return self.answers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.answers)

    def __len__(self) -> int:
        return len(self.answers)

    @property
    def cost(self) -> float:
        """The epsilon that was charged."""
        return float(self.plan["cost"]["upper"])

    @property
    def title(self) -> str:
        """What it is called: as somebody said, or the names of its statistics."""
        return str(self.plan.get("title") or ", ".join(self))

    @property
    def about(self) -> str | None:
        """Which rows the numbers are about, where that is not every row of the table."""
        return self.plan.get("about")

    @property
    def counts(self) -> dict[str, str]:
        """What the numbers of each statistic count: rows or people, and how much of each unit."""
        return {one["name"]: one.get("counts", ROWS) for one in self.plan["statistics"]}

    def _kind_of(self, name: str) -> str | None:
        return next((one.get("asked", {}).get("kind") for one in self.plan["statistics"] if one["name"] == name), None)

    def at_once(self, name: str | None = None) -> Mapping[str, Answer]:
        """The same answers with intervals that hold all at once, at least 95 times in 100, instead of one by one.

        Args:
            name: Only this statistic: then only its cells hold together. By default the whole release.

        Returns:
            Answers by name.

        Raises:
            InvalidValue: If there is no such statistic, or the release was made by a version that did not keep them.

        >>> import pyarrow, tempfile, farthing as ft
        >>> folder = tempfile.TemporaryDirectory()
        >>> people = ft.dataset(pyarrow.table({"age": [3, 4]}), schema={"age": (0, 9)})
        >>> study = ft.Study(people, epsilon=1.0, account="people", ledger=folder.name + "/study.db")
        >>> release = study.plan(ft.histogram("age")).release()
        >>> one = release["histogram of age"]
        >>> bool((release.at_once()["histogram of age"].upper >= one.upper).all())
        True
        >>> study.close(); folder.cleanup()
        """
        at_once = self.plan.get("at_once")
        if at_once is None:
            raise InvalidValue(
                "request_id",
                self.request_id,
                "was released before intervals were kept for all numbers at once",
                "take a confidence of 1 - 0.05 / numbers with at()",
            )
        if name is None:
            return {name: answer.at(at_once["level"]) for name, answer in self.answers.items()}
        (level,) = [one["level_at_once"] for one in self.plan["statistics"] if one["name"] == self[name].name]
        return {name: self[name].at(level)}

    @property
    def warnings(self) -> tuple[str, ...]:
        """Why it protects little: epsilon above 10, or delta above 1 in 10,000 or 1 in the number of rows.

        Everything here is public. That the table has changed since, or holds people of another account, is computed
        from rows without noise: it comes as the Python warnings `TableChanged` and `SamePeople`, for the steward alone.
        """
        return tuple(budget_cautions(self.cost, float(self.plan["delta"]), self.plan.get("rows")))

    def records(self) -> list[dict[str, Any]]:
        """One plain record for each cell of each statistic.

        Returns:
            Dictionaries of numbers and texts.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db", account="people")
        ...     print(study.plan(ft.count()).release().records()[0]["statistic"])
        ...     study.close()
        count
        """
        together = self.at_once() if self.plan.get("at_once") is not None else {}
        counts = self.counts
        return [
            record
            for name, answer in self.answers.items()
            for record in records_of(answer, together.get(name), counts.get(answer.name, ROWS))
        ]

    def to_frame(self) -> Any:
        """A tidy pandas table: statistic, cell, counts, value, raw, standard_error, both ends, and those at once.

        Returns:
            One row for each cell of each statistic.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db", account="people")
        ...     print(len(study.plan(ft.count()).release().to_frame()))
        ...     study.close()
        1
        """
        import pandas

        return pandas.DataFrame(self.records())

    def to_dict(self) -> dict[str, Any]:
        """Answers, plan, receipt and warnings as plain data.

        Returns:
            Dictionaries, lists, numbers and texts.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db", account="people")
        ...     print(list(study.plan(ft.count()).release().to_dict()))
        ...     study.close()
        ['request_id', 'answers', 'plan', 'receipt', 'warnings']
        """
        counts = self.counts
        return {
            "request_id": self.request_id,
            "answers": [
                {**shown_form(answer), "counts": counts.get(answer.name, ROWS)} for answer in self.answers.values()
            ],
            "plan": dict(self.plan),
            "receipt": json.loads(self.receipt.to_json()),
            "warnings": list(self.warnings),
        }

    def to_json(self) -> str:
        """Answers, plan, receipt and warnings as JSON.

        Returns:
            The text of `to_dict`.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db", account="people")
        ...     print(study.plan(ft.count()).release().to_json()[0])
        ...     study.close()
        {
        """
        return json.dumps(plain(self.to_dict()), indent=2)

    def plot(self) -> Any:
        """Values with error bars, as an Altair chart.

        Returns:
            The chart.

        Raises:
            MissingExtra: If the extra `plots` is not installed.
        """
        from farthing.plots import release_chart

        return release_chart(self.records())

    def report(self, path: str, version: Version | None = None) -> Path:
        """A self-contained HTML page: tables, charts, what was spent and what it means.

        Args:
            path: The file to write.
            version: Which version of the table was read (`study.version`), for a page that says it. That a table has
                changed depends on its rows and is not private, so it stands there only if the steward wants it to.

        Returns:
            Its path.

        Raises:
            InvalidValue: If it cannot be written; the release is not lost.
        """
        from farthing.study.reports.release_report import report_page, saved_page

        return saved_page(report_page(self, version), path)

    def publish(
        self,
        path: str | os.PathLike[str],
        publication: PublicationDetails | Mapping[str, Any],
        previous: str | os.PathLike[str] | None = None,
    ) -> Path:
        """Write a signed publication: tables, charts, report, methods and metadata that others can cite and verify.

        Args:
            path: A new folder, or a file that ends in .zip.
            publication: The details that only you know, as a `PublicationDetails` or a dictionary of its fields: title,
                authors, contact, description, purpose, rationale, region, licence and subject.
            previous: The bundle of the previous version; the new one includes its receipts.

        Returns:
            The path. The same release with the same details gives the same bytes.

        Raises:
            InvalidValue: If a detail is missing; nothing is written then.
            NotAllowed: If the ledger is not open as curator.
            MissingExtra: If the extra `publish` is not installed.
        """
        from farthing.publication.publisher import missing_ledger, publish
        from farthing.study.reports.release_report import report_page

        if self.ledger is None:
            raise missing_ledger()
        return publish(self, path, publication, ledger=self.ledger, report=report_page, previous=previous)

    def __str__(self) -> str:
        return release_table(self.answers.values(), self.warnings, self.about, self.counts)

    def _repr_html_(self) -> str:
        notes = [f"spent epsilon {number_text(self.cost)}; request {self.request_id}", *self.warnings]
        answers = "".join(f"<div>{answer._repr_html_()}</div>" for answer in self.answers.values())
        return answers + html_table([], [], notes=[*([self.about] if self.about else []), *notes])

    def __repr__(self) -> str:
        return f"Release({len(self)} statistics, epsilon={self.cost:.3g}, request_id={self.request_id!r})"


def quantile_ranks(release: Release, name: str) -> list[tuple[str, float | None]]:
    """For each cell of several quantiles, its group in words and its rank; nothing for other statistics."""
    kinds = {one["name"]: one.get("asked", {}).get("kind") for one in release.plan["statistics"]}
    if kinds.get(name) != "quantiles":  # releases of older versions do not say what was asked
        return []
    labels = [label if isinstance(label, tuple) else (label,) for label in release[name].labels]
    return [(", ".join(label_texts(group)), float(rank)) for *group, rank in labels]


def release_of_plan(
    plan: PlanFacts,
    request_id: str | None,
    progress: Callable[[float], None] | None,
    *,
    fresh: bool = False,
    title: str = "",
) -> Release:
    """Run a plan through the curator, or find what was recorded for the same request."""
    study, name = plan.study, request_id or plan.request_id
    if title:
        checked_name(title, "title")  # refused before anything is charged
    if fresh:
        name = request_id or fresh_name(study, plan.request)
    stored = awaited_answer(study, name)
    if stored is not None and fresh:
        raise InvalidValue("request_id", name, "was charged before", "a fresh release needs a new one, or none")
    if stored is not None:
        changed = study.table_changed(name)
        if request_id is None and (stored.answer is None or changed):
            # What was drawn afresh is of a later day, and is paid for.
            stored = fresh_answer(study, plan.request) or stored
        release = _recorded(plan, stored)
        if release is not None:
            if changed and not plan.from_file:  # a command says it in its own way
                warn_if_changed(study, release.receipt, "release(fresh=True)")
            return release
    if plan.earlier is not None and not plan.earlier.exact:
        raise InvalidValue(
            "plan",
            plan.request_id,
            f"no longer fits the budget: it is shown as it was when {plan.earlier.request_id!r} was planned",
            "release it with the controls it had then, which costs nothing, or plan again with a smaller epsilon=",
        )
    if plan.earlier is not None:
        study.allowance(plan.cost.upper, plan=True)  # that of another day was enough then
    register_to_spend(study)
    least = least_in_cell(plan)  # once: a policy may be replaced at any time
    try:
        answered = study.curator.release(
            study.dataset,
            plan.measurements,
            ledger_name=study.name,
            request_id=name,
            sampling_rate=study.sampling_rate,
            delta=plan.delta,
            post_processing=post_processing(plan, title, least),
            progress=progress,
            give_up=False,
            contents=None if study.analyst is None else contents_of(plan, plan.asked, least),
        )
    except (InvalidValue, BudgetExceeded):
        # Another process may have asked for the same meanwhile, and may have found more of the budget, or all of it.
        stored = awaited_answer(study, name)
        if stored is None or fresh:
            raise
        release = _recorded(plan, stored)
        if release is None:
            raise
        return release
    return _read(answered, plan.study.ledger)


def post_processing(plan: PlanFacts, title: str, least: int | None) -> PostProcessing:
    """What is recorded with the numbers of a release: the plan that they answer, and what it is called.

    Where `least` is None no policy covers the plan, and a grant pays for it as it is.
    """
    kept = {**predicted(plan), **({"title": title} if title else {})}
    levels = [(kept["at_once"]["level"], one["level_at_once"]) for one in kept["statistics"]]
    dataset, outputs = plan.study.dataset, plan.design.outputs
    rows_of_one = tuple(people_in(each.statistic, dataset) for each in outputs)
    notes = found_notes(plan.study)
    return PostProcessing(
        outputs,
        plan.allocation.noises,
        dataset.schema,
        tuple(levels),
        kept,
        least=least or 0,
        rows_of_one=rows_of_one,
        findings=tuple(_notes_on(each.statistic, dataset, notes) for each in outputs),
    )


def _notes_on(statistic: Statistic, dataset: Dataset, notes: Mapping[str, str]) -> dict[str, str]:
    """Of notes by column, those on columns that a statistic reads."""
    if not notes or counts_all_values(statistic, dataset):
        return {}
    read = columns_of([statistic], dataset)
    return {name: note for name, note in notes.items() if read is None or name in read}


def warn_if_changed(study: StudyAccount, receipt: Receipt, fresh: str) -> None:
    """Say that stored answers are about rows that are others by now; `fresh` is how to ask for new ones."""
    if study.table_changed(receipt.request_id):
        words = changed_sentence(receipt, fresh, study.version(receipt.request_id))
        warn_caller(words, TableChanged)


def changed_note(study: StudyAccount, receipt: Receipt, fresh: str) -> str:
    """What a steward should know about stored answers; empty where the table is as it was, or is not theirs to know."""
    if study.ledger.role == "analyst":
        return ""
    changed = study.table_changed(receipt.request_id)
    if changed:
        return changed_sentence(receipt, fresh, study.version(receipt.request_id))
    if changed is None:
        return (
            f"farthing cannot tell whether the table of {receipt.dataset!r} has changed since {receipt.when:%Y-%m-%d}: "
            "it tracks only files and frames, and only releases made since it began to."
        )
    return ""


def changed_sentence(receipt: Receipt, fresh: str, version: Version | None = None) -> str:
    """That a table has changed since a release, and both ways on."""
    then = "" if version is None else f", {version}"
    return (
        f"the table of {receipt.dataset!r} has changed since {receipt.when:%Y-%m-%d}, when this was released: these "
        f"answers are about the table as it was{then}. Keep them, or use {fresh} for the table as it is now, which is "
        "charged again."
    )


def _recorded(plan: PlanFacts, stored: Stored) -> Release | None:
    """What the ledger has for the words of a plan; None where it was written before words were kept with answers."""
    if stored.answer is None:
        raise without_answer(stored, _ANEW_FILE if plan.from_file else _ANEW)
    release = stored_release(plan.study.ledger, stored.charge.request_id)
    asked = release.plan.get("asked")
    if asked is None:
        return None
    other = plan.study.curator.is_of_other_table(plan.study.dataset, release.request_id)
    if other or not plan.request.is_that_of(asked):
        raise InvalidValue(
            "request_id",
            release.request_id,
            "was charged before for something else",
            "use a new request id for a new request, or none",
        )
    return release


def predicted(plan: PlanFacts) -> dict[str, Any]:
    """The plan as it is kept with its answers: with whom it protects, the budget it met, and what asked for it."""
    budget, problem, noises = plan.study.budget, plan.allocation.problem, plan.allocation.noises
    kept: dict[str, Any] = plain(
        {
            **plan_data(plan, 0.95, promises=False),
            "unit": budget.unit,
            **_renewal(budget),
            "budget": {
                "total": budget.total.epsilon,
                "spent_before": budget.spent_upper,
                "left_after": max(0.0, budget.total.epsilon - budget.spent_upper - plan.cost.upper),
            },
            "code": "\n".join(plan.code),
            "asked": plan.request.to_dict(),
            "made": {
                "allowance": [plan.allowance.epsilon, plan.allowance.delta],
                "clock": plan.allowance.clock,
                "on_clock": problem.on_clock,
                "counted": None if plan.design.counted is None else list(astuple(plan.design.counted)),
                "epsilon": problem.epsilon,
                "delta": problem.delta,
                "reserved": problem.reserved,
                "held": {slot: [noises[slot].kind, noises[slot].parameter] for slot in problem.held},
            },
        }
    )
    return kept


def _renewal(budget: Budget) -> dict[str, str]:
    """The period of the budget, and what somebody in all periods is protected by; nothing where it does not renew."""
    renewal = None if budget.protects is None else budget.protects.renewal
    if renewal is None or renewal.period is None:
        return {}
    return {"period": renewal.period, "lifetime": lifetime_words(budget.protects, budget.total)}


def stored_release(ledger: Ledger, request_id: str) -> Release:
    """A release as the ledger stored it."""
    from farthing.curator import stored_answer

    return _read(stored_answer(ledger, request_id), ledger)


def releases_in(ledger: Ledger, name: str) -> list[str]:
    """The request ids of all releases of statistics under a name, oldest first.

    Sessions, synthetic tables and the like are in the same ledger, and rounds of a session come in large numbers: those
    cost nothing, so that most of what is none is seen at once.
    """
    paid = [
        entry.request_id
        for entry in ledger.entries(name)
        if entry.kind == "released" and (entry.body["nano"], entry.body["units"]) != (0, 0)
    ]
    return [request_id for request_id in paid if _holds_release(ledger, request_id)]


def answer_facts(ledger: Ledger, request_id: str) -> Mapping[str, Any]:
    """What is recorded beside the numbers of an answer; nothing where there is none.

    >>> import tempfile
    >>> from farthing.ledger import open_ledger
    >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
    ...     answer_facts(ledger, "never asked")
    {}
    """
    from farthing.curator import stored_answer

    try:
        return stored_answer(ledger, request_id).finished
    except (InvalidValue, AnswerForfeited):  # there is none, or one of somebody who charged by hand
        stored = ledger.stored(request_id)
        return partition_answer("" if stored is None else stored.answer or "")


def answer_subject(facts: Mapping[str, Any], request_id: str) -> str:
    """What an answer is about, in words: the statistics, or the kind of session; nothing of its numbers.

    >>> answer_subject({"partition": "sex", "parts": ["F", "M"]}, "partition 1 of people by sex")
    'disjoint parts by sex: F, M'
    """
    if {"answers", "plan"} <= set(facts):
        return ", ".join(str(answer["name"]) for answer in facts["answers"])
    if "session" in facts:
        return _SESSIONS.get(request_id.rpartition(":")[2].partition("-")[0], "a session")
    if "question" in facts:
        return "a synthetic table"
    if "row_count" in facts:
        return "the number of rows"
    if "finding" in facts:
        return f"found: {facts['finding']['name']}"
    if "partition" in facts:
        return f"disjoint parts by {facts['partition']}: {', '.join(map(str, facts['parts']))}"
    return ""


def _holds_release(ledger: Ledger, request_id: str) -> bool:
    from farthing.curator import stored_answer

    try:
        return _is_release(stored_answer(ledger, request_id))
    except InvalidValue:  # the answer of somebody who charged by hand
        return False


def _is_release(answered: Answered) -> bool:
    return {"answers", "plan"} <= set(answered.finished)


def restored_answers(
    forms: Sequence[Mapping[str, Any]], plan: Mapping[str, Any], receipt: Receipt
) -> dict[str, Answer]:
    """Answers by name, from plain data; each says what it counts, where something of a unit may be left out.

    Values that were found are in the order that people expect, whichever they were recorded in.
    """
    counts = {one["name"]: str(one.get("counts", ROWS)) for one in plan["statistics"]}
    ranks = {one["name"] for one in plan["statistics"] if one.get("asked", {}).get("kind") == "top"}
    answers = [
        in_natural_order(answer) if VALUES_FOUND in answer.note and answer.name not in ranks else answer
        for answer in (restored(form, f"{receipt.ledger} {receipt.request_id}") for form in forms)
    ]
    return {answer.name: answer.counting(limited(counts.get(answer.name, ROWS))) for answer in answers}


def _read(answered: Answered, ledger: Ledger) -> Release:
    record = answered.finished
    if not _is_release(answered):
        raise InvalidValue(
            "request_id",
            answered.request_id,
            "must be that of a release of statistics",
            "a session, a monitor, a series or a synthetic table is resumed by the call that made it",
        )
    return Release(
        restored_answers(record["answers"], record["plan"], answered.receipt),
        record["plan"],
        answered.receipt,
        answered.request_id,
        answered.repeated,
        ledger,
    )
