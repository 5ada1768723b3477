"""`Study`: a dataset, a budget, and the ledger that keeps it."""

from __future__ import annotations

import datetime
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Self

from farthing.curator import Curator, unit_of
from farthing.curator.account_words import account_news, is_nameless, nameless_refusal
from farthing.curator.corrections import changes_of
from farthing.curator.division import Division, divide, division_of
from farthing.curator.payers import (
    account_name,
    drawn_rate,
    rate_of,
    refuse_other_unit,
    sampling_rate_of,
)
from farthing.curator.same_people import Overlap, are_known, same_people, warn_of_same_people
from farthing.curator.session_notes import write_notes
from farthing.data import Dataset
from farthing.errors import InvalidValue
from farthing.inference import Answer
from farthing.ledger import Budget, Ledger, open_ledger
from farthing.ledger.budget import as_stored, untouched_budget
from farthing.ledger.table_versions import Version
from farthing.numerics.bounds import number_text
from farthing.numerics.notebook_tables import html_table, share_bar
from farthing.planner import Problem, Requirement
from farthing.privacy import ApproxDP
from farthing.privacy.events import checked_delta, checked_epsilon
from farthing.privacy.units import Unit
from farthing.statistics import Statistic
from farthing.statistics.design import Design, design_of
from farthing.statistics.public_facts import Counted
from farthing.study.discovery_plan import DiscoveryPlan, discovery_plan
from farthing.study.findings import with_findings
from farthing.study.key_count_plan import key_count_plan
from farthing.study.plan import Plan
from farthing.study.release import Release, releases_in, stored_release, warn_if_changed
from farthing.study.release_request import checked_statistics, nothing_to_measure
from farthing.study.renewal import open_account, period_of, studied_period
from farthing.study.sql.sql_plan import SqlPlan, plan_of_sql
from farthing.study.staged_plan import in_use, staged_plan
from farthing.study.study_account import (
    SHARE,
    Allowance,
    allowance_of,
    count_rows,
    counted_rows,
    left_of,
    plan_allowance,
    price_of_counting,
    register_to_spend,
    requested_allowance,
    room_of,
)
from farthing.study.study_sessions import StudySessions


