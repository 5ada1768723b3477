"""What is read from a CSV file is what Python's csv module reads, wherever a block or a buffer ends.

The readers cut files into blocks and buffers. Here these are a few dozen to a few thousand bytes long, so that small
files are cut in every place; a few files are of the size at which the real ones are cut.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import random
import stat
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

import farthing as ft
from farthing.curator import Curator
from farthing.data import Count, Sum, connection, csv_files, sources
from farthing.data.coded_rows import coded_axes, coded_rows
from farthing.data.csv_files import header, layout, ragged
from farthing.data.engines.duckdb import quiet
from farthing.data.sources import open_source
from farthing.data.steward_check import check
from farthing.errors import EngineError, InvalidData, InvalidValue
from farthing.ledger import open_ledger
from farthing.mechanisms import DiscreteLaplace

PIECES = [
    "a",
    "b",
    "1",
    " ",
    "é",
    "漢",
    "😀",
    "#",
    "\\",
    "'",
    "NULL",
    "\0",
    "\ufeff",
    "\u2028",
    "\x1a",
    ";",
    "|",
]
BREAKS = [",", '"', '""', "\n", "\r\n", "\r", "\n1,2,3\n"]
NOT_UTF8 = {  # and what Windows-1252 has for it
    b"\xff": "ÿ",
    b"\xc3": "Ã",
    b"\xe6\xbc": "æ¼",
    b"\x80": "€",
    b"\xed\xa0\x80": "í\xa0€",
    b"\xc0\x80": "À€",
    b"\x81": "\x81",
}


@pytest.fixture
def small_cuts(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    longest, block = request.param
    monkeypatch.setattr(csv_files, "LONGEST_ROW", longest)
    monkeypatch.setattr(sources, "LONGEST_ROW", longest)
    monkeypatch.setattr(csv_files, "_BLOCK", block)


def cells_of(source: Any) -> list[tuple[str, ...]]:
    """Every cell that is read, as text; a missing one as an empty one."""
    table = open_source(source)
    table.prepare()
    return [tuple(cell or "" for cell in row) for row in table.engine.rows(table.engine.sql(table.table))]


def count_of(source: Any) -> int:
    table = open_source(source)
    table.prepare()
    return int(table.engine.rows(table.engine.sql(table.table.count()))[0][0])


def by_the_csv_module(content: bytes) -> list[tuple[str, ...]]:
    text = io.StringIO(content.decode("utf-8-sig"), newline="")
    return [tuple(row) for row in csv.reader(text, strict=True) if row][1:]


def a_cell(luck: random.Random, longest: int = 40) -> tuple[str, str]:
    """A cell, and how it stands in the file."""
    size = luck.choice([0, 0, 1, 2, 5, luck.randrange(longest)])
    if luck.random() < 0.5:
        text = "".join(luck.choice(PIECES) for _ in range(size))
        return text, text
    text = "".join(luck.choice(PIECES + BREAKS) for _ in range(size))
    return text, '"' + text.replace('"', '""') + '"'


def a_table(luck: random.Random, rows: int, ends: Sequence[str], columns: int = 3) -> tuple[bytes, list[Any]]:
    lines, found = [",".join(f"c{place}" for place in range(columns)) + luck.choice(ends)], []
    for number in range(rows):
        cells = [(f"r{number}",) * 2, *(a_cell(luck) for _ in range(columns - 1))]
        lines.append(",".join(written for _, written in cells) + luck.choice(ends))
        found.append(tuple(text for text, _ in cells))
    content = "".join(lines)
    return (content.rstrip("\r\n") if luck.random() < 0.3 else content).encode(), found


@pytest.mark.slow
@pytest.mark.parametrize(
    "small_cuts",
    [(600, 61), *(pytest.param(cuts, marks=pytest.mark.slow) for cuts in ((600, 200), (2000, 1999)))],
    indirect=True,
)
@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
@pytest.mark.parametrize("ends", [["\n"], ["\r\n"], ["\n", "\r\n"]], ids=["feeds", "both", "mixed"])
def test_cells_are_those_of_the_csv_module_wherever_a_file_is_cut(
    tmp_path: Path, small_cuts: None, ending: str, ends: list[str]
) -> None:
    for seed in range(4):
        luck = random.Random(seed)
        content, expected = a_table(luck, luck.choice([1, 30, 400]), ends, luck.choice([1, 2, 5]))
        assert by_the_csv_module(content) == expected
        file = tmp_path / f"{seed}{ending}"
        bom = b"\xef\xbb\xbf" * (seed % 2)
        file.write_bytes(gzip.compress(bom + content) if ending.endswith("gz") else bom + content)
        assert cells_of(file) == expected
        assert count_of(file) == len(expected) == layout(str(file)).rows


@pytest.mark.slow
@pytest.mark.parametrize("small_cuts", [(600, 97)], indirect=True)
def test_a_row_that_is_too_short_too_long_or_in_another_encoding_leaves_alone(tmp_path: Path, small_cuts: None) -> None:
    for seed in range(4):
        luck = random.Random(seed)
        content, _ = a_table(luck, 1, ["\n"])
        parts, expected = [content.split(b"\n", 1)[0] + b"\n"], []
        for number in range(300):
            cells = [(f"{number}",) * 2, a_cell(luck), a_cell(luck)]
            written = [text.encode() for _, text in cells]
            kind = luck.randrange(12)
            if kind == 0:
                written.pop()
            elif kind == 1:
                written.append(b"more")
            elif kind == 2:
                letters = luck.choice(list(NOT_UTF8))
                written[1], cells[1] = b'"' + letters + b'\n"', (NOT_UTF8[letters] + "\n", "")
            elif kind == 3:  # from a little to very much longer than allowed, the line breaks at every parity
                written[2] = b'"' + b"x" * luck.randrange(2) + b"x\n7,8,9\n" * luck.choice([80, 400, 2000]) + b'"'
            if kind not in (0, 3):
                expected.append(tuple(text for text, _ in cells))
            parts.append(b",".join(written) + b"\n")
        file = tmp_path / f"{seed}.csv"
        file.write_bytes(b"".join(parts))
        assert cells_of(file) == expected


def test_pandas_leaves_a_carriage_return_bare_and_it_begins_no_row(tmp_path: Path) -> None:
    """So does Python's csv module before 3.13; a cell of a million of them was a million rows."""
    file = tmp_path / "notes.csv"
    file.write_bytes(b"note\nfirst\na\rb\rc\nlast\r\n")
    assert cells_of(file) == [("first",), ("a b c",), ("last",)]
    file.write_bytes(b"note\nfirst\n" + b"x\r" * 10**5 + b"y\nlast\n")
    assert count_of(file) == 3
    file.write_bytes(b"note\nfirst\nx\r\nlast\n")  # the cell ends with one: DuckDB made two rows of it
    assert cells_of(file) == [("first",), ("x",), ("last",)]
    file.write_bytes(b"note\r\nfirst\r\nx\nlast\r")
    assert cells_of(file) == [("first",), ("x",), ("last",)]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b'a,b\n1,"x\n2,y\n', 2),
        (b'a,b\n1,x\n2,"y\n\n', 3),
        (b'a,b\n1,"x"y\n2,z\n', 2),
        (b'a,b\n1,"x" \n2,z\n', 2),
        (b'a,b\n1,x\n2,5" pipe\n', 3),
        (b'a,b\n1, "x"\n', 2),
        (b'a,b\n1,"x\ny"\n2,"\\"z"\n', 4),
        (b'a,b\n1,""x"\n', 2),
        (b'a,b\n1,"x"\r2,y\n', 2),
        (b'a,b\n1,"', 2),
    ],
)
@pytest.mark.parametrize("small_cuts", [(600, 3), (2_000_000, 2**20)], indirect=True)
def test_quotes_out_of_place_are_found_with_their_line(
    tmp_path: Path, small_cuts: None, content: bytes, line: int
) -> None:
    file = tmp_path / "people.csv"
    file.write_bytes(content)
    found = layout(str(file))
    assert found.fault is not None and found.line == line
    with pytest.raises(InvalidData, match="a quote is not closed") as refusal:
        ft.dataset(file, schema={"a": (0, 9)}).exact({"rows": Count()})
    assert str(line) not in str(refusal.value)


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_a_file_whose_quotes_do_not_close_is_refused_and_nothing_is_charged(tmp_path: Path, ending: str) -> None:
    good, bad = b"a,b\n" + b"1,x\n" * 9, b'a,b\n1,"x\n' + b"1,x\n" * 9
    files = [tmp_path / f"good{ending}", tmp_path / f"bad{ending}"]
    for file, content in zip(files, (good, bad), strict=True):
        file.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    with open_ledger(tmp_path / "budget.db") as ledger:
        both = ft.dataset(files[0], schema={"a": (0, 9)}).union(ft.dataset(files[1], schema={"a": (0, 9)}))
        for people in (ft.dataset(files[1], schema={"a": (0, 9)}), both):
            name = f"people {people.rows_per_unit}"
            curator = Curator(ledger)
            curator.register(people, name, epsilon=5.0)
            with pytest.raises(InvalidData, match="a quote is not closed"):
                curator.answer(people, "n", Count(), DiscreteLaplace(0.5, 2), ledger_name=name)
            assert ledger.budget(name).count == 0


