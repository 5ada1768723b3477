"""`study.synthesise(...)`: a synthetic table, the account of what it cost, and an honest word about its quality."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.adaptive.prior_releases import KnownTable, known_tables
from farthing.adaptive.synthesis import SyntheticModel
from farthing.adaptive.synthesis_validation import (
    CheckedSynthesis,
    checked_synthesis,
    drawn,
    restored_synthesis,
    seed_of,
    stored_known,
)
from farthing.curator import Answered, stored_answer
from farthing.data.coded_rows import CodedAxis, coded_axes, sensitivity_of_coded_rows
from farthing.data.schema import Schema
from farthing.errors import InvalidValue
from farthing.ledger import Ledger, PlanRequest, Receipt
from farthing.numerics.bounds import number_text
from farthing.privacy.events import checked_count
from farthing.statistics.answer_records import plain
from farthing.study.attacker_odds import budget_cautions
from farthing.study.plan_submission import as_approved, submitted_offer
from farthing.study.release import Release
from farthing.study.release_request import definition_asked, own_name
from farthing.study.study_account import StudyAccount, refuse_sample, register_to_spend
from farthing.study.synthesis.cell_values import decoded
from farthing.study.synthesis.synthetic_quality import Quality, quality_of
from farthing.study.synthesis.synthetic_query import SyntheticAnswer, synthetic_answer

Progress = Callable[[float], None]

_DECODING = 1  # the stream of random numbers that draws values within cells


@dataclass(frozen=True, eq=False)
class SynthesisOffer:
    """What a synthesis would do and cost: printed before anything is spent, then `release()`.

    Args:
        study: The study that made it.
        question: What is measured, checked and priced.
        rows: How many rows to make, by default as many as will be measured.
        request_id: The name of its request.

    >>> import pyarrow, tempfile, farthing as ft
    >>> people = ft.dataset(pyarrow.table({"sex": ["F", "M", "F"]}), schema={"sex": ["F", "M"]})
    >>> study = ft.Study(people, epsilon=1.0, delta=1e-9, ledger=tempfile.mkdtemp() + "/study.db", account="people")
    >>> offer = study.synthesis_plan(epsilon=0.5)
    >>> 0.49 < offer.cost <= 0.5, study.budget.spent.upper
    (True, 0.0)
    """

    study: StudyAccount
    question: CheckedSynthesis
    rows: int | None
    request_id: str

    @property
    def axes(self) -> tuple[CodedAxis, ...]:
        """The cells of every column."""
        return self.question.axes

    @property
    def delta(self) -> float:
        """The delta at which it is charged."""
        return self.question.delta

    @property
    def cost(self) -> float:
        """The epsilon that it costs."""
        return self.question.cost

    @property
    def made_before(self) -> bool:
        """Whether the ledger has it: then releasing it makes the same table again and spends nothing."""
        return self.study.ledger.stored(self.request_id) is not None

    def release(self, request_id: str | None = None, progress: Progress | None = None) -> Synthetic:
        """Charge the ledger, run once on the engine, record, and make the table.

        The same `request_id` gives the same table again and spends nothing, and so do the same arguments without one.

        Args:
            request_id: Names the table.
            progress: Called with a share between 0 and 1 while the engine runs.

        Returns:
            The table, its quality and the receipt.

        Raises:
            BudgetExceeded: If the ledger does not admit the charge; nothing is spent.
            AnswerForfeited: If the run failed after the charge, which stays.
            InvalidValue: If `request_id` was charged before for something else.
        """
        if request_id is None and self.made_before:
            return stored_synthetic(self.study.ledger, self.request_id, self.rows)
        register_to_spend(self.study)
        answered = self.study.curator.run(
            self.study.dataset,
            self.question,
            ledger_name=self.study.name,
            request_id=request_id or self.request_id,
            delta=self.delta,
            progress=progress,
        )
        return _read(answered, self.rows, self.question)

    def submit(self, purpose: str, title: str = "", body: Mapping[str, Any] | None = None) -> PlanRequest:
        """Ask a curator to allow this table; nothing is spent. `study.synthesise` with the same arguments makes it.

        Args:
            purpose: What the table is for; the curator reads it.
            title: A few words to call it by.
            body: What a server was sent, from which it can be asked again.

        Returns:
            The request.

        Raises:
            InvalidValue: If nobody asks: a curator needs no request.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"sex": ["F", "M"] * 500}), schema={"sex": ["F", "M"]}, name="people")
        >>> folder = tempfile.TemporaryDirectory()
        >>> ada = ft.Study(people, epsilon=1.0, ledger=folder.name + "/study.db")
        >>> ada.register()
        >>> _ = ada.ledger.grant("people", "bob", 0.0)
        >>> bob = ft.Study(people, epsilon=1.0, ledger=ada.ledger.acting("bob", "analyst"))
        >>> asked = bob.synthesis_plan(epsilon=0.5).submit("data for teaching")
        >>> _ = ada.ledger.requests.approve(asked.id)
        >>> print(bob.synthesise(epsilon=0.5, rows=200))
        200 synthetic rows of 1 column...
        >>> ada.close(); folder.cleanup()
        """
        study = self.study
        return submitted_offer(
            study,
            study.curator.terms_of(study.dataset, self.question, study.name),
            name=self.request_id,
            delta=self.delta,
            cost=self.cost,
            offer=self.to_dict(),
            words=str(self),
            kind="a synthetic table",
            purpose=purpose,
            title=title,
            body=body,
        )

    def to_dict(self) -> dict[str, Any]:
        """The offer as plain data.

        Returns:
            Dictionaries, lists, numbers and texts.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db", account="people")
        ...     offer = study.synthesis_plan(bins={"age": 4})
        ...     print(offer.to_dict()["columns"][0]["cells"])  # the fifth is for missing values
        ...     study.close()
        5
        """
        return {
            "dataset": self.study.name,
            "epsilon": self.question.epsilon,
            "delta": self.delta,
            "cost": self.cost,
            "columns": [
                {
                    "name": axis.column,
                    "cells": len(axis),
                    "binned": axis.edges is not None,
                    "missing": axis.missing,
                }
                for axis in self.axes
            ],
            "choices": self.question.plan.prices.choices,
            "check_noise": self.question.noise.standard_error,
            "known": [list(table.columns) for table in self.question.plan.known],
        }

    def __str__(self) -> str:
        left = self.study.budget.remaining.epsilon
        price = f"epsilon {number_text(self.cost, 6)} of the {number_text(left, 6)} left"
        cost = f"cost: {price}, at delta {self.delta:g}; "
        if self.made_before:
            cost = f"cost: nothing. It was made before, for epsilon {number_text(self.cost, 6)}, as {self.request_id}"
        lines = [*self.measured, cost if self.made_before else f"{cost}nothing is spent yet"]
        lines += [f"warning: {text}" for text in self.cautions]
        return "\n".join([*lines, *self.cuts])

    @property
    def measured(self) -> tuple[str, ...]:
        """What would be measured, and checked, in words."""
        noise = number_text(self.question.noise.standard_error)
        check = f"  the check of its columns and pairs, each distance with a noise of {noise} rows"
        return (*str(self.question.plan).split("\n"), check)

    @property
    def cuts(self) -> tuple[str, ...]:
        """Which columns are cut into cells that hold several values."""
        binned = ", ".join(axis.column for axis in self.axes if axis.edges is not None)
        return (f"cut into cells, within which values are drawn uniformly: {binned}",) if binned else ()

    @property
    def cautions(self) -> tuple[str, ...]:
        """What is unusual about the budget."""
        return tuple(budget_cautions(self.study.epsilon, self.study.delta, self.study.dataset.rows))


@dataclass(frozen=True, eq=False)
class Synthetic:
    """A synthetic table: rows that nobody gave, with about the counts of those that people did.

    `table()` has the rows, with the columns and types of the schema; `quality` says which columns and pairs of columns
    are right, and by how much they may be off; `query` counts. Everything in it is public: it was paid for.

    Args:
        question: What was measured.
        answers: The noisy numbers that were recorded.
        model: The model that was fitted to them.
        rounds: What was chosen and measured, in order.
        receipt: The receipt that proves the charge.
        request_id: The name of its request.
        name: The name of the dataset.
        count: How many rows it has, by default as many as were measured.
        repeated: Whether it was made before, and cost nothing now.

    >>> import pyarrow, tempfile, farthing as ft
    >>> table = pyarrow.table({"sex": ["F", "M"] * 500, "smokes": [True, False] * 500})
    >>> people = ft.dataset(table, schema={"sex": ["F", "M"], "smokes": bool})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     study = ft.Study(people, epsilon=4.0, account="people", ledger=folder + "/study.db")
    ...     synthetic = study.synthesise(rows=200)
    ...     again = study.synthetic(synthetic.request_id, rows=200)
    ...     study.close()
    >>> synthetic.table().schema.names, synthetic.table().num_rows, synthetic.table().equals(again.table())
    (['sex', 'smokes'], 200, True)
    >>> 450 < synthetic.query("sex = 'F' and smokes").value < 550
    True
    """

    question: CheckedSynthesis
    answers: Mapping[str, Any]
    model: SyntheticModel
    rounds: Sequence[Mapping[str, Any]]
    receipt: Receipt
    request_id: str
    name: str
    count: int | None = None
    repeated: bool = False

    @property
    def axes(self) -> tuple[CodedAxis, ...]:
        """The cells of every column."""
        return self.question.axes

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(axis.column for axis in self.axes)

    @property
    def cost(self) -> float:
        """The epsilon that it cost."""
        return self.question.cost

    @cached_property
    def codes(self) -> NDArray[np.int64]:
        """The rows as codes of cells: always the same for the same recorded numbers."""
        return self.question.codes(self.answers, self.count, self.model)

    @cached_property
    def quality(self) -> Quality:
        """Which columns and pairs of columns are good, and by how much they may be off."""
        own = self.count in (None, self.question.rows(self.model))
        return quality_of(self.question, self.answers, self.model, None if own else self.codes)

    @cached_property
    def _table(self) -> Any:
        random = np.random.default_rng([seed_of(drawn(self.answers)), _DECODING])
        return decoded(self.codes, self.axes, random)

    def table(self) -> Any:
        """The rows, with the types of the schema.

        Returns:
            An Arrow table.
        """
        return self._table

    def to_frame(self) -> Any:
        """The rows as a pandas table.

        Returns:
            A data frame.
        """
        return self._table.to_pandas()

    def save(self, path: str) -> Path:
        """Write the rows to a file.

        Args:
            path: A name that ends in .csv for CSV; Parquet otherwise.

        Returns:
            Its path.

        Raises:
            InvalidValue: If the name ends in something else, or the file cannot be written.
        """
        from farthing.study.reports.release_report import unwritable

        target = checked_target(path)
        try:
            if target.suffix.lower() == ".csv":
                from pyarrow import csv

                csv.write_csv(self._table, target)
            else:
                from pyarrow import parquet

                parquet.write_table(self._table, target)
        except OSError as problem:
            raise unwritable(path, problem) from None
        return target

    def marginal(self, *columns: str) -> NDArray[np.float64]:
        """The expected counts of all combinations of cells, by the model the rows were drawn from.

        Args:
            *columns: The columns that are combined.

        Returns:
            An array with one axis for each column.

        Raises:
            InvalidValue: If there is no such column.
        """
        places = [self._place(column) for column in columns]
        return self.model.marginal(places)

    def query(self, what: str | Mapping[str, Any]) -> SyntheticAnswer:
        """How many rows meet a condition.

        The number is that of the synthetic rows, as a share of the number of rows that was measured.

        Args:
            what: "sex = 'M' and age < 30", or {column: value, (lo, hi) or [values]}.

        Returns:
            The count. Its `error` is what the check vouches for, where it can: the condition is about one or two
            columns and cuts no cell.

        Raises:
            InvalidValue: If a column is not in the table.
            InvalidExpression: If the condition cannot be read.
        """
        return synthetic_answer(what, self._table, self._schema, self.axes, self.quality)

    @property
    def _schema(self) -> Schema:
        return Schema({axis.column: axis.domain for axis in self.axes})

    def _place(self, column: str) -> int:
        if column not in self.columns:
            raise InvalidValue("columns", column, "must be a column", f"they are {', '.join(self.columns)}")
        return self.columns.index(column)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the rows as plain data.

        Returns:
            Dictionaries, lists, numbers and texts.
        """
        return {
            "request_id": self.request_id,
            "repeated": self.repeated,
            "rows": len(self.codes),
            "columns": list(self.columns),
            "epsilon": self.cost,
            "delta": self.question.delta,
            "quality": self.quality.to_dict(),
            "warnings": list(self.quality.warnings),
            "rounds": [dict(one) for one in self.rounds],
            "receipt": json.loads(self.receipt.to_json()),
        }

    def to_json(self) -> str:
        """Everything but the rows as JSON.

        Returns:
            The text of `to_dict`.
        """
        return json.dumps(plain(self.to_dict()), indent=2)

    def report(self, path: str) -> Path:
        """A self-contained HTML page: verdicts, errors, what was measured, what was spent.

        Args:
            path: The file to write.

        Returns:
            Its path.

        Raises:
            InvalidValue: If it cannot be written; the table is not lost.
        """
        from farthing.study.reports.synthetic_report import written_report

        return written_report(self, path)

    @property
    def sentence(self) -> str:
        """How large it is, in words."""
        columns = "1 column" if len(self.columns) == 1 else f"{len(self.columns):,} columns"
        return f"{len(self.codes):,} synthetic rows of {columns}"

    def __str__(self) -> str:
        return f"{self.sentence}\n\n{self.quality}"

    def __repr__(self) -> str:
        return f"Synthetic({self.sentence}, request_id={self.request_id!r})"


