"""The bench of ordinary statistics asks everybody the same, knows the truth, and leaves nobody out without a word."""

from __future__ import annotations

import io
import json
import math
from dataclasses import replace
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import mixed, mixed_contenders, peer_environments
from benchmarks.mixed import (
    OURS,
    ROWS,
    Outcome,
    Setting,
    about,
    best_peer,
    geometric_mean,
    kept_outcomes,
    mixed_targets,
    outcome,
    outcomes_of_peers,
    ratios,
    remarks,
    settings,
    show_mixed,
)
from benchmarks.mixed_farthing import KNOWN, expected_of, released
from benchmarks.mixed_tables import (
    CATEGORIES,
    QUESTIONS,
    Asked,
    People,
    adult,
    made_up,
    pairs,
    panel,
    some_ranges,
    twelve,
)
from benchmarks.own_errors import rows_of
from benchmarks.peer_environments import Environment, prepared, wanted
from benchmarks.peer_figures import PeerFigures, key_of
from benchmarks.peer_noise import (
    Known,
    exponential_choice,
    exponential_interval,
    gaussian,
    geometric,
    laplace,
    permute_and_flip,
)
from benchmarks.report import save
from rich.console import Console

SETTING = Setting("panel", "twelve", 1.0, 1e-9)


@pytest.fixture(scope="module")
def people() -> People:
    return made_up("a few", 3, 400, 3)


def test_truths_are_those_of_a_plain_loop_over_rows(people: People) -> None:
    ages, sexes = people.columns["age"], people.columns["sex"]
    hours = people.columns["hours_per_week"]
    truths = {asked.name: asked.truth(people) for asked in twelve()}
    edges = next(asked.edges for asked in twelve() if asked.name == "histogram of age")
    plain = [sum(low <= age < high or age == high == 90 for age in ages) for low, high in pairwise(edges)]
    assert truths["histogram of age"].tolist() == plain
    assert truths["mean of hours by sex"].tolist() == pytest.approx(
        [np.mean([h for h, s in zip(hours, sexes, strict=True) if s == sex]) for sex in (0, 1)]
    )
    table = np.zeros((16, 2))
    for school, sex in zip(people.columns["education"], sexes, strict=True):
        table[school, sex] += 1
    assert truths["count by education and sex"].tolist() == table.ravel().tolist()
    assert truths["variance of hours"][0] == pytest.approx(float(np.var(hours)))
    assert truths["median of weight"][0] == sorted(people.columns["fnlwgt"])[math.ceil(people.rows / 2) - 1]
    assert truths["count where hours > 45"][0] == sum(h > 45 for h in hours)
    (ranges,) = some_ranges()
    first, last = ranges.ranges[0]
    weights = people.columns["fnlwgt"]
    inside = [ranges.edges[first] <= weight < ranges.edges[last] for weight in weights]
    assert ranges.truth(people)[0] == sum(inside)


@pytest.mark.slow
@pytest.mark.parametrize("questions", ["twelve", "2-way marginals of six columns", "ranges"])
def test_farthing_answers_the_same_questions_in_the_same_order(questions: str, people: People) -> None:
    asked = QUESTIONS[questions]()
    found = released(people, asked, 1_000.0, 0.0, ROWS, 2)
    for one in asked:
        truth, answers = one.truth(people), np.array(found["answers"][one.name])
        assert answers.shape == (2, len(truth))
        off = (answers - truth)[:, one.compared(people)]
        assert 0 < found["predicted"][one.name] < 0.3 * np.abs(truth).max(), one.name
        assert np.abs(off).max() < 8 * found["predicted"][one.name], one.name
        assert 0 <= found["coverage"][one.name] <= 1


def test_expectations_are_true_or_off_by_two(people: People) -> None:
    asked = twelve()
    known = {what: expected_of(people, asked, what) for what in KNOWN}
    assert known[ROWS] == {"rows": people.rows}
    assert known["truth"]["count by sex"] == asked[1].truth(people).tolist()
    assert known["off by 2"]["rows"] == 2 * people.rows
    ratios_told = np.array(known["off by 2"]["count by sex"]) / asked[1].truth(people)
    assert ratios_told.tolist() == [2.0, 0.5]


