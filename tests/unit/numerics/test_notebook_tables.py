"""What a notebook shows: nothing that was named by somebody is read as markup, and no colour is fixed."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow
import pytest

import farthing as ft
from farthing.numerics.notebook_tables import html_polygon, html_table, html_text, interval_mark, share_bar

HOSTILE = "<script>alert('x')</script>&\"<b>"
ALLOWED = {"div", "b", "table", "tr", "th", "td", "span", "pre", "svg", "rect", "path", "polygon"}


class Reader(HTMLParser):
    """The tags and the text of a page; tags must close in order."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        self.open.append(tag)
        assert not [name for name, _ in attrs if name.startswith("on")]

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(html: str) -> Reader:
    """What a browser would see; colours are those of the notebook, or greys that show on light and dark."""
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert not reader.open and reader.tags <= ALLOWED
    assert not re.search(r"#[0-9a-f]{3,6}\b|(?<!-)\bcolor:(?!inherit)", html)
    return reader


@pytest.mark.parametrize(
    "html",
    [
        html_table([HOSTILE], [[HOSTILE, 3]], title=HOSTILE, notes=[HOSTILE]),
        html_text(HOSTILE),
        html_polygon([(0, 1), (1, 0)], title=HOSTILE, notes=[HOSTILE]),
    ],
)
def test_what_somebody_wrote_is_shown_and_never_run(html: str) -> None:
    reader = read(html)
    assert HOSTILE in reader.text and "script" not in reader.tags


def test_bars_and_marks_stay_within_their_frame() -> None:
    for html in (share_bar([0.5, 0.9, 3.0]), share_bar([]), interval_mark(5, 4, 7, 0, 10)):
        read(html)
        for left, width in re.findall(r"left:([\d.]+)%;width:([\d.]+)%", html):
            assert 0 <= float(left) <= 100 and float(left) + float(width) <= 100.01
    assert interval_mark(1, 1, 1, 1, 1) == ""


@pytest.mark.slow
def test_everything_that_people_look_at_is_shown_in_a_notebook(tmp_path: Path) -> None:
    table = pyarrow.table({"sex": ["F", HOSTILE] * 50, "age": [30, 41] * 50})
    people = ft.dataset(table, schema={"sex": ["F", HOSTILE], "age": (0, 110)}, name="people", rows=100)
    study = ft.Study(people, epsilon=2.0, ledger=tmp_path / "study.db")
    plan = study.plan(ft.count(by="sex"), ft.mean("age"), epsilon=1.0)
    release = plan.release()
    by_sql = study.sql("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", epsilon=0.5).release()
    composed = ft.compose([0.1] * 10)
    shown = {
        "dataset": (people, ["sex", "0 to 110", HOSTILE]),
        "study": (study, ["spent", "left", "sex"]),
        "plan": (plan, ["count by sex", "95% error", "costs epsilon 1"]),
        "release": (release, ["count by sex (95%)", HOSTILE, "mean of age", release.request_id]),
        "answer": (release["count by sex"], ["count by sex (95%)", "±"]),
        "table": (by_sql.table, ["sex", "n (95%)", HOSTILE]),
        "sql release": (by_sql, [HOSTILE, by_sql.request_id]),
        "composition": (composed, ["10 charges together", "1e-06"]),
        "region": (ft.compose([(0.4, 0.1)]).region(), ["Region of", "false alarms"]),
        "ledger": (study.ledger, ["people", "charges"]),
    }
    for name, (value, words) in shown.items():
        text = read(value._repr_html_()).text
        assert all(word in text for word in words), name
    study.close()


def test_an_answer_is_a_number_where_it_is_one(tmp_path: Path) -> None:
    people = ft.dataset(pyarrow.table({"sex": ["F", "M"] * 50}), schema={"sex": ["F", "M"]}, name="people")
    study = ft.Study(people, epsilon=2.0, ledger=tmp_path / "study.db")
    release = study.plan(ft.count(), ft.count(by="sex")).release()
    assert float(release["count"]) == release["count"].value == release["count"].values
    with pytest.raises(ft.errors.InvalidValue, match="has several numbers"):
        _ = release["count by sex"].value
    frame = release["count by sex"].to_frame()
    assert list(frame.label) == ["F", "M"] and (frame.error > 0).all() and (frame.lower <= frame.value).all()
    assert next(iter(release["count"].to_frame().columns)) == "value"
    study.close()
