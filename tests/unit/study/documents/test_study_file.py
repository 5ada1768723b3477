"""study.toml: read as it is meant, and what is wrong with it is said with its place, before anything is opened."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from farthing.data import Count, linked
from farthing.data import table as linked_table
from farthing.data.declaration_file import dataset_of_tables
from farthing.errors import FarthingError, InvalidValue
from farthing.study.documents.study_file import read_study
from study_people import table

HEAD = """\
[dataset]
source = "people.parquet"
[schema]
sex = { categories = ["F", "M"] }
age = { range = [0, 110] }
income = { range = [0, 250_000] }
"""
STUDY = """\
[study]
epsilon = 1.0
ledger = "study.db"
"""
COUNT = '[[statistics]]\nkind = "count"\nby = "sex"\n'


@pytest.fixture
def write(tmp_path: Path) -> Path:
    pq.write_table(table(), tmp_path / "people.parquet")
    return tmp_path / "study.toml"


@pytest.mark.slow
def test_a_file_is_a_study_with_its_controls(write: Path) -> None:
    write.write_text(
        HEAD + STUDY + "delta = 1e-9\nname = 'mine'\nplan_epsilon = 0.5\n"
        "[expected]\nrows = 400\nincome = [40_000.0, 12_000.0]\nsex = { F = 0.5, M = 0.5 }\n" + COUNT + "weight = 3.0\n"
        '[[statistics]]\nkind = "mean"\ncolumn = "income"\nwithin = 9000\nconfidence = 0.9\n'
        '[[statistics]]\nkind = "linear_regression"\ncolumn = "income"\nfeatures = ["age"]\nname = "line"\n'
        '[[statistics]]\nkind = "quantiles"\ncolumn = "age"\nprobabilities = [0.25, 0.75]\nwhere = "sex = \'F\'"\n'
    )
    asked = read_study(write)
    assert asked.expected == {"rows": 400, "income": (40_000.0, 12_000.0), "sex": {"F": 0.5, "M": 0.5}}
    plan = asked.plan()
    assert [one.name for one in plan.statistics] == [
        "count by sex", "mean of income", "line", "quantiles of age where sex = 'F'",
    ]  # fmt: skip
    assert plan.study.name == "mine" and plan.problem.epsilon == 0.5
    assert plan.problem.weights == {"count by sex": 3.0}
    assert plan["mean of income"].error(0.9) <= 9000
    assert "\n".join(plan.code) + "\n" == write.read_text()
    assert (write.parent / "study.db").exists()  # beside the file, wherever it is read from


def test_flags_and_whole_numbers_are_categories_by_what_is_written(write: Path) -> None:
    one = {"sex": [1], "smoker": [True], "age": [30], "income": [10]}
    pq.write_table(pa.table(one), write.parent / "people.parquet")
    text = HEAD.replace('sex = { categories = ["F", "M"] }', "sex = { categories = [1, 2] }\nsmoker = { flags = true }")
    shares = "[expected]\nsex = { 1 = 0.25, 2 = 0.75 }\nsmoker = { true = 0.2, false = 0.8 }\n"
    write.write_text(text + STUDY + shares + COUNT)
    assert read_study(write).expected == {"sex": {1: 0.25, 2: 0.75}, "smoker": {True: 0.2, False: 0.8}}


def test_the_same_file_is_the_same_request(write: Path) -> None:
    write.write_text(HEAD + STUDY + COUNT)
    first = read_study(write).request_id
    assert read_study(write).request_id == first
    write.write_text(HEAD + STUDY + COUNT + "# changed\n")
    assert read_study(write).request_id != first


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "study=None: must be a table of the file; write [study]"),
        (HEAD + COUNT, "study=None"),
        (HEAD + "[study]\nledger = 'x.db'\n" + COUNT, "study.epsilon=None: must be given; write epsilon = 1.0"),
        (HEAD + "[study]\nepsilon = 1.0\n" + COUNT, 'must be given; write ledger = "study.db" under [study]'),
        (HEAD + STUDY.replace('"study.db"', "3") + COUNT, "study.ledger=3: must be a file name or a URL"),
        (HEAD + STUDY + "plan_fit = 1\n" + COUNT, "study.plan_fit=1: must be true or false"),
        (HEAD + STUDY + "plan_fit = true\n" + COUNT, "fit=True: needs a required error"),
        (HEAD + STUDY + "plan_reserve = 2.0\n" + COUNT, "epsilon=2.0: must be less than the plan's 1"),
        (HEAD + STUDY + "epsilom = 2\n" + COUNT, "study.epsilom=2: is not known; did you mean epsilon"),
        (
            HEAD + STUDY + "[budget]\n" + COUNT,
            "budget={}: is not known; there are: dataset, schema, tables, keys, steps",
        ),
        (HEAD + STUDY, "statistics=None: must be a list of at least one; write [[statistics]]"),
        (HEAD + STUDY + "[statistics]\nkind = 'count'\n", "must be a list of at least one"),
        (HEAD + STUDY + "[[statistics]]\nkind = 'cuont'\n", "statistics[0].kind='cuont': must be a kind"),
        (HEAD + STUDY + "[[statistics]]\nby = 'sex'\n", "statistics[0].kind=None"),
        (HEAD + STUDY + COUNT + "colum = 'age'\n", "statistics[0].colum='age': is not known"),
        (HEAD + STUDY + COUNT + "withn = 3\n", "statistics[0].withn=3: is not known; did you mean within"),
        (HEAD + STUDY + COUNT + "confidence = 0.9\n", "must be given with within"),
        (HEAD + STUDY + COUNT + "[[statistics]]\nkind = 'mean'\n", "statistics[1].column=None: must be given"),
        (HEAD + STUDY + "[[statistics]]\nkind = 'quantile'\ncolumn = 'age'\n", "statistics[0].probability=None"),
        (HEAD + STUDY + "[expected]\nrowz = 3\n" + COUNT, "expected='rowz'"),
        (HEAD + STUDY + "expected = 3\n" + COUNT, "study.expected=3: is not known"),
        ("[study\n", "is not valid TOML"),
    ],
)
def test_a_fault_is_named_with_its_place(write: Path, text: str, message: str) -> None:
    write.write_text(text)
    with pytest.raises(FarthingError) as refusal:
        read_study(write).plan()
    assert message in str(refusal.value)


WHOLE = (
    HEAD.replace(
        '"people.parquet"\n', '"people.parquet"\nunit = "age"\nmax_rows = 2\nneighbours = "add-remove"\nrows = 400\n'
    )
    + STUDY
    + 'delta = 1e-9\nname = "n"\nanalyst = "a"\nsampling_rate = 0.5\nplan_epsilon = 0.5\nplan_reserve = 0.1\n'
    + "plan_fit = false\n[expected]\nrows = 400\nincome = [9.0, 5.0]\n"
    + COUNT
    + 'where = "age > 3"\nname = "c"\nrounded = false\nfor_population = false\n'
    + "weight = 2.0\nwithin = 9.0\nconfidence = 0.9\n"
    + '[[statistics]]\nkind = "histogram"\ncolumn = "age"\nbins = 3\n'
    + '[[statistics]]\nkind = "quantiles"\ncolumn = "age"\nprobabilities = [0.5]\n'
    + '[[statistics]]\nkind = "marginals"\ncolumns = ["sex", "age"]\nway = 2\n'
)
WRONG = (
    "5",
    "-1.5",
    "nan",
    "true",
    '""',
    '"x"',
    "[]",
    "[5]",
    '["x"]',
    "[[1]]",
    "[{ a = 1 }]",
    "{ a = [1] }",
    "2024-01-01",
)


@pytest.mark.slow
@pytest.mark.parametrize("wrong", WRONG)
def test_nothing_of_a_wrong_type_is_a_traceback(write: Path, wrong: str) -> None:
    """Every line of a whole file in turn; `source = 5` and `unit = 5` were."""
    lines = WHOLE.splitlines()
    for place, line in enumerate(lines):
        key, equals, _ = line.partition(" = ")
        if equals:
            changed = [*lines[:place], f"{key} = {wrong}", *lines[place + 1 :]]
            write.write_text("\n".join(changed))
            try:
                asked = read_study(write)
                assert asked.dataset is not None and asked.expected is not None
            except FarthingError as refusal:
                assert str(refusal)
    with pytest.raises(FarthingError, match=r"dataset\.source=5: must be the name of a file"):
        write.write_text(HEAD.replace('"people.parquet"', "5") + STUDY + COUNT)
        read_study(write).dataset  # noqa: B018


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("income = 'a lot'", "expected['income']='a lot': must be (mean, standard deviation)"),
        ("income = ['a', 'lot', 'x']", "must be (mean, standard deviation) or a list of public values"),
        ("income = { mean = 1 }", "must have mean and sd"),
        ("income = [-5.0, 1.0]", "must have its mean between 0 and 250000"),
        ("age = { mean = 40, sd = 9, missing = 2 }", "must be a share of the rows, below 1"),
        ("sex = { F = 'half' }", "must map categories to shares"),
        ("sex = { X = 0.5 }", "expected['sex']='X': must be a category"),
        ("rows = -3", "expected['rows']=-3.0: must be a number of rows, at least 1"),
        ('"count by age" = "many"', "must be a number >= 0"),
    ],
)
def test_what_is_expected_of_columns_that_nobody_asks_about_is_checked_too(
    write: Path, line: str, message: str
) -> None:
    write.write_text(HEAD + STUDY + f"[expected]\n{line}\n[[statistics]]\nkind = 'count'\n")
    with pytest.raises(FarthingError) as refusal:
        read_study(write).plan()
    assert message in str(refusal.value)


@pytest.mark.parametrize("make", [lambda p: None, lambda p: p.mkdir(), lambda p: p.write_bytes(b"\xff\xfe")])
def test_a_file_that_cannot_be_read_says_so(tmp_path: Path, make: object) -> None:
    make(tmp_path / "study.toml")  # type: ignore[operator]
    with pytest.raises(FarthingError, match="cannot be read"):
        read_study(tmp_path / "study.toml")


def test_a_ledger_elsewhere_is_an_address(write: Path) -> None:
    write.write_text(HEAD + STUDY.replace("study.db", "postgresql://host/farthing") + COUNT)
    assert read_study(write).ledger_url == "postgresql://host/farthing"


def test_a_study_that_asks_for_other_things_needs_no_statistics(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text(HEAD + STUDY)
    assert read_study(file, statistics=False).statistics == ()
    file.write_text(HEAD + STUDY + "[statistics]\nkind = 'count'\n")
    with pytest.raises(ValueError, match="must be a list of at least one"):
        read_study(file, statistics=False)


STEPS = """\
[[steps]]
where = "age >= 18"
[[steps]]
derive = { share = "income / 250000", rough = { of = "income / age", range = [0.0, 9_000.0] } }
[[steps]]
clip = { income = [0, 100_000] }
[[steps]]
bin = { age = [40, 65] }
[[steps]]
select = ["sex", "age", "income"]
"""


def test_steps_are_those_of_python(write: Path) -> None:
    write.write_text(HEAD + STUDY + STEPS + COUNT)
    read = read_study(write).dataset
    by_hand = dataset_of_tables(tomllib.loads(HEAD), write.parent)
    by_hand = by_hand.where("age >= 18").derive(share="income / 250000", rough=("income / age", (0.0, 9_000.0)))
    by_hand = by_hand.clip(income=(0, 100_000)).bin(age=[40, 65]).select("sex", "age", "income")
    assert read.definition == by_hand.definition
    people = '[[steps]]\nper_unit = { visits = "count()", most = { of = "max(income)", range = [0, 10] } }\n'
    write.write_text(HEAD.replace('parquet"', 'parquet"\nunit = "age"\nmax_rows = 3') + STUDY + people + COUNT)
    assert list(read_study(write).dataset.schema) == ["visits", "most"]


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ('where = "age >"', "expression, character"),
        ('where = "age"', r"steps\[1\].where.where='age': must be true or false"),
        ('wher = "age > 1"', "must have one of where, derive"),
        ('where = "age > 1"\nselect = ["age"]', "one word a step"),
        ("where = 3", "must be a text"),
        ('select = "age"', "must be a list of columns"),
        ('explode = { column = "age" }', "must have a column and a limit"),
        ('per_unit = { visits = "count()" }', "must be a column to have one row a unit"),
        ("clip = { self = [0, 1] }", "must be a column of the schema"),
        ("derive = { old = { as = 'age > 65' } }", r"steps\[1\].derive.old=.*must be a text, or have of and range"),
    ],
)
def test_a_wrong_step_is_said_with_its_number(write: Path, step: str, words: str) -> None:
    write.write_text(f"{HEAD}{STUDY}[[steps]]\n{step}\n{COUNT}")
    with pytest.raises(FarthingError, match=words):
        read_study(write).dataset  # noqa: B018


def test_a_step_that_uses_what_is_unknown_says_what_to_declare(write: Path) -> None:
    """Steps are made before the ledger is open: they could not use it after `farthing discover` either."""
    unknown = HEAD.replace("income = { range = [0, 250_000] }", 'income = { unknown = "number" }')
    for step in ('where = "income > 50"', 'derive = { rich = "income > 50" }'):
        write.write_text(f"{unknown}{STUDY}[[steps]]\n{step}\n{COUNT}")
        words = r"steps\[1\]\.\w+='income': is declared as unknown, and steps come before any search; find it first"
        with pytest.raises(InvalidValue, match=words):
            read_study(write).dataset  # noqa: B018


LINKED = """\
[dataset]
table = "drugs"
unit = "persons.person_id"
[keys]
"visits.person_id" = "persons.person_id"
"drugs.visit_id" = "visits.visit_id"
[tables.persons]
source = "persons.csv"
schema = { sex = { categories = ["F", "M"] } }
[tables.visits]
source = "visits.csv"
max_rows = 5
schema = { ward = { categories = ["A", "B"] } }
[tables.drugs]
source = "drugs.csv"
max_rows = 3
schema = { drug = { categories = ["x", "y"] } }
"""
JOINS = """\
[[steps]]
join = "visits"
[[steps]]
join = { table = "persons", how = "left" }
[[steps]]
join = { public = "wards.csv", on = "ward", how = "left" }
[[steps]]
join = { public = [{ sex = "F", weight = 1 }, { sex = "M", weight = 2 }], on = "sex" }
"""


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """A folder with three tables of a hospital, and a public one."""
    rows = {
        "persons": "person_id,sex\n1,F\n2,M\n",
        "visits": "visit_id,person_id,ward\n7,1,A\n8,2,B\n",
        "drugs": "visit_id,drug\n7,x\n7,y\n8,x\n",
        "wards": "ward,floor\nA,1\nB,2\n",
    }
    for name, text in rows.items():
        (tmp_path / f"{name}.csv").write_text(text)
    return tmp_path


def test_linked_tables_of_a_file_are_those_of_python(tables: Path) -> None:
    file = tables / "study.toml"
    file.write_text(LINKED + STUDY + JOINS + COUNT)
    read = read_study(file).dataset
    by_hand = linked(
        persons=linked_table([tables / "persons.csv"], schema={"sex": ["F", "M"]}),
        visits=linked_table([tables / "visits.csv"], schema={"ward": ["A", "B"]}),
        drugs=linked_table([tables / "drugs.csv"], schema={"drug": ["x", "y"]}),
        unit="persons.person_id",
        keys={"visits.person_id": "persons.person_id", "drugs.visit_id": "visits.visit_id"},
        max_rows={"visits": 5, "drugs": 3},
    )["drugs"]
    by_hand = by_hand.join("visits").join("persons", how="left")
    by_hand = by_hand.join([{"ward": "A", "floor": 1}, {"ward": "B", "floor": 2}], on="ward", how="left")
    by_hand = by_hand.join([{"sex": "F", "weight": 1}, {"sex": "M", "weight": 2}], on="sex")
    assert read.definition == by_hand.definition
    assert read.exact({"n": Count(by=["sex", "floor"])})["n"].tolist() == [[2, 0], [0, 1]]


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ('table = "drugs"', 'table = "drug"', "dataset.table='drug': must be one of persons, visits, drugs"),
        ('table = "drugs"', 'source = "drugs.csv"', "dataset.source='drugs.csv': is not known; there are: table, unit"),
        ('unit = "persons.person_id"', "", "dataset.unit=None: must be given; such as"),
        ("max_rows = 3", 'max_rows = "auto"', r"max_rows\['drugs'\]='auto': must be a number in linked tables"),
        ("max_rows = 3", "rows = 3", "tables.drugs.rows=3: is not known; there are: source, max_rows, schema"),
        ('source = "visits.csv"', "", "tables.visits.source=None: must be given"),
        ("[tables.drugs]", "[tables.unit]", "must be one of persons, visits, unit"),
        ('["x", "y"]', "[]", "tables.drugs.schema.drug.*must be filled in"),
        ('"drugs.visit_id" = "visits.visit_id"', "", "must lead from 'drugs' to 'persons'"),
        ("[[steps]]\n", "[schema]\nage = { flags = true }\n[[steps]]\n", "must stand with each table"),
        ('join = "visits"', 'join = "visit"', "is not one of the linked tables"),
        ('join = "visits"', "join = 3", "must be the name of a linked table"),
        ('join = "visits"', 'join = { public = "wards.csv" }', "the columns it is looked up by"),
        ('"wards.csv"', '"none.csv"', "must be a CSV or Parquet file that can be read"),
    ],
)
def test_wrong_words_about_linked_tables_are_said_with_their_place(
    tables: Path, before: str, after: str, words: str
) -> None:
    file = tables / "study.toml"
    file.write_text((LINKED + STUDY + JOINS + COUNT).replace(before, after, 1))
    with pytest.raises(FarthingError, match=words):
        read_study(file).dataset  # noqa: B018