def test_adult_without_its_file_is_made_up_and_says_so(tmp_path: Path) -> None:
    table = adult(tmp_path / "nothing.csv")
    assert table.made and "made-up" in table.name and table.rows == 48_842
    assert any("made up" in line for line in about([table], []))
    assert all("made-up" in setting.title for setting in settings(True, table.name, "panel")[:1])


def test_adult_is_read_from_its_file(tmp_path: Path) -> None:
    header = ["age", "hours_per_week", "capital_gain", "fnlwgt", *CATEGORIES]
    row = ["40", "38", "0", "1000", *(values[1] for values in CATEGORIES.values())]
    row[header.index("workclass")] = ""
    path = tmp_path / "adult.csv"
    path.write_text(",".join(header) + "\n" + ",".join(row) + "\n", encoding="utf-8")
    table = adult(path)
    assert (table.rows, table.made, table.columns["sex"].tolist()) == (1, False, [1])
    assert CATEGORIES["workclass"][table.columns["workclass"][0]] == "unknown"


def test_a_table_comes_whole_to_another_process(tmp_path: Path) -> None:
    table = panel(50)
    table.save(tmp_path / "table.npz")
    again = People.load(str(tmp_path / "table.npz"))
    assert (again.name, again.made, again.most_rows) == (table.name, table.made, 5)
    assert again.person is not None and table.person is not None
    assert again.person.tolist() == table.person.tolist()
    assert max(np.bincount(again.person)) <= 5
    assert all(again.columns[name].tolist() == table.columns[name].tolist() for name in table.columns)