class Study(StudySessions):
    """A dataset with a privacy budget, kept by a ledger.

    The budget is written to the ledger by the first release or session, or by `register`; planning writes no budget.
    From then on the ledger's budget counts. Other tables that the dataset reads, and files that another budget covers,
    are paid for by their own budgets too, all of them or none.

    Args:
        dataset: The table with its public facts.
        epsilon: The epsilon of the whole budget, > 0.
        delta: The delta of the whole budget.
        ledger: A file ("study.db"), a Postgres URL or an open Ledger.
        account: The name of the account that pays: it protects people, and every table that holds them belongs to it.
            By default the account that the table is registered to; else a new one with the table's name. A frame that
            nobody named needs it.
        analyst: Spend from the grant of this name.
        name: The same as `account`; deprecated, there until 1.0.
        renews: "day", "week", "month", "quarter" or "year": the account protects somebody in one such period, and each
            has a budget of (epsilon, delta) of its own. `account_news` says what somebody in all of them is protected
            by.
        date: With `renews`, the column of dates that says in which period a row lies.
        period: With `renews`, the period whose rows are studied, such as "2026-03"; by default the last that is over.
        sampling_rate: States that the table is itself a secret random sample: every unit of a population came into it
            independently with this probability, and nobody knows who did. A release then costs less, and there can be
            one only: what is computed from one sample is amplified as a whole. For many releases study
            `dataset.sample(p)`, which draws a new sample for each.

    Raises:
        InvalidValue: If an argument is wrong, or does not agree with the budget that the ledger has.

    >>> import pyarrow, tempfile, farthing as ft
    >>> people = ft.dataset(
    ...     pyarrow.table({"age": [30, 41, 52], "sex": ["F", "M", "F"]}),
    ...     schema={"age": (0, 110), "sex": ["F", "M"]},
    ... )
    >>> folder = tempfile.TemporaryDirectory()
    >>> study = Study(people, account="survey", epsilon=1.0, ledger=folder.name + "/study.db")
    >>> plan = study.plan(ft.count(by="sex"), ft.mean("age"))
    >>> [statistic.name for statistic in plan.statistics]
    ['count by sex', 'mean of age']
    >>> study.budget.spent.upper  # planning costs nothing
    0.0
    >>> release = plan.release()
    >>> study.budget.remaining.epsilon < 1e-6
    True
    >>> folder.cleanup()
    """

    def __init__(
        self,
        dataset: Dataset,
        epsilon: float,
        delta: float = 0.0,
        *,
        ledger: str | os.PathLike[str] | Ledger | None = None,
        account: str | None = None,
        analyst: str | None = None,
        sampling_rate: float | None = None,
        renews: str | None = None,
        date: str | None = None,
        period: str | datetime.date | None = None,
        name: str | None = None,
    ) -> None:
        if not isinstance(dataset, Dataset):
            raise InvalidValue("dataset", dataset, "must be a dataset", "make one with farthing.dataset(...)")
        self.dataset = dataset
        self.epsilon = checked_epsilon(epsilon)
        self.delta = checked_delta(delta)
        if not self.epsilon > 0:
            raise InvalidValue("epsilon", epsilon, "must be > 0", "with nothing to spend nothing can be released")
        self.sampling_rate = sampling_rate_of(dataset, sampling_rate)
        if ledger is None:
            raise InvalidValue("ledger", None, "must be given: it records what is spent", 'pass ledger="study.db"')
        if account is not None and name not in (None, account):
            raise InvalidValue("name", name, f"must not differ from account={account!r}", "leave name= out")
        given = name if account is None else account
        if given is not None and not (isinstance(given, str) and given.strip()):
            raise InvalidValue("account", given, "must be a text that names an account of the ledger")
        self.ledger = ledger if isinstance(ledger, Ledger) else open_ledger(ledger)
        self.name = account_name(self.ledger, dataset, given)
        self._renewing: str | None = None
        if renews is not None or date is not None or period is not None:
            self._renewing = self.name
            self.dataset, self.name = studied_period(self, renews, date, period)
        self._is_nameless = given is None and is_nameless(dataset)
        # A person who opened the ledger as an analyst spends their own grant, whether they say so or not.
        own = self.ledger.actor if self.ledger.role == "analyst" else None
        self.analyst = analyst or own
        self._on_request = False
        if self.is_registered:
            self._refuse_other_account()
        _ = self.accounts  # everybody whose rows are read must have a budget
        self.declared = self.dataset
        self.learn()

    def plan(
        self,
        *statistics: Statistic,
        epsilon: float | None = None,
        expected: Mapping[str, Any] | None = None,
    ) -> Plan:
        """How accurate each statistic would be; nothing is spent and no row is read.

        Args:
            *statistics: What is asked, such as `ft.count(by="sex")`.
            epsilon: Limits the plan to a part of the budget, by default all that is left.
            expected: What is known: the number of rows ("rows"), the value of a statistic, the mean and standard
                deviation of a column (by name).

        Returns:
            A plan with the predicted error of every statistic; `release()` spends. Where a statistic needs something
            that is declared as unknown, a `StagedPlan`, whose `discover()` finds that first. With one count of people
            by a column of unknown text it is a `KeyCountPlan`, if nothing else is unknown: its release has the values,
            their counts and the other statistics, in one step.

        Raises:
            InvalidValue: If a statistic does not fit the schema.
            BudgetExceeded: If the budget does not have what is asked for.
            Infeasible: If no noise meets what is required.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41]}), schema={"age": (0, 110)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = Study(people, account="people", epsilon=1.0, ledger=folder + "/study.db")
        ...     print(study.plan(ft.count())["count"].sentence)
        ...     study.close()
        95 times in 100 within ±3 of the true value
        """
        asked = checked_statistics(statistics)
        if self.declared.unknown:
            counted = key_count_plan(self, asked, expected, epsilon)
            if counted is not None:
                return counted
        if self.dataset.unknown or self.dataset.is_auto:
            self.learn()  # another process may have found it
            staged = staged_plan(self, asked, expected, epsilon)
            if staged is not None:
                return staged
        return Plan.of(in_use(self, asked, expected), asked, expected, epsilon)

    def sql(
        self,
        text: str,
        *,
        epsilon: float | None = None,
        expected: Mapping[str, Any] | None = None,
        max_cells: int | None = None,
    ) -> SqlPlan:
        """The plan of a statement of SQL: nothing is spent and no row is read.

        It is the plan that `plan` makes of the same statistics, at the same price. Several statements, separated by
        semicolons, are one plan. See docs/sql.md for what can be asked.

        Args:
            text: "SELECT sex, COUNT(*), AVG(income) FROM people WHERE age >= 18 GROUP BY sex"; with EXPLAIN before it,
                a plan that says everything about itself and cannot be released.
            epsilon: Limits the plan to a part of the budget, by default all that is left.
            expected: What is known, as for `plan`.
            max_cells: In how many groups COUNT(DISTINCT person) counts one person; by default in all.

        Returns:
            A plan whose `release()` has the rows of the statement in `table`, beside its answers by name.

        Raises:
            InvalidSQL: If it is not one of the statements that can be answered; the message shows where, and what is
                nearest to it. That depends on the text and on public facts, never on a row.
            BudgetExceeded: If the budget does not have what is asked for.
            Infeasible: If no noise meets what is required.

        >>> import pyarrow, tempfile, farthing as ft
        >>> table = pyarrow.table({"age": [30, 41, 52] * 1_000, "sex": ["F", "M", "F"] * 1_000})
        >>> people = ft.dataset(table, schema={"age": (0, 110), "sex": ["F", "M"]}, name="people")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people, epsilon=20.0, ledger=folder + "/study.db")
        ...     plan = study.sql("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY n DESC")
        ...     print(plan.asked, [sex for sex, n in plan.release().table])
        ...     study.close()
        (count(by='sex'),) ['F', 'M']
        """
        return plan_of_sql(self, text, epsilon=epsilon, expected=expected, max_cells=max_cells)

    def over(self, dataset: Dataset) -> Self:
        """The same study, of the same table after further steps, or of a table that keys link to it.

        Args:
            dataset: Made from the study's dataset.

        Returns:
            A study that spends from the same account.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)}, name="people")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db")
        ...     decades = study.over(study.dataset.derive(decade="age // 10"))
        ...     print(decades.account, decades.plan(ft.count(by="decade")).asked)
        ...     study.close()
        people (count(by='decade'),)
        """
        study = copy(self)
        study.dataset = study.declared = dataset
        return study

    def discover(
        self,
        *columns: str,
        epsilon: float | None = None,
        delta: float | None = None,
        share: float | None = None,
        rows_per_unit: bool = False,
        max_keys: int | None = None,
        confidence: float = 0.95,
        fresh: bool = False,
    ) -> DiscoveryPlan:
        """What would be found about columns that are declared as unknown, and at which price; nothing is spent.

        `release()` of it charges. From then on plans, sessions and synthetic tables of this study, and of whoever opens
        it again, use what was found. Each thing is found once: asking again returns it free of charge.

        Args:
            *columns: Columns that are declared with `farthing.unknown`; all of them by default.
            epsilon: What all of it may cost together; by default 5% of the whole budget for each range,
                and 10% for values of text.
            delta: The delta of each search that needs one; by default a sixty-fourth of the budget's.
            share: The share of the whole budget for all of it together, in place of `epsilon`.
            rows_per_unit: Find how many rows units have, and with it which share of the rows `max_rows` leaves out: by
                itself, or beside the columns that are named. With max_rows="auto" a bound is chosen, too, and that is
                found by default.
            max_keys: How many values of text one unit counts for, chosen at random; by default 4, or its rows where
                these are fewer.
            confidence: How often what is found keeps its word.
            fresh: Search again, and be charged again.

        Returns:
            A plan that says what will be known.

        Raises:
            InvalidValue: If a column is not declared as unknown, or an argument is wrong.

        >>> import pyarrow, tempfile, farthing as ft
        >>> ages = pyarrow.table({"age": list(range(18, 80)) * 100})
        >>> people = ft.dataset(ages, schema={"age": ft.unknown("whole number")})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people, epsilon=100.0, ledger=folder + "/study.db", account="people")
        ...     _ = study.discover("age", epsilon=50.0).release()  # far too much, so that no noise moves the answer
        ...     print(study.dataset.schema["age"], study.discover("age").cost)
        ...     study.close()
        Integers(lower=10, upper=100) 0
        """
        return discovery_plan(
            self,
            columns,
            epsilon=epsilon,
            delta=delta,
            share=share,
            rows_per_unit=rows_per_unit,
            max_keys=max_keys,
            confidence=confidence,
            fresh=fresh,
        )

    def learn(self) -> None:
        """Use what was found about the table, by this study or by another process; `discover` does it by itself."""
        self.dataset = with_findings(self, self.declared)

    def problem(
        self,
        asked: Sequence[Statistic],
        epsilon: float | None = None,
        expected: Mapping[str, Any] | None = None,
        design: Design | None = None,
        allowance: Allowance | None = None,
        counted: Counted | None = None,
    ) -> Problem:
        """What `plan` divides: the design of the statistics and what they may cost.

        Args:
            asked: The statistics.
            epsilon: Limits the plan to a part of the budget, by default all that is left.
            expected: What is known, as for `plan`.
            design: The design of the statistics, where it is at hand.
            allowance: What an earlier plan of the same request was allowed; by default what the budget has now.
            counted: The count of rows that the earlier plan knew; by default the one that the ledger has.

        Returns:
            The problem that `farthing.planner` solves.

        Raises:
            InvalidValue: If a statistic does not fit the schema, or nothing has to be measured.
            BudgetExceeded: If the budget does not have what is asked for.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db", account="people")
        ...     print(study.problem([ft.count()], epsilon=0.5).epsilon)
        ...     study.close()
        0.5
        """
        if self.dataset.is_auto:
            way_out = "find it first: study.discover().release(), or farthing discover; or declare a number"
            raise InvalidValue("max_rows", "auto", "was not found yet", way_out)
        if allowance is None:
            self._refuse_second_plan()
            allowance = self.allowance(epsilon, plan=True)
            counted = counted_rows(self, expected)
        if design is None:
            design = design_of(asked, self.dataset, expected, pure=not allowance.delta > 0, counted=counted)
        if not design.slots:
            raise nothing_to_measure(asked)
        rate = drawn_rate(self.dataset) if self.sampling_rate is None else self.sampling_rate
        clock = allowance.clock if rate is None else None
        return Problem(design, allowance.epsilon, allowance.delta, sampling_rate=rate, clock=clock)

    def count_rows(
        self,
        share: float = SHARE,
        *,
        fresh: bool = False,
        progress: Callable[[float], None] | None = None,
    ) -> Answer:
        """How many rows there are, with noise: charged now, for a share of the whole budget, or of the analyst's grant.

        Useful where their number is neither public nor expected: errors of means, quantiles and the like depend on it.
        Plans made afterwards use the low end of its interval and what is left. The rows are counted once: asking again,
        with any share, returns the same answer free of charge.

        Args:
            share: The share of the whole budget, or grant, that is spent.
            fresh: Count again, and be charged again.
            progress: Called with a share between 0 and 1 while the engine runs.

        Returns:
            The number of rows with its interval.

        Raises:
            InvalidValue: If the number is public, or the table is a secret sample.
            BudgetExceeded: If too little is left.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41] * 5_000}), schema={"age": (0, 110)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = Study(people, epsilon=1.0, ledger=folder + "/study.db", account="people")
        ...     rows, plan = study.count_rows(share=0.02), study.plan(ft.mean("age"))
        ...     8_000 < rows.lower < rows.upper < 12_000, study.left < 0.981, plan.rows == rows.lower
        (True, True, True)
        """
        price = price_of_counting(self, share)
        row_count = count_rows(self, price, fresh=fresh, progress=progress)
        if row_count.repeated and row_count.receipt is not None:
            warn_if_changed(self, row_count.receipt, "count_rows(fresh=True)")
        return row_count.answered

    def fit(
        self,
        *statistics: Statistic,
        require: Mapping[str, float],
        confidence: float = 0.95,
        expected: Mapping[str, Any] | None = None,
    ) -> Plan:
        """The plan of the least total epsilon whose errors are all within what `require` says, by name.

        `study.fit(ft.mean("income"), require={"mean of income": 500})`: in 95 cases out of 100 within 500. What is left
        of epsilon stays with the study, and so does the same share of delta.

        Args:
            *statistics: What is asked.
            require: The largest error of each statistic, by its name.
            confidence: How often each error is kept.
            expected: What is known, as for `plan`.

        Returns:
            The cheapest plan that meets the requirements.

        Raises:
            InvalidValue: If `require` names something that is not asked for.
            Infeasible: If the budget, or any noise at all, cannot meet them.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db", account="people")
        ...     plan = study.fit(ft.count(), require={"count": 12})
        ...     print(plan["count"].error() <= 12, plan.cost.upper < 0.3)
        ...     study.close()
        True True
        """
        plan = self.plan(*statistics, expected=expected)
        if not isinstance(require, Mapping) or not require:
            raise InvalidValue(
                "require", require, "must map statistics to their errors", 'such as {"mean of income": 500}'
            )
        requirements = {name: Requirement(within, confidence) for name, within in require.items()}
        for name in requirements:
            plan.refuse_unknown(name)
        return plan.fitted(requirements)

    def correct(self, before: Dataset, reason: str) -> Mapping[str, tuple[str, str]]:
        """Write down that the declaration of the table was wrong, and is now that of this study.

        The account stays the same and nothing is charged. Later plans read the table as it is declared now; releases
        that were made keep their answers, and are not free under the new declaration.

        Args:
            before: The dataset as it was declared.
            reason: Why, in a few words that are not computed from rows.

        Returns:
            What changed: by column, how it stood and how it stands now.

        Raises:
            InvalidValue: If nothing changes, or the unit or the neighbours would.
            NotAllowed: If the ledger was not opened by a curator.

        >>> import pyarrow, tempfile, farthing as ft
        >>> table = pyarrow.table({"age": [30, 41, 52]})
        >>> old, new = (ft.dataset(table, schema={"age": (0, top)}, name="people") for top in (110, 120))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ft.Study(old, epsilon=1.0, ledger=folder + "/study.db").register()
        ...     study = ft.Study(new, epsilon=1.0, ledger=folder + "/study.db")
        ...     print(study.correct(old, "some are older"))
        ...     study.close()
        {'age': ('0 to 110', '0 to 120')}
        """
        changes = changes_of(before, self.dataset)
        self.ledger.correct(self.name, changes, reason, self.dataset.name)
        return changes

    def split_plan(self, by: str, epsilon: float, delta: float = 0.0) -> Division:
        """What `split` with the same arguments would cost; nothing is charged.

        Args:
            by: A column of categories or flags.
            epsilon: The epsilon of each part.
            delta: The delta of each part.

        Returns:
            The parts, their price, and whether it was paid before.

        Raises:
            InvalidValue: If the rows of one unit may be in several parts, or the table is not a file or a frame.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"sex": ["F", "M"] * 50}), schema={"sex": ["F", "M"]}, name="people")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db")
        ...     print(study.split_plan("sex", epsilon=0.5))
        ...     study.close()
        divides 'people' by sex into 2 disjoint parts, each with epsilon 0.5: all of them together cost epsilon 0.5
        """
        return division_of(self.curator, self.dataset, by, self.name, epsilon, delta)

    def split(self, by: str, epsilon: float, delta: float = 0.0) -> dict[Any, Study]:
        """Divide the table into disjoint parts, once and for all, each with a budget of its own.

        A row is in one part, so that all parts together cost what one of them may: that is charged now, and plans of
        the parts, in any number and of any statistics, cost this account nothing more. The same call returns the same
        parts. A table that has changed must be divided again, and that is charged again.

        Args:
            by: A column of categories or flags; cut one of numbers first: `Study(people.bin(age=[18, 65]), ...)`.
            epsilon: The epsilon of each part.
            delta: The delta of each part.

        Returns:
            A study of each part, by its value.

        Raises:
            InvalidValue: If the rows of one unit may be in several parts, or the table is not a file or a frame.
            BudgetExceeded: If the account does not have what one part may cost.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"sex": ["F", "M"] * 50}), schema={"sex": ["F", "M"]}, name="people")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db")
        ...     parts = study.split("sex", epsilon=0.5)
        ...     releases = [part.plan(ft.count()).release() for part in parts.values()]
        ...     print(study.left, [part.account for part in parts.values()])
        ...     study.close()
        0.5 ['people / sex = F', 'people / sex = M']
        """
        division = self.split_plan(by, epsilon, delta)  # refused before an account is opened
        register_to_spend(self)
        names = divide(self.curator, self.dataset, division)
        part, pair = self.dataset.split(by), (epsilon, delta)
        return {value: Study(part[value], *pair, ledger=self.ledger, account=name) for value, name in names.items()}

    def allowance(self, epsilon: float | None = None, *, plan: bool = False) -> Allowance:
        """The epsilon and delta that one charge, or a plan, may use now.

        A plan of Gaussian noise may cost more than any single charge, because the clock pays for it at its exact price.

        Args:
            epsilon: Limits it to a part of the budget, by default all that is left.
            plan: Whether it is for a plan.

        Returns:
            The least allowance of all budgets that pay.

        Raises:
            BudgetExceeded: If the budget does not have so much.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db", account="people")
        ...     print(study.allowance(0.25).epsilon)
        ...     study.close()
        0.25
        """
        budgets = self._budgets()
        if self.by_request:
            if epsilon is None:
                raise InvalidValue(
                    "epsilon", None, "must be given: it is what a curator is asked for", "plan with epsilon=0.1, say"
                )
            budgets = [(budget if whole is None else whole, None) for budget, whole in budgets]
            if not plan:
                return requested_allowance(budgets, epsilon)
        can_use_clock = plan and self.sampling_rate is None and self.dataset.probability == 1
        return (plan_allowance if can_use_clock else allowance_of)(budgets, epsilon)

    def on_request(self) -> Self:
        """The same study for plans that a curator is to approve: they may cost more than the analyst's grant has.

        Returns:
            A study whose plans share the dataset's own budget; to release one needs an approval, or a policy. A study
            of an analyst whose grant is 0 is one already.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)}, name="people")
        >>> folder = tempfile.TemporaryDirectory()
        >>> ada = ft.Study(people, epsilon=1.0, ledger=folder.name + "/study.db", name="people")
        >>> ada.register()
        >>> _ = ada.ledger.grant("people", "bob", 0.1)
        >>> bob = ft.Study(people, epsilon=1.0, ledger=ada.ledger, name="people", analyst="bob")
        >>> round(bob.on_request().plan(ft.count(), epsilon=0.5).cost.upper, 6)
        0.5
        >>> ada.close(); folder.cleanup()
        """
        study = copy(self)
        study._on_request = True
        return study

    @property
    def by_request(self) -> bool:
        """Whether plans are made to be approved: by `on_request`, or because the analyst's grant is 0."""
        return self.analyst is not None and (self._on_request or not self.budget.total.epsilon > 0)

    @property
    def account(self) -> str:
        """The name of the account that pays."""
        return self.name

    @property
    def accounts(self) -> tuple[str, ...]:
        """The names of all accounts that pay for what is computed: this study's, and those of other tables it reads."""
        return self.curator.accounts(self.dataset, self.name, self.sampling_rate).all

    @property
    def account_news(self) -> str | None:
        """What the first release would do besides spending: open an account, or register the table to one.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people, account="people", epsilon=1.0, ledger=folder + "/study.db")
        ...     print(study.account_news)
        ...     study.close()
        opens the account 'people' (protects row, add-remove; epsilon 1, delta 0) for a frame (pyarrow.Table)
        """
        accounts = self.curator.accounts(self.dataset, self.name, self.sampling_rate)
        whole = self.budget if self.analyst is None else self.ledger.budget(self.name)
        return account_news(accounts, whole)

    @property
    def payer(self) -> str:
        """Whose grant pays; empty where it is the budget itself."""
        return self.analyst or ""

    @property
    def left(self) -> float:
        """The epsilon that is left for one more charge: the least of all budgets that pay."""
        return min(left_of(budget, whole)[0].epsilon for budget, whole in self._budgets())

    @property
    def room(self) -> float:
        """The epsilon that one more plan may cost: `left`, or more where the clock pays for more Gaussian noise."""
        return room_of(self._budgets()).epsilon

    def _budgets(self) -> list[tuple[Budget, Budget | None]]:
        return [self.budgets_of(name) for name in self.accounts]  # of every account that pays

    def budgets_of(self, name: str) -> tuple[Budget, Budget | None]:
        """The budget of an account that is spent, and the one above it where that is a grant.

        Args:
            name: The account.

        Returns:
            The budget, and the dataset's own where the first is a grant.

        Raises:
            InvalidValue: If the ledger has no such account.
        """
        budget = self.budget if name == self.name else self.ledger.budget(name, self.analyst)
        return budget, None if self.analyst is None else self.ledger.budget(name)

    @property
    def budget(self) -> Budget:
        """Total, spent, reserved and remaining, as the ledger has them now; all of it where it has none yet."""
        if self.analyst is None and not self.is_registered:
            return untouched_budget(self.name, self.epsilon, self.delta, self._unit)
        return self.ledger.budget(self.name, self.analyst)

    @property
    def is_registered(self) -> bool:
        """Whether the ledger has a budget under this name; what spends writes it there first, a plan does not."""
        return self.name in self.ledger.datasets()

    def register(self) -> None:
        """Open the account in the ledger, and register the table to it, unless that is done.

        A release or a session does it before it spends.

        Raises:
            InvalidValue: If the account is another than the table's, or nothing says which table a frame is.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)})
        >>> folder = tempfile.TemporaryDirectory()
        >>> study = Study(people, epsilon=1.0, ledger=folder.name + "/study.db", account="people")
        >>> study.is_registered
        False
        >>> study.register()
        >>> study.ledger.datasets()
        ['people']
        >>> study.close(); folder.cleanup()
        """
        if self._is_nameless:
            raise nameless_refusal(self.dataset, self.name if self.is_registered else None)
        is_news = self.account_news is not None
        if self._renewing is not None:
            is_news = self._renewing not in self.ledger.datasets()  # periods share their tables
            open_account(self, self._renewing, replace(period_of(self.dataset), period=None))
        open_account(self, self.name)
        self._refuse_other_account()
        self.curator.attach(self.dataset, self.name, self.sampling_rate)
        if self.analyst is None and not are_known(self.ledger, self.dataset, self.name):
            warn_of_same_people(self._same_people(is_news), is_news)

    def same_people(self) -> list[Overlap]:
        """The accounts that protect many of this table's people already, besides its own. NOT PRIVATE.

        For the steward: it is estimated from the rows, without noise, in one pass. Nothing of it enters a plan or a
        release. A release that registers a file of ordinary size does it by itself, and warns; for larger files, frames
        and tables of a server call it once they are registered, so that later tables can be compared with them.

        Returns:
            The overlaps that can be told, the largest first, of those that are about as large the oldest account.

        Raises:
            NotAllowed: If the ledger was not opened by a curator.

        >>> import pyarrow, tempfile, farthing as ft
        >>> table = pyarrow.table({"who": list(range(500)), "age": [40] * 500})
        >>> people = ft.dataset(table, unit="who", max_rows=1, schema={"age": (0, 110)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     patients, copies = (
        ...         ft.Study(people, epsilon=1.0, ledger=folder + "/study.db", account=account)
        ...         for account in ("patients", "copies")
        ...     )
        ...     patients.register()
        ...     print(patients.same_people(), copies.same_people()[0])
        ...     patients.close(), copies.close()
        [] 100.0% (99.2% to 100.0%) of the units of pyarrow.Table are in the account 'patients'
        (None, None)
        """
        return self._same_people()

    def _same_people(self, is_news: bool = False) -> list[Overlap]:
        if self.name in self.ledger.parts():  # whose people are those of the whole
            return []
        account = self._renewing or self.name
        is_new = self.curator.accounts(self.dataset, self.name, self.sampling_rate).is_new
        is_registered = account in self.ledger.datasets() and not is_new
        return same_people(self.ledger, self.dataset, account, is_registered=is_registered, is_news=is_news)

    @property
    def curator(self) -> Curator:
        """The one door to the rows."""
        return Curator(self.ledger, analyst=self.analyst)

    def released(self, request_id: str) -> Release:
        """An earlier release, from the ledger; no row is read and nothing is spent.

        Args:
            request_id: The name of its request.

        Returns:
            The release as it was answered.

        Raises:
            InvalidValue: If the ledger has no release of that name.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db", account="people")
        ...     release = study.plan(ft.count()).release()
        ...     print(study.released(release.request_id)["count"].values == release["count"].values)
        ...     study.close()
        True
        """
        return stored_release(self.ledger, request_id)

    def table_changed(self, request_id: str) -> bool | None:
        """Whether the rows have changed since a request was charged; None if that cannot be detected.

        For the steward: it depends on private rows, so an analyst always gets None. Files and frames are compared by
        their content; tables in a database or in Spark are not compared.

        Args:
            request_id: The name of the request.

        Returns:
            True, False or None.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db", account="people")
        ...     release = study.plan(ft.count()).release()
        ...     print(study.table_changed(release.request_id))
        ...     study.close()
        False
        """
        return self.curator.table_changed(self.dataset, request_id)

    def version(self, request_id: str | None = None) -> Version | None:
        """Which version of the table a request was charged for, or the table is now: 1 is the first that was read.

        For the steward: that a table has changed depends on private rows, so an analyst always gets None, and nothing
        that is released says it.

        Args:
            request_id: The name of the request; by default the table as it is now.

        Returns:
            The version; None where it cannot be told, or nothing was charged for the table as it is now.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)}, name="people")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db")
        ...     release = study.plan(ft.count()).release()
        ...     print(study.version(release.request_id))
        ...     study.close()
        version 1 of people (frame)
        """
        return self.curator.version(self.dataset, self.name, request_id)

    def releases(self) -> list[str]:
        """The request ids of all releases of statistics that the ledger holds under this name, oldest first.

        Returns:
            The request ids, for `released`.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db", account="people")
        ...     release = study.plan(ft.count()).release()
        ...     print(study.releases() == [release.request_id])
        ...     study.close()
        True
        """
        return releases_in(self.ledger, self.name)

    def close(self) -> None:
        """Close the ledger; what was charged stays charged."""
        write_notes(self.ledger)
        self.ledger.close()

    def _repr_html_(self) -> str:
        budget = self.budget
        total, reads = budget.total.epsilon, budget.spent_upper
        withheld = sum(each.epsilon for each in budget.withheld.values())
        bar = share_bar([reads / total, withheld / total]) if total > 0 else ""
        row = [number_text(total), number_text(reads), number_text(withheld), number_text(self.left), bar]
        heads = ["epsilon", "spent", "set aside", "left", ""]
        title = f"Study of {self.dataset.name}, paid by {self.name!r}" + (
            f" for {self.analyst}" if self.analyst else ""
        )
        return html_table(heads, [row], title=title, numbers=[0, 1, 2, 3]) + self.dataset._repr_html_()

    def __repr__(self) -> str:
        return f"Study({self.name!r}, epsilon={self.epsilon:g}, delta={self.delta:g})"

    @property
    def _unit(self) -> Unit:
        unit = unit_of(self.dataset, self.sampling_rate)
        return unit if self._renewing is None else replace(unit, renewal=period_of(self.dataset))

    def _refuse_other_account(self) -> None:
        """What the curator would refuse to spend from is refused before anybody plans with it."""
        registered = self.ledger.budget(self.name)
        self._refuse_other_rate(rate_of(registered))
        refuse_other_unit(self.dataset, registered, self.sampling_rate)
        total, place = registered.total, self.ledger.place or "LEDGER"
        if total != as_stored(self.epsilon, self.delta):
            raise InvalidValue(
                "budget",
                f"epsilon={self.epsilon:.12g}, delta={self.delta:.12g}",
                f"must be that of the ledger, epsilon={total.epsilon:.12g} and delta={total.delta:.12g}",
                f"use these (in a study.toml write {_toml_of(total, self.delta)} under [study]), or change the "
                f"ledger's: farthing ledger budget set {shlex.join([place, self.name])} "
                f"--epsilon {self.epsilon:.12g} --delta {self.delta:.12g}",
            )

    def _refuse_other_rate(self, registered: float | None) -> None:
        """A budget of a population is not one of the table that was sampled from it."""
        if registered == self.sampling_rate:
            return
        rule, way_out = "must be left out: the budget of {!r} is that of the table itself", "leave it out"
        if registered is not None:
            rule = f"must be {registered!r}: the budget of {{!r}} is that of the population it is a sample of"
            way_out = f"pass sampling_rate={registered!r}"
        raise InvalidValue(
            "sampling_rate",
            self.sampling_rate,
            rule.format(self.name),
            way_out,
        )

    def _refuse_second_plan(self) -> None:
        """At once, rather than when everything is planned and agreed: the curator would refuse to run it."""
        if self.sampling_rate is not None and self.is_registered and self.ledger.budget(self.name).count > 0:
            raise InvalidValue(
                "sampling_rate",
                self.sampling_rate,
                f"holds for one release of {self.name!r}, which has been made",
                "study.released(study.releases()[0]) has its answers",
            )


def _toml_of(total: ApproxDP, delta: float) -> str:
    """What a study.toml says of a budget; its delta only where it is another one."""
    differs = total.delta != as_stored(total.epsilon, delta).delta
    return f"epsilon = {total.epsilon!r}" + (f" and delta = {total.delta!r}" if differs else "")
