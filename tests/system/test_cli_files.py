"""Long lists of charges: CSV files and standard input."""

from __future__ import annotations

import io
import json
import threading
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from farthing.accounting.comparison import Charges
from farthing.cli import charge_grammar as reading
from farthing.cli import main
from farthing.cli import terminal as waiting
from farthing.cli.charge_grammar import charges_of_text
from farthing.errors import InvalidValue


def rows(charges: Charges) -> list[tuple[float, float, int]]:
    return list(zip(charges.epsilons.tolist(), charges.deltas.tolist(), charges.counts.tolist(), strict=True))


@pytest.mark.parametrize(
    "text",
    [
        "0.1,1e-9,3\n0.2,0,1\n",
        "epsilon,delta,count\n0.1,1e-9,3\n0.2,0,1\n",
        "Epsilon,Delta,Count\r\n0.1,1e-9,3\r\n0.2,0,1\r\n",
        "\ufeffepsilon,delta,count\n0.1,1e-9,3\n0.2,0,1",
        "count,epsilon,delta\n3,0.1,1e-9\n1,0.2,0\n",
        '"epsilon","delta","count"\n"0.1","1e-9","3"\n"0.2","0","1"\n',
        "# survey of 2020\n\nepsilon,delta,count\n0.1,1e-9,3  # the means\n\n0.2,0,1\n\n",
        "0.1,1e-9x3\n0.2\n",
        "0.1,1e-9,3\n0.2x1\n",
        "0.1, 1e-9, 3.0\n 0.2 ,, \n",
    ],
)
def test_one_list_may_be_written_in_many_ways(text: str, tmp_path: Path) -> None:
    place = tmp_path / "charges.csv"
    place.write_text(text, encoding="utf-8", newline="")
    assert rows(reading.charges_of_file(str(place))) == [(0.1, 1e-9, 3), (0.2, 0.0, 1)]


def test_noise_words_and_numbers_mix_in_a_file() -> None:
    charges = charges_of_text("0.1\ngaussian:4x10\n0.2,1e-9\n")
    assert rows(charges) == [(0.1, 0.0, 1), (0.2, 1e-9, 1)]
    assert [count for _, count in charges.events] == [10]


def test_an_empty_file_is_refused_and_not_free() -> None:
    result = CliRunner().invoke(main, ["compose", "--file", "-", "--json"], input="# nothing\n\n")
    assert result.exit_code == 2 and "must hold at least one charge" in result.stderr


@pytest.mark.parametrize("as_word", [False, True])
def test_standard_input_adds_to_the_words(as_word: bool) -> None:
    source = ["-"] if as_word else ["--file", "-"]
    result = CliRunner().invoke(main, ["compose", "0.1x40", *source, "--json"], input="0.1,0,50\n0.1x10\n")
    data = json.loads(result.stdout)
    assert data["k"] == 100
    assert round(data["optimal"]["estimate"], 6) == 4.774568


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("-0.1", "epsilon must be a finite number >= 0"),
        ("nan", "epsilon must be a plain number"),
        ("inf", "epsilon must be a plain number"),
        ("0.1,2", "delta must be >= 0 and < 1"),
        ("0.1,nan", "delta must be a plain number"),
        ("0.1,0,-1", "count must be a whole number >= 0"),
        ("0.1,0,1.5", "count must be a whole number >= 0"),
        ("0.1,0,1e300", "count must be below 2^53"),
        ("0.1,0,1,7", "has 4 fields and at most 3 are known"),
        (",1e-9", "epsilon must be a plain number"),
        ("0.1;1e-9", "epsilon must be a plain number"),
        ("gaussian:0x5", "noise_multiplier must be a finite number > 0"),
        ("0.1x2.5", "count '2.5' must be a whole number >= 0"),
        ("hello", "epsilon must be a plain number"),
    ],
)
@pytest.mark.parametrize("before", [0, 2, 7])
def test_a_bad_line_is_refused_with_its_number(
    line: str, rule: str, before: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "BLOCK", 3)  # so that later blocks are tried with a few lines
    place = tmp_path / "charges.csv"
    # Good lines with as many fields as the bad one, so that the fast reader meets it and must refuse by value.
    good = ",".join(["0.5", "0", "1"][: line.count(",") + 1]) + "\n"
    place.write_text(good * before + f"{line}\n{good}", encoding="utf-8")
    result = CliRunner().invoke(main, ["compose", "--file", str(place)])
    assert result.exit_code == 2
    assert f"charges.csv line {before + 1}: charge=" in result.stderr
    assert rule in result.stderr
    assert result.stdout == ""