def checked_target(path: str) -> Path:
    """Where rows can be written: no name that promises another kind of file.

    >>> checked_target("rows.xlsx")
    Traceback (most recent call last):
        ...
    farthing.errors.InvalidValue: path='rows.xlsx': must end in .parquet or .csv...
    """
    target = Path(path)
    if target.suffix.lower() not in ("", ".parquet", ".pq", ".csv"):
        raise InvalidValue("path", str(path), "must end in .parquet or .csv", "other kinds are not written")
    return target


@dataclass(frozen=True)
class SynthesisOptions:
    """The arguments of `study.synthesise` that decide what is measured, and what it costs."""

    columns: Sequence[str] | str | None = None
    bins: Mapping[str, int | Sequence[Any]] | None = None
    missing: bool | Sequence[str] = True
    epsilon: float | None = None
    known: Release | Sequence[Release] = ()

    def axes(self, schema: Schema) -> tuple[CodedAxis, ...]:
        """The columns and their cells."""
        return coded_axes(schema, self.columns, bins=self.bins, missing=self.missing)

    @property
    def releases(self) -> tuple[Release, ...]:
        """What is known, one by one."""
        return _listed(self.known)

    @property
    def are_left_out(self) -> bool:
        """Whether every argument has its default."""
        said = self.columns is not None or bool(self.bins) or self.epsilon is not None
        return not said and self.missing is True and not self.releases


