"""study.toml: read as it is meant, and what is wrong with it is said with its place, before anything is opened."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from farthing.errors import FarthingError
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
        (HEAD + STUDY + "[budget]\n" + COUNT, "budget={}: is not known; there are: dataset, schema, study"),
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
