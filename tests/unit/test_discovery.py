"""Something that nobody knows about a table is found once, paid for once, and used by everything that follows.

The searches here are given so much epsilon that no noise moves them: at 50, noise other than 0 has a chance of 1e-21.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import farthing as ft
from farthing.adaptive.discovery.row_search import RowTally
from farthing.data import Dataset, Dates, Integers, Reals, Sum
from farthing.data.unknown_columns import known
from farthing.errors import BudgetExceeded, InvalidExpression, InvalidValue
from farthing.ledger import open_ledger
from farthing.study import Plan
from farthing.study.discovery_plan import discovery_plan
from farthing.study.release_list import release_list
from farthing.study.staged_plan import StagedPlan

SURE = 50.0
SCHEMA: dict[str, Any] = {
    "income": ft.unknown("number"),
    "age": ft.unknown("whole number"),
    "born": ft.unknown("date"),
    "sex": ["F", "M"],
}
N = 60
TABLE = pa.table(
    {
        "who": [n // 3 for n in range(N)],
        "income": [300.0 * (1 + n % 60) for n in range(N)],
        "age": [18 + n for n in range(N)],
        "born": [date(1990 + n % 5, 6, 1) for n in range(N)],
        "sex": ["F", "M"] * (N // 2),
    }
)


def people(**options: Any) -> Any:
    return ft.dataset(TABLE, schema=SCHEMA, name="people", **options)


@pytest.fixture
def study(tmp_path: Path) -> Iterator[ft.Study]:
    study = ft.Study(people(), epsilon=400.0, delta=1e-6, ledger=tmp_path / "study.db")
    yield study
    study.close()


@pytest.mark.slow
def test_ranges_are_found_and_used(study: ft.Study) -> None:
    plan = study.discover(epsilon=3 * SURE)
    assert [search.name for search in plan.searches] == ["income", "age", "born"]
    assert plan.cost == 3 * SURE
    assert study.left == 400  # nothing is spent by planning
    findings = plan.release()
    assert findings["income"].domain == Reals(200, 20_000)
    assert findings["age"].domain == Integers(10, 100)
    assert findings["born"].domain == Dates(date(1990, 1, 1), date(1994, 12, 31))
    assert study.left == pytest.approx(400 - 3 * SURE)
    assert study.dataset.schema["age"] == Integers(10, 100)
    assert type(study.plan(ft.mean("income"))) is Plan
    assert study.dataset.where("age > 30").schema["income"] == Reals(200, 20_000)


@pytest.mark.slow
def test_the_same_search_is_charged_once(study: ft.Study, tmp_path: Path) -> None:
    first = study.discover("income", epsilon=SURE).release()
    left = study.left
    again = study.discover("income", epsilon=1.0)
    assert again.cost == 0
    assert "found before, for epsilon 50" in str(again)
    assert again.release()["income"].facts == first["income"].facts
    assert study.left == left
    later = ft.Study(people(), epsilon=400.0, delta=1e-6, ledger=tmp_path / "study.db")
    assert later.dataset.schema["income"] == Reals(200, 20_000)
    assert later.discover("income", epsilon=SURE, fresh=True).release()["income"].domain == Reals(200, 20_000)
    assert later.left == pytest.approx(left - SURE)
    (one, two) = release_list(later.ledger)
    assert one.title == "found: income" and one.epsilon == pytest.approx(SURE)
    assert two.request_id == "income found in people 2"
    later.close()


def test_a_plan_asks_again_before_the_rest_is_spent(tmp_path: Path) -> None:
    study = ft.Study(people(), epsilon=400.0, ledger=tmp_path / "study.db")  # with a delta, a search of many seconds
    plan = study.plan(ft.mean("income"), ft.mean("age"), ft.count())
    assert isinstance(plan, StagedPlan)
    assert plan.stage is not None and [search.name for search in plan.stage.searches] == ["income", "age"]
    assert plan.stage.cost == 2 * 0.05 * 400
    assert "income: 0 to 100, age: 0 to 100" in str(plan)
    for refused in (plan.release, lambda: plan.submit("no")):
        with pytest.raises(InvalidValue, match=r"income, age.*is not known yet.*plan\.discover"):
            refused()
    assert study.budget.count == 0
    second = plan.weight("count", 2.0).discover()  # type: ignore[attr-defined]
    assert type(second) is Plan and study.budget.count == 2
    assert second.problem.weights == {"count": 2.0}
    assert second.release().request_id != "" and study.budget.count == 3
    study.close()


def test_both_stages_only_where_you_say_so(study: ft.Study) -> None:
    plan = study.plan(ft.mean("age"), epsilon=200)
    assert isinstance(plan, StagedPlan)
    release = plan.release(both=True)
    assert list(release) == ["mean of age"]
    assert release.cost <= 190 and study.budget.count == 2


def test_what_was_found_takes_no_share_but_of_a_plan_that_has_paid_for_it(study: ft.Study) -> None:
    assert study.discover("age", epsilon=SURE).release()["age"].is_usable
    both = ("age", "income")
    assert [each.epsilon for each in study.discover(*both, epsilon=SURE).open] == [SURE]
    assert study.discover(*both).cost == 0.05 * 400 and study.discover(*both, epsilon=SURE, fresh=True).cost == SURE
    assert discovery_plan(study, both, epsilon=SURE, since=0).cost == SURE / 2  # a job that died over it goes on
    assert discovery_plan(study, both, epsilon=SURE, since=2**62).cost == SURE


def test_a_plan_that_needs_nothing_unknown_is_a_plan(study: ft.Study) -> None:
    assert type(study.plan(ft.count(by="sex"))) is Plan


def test_the_bound_on_rows_is_found(tmp_path: Path) -> None:
    study = ft.Study(people(unit="who", max_rows="auto"), epsilon=400.0, ledger=tmp_path / "study.db")
    assert study.dataset.is_auto and study.dataset.rows_per_unit == 10**6
    plan = study.plan(ft.count())
    assert isinstance(plan, StagedPlan) and plan.stage is not None
    finding = study.discover(rows_per_unit=True, epsilon=SURE).release()
    assert list(finding) == ["rows per unit"]
    assert study.dataset.rows_per_unit == 3 and not study.dataset.is_auto
    assert study.dataset.left_out is not None and study.dataset.left_out.share == 0
    assert "0% (0 to" in str(study.plan(ft.count()).about)
    study.close()


def test_a_declared_bound_says_what_it_leaves_out(tmp_path: Path) -> None:
    study = ft.Study(people(unit="who", max_rows=2), epsilon=400.0, ledger=tmp_path / "study.db")
    names = study.discover("age", rows_per_unit=True, epsilon=2 * SURE).release()
    assert set(names) == {"age", "rows per unit"}
    left_out = study.dataset.left_out
    assert left_out is not None and left_out.share == pytest.approx(1 / 3) and left_out.max_rows == 2
    assert "max_rows=3 would fit" in names["rows per unit"].sentence
    release = study.plan(ft.count()).release()
    assert "about 33% (" in str(release)
    study.close()


@pytest.mark.slow
def test_a_search_that_finds_nothing_is_paid_for_and_says_so(tmp_path: Path) -> None:
    empty = pa.table({"x": pa.array([None] * 9, pa.float64())})
    rows = ft.dataset(empty, schema={"x": ft.unknown("number")}, name="empty")
    study = ft.Study(rows, epsilon=100.0, ledger=tmp_path / "study.db")
    finding = study.discover("x", epsilon=SURE).release()["x"]
    assert not finding.is_usable and finding.domain is None and "no range was found" in finding.sentence
    assert study.left == pytest.approx(100 - SURE)
    assert list(study.dataset.unknown) == ["x"]
    with pytest.raises(
        InvalidValue, match="was searched at a cost of epsilon 50, and cannot be used: no range was found"
    ):
        study.plan(ft.mean("x"))
    study.close()


def test_what_is_wrong_is_said_before_anything_is_spent(study: ft.Study) -> None:
    for words, arguments in (
        ("columns=.*each once", {"columns": ("income", "income")}),
        ("must be declared as unknown.*income, age, born", {"columns": ("sex",)}),
        ("epsilon=0: must be > 0", {"epsilon": 0}),
        ("share=2", {"share": 2.0, "columns": ("income",)}),
        ("confidence=0.2", {"confidence": 0.2}),
        ("unit=None: must be a column", {"rows_per_unit": True}),
    ):
        given = dict(arguments)
        with pytest.raises(InvalidValue, match=words):
            study.discover(*given.pop("columns", ()), **given)
    with pytest.raises(BudgetExceeded):
        study.plan(ft.mean("income"), epsilon=401)
    assert study.plan(ft.mean("income"), epsilon=15).stage.cost == 0.75  # the shares are of the plan's epsilon
    for use in (lambda: people().where("income > 3"), lambda: people().derive(twice="income * 2")):
        with pytest.raises(InvalidExpression, match=r"declared as unknown, and was not found yet.*study\.discover"):
            use()
    with pytest.raises(InvalidValue, match="declared as unknown, and was not found yet"):
        people().clip(income=(0, 3))
    assert study.budget.count == 0
    poor = ft.Study(people(), epsilon=10.0, ledger=study.ledger, account="poor")
    with pytest.raises(BudgetExceeded, match="exceeds the 10 left"):
        poor.discover("income", epsilon=20).release()


def test_declarations_that_cannot_be() -> None:
    with pytest.raises(InvalidValue, match="unknown='money'"):
        ft.unknown("money")
    with pytest.raises(InvalidValue, match="must be text to be trimmed"):
        ft.unknown("number", trim=True)
    with pytest.raises(InvalidValue, match="needs a column of numbers"):
        ft.dataset(TABLE, schema={"sex": ft.unknown("number")})
    with pytest.raises(InvalidValue, match="needs a column of text"):
        ft.dataset(TABLE, schema={"income": ft.unknown("text")})
    with pytest.raises(InvalidValue, match="max_rows='auto': must be 1"):
        ft.dataset(TABLE, max_rows="auto", schema={"age": (0, 110)})


@pytest.mark.slow
def test_an_analyst_knows_what_the_curator_has_found(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "study.db") as ledger:
        study = ft.Study(people(), epsilon=400.0, ledger=ledger, account="people")
        study.discover("age", epsilon=SURE).release()
        ledger.grant("people", "bob", 100.0)
        bob = ft.Study(people(), epsilon=400.0, ledger=ledger, account="people", analyst="bob")
        assert bob.dataset.schema["age"] == Integers(10, 100)
        bob.discover("income", epsilon=SURE).release()
        assert bob.left == pytest.approx(100 - SURE)
        study.learn()
        assert "income" in study.dataset.unknown  # what an analyst paid for is the analyst's


def test_the_share_left_out_by_hand() -> None:
    """10 units of 1 row, 10 of 2, 10 of 5: max_rows=2 leaves out 30 of 80 rows; noise and cells widen the interval."""
    tally = RowTally([10, 10, 0, 0, 10], scale=1e-9)
    assert tally.left_out(2).share == pytest.approx(30 / 80)
    assert tally.left_out(5).share == 0
    noisy = RowTally([10, 10, 0, 0, 10], scale=1.0).left_out(2)
    assert noisy.lower < 30 / 80 < noisy.upper
    wide = RowTally([0] * 10 + [7], scale=1e-9).left_out(10)  # 7 units of 11 or 12 rows
    assert (wide.lower, wide.upper) == (pytest.approx(1 / 11), pytest.approx(2 / 12))


def test_the_share_of_all_rows_counts_the_units_that_are_too_few_to_be_seen(tmp_path: Path) -> None:
    """200 units of 2 rows and one of 5,000: max_rows=1 leaves out half of the rows of those that are seen, 96% of all.

    No noise moves the share by 0.01: that takes 50 units, 25 scales of the noise.
    """
    tally = RowTally([0, 200], scale=1e-9)
    assert tally.left_out(1).of_all is None
    seen = tally.left_out(1, rows=5_400)
    assert seen.share == pytest.approx(1 / 2) and seen.of_all == pytest.approx((1 - 200 / 5_400,) * 2)
    noisy = RowTally([0, 200], scale=2.0).left_out(1, rows=5_400).of_all
    assert noisy is not None and noisy[0] == pytest.approx(1 - 200 / 5_400) and noisy[0] < noisy[1] < 0.97
    wide = RowTally([0] * 10 + [7], scale=1e-9).left_out(20, rows=84)  # 7 units of 11 or 12 rows
    assert wide.of_all == pytest.approx((1 - 7 * 11.5 / 84, 1 - 7 * 11 / 84))
    assert RowTally([0, 200], scale=2.0).left_out(5, rows=1).of_all == (0.0, 0.0)  # what is declared cannot be

    who = [n // 2 for n in range(400)] + [200] * 5_000
    panel = ft.dataset(pa.table({"who": who}), schema={"who": (0, 200)}, unit="who", max_rows=1, rows=5_400)
    study = ft.Study(panel, epsilon=10.0, ledger=tmp_path / "study.db", account="panel")
    (found,) = study.discover(rows_per_unit=True, epsilon=1.0).release().values()
    left_out = study.dataset.left_out
    assert left_out is not None and left_out.of_all is not None
    assert left_out.of_all[0] == pytest.approx(1 - 200 / 5_400, abs=0.01)
    assert study.left == 9.0
    for text in (found.sentence, str(study.plan(ft.count()).about)):
        assert "with them, about 9" in text and "% of all 5,400 rows are left out, and at most 9" in text
    study.close()


def test_a_bound_balances_what_it_leaves_out_and_noise() -> None:
    """1,000 units of 1 row and one of 10: at epsilon 1 nine rows cost less than noise for ten."""
    counts = [1_000, *[0] * 8, 1]
    assert RowTally(counts, 1e-9).best(0.01) == 1
    assert RowTally(counts, 1e-9).best(10.0) == 10


def test_a_column_that_is_found_is_read_in_both_tables_of_a_union() -> None:
    """The second one had no such column: what was asked of both failed after its charge."""

    def costs(each: float, **schema: Any) -> Dataset:
        table = pa.table({"who": [1, 2], "cost": [each, each], "old": [True, False]})
        return ft.dataset(table, unit="who", max_rows=1, schema={"old": bool, **schema})

    both = costs(3.0, cost=ft.unknown("number")).union(costs(900.0, cost=ft.unknown("number")))
    found = known(both, {"cost": Reals(0, 10)})
    assert found.schema["cost"] == Reals(0, 10)
    assert found.exact({"cost": Sum("cost", grid=1.0)})["cost"] == 2 * 3 + 2 * 10
    part = costs(3.0, cost=ft.unknown("number")).select("old").union(costs(900.0))
    assert "cost" not in known(part, {"cost": Reals(0, 10)}).schema


@pytest.mark.parametrize("facts", [{"rows": N}, {"people": N // 3, "max_rows": 3}], ids=["rows", "people"])
@pytest.mark.parametrize("columns", [("income",), ("age", "born"), ()], ids=["a range", "ranges", "rows a unit"])
def test_a_search_that_the_table_is_too_small_for_is_refused_before_anything_is_paid(
    facts: dict[str, Any], columns: tuple[str, ...], tmp_path: Path
) -> None:
    unit: dict[str, Any] = {"max_rows": 3, "unit": "who"}
    study = ft.Study(people(**{**unit, **facts}), epsilon=0.1, delta=1e-9, ledger=tmp_path / "study.db")
    with pytest.raises(
        InvalidValue, match=r"epsilon=.*is too small: a search needs [\d,]+ units \(who\) alike, and the"
    ):
        study.discover(*columns, rows_per_unit=not columns)
    if columns:
        with pytest.raises(InvalidValue, match="is too small"):
            study.plan(ft.mean(columns[0]))
    assert study.budget.count == 0
    study.close()


def test_no_search_is_charged_where_another_one_is_refused(tmp_path: Path) -> None:
    """Values of text are charged first: the range that the table is too small for was refused after that."""
    table = pa.table({"town": ["A", "B"] * 300, "x": [1.0] * 600})
    schema = {"town": ft.unknown("text"), "x": ft.unknown("number")}
    study = ft.Study(
        ft.dataset(table, schema=schema, rows=600, name="t"), epsilon=1.0, delta=0.5, ledger=tmp_path / "l.db"
    )
    assert study.discover("town", epsilon=0.02).cost == 0.02
    with pytest.raises(InvalidValue, match=r"a search needs [\d,]+ rows alike, and the table has 600 rows"):
        study.discover("town", "x", epsilon=0.03).release()
    assert study.budget.count == 0
    study.close()