def synthesis_offer(study: StudyAccount, options: SynthesisOptions, rows: int | None) -> SynthesisOffer:
    """What `study.synthesise` with these arguments would do; no row is read and nothing is spent."""
    refuse_sample(study, "a synthesis")
    if study.sampling_rate is not None:
        raise InvalidValue(
            "sampling_rate",
            study.sampling_rate,
            "must be left out for a synthesis",
            "it is priced for the table itself; study it without a rate, from the first release on",
        )
    axes = options.axes(study.dataset.schema)
    name = synthesis_name(study, options)
    study = as_approved(study, name)
    earlier = earlier_synthesis(study, name, options)
    if earlier is not None:  # its price was paid, whatever is left by now
        return SynthesisOffer(study, earlier.question, _checked_rows(rows, earlier.question), name)
    sensitivity = sensitivity_of_coded_rows(study.dataset, axes)
    allowance = study.allowance(options.epsilon)
    tables = _tables_of(study, options.known, axes)
    question = checked_synthesis(axes, sensitivity, allowance.epsilon, allowance.delta, tables)
    return SynthesisOffer(study, question, _checked_rows(rows, question), name)


def synthesis_name(study: StudyAccount, options: SynthesisOptions) -> str:
    """The same arguments name the same table: a cell of a notebook that runs twice pays once."""
    columns, bins = options.columns, options.bins
    facts = [
        study.name,
        study.payer,
        [columns] if isinstance(columns, str) else columns,
        {str(name): cut for name, cut in bins.items()} if isinstance(bins, Mapping) else bins,
        options.missing,
        options.epsilon,
        sorted(str(getattr(one, "request_id", one)) for one in options.releases),
    ]
    of_old = _hashed(facts)  # earlier versions did not look at what was done to the rows
    name = _hashed([*facts, definition_asked(study.dataset)])
    known_as_old = study.dataset.is_untransformed and study.ledger.stored(of_old) is not None
    return own_name(study, of_old if known_as_old and study.ledger.stored(name) is None else name)


