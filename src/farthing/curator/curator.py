"""The curator: check, charge, run, record, answer, always in this order."""

from __future__ import annotations

import math
import os
import secrets
import threading
import time
import weakref
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from farthing.curator.payers import (
    Accounts,
    accounts_of,
    are_other_tables,
    drawn_rate,
    table_marks,
    take_up,
    unit_of,
    versioned_source,
)
from farthing.curator.questions import (
    Answers,
    Finish,
    OneNumber,
    PlanQuestion,
    Progress,
    Question,
    Single,
    answers_of,
    digest_of,
    finished_of,
    record,
    run_apart,
    text_of,
)
from farthing.data import Dataset
from farthing.data.aggregates.aggregate import Aggregate
from farthing.data.table_identity import fingerprint_of
from farthing.errors import AnswerForfeited, InvalidValue, NotAllowed
from farthing.ledger.budget import as_stored
from farthing.ledger.entries import checked_name
from farthing.ledger.partitions import Part
from farthing.ledger.table_versions import Version
from farthing.privacy import ApproxDP, Event
from farthing.privacy.events import checked_real
from farthing.privacy.units import Renewal

if TYPE_CHECKING:
    from farthing.ledger import Charge, Ledger, Receipt
    from farthing.ledger.rights import Contents
    from farthing.statistics.measurements import Measurements

_LONGEST_REASON = 200
_TABLES = "tables"  # what the marks of the tables of an answer stand under, beside it
_LOOK = 0.05  # seconds between two looks for an answer that another process may be about to record

_turns: weakref.WeakValueDictionary[tuple[int, str, str], _Turn] = weakref.WeakValueDictionary()
_making = threading.Lock()


@dataclass(frozen=True)
class Answered:
    """Noisy whole numbers by name, and the receipt of the charge that paid for them.

    Args:
        answers: An array of noisy whole numbers for each name.
        receipt: The receipt of the charge.
        request_id: The name of the request.
        repeated: Whether they were drawn by an earlier call with the same request id.
        finished: What post-processing made of them, as JSON-ready data.

    >>> import numpy
    >>> Answered({"people": numpy.array([41])}, None, "r-1", True).answers["people"].tolist()
    [41]
    """

    answers: Answers
    receipt: Receipt
    request_id: str
    repeated: bool
    finished: Mapping[str, Any] = field(default_factory=dict)


class ReleaseTerms(NamedTuple):
    """What a release would be charged: the event, the digest, who pays besides, and the text that names the table."""

    event: Event
    digest: str
    others: tuple[str, ...]
    source: str


