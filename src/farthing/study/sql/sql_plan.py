"""A plan that a statement of SQL made, and its release, whose answers are also the rows of the statement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Protocol, Self

from farthing.data import Dataset
from farthing.errors import FarthingError, InvalidSQL, InvalidValue
from farthing.numerics.bounds import number_text
from farthing.numerics.notebook_tables import html_table
from farthing.statistics import Statistic
from farthing.statistics.design import design_of
from farthing.study.plan import Plan
from farthing.study.release import Release
from farthing.study.release_request import Control
from farthing.study.sql.relations import Source
from farthing.study.sql.result_table import ResultTable, result_table
from farthing.study.sql.select_query import Compiler, said_of_statistic
from farthing.study.sql.statements import read_script
from farthing.study.sql.table_query import TableQuery
from farthing.study.staged_plan import StagedPlan
from farthing.study.study_account import StudyAccount


@dataclass(frozen=True)
class Script:
    """What a text asks for: its tables, the statistics that answer them, and the columns that have to be derived.

    Args:
        text: The text.
        tables: Its statements.
        dataset: The table that is read, after joins and after rows were made into people.
        derived: What is derived from it, by name.
        statistics: All statistics, each once.
        places: Where the text asks for each of them.
        explain: Whether it is only to be explained.
    """

    text: str
    tables: tuple[TableQuery, ...]
    dataset: Dataset
    derived: Mapping[str, str]
    statistics: tuple[Statistic, ...]
    places: tuple[int | None, ...]
    explain: bool = False

    def results(self, answers: Mapping[str, Any], confidence: float = 0.95) -> tuple[ResultTable, ...]:
        """The rows of every statement.

        Args:
            answers: What was released, by the names of the statistics.
            confidence: How often each interval holds the true value.

        Returns:
            One table for each statement.
        """
        return tuple(result_table(each, answers, confidence) for each in self.tables)


class SqlStudy(StudyAccount, Protocol):
    """What statements need of a study."""

    def over(self, dataset: Dataset) -> Self:
        """The same account, with another table of the same people."""

    def plan(self, *statistics: Statistic, epsilon: float | None, expected: Mapping[str, Any] | None) -> Plan:
        """Their errors and their price, before anything is spent."""


def table_names(study: StudyAccount) -> tuple[str, ...]:
    """What the study's own table may be called in FROM: its name, that without an ending, and the account."""
    dataset = study.dataset
    stem = dataset.table_name.rsplit("/", 1)[-1].split(".")[0]
    names = [dataset.table_name, dataset.name, study.name]
    first = [stem] if stem.isidentifier() and dataset.name != "pyarrow.Table" else [study.name]
    return tuple(dict.fromkeys([*first, *names, stem]))


def compiled(study: StudyAccount, text: str, max_cells: int | None = None, names: tuple[str, ...] = ()) -> Script:
    """What a text asks of the table of a study; nothing is read and nothing is charged.

    Args:
        study: Whose table it is.
        text: One SELECT or several, perhaps after EXPLAIN.
        max_cells: In how many groups one person may count; by default in all.
        names: What else the table may be called.

    Returns:
        Its statistics, and how its rows come out of them.

    Raises:
        InvalidSQL: If it is not one of the statements that can be answered; the message shows where.
    """
    script = read_script(text)
    compiler = Compiler(text, Source(study.dataset, tuple(dict.fromkeys([*names, *table_names(study)]))), max_cells)
    tables = tuple(compiler.table(each) for each in script.statements)
    parts = [part for table in tables for part in table.parts]
    first = parts[0].dataset
    for part in parts:
        if part.dataset is not first and part.dataset.definition != first.definition:
            place = next((place for _, place in part.statistics), None)
            rule = "statements that are planned together must read either rows, or one row a person"
            raise InvalidSQL(text, place, rule, "ask for them separately")
    if first.definition == study.dataset.definition:
        first = study.dataset
    derived = {name: written for written, name in compiler.derivations.names.items()}
    asked: dict[Statistic, int | None] = {}
    for part in parts:
        for statistic, place in part.statistics:
            asked.setdefault(statistic, place)
    return Script(text, tables, first, derived, tuple(asked), tuple(asked.values()), script.explain)