def test_a_file_is_looked_at_again_when_it_has_changed(tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_bytes(b"a,b\n1,x\n")
    people = ft.dataset(file, schema={"a": (0, 9)})
    assert people.exact({"n": Count(), "sum": Sum("a")})["n"] == 1
    file.write_bytes(b"a,b\n1,x\ry\n2,z\r\n3,z\n")  # now a copy is read
    assert people.exact({"n": Count()})["n"] == 3
    file.write_bytes(b'a,b\n1,"x\n2,z\n3,z\n')
    with pytest.raises(InvalidData, match="a quote is not closed"):
        people.exact({"n": Count()})
    file.write_bytes(b"a,b\n1,x\n2,z\n")
    assert people.exact({"n": Count()})["n"] == 2
    file.write_bytes(b"b,a\n1,x\n2,z\n")
    with pytest.raises(InvalidValue, match="has other columns now") as refusal:
        people.exact({"n": Count()})
    assert str(tmp_path) not in str(refusal.value)
    file.unlink()
    with pytest.raises(InvalidValue, match="cannot be read") as refusal:
        people.exact({"n": Count()})
    assert str(tmp_path) not in str(refusal.value)


def test_a_copy_can_be_read_by_its_owner_alone_and_goes_with_its_dataset(tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_bytes(b"a,b\n1,x\ry\n")
    source = open_source(file)
    source.prepare()
    assert source.csv is not None
    copy = next(iter(source.csv._read.values()))
    assert stat.S_IMODE(os.stat(copy).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(copy)).st_mode) == 0o700
    del source
    assert not os.path.exists(copy)


@pytest.mark.parametrize("first", [b'"a,b\n', b'"a\nb",c\n', b'a,b"c\n', b'"a"x,b\n'])
def test_a_header_that_goes_on_below_its_line_is_refused(tmp_path: Path, first: bytes) -> None:
    file = tmp_path / "people.csv"
    file.write_bytes(first + b"1,2\n")
    with pytest.raises(InvalidValue, match="must start with a line of column names"):
        header(str(file))


@pytest.mark.parametrize(
    ("sql", "refused"),
    [
        ("CREATE VIEW people AS SELECT * FROM '{file}'", True),
        ("CREATE VIEW people AS SELECT a FROM read_csv('{file}') WHERE a > 0", True),
        ("CREATE VIEW inner_ AS FROM read_csv_auto('{file}'); CREATE VIEW people AS FROM inner_", True),
        ("CREATE VIEW people AS FROM read_json('{file}.json')", True),
        ("CREATE TABLE people AS SELECT * FROM '{file}'", False),
        ("CREATE VIEW people AS SELECT 1 AS a, 'READ_CSV' AS b", False),
    ],
)
def test_a_view_of_a_text_file_is_refused(tmp_path: Path, sql: str, refused: bool) -> None:
    """DuckDB would scan it in parallel, and guess its types, for every query anew."""
    (tmp_path / "people.csv").write_bytes(b"a,b\n1,x\n")
    (tmp_path / "people.csv.json").write_bytes(b'{"a": 1}\n')
    tables = connection()
    tables.con.execute(sql.format(file=tmp_path / "people.csv"))
    with quiet():
        table = tables.table("people")
    if refused:
        with pytest.raises(InvalidValue, match="must not be a view of a text file"):
            ft.dataset(table, schema={"a": (0, 9)})
    else:
        assert ft.dataset(table, schema={"a": (0, 9)}).exact({"n": Count()})["n"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
def test_neighbours_in_large_files_of_prose_differ_by_the_row_that_they_differ_in(tmp_path: Path, ending: str) -> None:
    """Tens of megabytes: DuckDB's parallel scan cut such files every 8 MB, and made rows of the lines in a cell."""
    note = "\n".join(f'{line},"said" he, and it went on' for line in range(40))
    cell = '"' + note.replace('"', '""') + '"'
    rows = 27_000
    for short in (0, 1, 13):
        lines = [f"{number},{cell if number % 2 else 'x'}\n" for number in range(rows)]
        with_row, without = [*lines[:short], "7,a little row of bytes\n", *lines[short:]], lines
        counts = []
        for place, content in enumerate((with_row, without)):
            file = tmp_path / f"{short}-{place}{ending}"
            if ending == ".parquet":
                ids = [int(line.split(",", 1)[0]) for line in content]
                notes = [note if line.endswith('"\n') else "x" for line in content]
                pyarrow.parquet.write_table(pyarrow.table({"id": ids, "note": notes}), file)
            else:
                text = ("id,note\n" + "".join(content)).encode()
                assert len(text) > 16_000_000
                file.write_bytes(gzip.compress(text, 1) if ending.endswith("gz") else text)
            found = ft.dataset(file, schema={"id": (0, 10**5)}).exact({"n": Count(), "sum": Sum("id")})
            counts.append((int(found["n"]), int(found["sum"])))
            file.unlink()
        assert counts[1] == (rows, rows * (rows - 1) // 2)
        assert counts[0] == (counts[1][0] + 1, counts[1][1] + 7)


@pytest.mark.slow
@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_a_row_larger_than_a_buffer_takes_no_other_row_with_it(tmp_path: Path, ending: str) -> None:
    """With 40 MB in one quoted cell, DuckDB lost the rows after it, or made rows of the lines inside."""
    for odd in (b"", b"x"):
        giant = b'7,"' + odd + b"7,8\n" * 10**7 + b'"\n'
        counts = []
        for middle in (b"", giant):
            file = tmp_path / f"people{ending}"
            content = b"a,b\n" + b"1,x\n" * 1000 + middle + b"2,y\n" * 1000
            file.write_bytes(gzip.compress(content, 1) if ending.endswith("gz") else content)
            found = ft.dataset(file, schema={"a": (0, 9)}).exact({"n": Count(), "sum": Sum("a")})
            counts.append((int(found["n"]), int(found["sum"])))
        assert counts == [(2000, 3000)] * 2


def test_gzip_that_duckdb_cannot_unpack_is_read_before_anybody_pays(tmp_path: Path) -> None:
    """With a comment or a checksum in the header of a member, or zeros after the last one."""
    first, second = gzip.compress(b"age\n1\n", mtime=0), gzip.compress(b"2\n3\n", mtime=0)
    commented = second[:3] + bytes([second[3] | 16]) + second[4:10] + b"a comment\0" + second[10:]
    headed = first[:3] + bytes([first[3] | 2]) + first[4:10]
    checked = headed + (zlib.crc32(headed) & 0xFFFF).to_bytes(2, "little") + first[10:]
    for content in (first + second, first + commented, checked + second, first + second + bytes(512)):
        (tmp_path / "o'clock [1].csv.gz").write_bytes(content)
        rows = ft.dataset(tmp_path / "o'clock [1].csv.gz", schema={"age": (0, 110)})
        assert int(rows.exact({"rows": Count()})["rows"]) == 3


@pytest.mark.slow
def test_what_was_read_from_a_file_that_nobody_looked_at_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is replaced between the look and the query could hold a quote that swallows the rows of others."""
    file = tmp_path / "people.csv"
    file.write_text("n,t\n" + "1,a\n" * 10)
    people = ft.dataset(file, schema={"n": (0, 3), "t": ["a"]})
    for read in (
        lambda: people.exact({"n": Count()}),
        lambda: coded_rows(people, coded_axes(people.schema)),
    ):
        assert read() is not None
        with monkeypatch.context() as patch:
            opened_before = type(people).table

            def replaced(self: Any, run: Any, before: Any = opened_before) -> Any:
                file.write_text('n,t\n1,a\n1,"' + "a\n1," * 8 + 'a"\n')
                return before(self, run)

            patch.setattr(type(people), "table", replaced)
            with pytest.raises(EngineError, match="a file changed while it was read"):
                read()


@pytest.mark.parametrize("small_cuts", [(600, 61), (2000, 1999)], indirect=True)
@pytest.mark.parametrize("number", range(6))
def test_rows_of_another_length_are_those_of_the_csv_module(small_cuts: None, tmp_path: Path, number: int) -> None:
    luck = random.Random(number)
    lines = ["a,b,c"]
    for _ in range(80):
        cells = ["r", *(a_cell(luck)[1].replace("\r", "") for _ in range(luck.choice([0, 1, 2, 2, 2, 2, 3, 5])))]
        lines.append(luck.choice(["", "x"]) and ",".join(cells))
    path = tmp_path / "people.csv"
    path.write_text("\n".join(lines) + luck.choice(["", "\n"]), encoding="utf-8", newline="")
    with path.open(encoding="utf-8", newline="") as file:
        reader, begins, rows = csv.reader(file, strict=True), 1, []
        for row in reader:
            rows.append((len(row), begins))
            begins = reader.line_num + 1
    short = [line for cells, line in rows if 0 < cells < 3]
    long = [line for cells, line in rows if cells > 3]
    found = ragged(str(path))
    assert (found.short, found.long) == (len(short), len(long)) and short and long
    assert (found.short_line, found.long_line) == (short[0], long[0])


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_a_file_of_windows_or_latin_1_is_read_with_its_letters(tmp_path: Path, encoding: str, ending: str) -> None:
    names = ["Köln", "Åre", "São «Paulo»", "Bonn"] + ["“€”"] * (encoding == "cp1252")
    content = "town,note\n" + "".join(f'{name},"{name}\n""{name}"""\n' for name in names)
    file = tmp_path / f"towns{ending}"
    written = content.encode(encoding)
    file.write_bytes(gzip.compress(written) if ending.endswith("gz") else written)
    assert cells_of(file) == [(name, f'{name}\n"{name}"') for name in names]
    report = check(ft.dataset(file, schema={"town": names}))
    assert "letters of Windows-1252" in str(report) and report.columns[0].unread == 0


@pytest.mark.parametrize(("small_cuts"), [(600, 5), (600, 7)], indirect=True)
def test_text_that_is_utf8_stays_so_beside_bytes_that_are_not(tmp_path: Path, small_cuts: None) -> None:
    file = tmp_path / "mixed.csv"
    file.write_bytes("Köln,漢字,𝄞\n".join(["a,b,c\n", "", "", ""]).encode() + b"K\xf6ln,\xe6\xbc\xa2\x93,\xf0\x9d")
    assert cells_of(file) == [("Köln", "漢字", "𝄞")] * 3 + [("Köln", "漢“", "ð\x9d")]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_utf_16_is_refused_in_words(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "towns.csv"
    file.write_bytes("town,age\nKöln,3\n".encode(encoding))
    with pytest.raises(InvalidValue, match="must be UTF-8 text, and its first line is not; save it as UTF-8"):
        ft.dataset(file, schema={"age": (0, 9)})


def test_lines_that_end_in_carriage_returns_alone_are_refused_with_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "towns.csv"
    file.write_bytes(b"town,age\rBonn,3\rKoeln,4\r")
    with pytest.raises(InvalidValue, match="add a header line, and end lines with line feeds"):
        ft.dataset(file, schema={"age": (0, 9)})