class Curator:
    """The one door between rows and a ledger.

    A charge is durable before a row is read, and an answer is recorded before anybody sees it. What goes wrong in
    between leaves the charge in place: for one request id noise is drawn once at most, and asking again returns what
    was recorded.

    Args:
        ledger: The open ledger that pays.
        analyst: Whose grant pays, if a curator releases for an analyst.

    >>> import pyarrow, tempfile
    >>> from farthing.data import Count, dataset
    >>> from farthing.ledger import open_ledger
    >>> from farthing.mechanisms import DiscreteLaplace
    >>> people = dataset(pyarrow.table({"age": [30, 45, 51]}), schema={"age": (0, 110)})
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = open_ledger(f"{folder.name}/study.db")
    >>> curator = Curator(ledger)
    >>> curator.register(people, "survey", epsilon=1.0)
    >>> first = curator.answer(
    ...     people, "people", Count(), DiscreteLaplace(0.25), ledger_name="survey", request_id="first"
    ... )
    >>> again = curator.answer(
    ...     people, "people", Count(), DiscreteLaplace(0.25), ledger_name="survey", request_id="first"
    ... )
    >>> again.repeated, again.answers == first.answers, ledger.budget("survey").remaining.epsilon
    (True, True, 0.75)
    >>> ledger.close(); folder.cleanup()
    """

    def __init__(self, ledger: Ledger, *, analyst: str | None = None) -> None:
        self.ledger = ledger
        self.analyst = analyst

    def register(
        self,
        dataset: Dataset,
        ledger_name: str,
        epsilon: float,
        delta: float = 0.0,
        sampling_rate: float | None = None,
        renewal: Renewal | None = None,
    ) -> None:
        """Open a budget for the rows of `dataset`; whom it protects is written down with it.

        The budget of one period of an account that renews is the one that the account was opened with.

        Args:
            dataset: The table with its public facts.
            ledger_name: What the ledger calls it.
            epsilon: The epsilon of the budget.
            delta: The delta of the budget.
            sampling_rate: Says that the table is a secret sample of a population, whose budget it then is.
            renewal: Says that each period has such a budget: what they have in common is opened, which is not one.

        Raises:
            InvalidValue: If the name is registered already, another budget stands for the table, or the budget of a
                period is not that of the others.
            NotAllowed: If the ledger was not opened by a curator.
        """
        unit = unit_of(dataset, sampling_rate)
        accounts = accounts_of(self.ledger, dataset, ledger_name, sampling_rate)
        if accounts.holder is not None:
            self._open_period(dataset, accounts.holder, ledger_name, as_stored(epsilon, delta))
            return
        unit = replace(unit, renewal=renewal)
        sources = (*accounts.sources, *accounts.owners.get(ledger_name, ()))
        self.ledger.register(ledger_name, epsilon, delta, unit=unit, sources=sources, titles=accounts.titles)

    def _open_period(self, dataset: Dataset, whole: str, name: str, budget: ApproxDP) -> None:
        """Open the budget of one period, as the account says that every period has it; tables stay with the account."""
        terms = self.ledger.budget(whole)
        assert dataset.period is not None and terms.protects is not None and terms.protects.renewal is not None
        if budget != terms.total:
            raise InvalidValue(
                "budget",
                f"epsilon={budget.epsilon:.12g}, delta={budget.delta:.12g}",
                f"must be that of every {terms.protects.renewal.every}, epsilon={terms.total.epsilon:.12g} and "
                f"delta={terms.total.delta:.12g}",
                "use these: what somebody in all periods is protected by rests on them",
            )
        renewal = replace(terms.protects.renewal, period=dataset.period[1].names[0])
        unit = replace(terms.protects, renewal=renewal)
        self.ledger.register(name, budget.epsilon, budget.delta, unit=unit, sources=())

    def attach(self, dataset: Dataset, ledger_name: str, sampling_rate: float | None = None) -> Accounts:
        """Register the table of `dataset` to an account that is open, unless it is.

        Args:
            dataset: The table with its public facts.
            ledger_name: The account that protects its people.
            sampling_rate: Says that the table is a secret sample of a population, whose account it then is.

        Returns:
            Every account that pays for what is computed from it.

        Raises:
            InvalidValue: If the table is registered to another account, or the account protects another unit.
        """
        accounts = self.accounts(dataset, ledger_name, sampling_rate)
        if accounts.is_news:
            take_up(self.ledger, accounts)
            # Again, because another process may have opened an account for the same table: one of the two sees it.
            accounts = self.accounts(dataset, ledger_name, sampling_rate)
        return accounts

    def release(
        self,
        dataset: Dataset,
        measurements: Measurements,
        *,
        ledger_name: str,
        request_id: str | None = None,
        world: str = "planned",
        delta: float | None = None,
        timeout: float | None = None,
        progress: Progress | None = None,
        sampling_rate: float | None = None,
        post_processing: Finish | None = None,
        give_up: bool = True,
        contents: Contents | None = None,
    ) -> Answered:
        """Charge for the measurements of a plan, then run them on the rows in one pass.

        Args:
            dataset: The table with its public facts.
            measurements: What is measured, with how much noise.
            ledger_name: Whose budget pays.
            request_id: The name of the request; used again, it returns the recorded answers. New by default.
            world: "planned" if the parameters were fixed in advance, "adaptive" if they depend on earlier answers.
            delta: The delta at which the charge enters the plain sums.
            timeout: How many seconds the run may take; whether that is met depends on rows, so choose it generously.
            progress: Called with a share between 0 and 1 while the engine runs.
            sampling_rate: Says that the table is a secret sample of a population, and charges what the measurements
                cost that population, at `delta`; it holds for one release of the table and no more. A dataset that is
                a sample (`dataset.sample`) draws a new one for every release, and needs no rate here.
            post_processing: Makes JSON-ready data of the noisy numbers, which is recorded with them.
            give_up: Whether a request that was charged before and has no answer is given up. If not, it is refused, and
                the process that is running it can still record the answer.
            contents: What a policy looks at in the plan.

        Returns:
            The noisy numbers and the receipt.

        Raises:
            BudgetExceeded: If the budget does not have what it costs.
            AnswerForfeited: If the run failed after the charge, which stays spent.
            InvalidValue: If an argument is wrong.
        """
        request, limit = _checked_request(request_id), _checked_timeout(timeout)
        terms = _ChargeTerms(ledger_name, request, world, delta, limit, sampling_rate, limit, give_up, contents)
        question = _plan_question(dataset, measurements, delta, sampling_rate, post_processing)
        return self._ask(question, dataset, terms, progress)

    def release_terms(
        self,
        dataset: Dataset,
        measurements: Measurements,
        *,
        ledger_name: str,
        delta: float | None = None,
        sampling_rate: float | None = None,
    ) -> ReleaseTerms:
        """What `release` with the same arguments would ask of the ledger; nothing is charged and no row is read.

        Args:
            dataset: The table with its public facts.
            measurements: What is measured, with how much noise.
            ledger_name: Whose budget would pay.
            delta: The delta at which the charge would enter the plain sums.
            sampling_rate: Says that the table is a secret sample of a population.

        Returns:
            The event, the digest, the other accounts that would pay, and what the table is called.

        Raises:
            InvalidValue: If an argument is wrong.
        """
        question = _plan_question(dataset, measurements, delta, sampling_rate)
        return self.terms_of(dataset, question, ledger_name, sampling_rate)

    def terms_of(
        self, dataset: Dataset, question: Question, ledger_name: str, sampling_rate: float | None = None
    ) -> ReleaseTerms:
        """The same for any question that `run` takes.

        Args:
            dataset: The table with its public facts.
            question: What would be asked.
            ledger_name: Whose budget would pay.
            sampling_rate: Says that the table is a secret sample of a population.

        Returns:
            What would be asked of the ledger.

        Raises:
            InvalidValue: If the question does not fit the table.
        """
        question.check(dataset)
        paying = self.accounts(dataset, ledger_name, sampling_rate)
        source, _ = versioned_source(dataset, paying)
        return ReleaseTerms(question.event, digest_of(question, dataset), paying.others, source)

    def answer(
        self,
        dataset: Dataset,
        name: str,
        aggregate: Aggregate,
        mechanism: OneNumber,
        *,
        ledger_name: str,
        request_id: str | None = None,
        world: str = "adaptive",
        delta: float | None = None,
        timeout: float | None = None,
        progress: Progress | None = None,
    ) -> Answered:
        """Charge for one aggregate through one mechanism of whole-number noise, then run it.

        Args:
            dataset: The table with its public facts.
            name: What the answer is called.
            aggregate: What is computed.
            mechanism: The noise, made for the aggregate's sensitivity on this dataset or for a larger one.
            ledger_name: Whose budget pays.
            request_id: The name of the request; new by default.
            world: "planned" if the parameters were fixed in advance, "adaptive" if they depend on earlier answers.
            delta: The delta at which the charge enters the plain sums.
            timeout: How many seconds the run may take.
            progress: Called with a share between 0 and 1 while the engine runs.

        Returns:
            The noisy numbers and the receipt.

        Raises:
            BudgetExceeded: If the budget does not have what it costs.
            AnswerForfeited: If the run failed after the charge, which stays spent.
            InvalidValue: If the mechanism was made for less than the sensitivity, or an argument is wrong.
        """
        return self.run(
            dataset,
            Single(name, aggregate, mechanism, dataset.probability),
            ledger_name=ledger_name,
            request_id=request_id,
            world=world,
            delta=delta,
            timeout=timeout,
            progress=progress,
        )

    def run(
        self,
        dataset: Dataset,
        question: Question,
        *,
        ledger_name: str,
        request_id: str | None = None,
        world: str = "planned",
        delta: float | None = None,
        timeout: float | None = None,
        progress: Progress | None = None,
        patience: float | None = None,
    ) -> Answered:
        """Charge for any question that states its price, its fingerprint and its check, then run it.

        Args:
            dataset: The table with its public facts.
            question: What is asked. It draws whole numbers by name, and its `finish` may make JSON-ready data of them.
            ledger_name: Whose budget pays.
            request_id: The name of the request; new by default.
            world: "planned" if the parameters were fixed in advance, "adaptive" if they depend on earlier answers.
            delta: The delta at which the charge enters the plain sums.
            timeout: How many seconds the run may take.
            progress: Called with a share between 0 and 1 while the engine runs.
            patience: How many seconds to wait where another process runs the same request; `timeout` by default.

        Returns:
            The noisy numbers and the receipt.

        Raises:
            BudgetExceeded: If the budget does not have what it costs.
            AnswerForfeited: If the run failed after the charge, which stays spent.
            InvalidValue: If an argument is wrong.
        """
        limit = _checked_timeout(timeout)
        waiting = limit if patience is None else _checked_timeout(patience)
        terms = _ChargeTerms(ledger_name, _checked_request(request_id), world, delta, limit, patience=waiting)
        return self._ask(question, dataset, terms, progress)

    def _ask(self, question: Question, dataset: Dataset, terms: _ChargeTerms, progress: Progress | None) -> Answered:
        question.check(dataset)
        self.ledger.budget(terms.name)  # which must be there
        paying = self.accounts(dataset, terms.name, terms.sampling_rate)
        self._refuse_second_sample(terms, None)
        if paying.part is not None:
            self._refuse_other_spender(question, paying.part)
        digest = digest_of(question, dataset)
        with _turn_of(self.ledger, terms.request_id):
            table, marks = "", list[list[str]]()
            if self.ledger.stored(terms.request_id) is None:  # what was answered needs no file any more
                dataset.prepare()
                table, marks = fingerprint_of(dataset) or "", table_marks(self.ledger, dataset)
                if paying.part is not None:  # which reads one table alone
                    self._refuse_changed_part(dataset, paying.part, table)
            if paying.is_news:
                paying = self.attach(dataset, terms.name, terms.sampling_rate)
            charge = self._charge(question, terms, digest, paying, table, versioned_source(dataset, paying))
            if charge.repeated and charge.state == "reserved" and not terms.give_up:
                raise InvalidValue(
                    "request_id",
                    terms.request_id,
                    "was charged before and has no answer yet",
                    "ask again later",
                )
            if charge.repeated:  # by the first to charge, who may have drawn, and may have been seen
                answered = self.recorded(terms.request_id, terms.patience)
                if self.is_of_other_table(dataset, terms.request_id):
                    raise InvalidValue(
                        "request_id",
                        terms.request_id,
                        "was charged before for another table with this name",
                        "use a new request id",
                    )
                return _finished(question, answered)
            self._refuse_second_sample(terms, charge)  # again, because another process may have been quicker
            return _finished(question, self._run(question, dataset, charge, marks, terms.timeout, progress))

    def _refuse_other_spender(self, question: Question, part: Part) -> None:
        """Whether its table has changed depends on private rows, so that only its curator may spend from a part."""
        if self.ledger.role == "analyst" or self.analyst is not None:
            raise InvalidValue("account", part.name, "can be spent by its curator only", "spend from the whole account")
        if not isinstance(question, PlanQuestion | Single):
            raise InvalidValue("account", part.name, "pays for plans only", "pay for sessions from the whole account")

    def _refuse_changed_part(self, dataset: Dataset, part: Part, table: str) -> None:
        """A part is one of the table as it was divided: in another one, somebody may have come into another part."""
        if self.ledger.table_changed(part.request_id, table) is not False:
            raise InvalidValue(
                "dataset",
                dataset.name,
                f"has changed since it was divided by {part.by}, and its parts are those of the table as it was",
                "divide it again with Study.split, which is charged again",
            )

    def accounts(self, dataset: Dataset, ledger_name: str, sampling_rate: float | None = None) -> Accounts:
        """Every account that pays for what is computed from a dataset, each of them for its unit of privacy.

        Args:
            dataset: The table with its public facts.
            ledger_name: The account that pays first.
            sampling_rate: Says that the table is a secret sample of a population.

        Returns:
            The account of the name, and those of other tables that are read.

        Raises:
            InvalidValue: If an account is missing, or protects another unit.
        """
        return accounts_of(self.ledger, dataset, ledger_name, sampling_rate)

    def is_of_other_table(self, dataset: Dataset, request_id: str) -> bool:
        """Whether the ledger has an answer under this request id that is about another file or table.

        Two files of one name share a budget where nobody names them apart; they share no answer. A file whose content
        changed is the same table.

        Args:
            dataset: The table with its public facts.
            request_id: The name of the request.

        Returns:
            True only where the ledger knows of another table.
        """
        try:
            stored = self.ledger.stored(request_id)
        except NotAllowed:  # somebody else's
            return False
        if stored is None or stored.answer is None:
            return False
        try:
            kept = finished_of(stored.answer).get(_TABLES)
        except (ValueError, KeyError, TypeError, AttributeError):  # of somebody who charged by hand
            return False
        return isinstance(kept, list) and are_other_tables(kept, table_marks(self.ledger, dataset))

    def table_changed(self, dataset: Dataset, request_id: str) -> bool | None:
        """Whether a dataset has other rows than when a request was charged; None where nobody can tell, or may know.

        What it says depends on private rows: it is for the steward, and no analyst learns it.

        Args:
            dataset: The table with its public facts.
            request_id: The name of the request.

        Returns:
            True, False or None.
        """
        if self.ledger.role == "analyst":
            return None
        return self.ledger.table_changed(request_id, fingerprint_of(dataset) or "")

    def version(self, dataset: Dataset, ledger_name: str, request_id: str | None = None) -> Version | None:
        """Which version of its table a request was charged for, or the dataset is now; None for analysts.

        Args:
            dataset: The table with its public facts.
            ledger_name: The account that pays.
            request_id: The name of the request; by default the table as it is now.

        Returns:
            The version; None where farthing cannot tell, or no request was charged for it.
        """
        if self.ledger.role == "analyst" or self.analyst is not None:
            return None
        accounts = self.accounts(dataset, ledger_name)
        versions = self.ledger.versions()
        if request_id is not None:
            return versions.by_request.get(request_id)
        table = fingerprint_of(dataset)
        return None if table is None else versions.of(versioned_source(dataset, accounts)[0], table)

    def _charge(
        self,
        question: Question,
        terms: _ChargeTerms,
        digest: str,
        paying: Accounts,
        table: str,
        source: tuple[str, str],
    ) -> Charge:
        try:
            return self.ledger.charge(
                terms.name,
                question.event,
                request_id=terms.request_id,
                world=terms.world,
                delta=terms.delta,
                analyst=self.analyst,
                digest=digest,
                others=paying.others,
                table=table,
                contents=terms.contents,
                source=source,
            )
        except KeyboardInterrupt as problem:  # which may have come when the charge was durable already
            with suppress(Exception):
                stored = self.ledger.stored(terms.request_id)
                if stored is not None and stored.state == "reserved":
                    problem.add_note(_lost(stored.charge))
            raise

    def _run(
        self,
        question: Question,
        dataset: Dataset,
        charge: Charge,
        marks: list[list[str]],
        timeout: float | None,
        progress: Progress | None,
    ) -> Answered:
        try:
            outcome = run_apart(lambda tell: _drawn(question, dataset, marks, tell), timeout, progress)
        except BaseException as problem:
            self._forfeit(charge, f"interrupted by {type(problem).__name__}")
            problem.add_note(_lost(charge))
            raise
        if outcome.text is None:
            self._forfeit(charge, outcome.reason)
            raise AnswerForfeited(charge.request_id, outcome.reason) from outcome.error
        receipt = record(self.ledger, charge, outcome.text)
        return _answered(outcome.text, receipt, charge.request_id, repeated=False)

    def _refuse_second_sample(self, terms: _ChargeTerms, charge: Charge | None) -> None:
        """A secret sample is amplified once, as a whole: of its charges only the first may be run.

        A charge knows how many came before it, so of any two at most one is ever run. One that was forfeited counts:
        what it drew may have been seen.
        """
        if terms.sampling_rate is None:
            return
        stored = self.ledger.stored(terms.request_id)
        if charge is None:  # the same request again is no second one
            first = stored is not None or self.ledger.budget(terms.name).count == 0
        else:
            first = stored is not None and stored.receipt.charges == 1
        if first:
            return
        if charge is not None:
            self._forfeit(charge, "another release of the same secret sample was charged first")
        raise InvalidValue(
            "sampling_rate",
            terms.sampling_rate,
            f"holds for one release of {terms.name!r}, which has been made",
            "put all statistics into one plan; a second one can only be planned for the table by itself",
        )

    def recorded(self, request_id: str, patience: float | None = None) -> Answered:
        """The answer of a request that was charged before; without one it is forfeited, because noise is drawn once.

        Args:
            request_id: The name of the request.
            patience: How many seconds to wait for a process that may be about to record it.

        Returns:
            The noisy numbers and the receipt.

        Raises:
            AnswerForfeited: If there is no answer.
        """
        stored = self.ledger.stored(request_id)
        deadline = time.monotonic() + (patience or 0.0)
        while stored is not None and stored.state == "reserved" and time.monotonic() < deadline:
            time.sleep(_LOOK)  # another process may be running it, with a time limit like ours
            stored = self.ledger.stored(request_id)
        if stored is not None and stored.state == "reserved":
            self._forfeit(stored.charge, "no answer was recorded by the attempt that was charged")
        return stored_answer(self.ledger, request_id)

    def _forfeit(self, charge: Charge, reason: str) -> None:
        """Write down that no answer will come; if that fails, the charge stays as it is, which is spent."""
        with suppress(Exception):  # the failure that led here is the one to report
            self.ledger.forfeit(charge, reason[:_LONGEST_REASON].strip())