def _hashed(facts: list[Any]) -> str:
    return f"synthesis-{hashlib.sha256(json.dumps(facts, default=str).encode()).hexdigest()[:24]}"


def stored_synthetic(ledger: Ledger, request_id: str, rows: int | None = None) -> Synthetic:
    """A synthetic table as the ledger has it; no row is read and nothing is spent."""
    return _earlier(ledger, request_id).table(rows)


@dataclass(frozen=True, eq=False)
class EarlierSynthesis:
    """A synthesis that was paid for before, and may be made again free of charge."""

    answered: Answered
    question: CheckedSynthesis

    def table(self, rows: int | None = None) -> Synthetic:
        """The synthetic table that was made then."""
        return _read(self.answered, _checked_rows(rows, self.question), self.question)

    def to_dict(self) -> dict[str, Any]:
        return {
            "request_id": self.answered.request_id,
            "made_before": True,
            "paid": self.question.cost,
            "delta": self.question.delta,
            "columns": [axis.column for axis in self.question.axes],
        }

    def __str__(self) -> str:
        columns = ", ".join(axis.column for axis in self.question.axes)
        return (
            f"request {self.answered.request_id} exists: epsilon {number_text(self.question.cost, 6)} was paid for "
            "it, and "
            f"its table can be made again free of charge\n  columns: {columns}"
        )