def plan_of_sql(
    study: SqlStudy,
    text: str,
    *,
    epsilon: float | None = None,
    expected: Mapping[str, Any] | None = None,
    max_cells: int | None = None,
) -> SqlPlan:
    """The plan of a text: see `Study.sql`."""
    script = compiled(study, text, max_cells)
    dataset = script.dataset
    if script.derived:
        try:
            dataset = dataset.derive(**script.derived)
        except FarthingError as refusal:
            raise said_of_statistic(text, None, refusal) from None
    asked = study if dataset is study.dataset else study.over(dataset)
    try:
        plan = asked.plan(*script.statistics, epsilon=epsilon, expected=expected)
    except InvalidValue as refusal:
        raise _placed(script, dataset, expected, refusal) from None
    if isinstance(plan, StagedPlan) or type(plan) is not Plan:
        unknown = ", ".join(study.declared.unknown) or "max_rows"
        rule = f"{unknown}: nobody knows what it holds yet"
        raise InvalidSQL(text, None, rule, "find it first: study.discover().release(), or farthing discover")
    return SqlPlan.made(plan, script)


def _placed(
    script: Script, dataset: Dataset, expected: Mapping[str, Any] | None, refusal: InvalidValue
) -> FarthingError:
    """The refusal of a plan, shown at the aggregate that is at fault, if it is one of them."""
    for statistic, place in zip(script.statistics, script.places, strict=True):
        try:
            design_of([statistic], dataset, expected, pure=True, counted=None)
        except InvalidValue as own:
            if (own.name, own.rule) == (refusal.name, refusal.rule):
                return said_of_statistic(script.text, place, own)
        except FarthingError:
            continue
    return refusal


@dataclass(frozen=True, eq=False, repr=False)
class SqlPlan(Plan):
    """The plan of a statement: a plan like any other, whose release also has the statement's rows.

    Args:
        study: The study that made it.
        asked: The statistics.
        problem: What is divided: the design of the statistics, the budget and the controls.
        expected: What is known, as for `Study.plan`.
        request: The request that names its release in the ledger.
        allowance: What the budget had for it, before controls.
        epsilon: The part of the budget that was asked for.
        lines: The lines that made it, or the file, where they are not those of `study.plan` alone.
        from_file: Whether a study.toml made it; then `expected` is written as there.
        earlier: The earlier release of the same request.
        script: What the text asks for.

    >>> import pyarrow, tempfile, farthing as ft
    >>> people = ft.dataset(pyarrow.table({"age": [30, 41]}), schema={"age": (0, 110)}, name="people")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db")
    ...     plan = study.sql("SELECT COUNT(*) AS n FROM people WHERE age >= 18")
    ...     print(plan.asked, plan.release().table.columns)
    ...     study.close()
    (count(where='age >= 18'),) ('n',)
    """

    script: Script | None = None

    @classmethod
    def made(cls, plan: Plan, script: Script) -> SqlPlan:
        """A plan with the statement that asked for it.

        Args:
            plan: The plan.
            script: The statement.

        Returns:
            The same plan.
        """
        if isinstance(plan, SqlPlan):
            return plan
        facts = {each.name: getattr(plan, each.name) for each in fields(plan)}
        if "allocation" in vars(plan):  # divided already
            facts["_given"] = plan.allocation
        return cls(**facts, script=script)

    @property
    def statement(self) -> str:
        """What was asked, as it was written."""
        assert self.script is not None
        return self.script.text

    def _controlled(self, control: Control, start: Plan | None = None) -> Plan:
        assert self.script is not None
        return SqlPlan.made(super()._controlled(control, start), self.script)

    def release(
        self,
        request_id: str | None = None,
        progress: Callable[[float], None] | None = None,
        *,
        fresh: bool = False,
        title: str = "",
    ) -> SqlRelease:
        """Charge the ledger, run once, add the noise, record, answer: as `Plan.release`.

        Args:
            request_id: As for a plan.
            progress: As for a plan.
            fresh: As for a plan.
            title: As for a plan.

        Returns:
            The answers with their errors and the receipt, and in `table` the rows of the statement.

        Raises:
            InvalidValue: If the text begins with EXPLAIN, which spends nothing.
            BudgetExceeded: If the ledger does not admit the charge; nothing is spent.
        """
        assert self.script is not None
        if self.script.explain:
            raise InvalidValue("sql", "EXPLAIN", "spends nothing, so it has no release", "leave EXPLAIN out")
        release = super().release(request_id, progress, fresh=fresh, title=title)
        return SqlRelease.made(release, self.script)

    def explain(self) -> str:
        """In words: what is measured, what it costs and why, and the SQL that the engine would run.

        Returns:
            Several lines of text.
        """
        assert self.script is not None
        lines = [super().explain(), "Statistics, as Python asks for them:"]
        if self.script.derived:
            lines += [f"  derive({name!r}: {text!r})" for name, text in self.script.derived.items()]
        lines += [f"  ft.{statistic!r}" for statistic in self.asked]
        lines += ["SQL that the engine would run, before noise is added:", self.engine_sql()]
        return "\n".join(lines)

    def engine_sql(self) -> str:
        """The SQL that a release pushes down to the engine; nothing is run.

        Returns:
            One statement for each pass over the table.
        """
        return self.measurements.explain(self.study.dataset)

    def __str__(self) -> str:
        assert self.script is not None
        return f"{super().__str__()}\n\n{self.explain()}" if self.script.explain else super().__str__()