def stored_answer(ledger: Ledger, request_id: str) -> Answered:
    """The answer that a ledger holds for a request; no row is read and nothing is drawn.

    Args:
        ledger: The open ledger.
        request_id: The name of the request.

    Returns:
        What was recorded.

    Raises:
        InvalidValue: If there is no such request.
        AnswerForfeited: If it was charged and has no answer.

    >>> import tempfile
    >>> from farthing.ledger import open_ledger
    >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
    ...     stored_answer(ledger, "never asked")
    Traceback (most recent call last):
        ...
    farthing.errors.InvalidValue: request_id='never asked': must be that of a release in the ledger...
    """
    stored = ledger.stored(request_id)
    if stored is None:
        raise InvalidValue("request_id", request_id, "must be that of a release in the ledger")
    if stored.answer is None:
        raise AnswerForfeited(request_id, "the attempt that was charged ended without one")
    try:
        return _answered(stored.answer, stored.receipt, request_id, repeated=True)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InvalidValue(
            "request_id", request_id, "must be that of a curator's release", "Ledger.stored has its text"
        ) from None


def _lost(charge: Charge) -> str:
    """What an interruption after the charge has cost."""
    return (
        f"epsilon {charge.epsilon:.6g} was charged for request {charge.request_id!r} and stays spent: no answer was "
        "recorded, and none will be. Asking again needs a new request id, which is charged separately."
    )


