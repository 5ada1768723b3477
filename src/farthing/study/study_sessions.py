"""What a study opens besides plans: query sessions, monitors, series, holdouts and synthetic tables."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from farthing.adaptive.holdout import Holdout
from farthing.adaptive.monitor import Monitor, MonitorPlan
from farthing.adaptive.query_session import QuerySession, QuerySessionPlan
from farthing.adaptive.running_series import RunningSeries, RunningSeriesPlan
from farthing.data import Dataset
from farthing.ledger import PlanRequest
from farthing.statistics import Statistic
from farthing.study.release import Release, warn_if_changed
from farthing.study.sessions import monitor_sessions, query_sessions, series_sessions
from farthing.study.study_account import StudyAccount
from farthing.study.synthesis.synthetic_table import (
    SynthesisOffer,
    SynthesisOptions,
    Synthetic,
    earlier_synthesis,
    stored_synthetic,
    synthesis_name,
    synthesis_offer,
)


class StudySessions(StudyAccount, Protocol):
    """The part of `Study` that opens sessions and makes synthetic tables."""

    def query_session_plan(
        self,
        alpha: query_sessions.Alpha,
        queries: int,
        *,
        columns: Sequence[str] | str | None = None,
        bins: Mapping[str, int | Sequence[Any]] | None = None,
        updates: int | None = None,
        rows: int | None = None,
        epsilon: float | None = None,
        start: str = "auto",
        known: query_sessions.Known = (),
        confidence: float = 0.95,
        request_id: str | None = None,
    ) -> QuerySessionPlan:
        """What `query_session` with the same arguments would cost and promise; nothing is spent.

        Of a session that exists, it is what was paid for: `query_session` resumes it, and has `updates_left`.

        Args:
            alpha: The error as a fraction of the rows, promised for all questions together. "guaranteed" is the
                smallest at which no questions can use up the updates early.
            queries: How many questions the promise covers.
            columns: What questions are about, by default all of the schema.
            bins: Cuts columns of numbers or dates into cells.
            updates: How many answers to pay for, by default as many as fit.
            rows: About how many rows there are.
            epsilon: What the session may cost, by default all that is left.
            start: How the first guess is made.
            known: Earlier releases of this study, or their request ids.
            confidence: How often the promise is kept.
            request_id: Names the session.

        Returns:
            The plan; print it.

        Raises:
            InvalidValue: If the columns have too many cells, or the session was opened with other arguments.
            Infeasible: If the budget cannot keep `alpha`; the error names the closest that it can.
            BudgetExceeded: If too little is left.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db", account="people")
        ...     plan = study.query_session_plan(0.1, 20, columns="age", rows=10_000)
        ...     print(plan.queries, plan.epsilon <= 1.0)
        ...     study.close()
        20 True
        """
        earlier = query_sessions.request_ids(known)
        asked = query_sessions.QuerySessionOptions(
            alpha, queries, columns, bins, updates, rows, epsilon, start, earlier, confidence
        )
        return query_sessions.plan_session(self, asked, request_id)

    def query_session(
        self,
        alpha: query_sessions.Alpha,
        queries: int,
        *,
        columns: Sequence[str] | str | None = None,
        bins: Mapping[str, int | Sequence[Any]] | None = None,
        updates: int | None = None,
        rows: int | None = None,
        epsilon: float | None = None,
        start: str = "auto",
        known: query_sessions.Known = (),
        confidence: float = 0.95,
        request_id: str | None = None,
        timeout: float | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> QuerySession:
        """Charge once, then ask: `session.ask("sex = 'M' and age < 30")` is answered at once, within `alpha` of rows.

        Answers close to the prediction are free; each other one uses up one of a fixed number of updates. The same
        arguments, or the same `request_id`, resume the session, and the same questions get the same answers: a script
        that is run again uses up nothing.

        Args:
            alpha: The error as a fraction of the rows, promised for all questions together. "guaranteed" is the
                smallest at which no questions can use up the updates early.
            queries: How many questions the promise covers; they may depend on earlier answers.
            columns: What questions are about, by default all of the schema.
            bins: Cuts columns of numbers or dates into cells.
            updates: How many answers to pay for, by default as many as fit.
            rows: About how many rows there are; where that is neither public nor given, they are counted first, for a
                hundredth of epsilon.
            epsilon: What the session may cost, by default all that is left.
            start: How the first guess is made.
            known: Earlier releases of this study, or their request ids: they improve the first guess, free of charge.
            confidence: How often the promise is kept.
            request_id: Names the session.
            timeout: Seconds that a reading of the table may take.
            progress: Called with a share between 0 and 1 while the engine runs.

        Returns:
            An open session; `ask` answers, `estimate` estimates free of charge.

        Raises:
            InvalidValue: If the columns have too many cells, or the session was opened with other arguments.
            Infeasible: If the budget cannot keep `alpha`; the error names the closest that it can.
            BudgetExceeded: If too little is left.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db", account="people")
        ...     session = study.query_session(0.1, 20, columns="age", rows=10_000)
        ...     print(session.ask("age < 40").error, session.plan.queries)
        ...     study.close()
        1000 20
        """
        earlier = query_sessions.request_ids(known)
        asked = query_sessions.QuerySessionOptions(
            alpha, queries, columns, bins, updates, rows, epsilon, start, earlier, confidence
        )
        again = "query_session(request_id=...) with a new id"
        return query_sessions.open_session(
            self, asked, request_id, timeout, progress, resumed=lambda receipt: warn_if_changed(self, receipt, again)
        )

    def submit_query_session(
        self,
        purpose: str,
        alpha: query_sessions.Alpha,
        queries: int,
        *,
        epsilon: float,
        columns: Sequence[str] | str | None = None,
        bins: Mapping[str, int | Sequence[Any]] | None = None,
        updates: int | None = None,
        rows: int | None = None,
        confidence: float = 0.95,
        title: str = "",
    ) -> PlanRequest:
        """Ask a curator to allow a session; once approved, `query_session` with the same arguments opens it.

        Args:
            purpose: What the answers are for; the curator reads it.
            alpha: The error as a fraction of the rows, promised for all questions together. "guaranteed" is the
                smallest at which no questions can use up the updates early.
            queries: How many questions the promise covers.
            epsilon: What the session may cost.
            columns: What questions are about, by default all of the schema.
            bins: Cuts columns of numbers or dates into cells.
            updates: How many answers to pay for, by default as many as fit.
            rows: About how many rows there are, where that is not public.
            confidence: How often the promise is kept.
            title: A few words to call it by.

        Returns:
            The request; nothing is spent.

        Raises:
            InvalidValue: If nobody asks, the number of rows is not known, or the session was opened before.
            Infeasible: If so much cannot keep `alpha`.
            BudgetExceeded: If the account does not have so much.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)}, name="people")
        >>> folder = tempfile.TemporaryDirectory()
        >>> ada = ft.Study(people, epsilon=1.0, ledger=folder.name + "/study.db")
        >>> ada.register()
        >>> _ = ada.ledger.grant("people", "bob", 0.0)
        >>> bob = ft.Study(people, epsilon=1.0, ledger=ada.ledger.acting("bob", "analyst"))
        >>> words = dict(alpha=0.1, queries=20, columns="age", rows=10_000, epsilon=0.5)
        >>> asked = bob.submit_query_session("who is how old", **words)
        >>> _ = ada.ledger.requests.approve(asked.id)
        >>> bob.query_session(**words).ask("age < 40").error
        1000
        >>> ada.close(); folder.cleanup()
        """
        asked = query_sessions.QuerySessionOptions(
            alpha, queries, columns, bins, updates, rows, epsilon, confidence=confidence
        )
        return query_sessions.submit_session(self, asked, purpose, title)

    # Their old names; deprecated, they go with 1.0.
    answerer_plan, answerer = query_session_plan, query_session

    def monitor_plan(
        self,
        *series: Statistic | str,
        threshold: Any,
        alerts: int,
        steps: int = 100,
        by: str | Sequence[str] | None = None,
        epsilon: float | None = None,
        mute: bool = True,
        confidence: float = 0.95,
    ) -> MonitorPlan:
        """What `monitor` with the same arguments would cost and how far off it may be; nothing is spent.

        Args:
            *series: Counts, or conditions as text.
            threshold: One for all, or a mapping from series to theirs.
            alerts: How many alerts are given in all.
            steps: How many looks the error is promised for.
            by: A column, or columns: one series for each public value.
            epsilon: What the monitor may cost, by default all that is left.
            mute: Whether a series that was reported is not asked about again.
            confidence: How often the error is kept.

        Returns:
            The plan; print it.

        Raises:
            InvalidValue: If a series or its threshold is not one.
            BudgetExceeded: If too little is left.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db", account="people")
        ...     plan = study.monitor_plan("age >= 65", threshold=100, alerts=2)
        ...     print(plan.epsilon <= 1.0, plan.alerts)
        ...     study.close()
        True 2
        """
        asked = monitor_sessions.MonitorOptions(series, threshold, alerts, steps, by, epsilon, mute, confidence)
        return monitor_sessions.monitor_plan(self, asked)

    def monitor(
        self,
        *series: Statistic | str,
        threshold: Any,
        alerts: int,
        steps: int = 100,
        by: str | Sequence[str] | None = None,
        epsilon: float | None = None,
        mute: bool = True,
        confidence: float = 0.95,
        request_id: str | None = None,
        timeout: float | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Monitor:
        """Charge once, then look as often as you like: `monitor.look()` says which counts have reached `threshold`.

        Looks without an alert are free. The same arguments, or the same `request_id`, resume the monitor, which first
        repeats the looks that were made: a script that is run again uses up nothing. A program that watches a table
        asks for `look(fresh=True)`, which looks at the table as it is now; after a restart it begins another round.

        Args:
            *series: Counts, or conditions as text.
            threshold: One for all, or a mapping from series to theirs.
            alerts: How many alerts are given in all.
            steps: How many looks the error is promised for.
            by: A column, or columns: one series for each public value.
            epsilon: What the monitor may cost, by default all that is left.
            mute: Whether a series that was reported is not asked about again.
            confidence: How often the error is kept.
            request_id: Names the monitor.
            timeout: Seconds that a reading of the table may take.
            progress: Called with a share between 0 and 1 while the engine runs.

        Returns:
            An open monitor.

        Raises:
            InvalidValue: If a series or its threshold is not one, or the monitor was opened with other arguments.
            BudgetExceeded: If too little is left.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db", account="people")
        ...     monitor = study.monitor("age >= 65", threshold=1_000, alerts=1)
        ...     print(monitor.look().alerts, study.left < 1e-6)
        ...     study.close()
        () True
        """
        asked = monitor_sessions.MonitorOptions(series, threshold, alerts, steps, by, epsilon, mute, confidence)
        return monitor_sessions.open_monitor(self, asked, request_id, timeout, progress)

    def series_plan(
        self,
        count: Statistic | str | None = None,
        *,
        date: str,
        steps: int,
        every: str = "month",
        first: str | datetime.date | None = None,
        by: str | Sequence[str] | None = None,
        epsilon: float | None = None,
        append_only: bool = False,
        confidence: float = 0.95,
    ) -> RunningSeriesPlan:
        """What `series` with the same arguments would cost and how far off each step may be; nothing is spent.

        Args:
            count: A count, or a condition as text; all rows by default.
            date: The column of dates that says in which period a row lies.
            steps: How many periods.
            every: "day", "week", "month", "quarter" or "year".
            first: The first period, such as "2026-01"; by default the first within the bounds of the dates.
            by: A column, or columns: one series for each public value.
            epsilon: What all steps together may cost, by default all that is left.
            append_only: States that rows are only added to the table, and keep their unit and date. Errors are then
                much smaller, and the guarantee rests on it.
            confidence: How often each error is kept.

        Returns:
            The plan, with the error of every step.

        Raises:
            InvalidValue: If the column holds no dates, or an argument is wrong.
            BudgetExceeded: If too little is left.

        >>> import datetime, pyarrow, tempfile, farthing as ft
        >>> bounds = (datetime.date(2020, 1, 1), datetime.date(2029, 12, 31))
        >>> visits = ft.dataset(pyarrow.table({"day": [datetime.date(2020, 3, 1)]}), schema={"day": bounds})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(visits, epsilon=1.0, ledger=folder + "/study.db", name="visits")
        ...     plan = study.series_plan(date="day", every="month", steps=60, append_only=True)
        ...     print(plan.periods, plan.total_errors[-1].round())
        ...     study.close()
        60 months, 2020-01 to 2024-12 18.0
        """
        asked = series_sessions.SeriesOptions(count, date, every, steps, first, by, epsilon, append_only, confidence)
        return series_sessions.series_plan(self, asked)

    def series(
        self,
        count: Statistic | str | None = None,
        *,
        date: str,
        steps: int,
        every: str = "month",
        first: str | datetime.date | None = None,
        by: str | Sequence[str] | None = None,
        epsilon: float | None = None,
        append_only: bool = False,
        confidence: float = 0.95,
        request_id: str | None = None,
        timeout: float | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> RunningSeries:
        """Charge once for counts and running totals of all periods; `series.update()` releases those that are over.

        The same arguments, or the same `request_id`, resume the series. What was released stays as it is.

        Args:
            count: A count, or a condition as text; all rows by default.
            date: The column of dates that says in which period a row lies.
            steps: How many periods.
            every: "day", "week", "month", "quarter" or "year".
            first: The first period, such as "2026-01"; by default the first within the bounds of the dates.
            by: A column, or columns: one series for each public value.
            epsilon: What all steps together may cost, by default all that is left.
            append_only: States that rows are only added to the table, and keep their unit and date. Errors are then
                much smaller, and the guarantee rests on it.
            confidence: How often each error is kept.
            request_id: Names the series.
            timeout: Seconds that a reading of the table may take.
            progress: Called with a share between 0 and 1 while the engine runs.

        Returns:
            An open series.

        Raises:
            InvalidValue: If the column holds no dates, or the series was opened with other arguments.
            BudgetExceeded: If too little is left.

        >>> import datetime, pyarrow, tempfile, farthing as ft
        >>> bounds = (datetime.date(2020, 1, 1), datetime.date(2029, 12, 31))
        >>> visits = ft.dataset(pyarrow.table({"day": [datetime.date(2020, 3, 1)] * 900}), schema={"day": bounds})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(visits, epsilon=1.0, ledger=folder + "/study.db", name="visits")
        ...     series = study.series(date="day", every="quarter", steps=8, append_only=True)
        ...     print(len(series.update()), abs(series.steps[-1].total.values - 900) < 100)
        ...     study.close()
        8 True
        """
        asked = series_sessions.SeriesOptions(count, date, every, steps, first, by, epsilon, append_only, confidence)
        return series_sessions.open_series(self, asked, request_id, timeout, progress)

    def submit_series(
        self,
        purpose: str,
        count: Statistic | str | None = None,
        *,
        date: str,
        steps: int,
        epsilon: float,
        every: str = "month",
        first: str | datetime.date | None = None,
        by: str | Sequence[str] | None = None,
        append_only: bool = False,
        confidence: float = 0.95,
        title: str = "",
    ) -> PlanRequest:
        """Ask a curator to allow a series; once approved, `series` with the same arguments opens it.

        Args:
            purpose: What the numbers are for; the curator reads it.
            count: A count, or a condition as text; all rows by default.
            date: The column of dates that says in which period a row lies.
            steps: How many periods.
            epsilon: What all steps together may cost.
            every: "day", "week", "month", "quarter" or "year".
            first: The first period, such as "2026-01"; by default the first within the bounds of the dates.
            by: A column, or columns: one series for each public value.
            append_only: States that rows are only added to the table; see `series`.
            confidence: How often each error is kept.
            title: A few words to call it by.

        Returns:
            The request; nothing is spent.

        Raises:
            InvalidValue: If nobody asks, an argument is wrong, or the series was opened before.
            BudgetExceeded: If the account does not have so much.

        >>> import datetime, pyarrow, tempfile, farthing as ft
        >>> bounds = (datetime.date(2020, 1, 1), datetime.date(2029, 12, 31))
        >>> visits = ft.dataset(pyarrow.table({"day": [bounds[0]] * 900}), schema={"day": bounds}, name="visits")
        >>> folder = tempfile.TemporaryDirectory()
        >>> ada = ft.Study(visits, epsilon=1.0, ledger=folder.name + "/study.db")
        >>> ada.register()
        >>> _ = ada.ledger.grant("visits", "bob", 0.0)
        >>> bob = ft.Study(visits, epsilon=1.0, ledger=ada.ledger.acting("bob", "analyst"))
        >>> words = dict(date="day", every="quarter", steps=8, append_only=True, epsilon=0.5)
        >>> asked = bob.submit_series("beds for the winter", **words)
        >>> _ = ada.ledger.requests.approve(asked.id)
        >>> len(bob.series(**words).update())
        8
        >>> ada.close(); folder.cleanup()
        """
        asked = series_sessions.SeriesOptions(count, date, every, steps, first, by, epsilon, append_only, confidence)
        return series_sessions.submit_series(self, asked, purpose, title)

    def holdout(
        self,
        training: Dataset,
        *,
        queries: int = 1_000,
        corrections: int = 10,
        threshold: float | None = None,
        epsilon: float | None = None,
        confidence: float = 0.95,
        request_id: str | None = None,
    ) -> Holdout:
        """Charge once, then ask about this study's rows as a holdout set: `holdout.ask("income > 50000")`.

        Where the means of a statistic (an expression with values in [0, 1]) agree, the answer is that of the training
        rows and free; otherwise it is that of the holdout rows with noise, and a correction is used up. The study's
        dataset must have a public number of rows, each a unit of its own. The same arguments, or the same `request_id`,
        resume the session, and the same questions get the same answers: a script that is run again uses up nothing.

        Args:
            training: A dataset that you may read yourself, with the same columns.
            queries: How many questions the promise covers.
            corrections: How many answers may differ from those of the training rows.
            threshold: How far the two means may be apart to agree; chosen by default.
            epsilon: What the session may cost, by default all that is left.
            confidence: How often the promise is kept.
            request_id: Names the session.

        Returns:
            An open session.

        Raises:
            InvalidValue: If the number of rows is not public, or the columns differ.
            BudgetExceeded: If too little is left.

        >>> import pyarrow, tempfile, farthing as ft
        >>> table, schema = pyarrow.table({"age": [30, 41] * 5_000}), {"age": (0, 110)}
        >>> holdout_rows = ft.dataset(table, schema=schema, neighbours="replace", rows=10_000)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(holdout_rows, epsilon=1.0, delta=1e-9, ledger=folder + "/study.db", account="people")
        ...     holdout = study.holdout(ft.dataset(table, schema=schema), queries=100, corrections=2)
        ...     print(holdout.ask("age > 35").value, holdout.corrections_left)
        ...     study.close()
        0.5 2
        """
        return monitor_sessions.open_holdout(
            self,
            training,
            queries=queries,
            corrections=corrections,
            threshold=threshold,
            epsilon=epsilon,
            confidence=confidence,
            request_id=request_id,
        )

    def synthesis_plan(
        self,
        *,
        rows: int | None = None,
        epsilon: float | None = None,
        columns: Sequence[str] | str | None = None,
        bins: Mapping[str, int | Sequence[Any]] | None = None,
        missing: bool | Sequence[str] = True,
        known: Release | Sequence[Release] = (),
    ) -> SynthesisOffer:
        """What `synthesise` with the same arguments would do and cost; nothing is spent and no row is read.

        Args:
            rows: How many rows to make, by default as many as will be measured.
            epsilon: What the table may cost, by default all that is left.
            columns: Its columns, by default all of the schema.
            bins: Cuts columns of numbers into cells, by default into equal ones.
            missing: Which columns may lack values, by default all of them.
            known: Earlier releases of the same dataset, whose answers are used free of charge.

        Returns:
            The offer; print it, or `release()` it.

        Raises:
            InvalidValue: If an argument is wrong.
            BudgetExceeded: If too little is left.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db", account="people")
        ...     offer = study.synthesis_plan(epsilon=0.5, bins={"age": 4})
        ...     print(0.49 < offer.cost <= 0.5, study.left)
        ...     study.close()
        True 1.0
        """
        return synthesis_offer(self, SynthesisOptions(columns, bins, missing, epsilon, known), rows)

    def synthesise(
        self,
        *,
        rows: int | None = None,
        epsilon: float | None = None,
        columns: Sequence[str] | str | None = None,
        bins: Mapping[str, int | Sequence[Any]] | None = None,
        missing: bool | Sequence[str] = True,
        known: Release | Sequence[Release] = (),
        request_id: str | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Synthetic:
        """A synthetic table, with a verdict on its quality.

        The same arguments give the same table again and spend nothing; for another table give a `request_id`, which is
        refused together with other arguments.

        Args:
            rows: How many rows to make, by default as many as were measured; it costs nothing to change.
            epsilon: What the table costs, by default all that is left.
            columns: Its columns, by default all of the schema.
            bins: Cuts columns of numbers into cells, by default into equal ones.
            missing: Which columns may lack values, by default all of them.
            known: Earlier releases of the same dataset, whose answers are used free of charge.
            request_id: Names the table.
            progress: Called with a share between 0 and 1 while the engine runs.

        Returns:
            The table, its quality and the receipt.

        Raises:
            InvalidValue: If an argument is wrong, or the request id was used with others.
            BudgetExceeded: If too little is left.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"sex": ["F", "M"] * 500}), schema={"sex": ["F", "M"]})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db", account="people")
        ...     print(study.synthesise(rows=200))
        ...     study.close()
        200 synthetic rows of 1 column...
        """
        options = SynthesisOptions(columns, bins, missing, epsilon, known)
        earlier = earlier_synthesis(self, request_id or synthesis_name(self, options), options)
        if earlier is not None:
            synthetic = earlier.table(rows)
            warn_if_changed(self, synthetic.receipt, "synthesise(request_id=...) with a new id")
            return synthetic
        return synthesis_offer(self, options, rows).release(request_id, progress)

    def synthetic(self, request_id: str, rows: int | None = None) -> Synthetic:
        """An earlier synthetic table, from the ledger; no row is read and nothing is spent.

        Args:
            request_id: The name of its request.
            rows: How many rows to make, by default as many as were measured.

        Returns:
            The table.

        Raises:
            InvalidValue: If the ledger has no synthetic table of that name.

        >>> import pyarrow, tempfile, farthing as ft
        >>> people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db", account="people")
        ...     try:
        ...         study.synthetic("never made")
        ...     except ft.FarthingError as refusal:
        ...         print(refusal)
        ...     study.close()
        request_id='never made': must be that of a ...
        """
        return stored_synthetic(self.ledger, request_id, rows)