@dataclass(frozen=True, eq=False, repr=False)
class SqlRelease(Release):
    """A release of a statement: its answers by name, and the rows of each statement in `tables`.

    Args:
        answers: The answers by name.
        plan: What was predicted, as plain data.
        receipt: The receipt that proves the charge.
        request_id: The name of its request.
        repeated: Whether it was answered before, and cost nothing now.
        ledger: The ledger that holds it, where that is open here: `publish` signs with its key.
        script: What the text asked for.

    >>> import pyarrow, tempfile, farthing as ft
    >>> people = ft.dataset(pyarrow.table({"sex": ["F", "M"]}), schema={"sex": ["F", "M"]}, name="people")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     study = ft.Study(people, epsilon=1.0, ledger=folder + "/study.db")
    ...     release = study.sql("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex").release()
    ...     print(list(release), [sex for sex, n in release.table])
    ...     study.close()
    ['count by sex'] ['F', 'M']
    """

    script: Script | None = None

    @classmethod
    def made(cls, release: Release, script: Script) -> SqlRelease:
        """A release with the statement that asked for it.

        Args:
            release: The release.
            script: The statement.

        Returns:
            The same release.
        """
        return cls(**{each.name: getattr(release, each.name) for each in fields(release)}, script=script)

    @property
    def tables(self) -> tuple[ResultTable, ...]:
        """The rows of every statement of the text, with 95% intervals."""
        return self.results()

    @property
    def table(self) -> ResultTable:
        """The rows of the statement, where it is one."""
        tables = self.tables
        if len(tables) != 1:
            raise InvalidValue("table", len(tables), "is for one statement", "look at .tables")
        return tables[0]

    def results(self, confidence: float = 0.95) -> tuple[ResultTable, ...]:
        """The rows of every statement, with intervals at any confidence: free, at any time.

        Args:
            confidence: How often each interval holds the true value.

        Returns:
            One table for each statement.
        """
        assert self.script is not None
        return self.script.results(self.answers, confidence)

    def _repr_html_(self) -> str:
        notes = [f"spent epsilon {number_text(self.cost)}; request {self.request_id}"]
        return "".join(table._repr_html_() for table in self.tables) + html_table([], [], notes=notes)

    def __str__(self) -> str:
        tables = "\n\n".join(map(str, self.tables))
        return f"{tables}\nspent: epsilon {number_text(self.cost)}, request {self.request_id}"
