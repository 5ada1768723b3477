"""`farthing demo`: a study from end to end on made-up people, and a report that stands alone."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from farthing.cli import demo_command as survey
from farthing.cli import main
from farthing.ledger import Receipt, open_ledger
from farthing.study.documents.study_file import read_study

pytestmark = pytest.mark.slow  # one whole study


def demo(folder: Path) -> Result:
    return CliRunner(env={"COLUMNS": "120"}).invoke(main, ["demo", "--out", str(folder)])


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp("demo") / "made" / "here"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(survey, "PEOPLE", 3000)
        result = demo(folder)
    assert result.exit_code == 0, result.output
    return result.stdout, folder


def test_the_demo_plans_compares_releases_and_says_where_everything_is(told: tuple[str, Path]) -> None:
    printed, folder = told
    for number in range(1, 6):
        assert re.search(rf"^{number}\. ", printed, re.M)
    for fact in (
        "3,000 made-up people",
        "nothing is spent",
        "exact curves (charged)",
        "mean of income",
        "truth",
    ):
        assert fact in printed
    for name in ("survey.parquet", "study.toml", "study.db", "receipt.json", "report.html"):
        assert str(folder / name) in printed and (folder / name).exists()


def test_sixty_means_cost_far_less_than_their_sum(told: tuple[str, Path]) -> None:
    summed, own = (
        float(re.search(rf"^{name}.*?([\d.]+)$", told[0], re.M)[1])  # type: ignore[index]
        for name in ("plain sum", r"exact curves \(charged\)")
    )
    assert summed > 3 * own


def test_the_ledger_has_one_charge_and_the_receipt_is_its_own(told: tuple[str, Path]) -> None:
    with open_ledger(told[1] / "study.db") as ledger:
        budget = ledger.budget("survey.parquet")
        receipt = Receipt.from_json((told[1] / "receipt.json").read_text())
        assert budget.count == 1 and 0.999 < budget.spent_upper <= 1.0
        assert ledger.verify(receipt).ok


def test_most_answers_hold_the_truth(told: tuple[str, Path]) -> None:
    """23 answers at 95%: fewer than 14 happens once in some ten million runs."""
    inside, of = map(int, re.search(r"(\d+) of (\d+) answers have the truth", told[0]).groups())  # type: ignore[union-attr]
    assert of == 23 and inside >= 14


def test_a_second_run_is_answered_from_the_ledger(told: tuple[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey, "PEOPLE", 3000)
    again = demo(told[1])
    assert again.exit_code == 0, again.output
    assert "nothing is spent" in again.stdout
    release = told[0][told[0].index("4. The release") :].splitlines()
    answers = [line for line in release if line.startswith("histogram of age")]
    assert answers and all(line in again.stdout for line in answers)
    with open_ledger(told[1] / "study.db") as ledger:
        assert ledger.budget("survey.parquet").count == 1


class Addresses(HTMLParser):
    """Every attribute that could make a browser fetch something."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.found += [
            f"{tag} {name}={value}" for name, value in attrs if name in {"src", "href", "xlink:href", "data"}
        ]


def test_the_report_loads_nothing(told: tuple[str, Path]) -> None:
    page = (told[1] / "report.html").read_text(encoding="utf-8")
    parser = Addresses()
    parser.feed(page)
    assert parser.found == []
    assert not parser.tags & {"script", "link", "iframe", "img", "object", "embed"}
    assert "svg" in parser.tags
    assert set(re.findall(r"https?://[^\s\"'<>)]+", page)) <= {"http://www.w3.org/2000/svg"}
    assert "url(" not in page


def test_the_truths_are_those_of_the_study(told: tuple[str, Path]) -> None:
    asked = read_study(told[1] / "study.toml")
    found = survey.truths(survey.survey())
    assert list(found) == [statistic.name for statistic in asked.statistics]
    assert all(np.isfinite(values).all() for values in found.values())


def test_a_folder_with_another_study_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text("mine")
    result = demo(tmp_path)
    assert result.exit_code == 2 and "holds another study already" in result.stderr
    assert (tmp_path / "study.toml").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["study.toml"]


def test_a_place_that_is_no_directory_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("here first")
    result = demo(place)
    assert result.exit_code == 2
    assert "cannot be made a directory" in result.stderr