def test_a_header_with_unknown_or_missing_columns_is_refused() -> None:
    for header in ("epsilon,weight", "delta,count", "epsilon,epsilon"):
        with pytest.raises(InvalidValue, match=r"line 1: header=.*must name epsilon"):
            charges_of_text(f"{header}\n0.1,0.2\n")


def test_bytes_that_are_no_text_are_refused_with_their_line(tmp_path: Path) -> None:
    place = tmp_path / "charges.csv"
    place.write_bytes(b"0.1\n0.2\n\xff\xfe\n")
    result = CliRunner().invoke(main, ["compose", "--file", str(place)])
    assert result.exit_code == 2
    assert "line 3" in result.stderr and "UTF-8" in result.stderr


FIELD = st.one_of(
    st.floats(allow_nan=True).map(repr),
    st.sampled_from(
        [
            "",
            " ",
            "0",
            "1",
            "-0.0",
            "1e-9",
            ".5",
            "5.",
            "+1",
            "1_0",
            "0x10",
            "1e",
            "nan",
            "2.0",
            "#",
            '"1"',
            "١",
        ]
    ),
    st.text("0123456789.e+-, #x:", max_size=6),
)


@pytest.mark.slow
@given(st.lists(st.lists(FIELD, min_size=1, max_size=4).map(",".join), min_size=1, max_size=4))
def test_the_fast_and_the_slow_reader_take_the_same_lines(lines: list[str]) -> None:
    """Whatever NumPy's reader accepts, the line reader accepts too, with the same numbers."""
    fast = reading._block_of_numbers(lines, reading.COLUMNS)
    if fast is not None:
        assert rows(fast) == rows(reading._block_line_by_line(lines, reading.COLUMNS, "text", 1))


@pytest.mark.slow
def test_a_block_of_numbers_takes_the_fast_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """A million lines are read in about a second because none of them is looked at alone."""

    def never(*_: object) -> Charges:
        raise AssertionError("read line by line")

    monkeypatch.setattr(reading, "_block_line_by_line", never)
    count = 250_000
    epsilons = np.random.default_rng(5).uniform(0.001, 0.1, count)
    text = "epsilon,delta,count\n" + "\n".join(f"{epsilon!r},1e-9,2" for epsilon in epsilons.tolist())
    heard: list[float] = []
    charges = charges_of_text(text, progress=heard.append)
    assert np.array_equal(charges.epsilons, epsilons)
    assert charges.k == 2 * count
    assert heard == sorted(heard) and heard[-1] == 1.0 and len(heard) == 3


def test_a_bar_appears_on_a_terminal_only_when_work_takes_long() -> None:
    def shown(patience: float, *, terminal: bool) -> str:
        screen = io.StringIO()
        started = threading.Event()
        with waiting.stages(Console(file=screen, force_terminal=terminal, width=80), patience) as work:
            work.begin("reading", measured=True)
            work.share(0.5)
            if patience == 0:
                started.wait(0.3)
        return screen.getvalue()

    assert "reading" in shown(0, terminal=True)
    assert shown(0, terminal=False) == ""
    assert shown(60, terminal=True).strip("\x1b[?25hl") == ""