def test_a_peers_releases_come_back_with_what_it_does_not_have(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    def peer(people: People, number: int, epsilon: float, delta: float) -> Any:
        def contender(asked: Asked) -> Any:
            if asked.kind == "variance":
                raise ValueError("needs more rows")
            return None if asked.kind == "quantiles" else lambda: asked.truth(people)

        return contender

    monkeypatch.setitem(mixed_contenders.PEERS, "somebody", peer)
    found = mixed_contenders.released("somebody", people, twelve(), 1.0, 0.0, 3, 60.0)
    assert found["missing"]["variance of hours"] == "ValueError: needs more rows"
    assert found["missing"]["median of weight"] == "has none"
    assert len(found["answers"]["count"]) == 3 and "variance of hours" not in found["answers"]
    lines = remarks([outcome(SETTING, "somebody", people, twelve(), found)])
    assert "somebody: variance of hours: ValueError: needs more rows" in lines


def test_a_peer_that_takes_too_long_is_named_with_what_it_did(people: People) -> None:
    from benchmarks.mixed import _too_slow

    def peer(people: People, number: int, epsilon: float, delta: float) -> Any:
        return lambda asked: lambda: asked.truth(people)

    mixed_contenders.PEERS["snail"] = peer
    try:
        found = mixed_contenders.released("snail", people, twelve()[:1], 1.0, 0.0, 3, -1.0)
    finally:
        del mixed_contenders.PEERS["snail"]
    assert found["missing"] == {"count": "0 releases in -1 s are too few to compare"}
    assert _too_slow(found) and _too_slow({"failure": "stopped after 9 s"})
    assert not _too_slow({"failure": "not installed"}) and not _too_slow({"answers": {"count": [[1.0]]}})


def outcomes_of(people: People, size: dict[str, float]) -> list[Outcome]:
    """Contenders whose errors have these sizes, alternately up and down."""
    turns = np.resize((1.0, -1.0), 10)
    asked = twelve()[:2]
    return [
        outcome(
            SETTING, name, people, asked,
            {
                "answers": {one.name: (one.truth(people) + size[name] * turns[:, None]).tolist() for one in asked},
                "predicted": {one.name: size[name] for one in asked},
                "coverage": {one.name: 0.95 for one in asked},
            },
        )
        for name in size
    ]  # fmt: skip


def test_ratios_are_to_the_best_peer_and_never_to_ourselves(people: People) -> None:
    found = outcomes_of(people, {OURS[ROWS]: 3.0, "one": 6.0, "other": 4.0})
    best = best_peer(found, "count")
    assert best is not None and best[0] == pytest.approx(4.0) and best[2] == "other"
    assert ratios(found, OURS[ROWS])["count"][0] == pytest.approx(0.75)
    assert geometric_mean([2.0, 0.5]) == pytest.approx(1.0)


def test_predictions_are_compared_with_what_they_are_about(people: People) -> None:
    (found,) = outcomes_of(people, {OURS[ROWS]: 3.0})
    assert found.said == {"count": 1.0, "count by sex": 1.0}
    assert replace(found, delivered={"count": 6.0}, predicted={"count": 3.0}).said == {"count": 0.5}
    asked = [one for one in twelve() if one.name == "mean of gain by workclass"]
    drawn = released(people, asked, 50.0, 0.0, ROWS, 2)
    needed = people.rows / 9 / 2 * 0.75
    assert (drawn["delivered"].keys() == {asked[0].name}) == bool((asked[0].counts(people) >= max(needed, 300)).any())


def test_the_best_peer_is_not_the_luckiest(people: People) -> None:
    """Two peers with the same law: chosen by one half and measured by the other, neither gains by luck."""
    asked = twelve()[0]
    turns = np.array([1.0, 3.0] * 5)
    answers = {
        "one": (asked.truth(people) + turns[:, None]).tolist(),
        "other": (asked.truth(people) + turns[::-1][:, None]).tolist(),
    }
    found = [outcome(SETTING, name, people, [asked], {"answers": {"count": own}}) for name, own in answers.items()]
    best = best_peer(found, "count")
    assert best is not None and best[0] == pytest.approx(3.0)  # the least of each half would have been 1


def test_the_report_has_every_statistic_ratio_and_absent_peer(people: People, tmp_path: Path) -> None:
    found = outcomes_of(people, dict.fromkeys(OURS.values(), 3.0) | {"one": 2.0})
    found.append(Outcome(SETTING, "absent", failure="not installed: no matching distribution"))
    targets = mixed_targets(found)
    over = [target for target in targets if " over the best peer" in target.what]
    assert {target.met for target in over} == {False} and len(over) == 6
    assert {target.met for target in targets if target not in over} == {True}  # what was said is what came out
    wrong = replace(found[0], predicted=dict.fromkeys(found[0].predicted, 4.0), coverage={"count": 0.5})
    assert [target.met for target in mixed_targets([wrong, *found[1:]])[-6:-4]] == [False, False]
    page = save(tmp_path, [], targets, mixed=[found], about_mixed=["panel: made up"]).read_text(encoding="utf-8")
    assert "| count | 3 | 3 | 3 | 2 | 2 | 1.50 ± 0.00 |" in page
    assert "absent: not installed: no matching distribution" in page and "panel: made up" in page
    stored = json.loads((tmp_path / "latest.json").read_text(encoding="utf-8"))["mixed"]
    assert stored["settings"][0][0]["ratios"]["count"] == pytest.approx(1.5)
    console = Console(record=True, width=200, file=io.StringIO())
    show_mixed(console, found)
    assert "absent" in console.export_text()


def test_squared_errors_of_known_noise_are_those_of_a_plain_sum() -> None:
    places = np.arange(-4000, 4001)
    chances = np.exp(-np.abs(places) / 7.0)
    for lower, truth in ((-np.inf, 3), (0.0, 3), (0.0, 500)):
        moved = np.maximum(truth + places, lower) - truth
        plain = float(np.sum(moved**2 * chances) / chances.sum())
        assert geometric(7.0, [truth], lower)[0] == pytest.approx(plain)
    grid = np.linspace(-400, 400, 800_001)
    density = np.exp(-np.abs(grid) / 7.0)
    for lower, upper, truth in ((-np.inf, np.inf, 5.0), (0.0, 30.0, 5.0), (0.0, 30.0, 0.0)):
        moved = np.clip(truth + grid, lower, upper) - truth
        plain = float(np.sum(moved**2 * density) / density.sum())
        assert laplace(7.0, [truth], lower, upper)[0] == pytest.approx(plain, rel=1e-6)
    assert gaussian(3.0, [1, 2]).tolist() == [9.0, 9.0]


def test_squared_errors_of_choices_are_those_of_all_orders_and_of_a_fine_grid() -> None:
    points, losses, truth = np.array([1.0, 2.0, 4.0, 9.0]), np.array([0.7, 0.0, 0.2, 3.0]), 2.5
    accepted = np.exp(-losses)
    chances = np.zeros(4)
    for order in permutations(range(4)):  # one after the other is taken with its chance, in a random order
        left = 1 / 24
        for place in order:
            chances[place] += left * accepted[place]
            left *= 1 - accepted[place]
    assert chances.sum() == pytest.approx(1)
    squares = (points - truth) ** 2
    assert permute_and_flip(points, losses, truth) == pytest.approx(float(chances @ squares))
    assert exponential_choice(points, losses, truth) == pytest.approx(float(accepted @ squares / accepted.sum()))
    fine = np.linspace(1.0, 9.0, 800_001)[:-1] + 5e-6
    density = accepted[np.searchsorted(points, fine) - 1]
    plain = float(density @ (fine - truth) ** 2 / density.sum())
    assert exponential_interval(points, losses[:3], truth) == pytest.approx(plain, rel=1e-6)


def test_known_noise_counts_as_it_is_and_only_where_the_releases_agree(people: People) -> None:
    asked = twelve()[0]
    answers = (asked.truth(people) + 10.0 * np.resize((1.0, -1.0), 60)[:, None]).tolist()
    believed, doubted = (
        outcome(SETTING, "one", people, [asked], {"answers": {"count": answers}, "squares": {"count": [size**2]}})
        for size in (10.5, 30.0)
    )
    assert believed.errors["count"].rmse == pytest.approx(10.5) and believed.errors["count"].spread == 0
    assert doubted.errors["count"].rmse == doubted.errors["count"].measured == pytest.approx(10.0)


def test_of_known_noise_a_few_releases_are_enough(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    def peer(people: People, number: int, epsilon: float, delta: float) -> Any:
        return lambda asked: Known(lambda: asked.truth(people), np.ones(asked.cells))

    monkeypatch.setitem(mixed_contenders.PEERS, "somebody", peer)
    found = mixed_contenders.released("somebody", people, twelve()[:1], 1.0, 0.0, 500, 60.0)
    assert len(found["answers"]["count"]) == mixed_contenders.ENOUGH and found["squares"] == {"count": [1.0]}


def test_a_fit_that_answers_all_statistics_is_made_once_a_release(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def peer(people: People, number: int, epsilon: float, delta: float) -> Any:
        return lambda asked: lambda: calls.append(asked.name) or asked.truth(people)

    monkeypatch.setitem(mixed_contenders.PEERS, "somebody", peer)
    monkeypatch.setattr(mixed_contenders, "TOGETHER", ("somebody",))
    found = mixed_contenders.released("somebody", people, twelve()[:2], 1.0, 0.0, 3, 60.0)
    assert calls == ["count", "count by sex"] * 3
    assert [len(found["answers"][name]) for name in calls[:2]] == [3, 3]


def test_figures_of_peers_are_kept_and_nothing_stale_is_taken(
    people: People, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = twelve()[:2]
    setting = Setting(people.name, "two", 1.0, 1e-9)
    environment = Environment("somebody", ("OpenDP", "OpenDP zCDP", "PyDP"), ("somebody==1",))
    calls: list[str] = []

    def by_peer(environment: Environment, contender: str, *_: Any) -> dict[str, Any]:
        calls.append(contender)
        if contender == "PyDP":
            return {"failure": "died"}
        return {"answers": {one.name: [(one.truth(people) + off).tolist() for off in (1, -1)] for one in asked}}

    monkeypatch.setattr(mixed, "_by_peer", by_peer)
    monkeypatch.setitem(QUESTIONS, "two", lambda: asked)
    path = tmp_path / "peers.json"

    def measured(own: Setting, peers: Environment = environment) -> list[Outcome]:
        return outcomes_of_peers(own, people, [peers], 2, lambda _: None, 1.0, PeerFigures(path))

    first = measured(setting)
    again = measured(setting)
    assert calls == ["OpenDP", "OpenDP zCDP", "PyDP", "PyDP"]  # what failed is tried again
    assert [one.errors for one in again] == [one.errors for one in first] and again[2].failure == "died"
    kept = kept_outcomes(setting, people, [environment], PeerFigures(path))
    assert [one.contender for one in kept] == ["OpenDP", "OpenDP zCDP"]
    calls.clear()
    measured(Setting(people.name, "two", 1.0, 1e-6))  # delta is nothing to noise without it
    assert calls == ["OpenDP zCDP", "PyDP"]
    newer = Environment("somebody", environment.contenders, ("somebody==2",))
    assert kept_outcomes(setting, people, [newer], PeerFigures(path)) == []
    other = made_up("a few", 4, 400, 3)
    assert kept_outcomes(setting, other, [environment], PeerFigures(path)) == []
    one, two = PeerFigures(tmp_path / "two.json"), PeerFigures(tmp_path / "two.json")
    one.put("a", {"errors": {}})
    two.put("b", {"errors": {}})
    two.put("slow", {"failure": "stopped"}, passing=True)
    later = PeerFigures(tmp_path / "two.json")
    assert two.get("slow") and [bool(later.get(key)) for key in ("a", "b", "slow")] == [True, True, False]
    keys = {key_of("OpenDP", ("a==1",), people, asked, "two", (epsilon, 0.0)) for epsilon in (1.0, 0.1)}
    assert len(keys) == 2


def test_farthing_alone_is_shown_beside_kept_figures(people: People) -> None:
    found = outcomes_of(people, {OURS[ROWS]: 3.0, "one": 6.0, "other": 4.0})
    rows = rows_of(found)
    assert rows[0] == ("count", "3", "0%", "4", "other", "0.75", "1.00", "95.0%")
    assert rows[-2][4:6] == ("other", "0.750") and rows[-1][5] == "0.750"
    assert rows_of(found[:1])[0][3:6] == ("–", "", "–")


def test_pins_are_versions_and_every_contender_has_an_environment() -> None:
    environments = wanted()
    assert sorted(name for one in environments for name in one.contenders) == sorted(mixed_contenders.PEERS)
    for one in environments:
        assert all("==" in package and "/" not in package for package in one.packages), one.name
    assert "://" not in peer_environments.PINS.read_text(encoding="utf-8")


@pytest.mark.draws(false_alarm=0, miss=0)  # nothing is drawn
def test_what_cannot_be_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pins = tmp_path / "peers.toml"
    pins.write_text('[nobody]\ncontenders = ["Nobody"]\npackages = ["nobody==1"]\n', encoding="utf-8")
    monkeypatch.setattr(peer_environments, "FOLDER", tmp_path / "peers")
    monkeypatch.setattr(peer_environments.sys, "executable", str(tmp_path / "no python"))
    (environment,) = prepared(lambda _: None, pins)
    assert environment.failure.startswith("not installed")
    assert "not installed" in about([], [environment])[0]


def test_an_environment_that_is_there_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_environments, "FOLDER", tmp_path)
    pins = tmp_path / "peers.toml"
    pins.write_text('[somebody]\ncontenders = ["Somebody"]\npackages = ["somebody==1"]\n', encoding="utf-8")
    (environment,) = wanted(pins)
    environment.stamp.parent.mkdir()
    environment.stamp.write_text(environment.digest, encoding="utf-8")
    assert prepared(pytest.fail, pins) == [Environment("somebody", ("Somebody",), ("somebody==1",))]


def test_all_pairs_of_six_columns_are_fifteen() -> None:
    assert len(pairs()) == 15 and len(QUESTIONS["60 overlapping means"]()) == 60