def _drawn(question: Question, dataset: Dataset, marks: list[list[str]], tell: Progress) -> str:
    answers, withholds = question.run(dataset, tell), isinstance(question, PlanQuestion) and question.withholds
    try:
        finished = question.finish(answers)
        kept = {} if withholds else answers
        return text_of(kept, {**(finished or {}), _TABLES: marks} if any(marks) else finished)
    # What was paid for is not lost: the numbers are recorded, and finished when they are delivered.
    except Exception:
        if withholds:  # but not where some of them must not be shown
            raise
        return text_of(answers)


def _finished(question: Question, answered: Answered) -> Answered:
    """With what is made of the numbers, if that was not recorded; they are public now, and so is a failure."""
    return answered if answered.finished else replace(answered, finished=question.finish(answered.answers) or {})


def _answered(text: str, receipt: Receipt, request_id: str, *, repeated: bool) -> Answered:
    return Answered(answers_of(text), receipt, request_id, repeated, finished_of(text))


@dataclass(frozen=True)
class _ChargeTerms:
    name: str
    request_id: str
    world: str
    delta: float | None
    timeout: float | None
    sampling_rate: float | None = None
    patience: float | None = None
    give_up: bool = True
    contents: Contents | None = None


def _plan_question(
    dataset: Dataset,
    measurements: Measurements,
    delta: float | None,
    sampling_rate: float | None,
    post_processing: Finish | None = None,
) -> PlanQuestion:
    rate = drawn_rate(dataset) if sampling_rate is None else sampling_rate
    return PlanQuestion(measurements, None if rate is None else (rate, delta or 0.0), post_processing)


class _Turn:
    """A lock that can be forgotten when nobody holds or awaits it."""

    __slots__ = ("__weakref__", "lock")

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def __enter__(self) -> None:
        self.lock.acquire()

    def __exit__(self, *_: object) -> None:
        self.lock.release()


def _turn_of(ledger: Any, request_id: str) -> _Turn:
    """Calls of this process with one request id wait for each other: the second finds the answer of the first."""
    with _making:
        # Of this process: in a child the turn of a parent's thread would never end.
        return _turns.setdefault((os.getpid(), ledger.id, request_id), _Turn())


def _checked_request(request_id: str | None) -> str:
    return secrets.token_hex(16) if request_id is None else checked_name(request_id, "request_id")


def _checked_timeout(timeout: float | None) -> float | None:
    if timeout is None:
        return None
    seconds = checked_real(timeout, "timeout")
    if not 0 < seconds < math.inf:
        raise InvalidValue("timeout", timeout, "must be a number of seconds > 0", "leave it out for no limit")
    return seconds