def earlier_synthesis(study: StudyAccount, request_id: str, options: SynthesisOptions) -> EarlierSynthesis | None:
    """The synthesis of an earlier request, None without one; refused if something else is asked for now.

    The request id by itself asks for what it stands for. An epsilon that is left out is the one that was paid.
    """
    if study.ledger.stored(request_id) is None:
        return None
    synthetic = _earlier(study.ledger, request_id)
    other = study.curator.is_of_other_table(study.dataset, request_id)
    same = synthetic.answered.receipt.dataset == study.name and not other
    if not options.are_left_out:
        axes = options.axes(study.dataset.schema)
        same = (
            same
            and axes == synthetic.question.axes
            and options.epsilon in (None, synthetic.question.epsilon)
            and stored_known(_tables_of(study, options.releases, axes)) == stored_known(synthetic.question.plan.known)
        )
    if not same:
        raise InvalidValue(
            "request_id",
            request_id,
            "was charged before for something else",
            "use a new request id for a new table; the id by itself gives the earlier table again",
        )
    return synthetic


def _earlier(ledger: Ledger, request_id: str) -> EarlierSynthesis:
    answered = stored_answer(ledger, request_id)
    if "question" not in answered.finished:
        raise InvalidValue("request_id", request_id, "must be that of a synthesis", "study.released has other releases")
    return EarlierSynthesis(answered, restored_synthesis(answered.finished["question"]))


def _checked_rows(rows: int | None, question: CheckedSynthesis) -> int | None:
    """Refused before the charge, or before a table is made that no memory holds."""
    if rows is None:
        return None
    count = checked_count(rows, "rows")
    if count < 1:
        raise InvalidValue("rows", rows, "must be at least 1", "leave it out for as many as were measured")
    if not count <= question.most_rows:
        raise InvalidValue(
            "rows",
            rows,
            f"must be at most {question.most_rows:,} for {len(question.axes)} columns",
            "rows beyond those that were measured add no information",
        )
    return count


def _read(answered: Answered, count: int | None, question: CheckedSynthesis) -> Synthetic:
    model = question.plan.fitted(drawn(answered.answers))
    return Synthetic(
        question,
        answered.answers,
        model,
        answered.finished.get("rounds", ()),
        answered.receipt,
        answered.request_id,
        answered.receipt.dataset,
        count,
        answered.repeated,
    )


def _tables_of(
    study: StudyAccount, releases: Release | Sequence[Release], axes: Sequence[CodedAxis]
) -> tuple[KnownTable, ...]:
    """The tables of earlier releases of the same dataset."""
    tables: list[KnownTable] = []
    for release in _listed(releases):
        if not isinstance(release, Release) or release.plan.get("dataset") != study.name:
            raise InvalidValue(
                "known", release, f"must be releases of {study.name!r}", "study.released(request_id) has them"
            )
        tables.extend(known_tables(release, axes))
    return tuple(tables)


def _listed(known: Release | Sequence[Release]) -> tuple[Release, ...]:
    return (known,) if not isinstance(known, list | tuple) else tuple(known)  # type: ignore[return-value]
