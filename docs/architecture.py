"""Make `architecture.md`, `architecture.svg` and the map in `CONTRIBUTING.md` from `architecture.toml`: `make map`."""

from __future__ import annotations

import ast
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
TOP = DOCS.parent
SOURCE = TOP / "src" / "farthing"
BEGIN, END = "<!-- made by `make map` from docs/architecture.toml -->", "<!-- end of what is made -->"

_BOX, _GAP, _ROW, _EDGE = (148, 46), 22, 104, 24  # width and height of a box, space beside and below, margin

_INTRODUCTION = """\
The packages of `src/farthing`, what each is for, and three walks through the files. An arrow means *may import*. The
picture leaves out an arrow where a longer way leads to the same package; the lists below have all of them, and a test
refuses every other import ([why](decisions/import-arrows.md)).
"""
_WALKS = """\
## Three walks

Each list is a reading order. A test runs the walk and checks that every file is on the way.
"""


def architecture() -> dict[str, Any]:
    """The tables, as they are written."""
    return tomllib.loads((DOCS / "architecture.toml").read_text(encoding="utf-8"))


def made() -> dict[Path, str]:
    """Every file that is made, with its text."""
    tables = architecture()
    guide = TOP / "CONTRIBUTING.md"
    return {
        DOCS / "architecture.md": _page(tables),
        DOCS / "architecture.svg": picture(tables),
        guide: _with_map(guide.read_text(encoding="utf-8"), tables),
    }


def arrows(tables: dict[str, Any]) -> dict[str, list[str]]:
    """What each package may import, `open` ones included, in the order of the list."""
    packages = tables["packages"]
    order = list(packages)
    allowed = {}
    for name, facts in packages.items():
        named = set(order) - {name} if facts["imports"] == ["*"] else set(facts["imports"])
        above = {one for one in tables["open"] if order.index(one) < order.index(name)}
        allowed[name] = sorted(named | above, key=order.index)
    return allowed


def nearest(allowed: dict[str, list[str]]) -> dict[str, list[str]]:
    """The arrows that are not also a way through other arrows."""

    def below(name: str) -> set[str]:
        return {deeper for one in allowed[name] for deeper in {one, *below(one)}}

    return {
        name: [one for one in row if not any(one in below(other) for other in row)] for name, row in allowed.items()
    }


def picture(tables: dict[str, Any]) -> str:
    """The packages in layers, each above everything that it may import."""
    drawn = nearest(arrows(tables))
    rows, ways = _rows(drawn)
    width = max(map(_width, rows)) + 2 * _EDGE
    height = len(rows) * _ROW - (_ROW - _BOX[1]) + 2 * _EDGE
    places = {}
    for level, row in enumerate(reversed(rows)):
        left = (width - _width(row)) / 2
        for name in row:
            places[name] = (left + _wide(name) / 2, _EDGE + level * _ROW)
            left += _wide(name) + _GAP
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" '
        'font-family="system-ui, sans-serif" text-anchor="middle">',
        "<title>The packages of farthing and what each may import</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0 8 4 0 8z" fill="#5f7a78"/></marker></defs>',
        f'<rect width="{width:g}" height="{height:g}" rx="8" fill="#ffffff"/>',
    ]
    lines += [_arrow([places[name] for name in way]) for way in ways]
    lines += [_box(name, tables["packages"][name]["label"], *places[name]) for name in drawn]
    return "\n".join([*lines, "</svg>", ""])


def _rows(drawn: dict[str, list[str]]) -> tuple[list[list[str]], list[list[str]]]:
    """Layers from the bottom up, and the arrows: where one passes a layer, a narrow lane is kept free (`a>b`)."""
    level: dict[str, int] = {}
    while len(level) < len(drawn):
        level |= {
            name: 1 + max((level[one] for one in row), default=-1)
            for name, row in drawn.items()
            if name not in level and all(one in level for one in row)
        }
    rows = [[name for name in drawn if level[name] == number] for number in range(max(level.values()) + 1)]
    ways = []
    for name, targets in drawn.items():
        for one in targets:
            passed = range(level[name] - 1, level[one], -1)
            ways.append([name, *(f"{name}>{one}>{number}" for number in passed), one])
            for number in passed:
                rows[number].append(f"{name}>{one}>{number}")
    steps = [step for way in ways for step in pairwise(way)]
    for _ in range(8):  # things move over what they are connected with, upward and downward in turn
        for order, end in ((rows[1:], 1), (rows[-2::-1], 0)):
            for row in order:
                spots = {name: _middle(rows, name) for row in rows for name in row}
                row.sort(key=lambda name: _mean([spots[s[end]] for s in steps if s[1 - end] == name], spots[name]))
    return rows, ways


def _middle(rows: list[list[str]], name: str) -> float:
    row = next(row for row in rows if name in row)
    place = row.index(name)
    return _width(row[:place]) + _wide(name) / 2 - _width(row) / 2


def _mean(numbers: list[float], otherwise: float) -> float:
    return sum(numbers) / len(numbers) if numbers else otherwise


def _wide(name: str) -> int:
    return 8 if ">" in name else _BOX[0]


def _width(row: list[str]) -> int:
    return sum(_wide(name) + _GAP for name in row) - _GAP


def _arrow(points: list[tuple[float, float]]) -> str:
    """Down through every point, straight beside the boxes of a layer and bent between two layers."""
    path = f"M{points[0][0]:g} {points[0][1] + _BOX[1]:g}"
    for (x0, y0), (x1, y1) in pairwise(points):
        start, bend = y0 + _BOX[1], (y1 - y0 - _BOX[1]) / 2
        path += f"C{x0:g} {start + bend:g} {x1:g} {y1 - bend:g} {x1:g} {y1:g}"
        path += f"V{y1 + _BOX[1]:g}" if (x1, y1) != points[-1] else ""
    return f'<path d="{path}" fill="none" stroke="#5f7a78" stroke-width="1.2" marker-end="url(#tip)"/>'


def _box(name: str, label: str, x: float, y: float) -> str:
    return (
        f'<rect x="{x - _BOX[0] / 2:g}" y="{y:g}" width="{_BOX[0]}" height="{_BOX[1]}" rx="6" '
        'fill="#e0f2f1" stroke="#00796b"/>'
        f'<text x="{x:g}" y="{y + 19:g}" font-size="15" font-weight="600" fill="#00332e">{_shown(name)}</text>'
        f'<text x="{x:g}" y="{y + 36:g}" font-size="11" fill="#29524d">{label}</text>'
    )


def _shown(name: str) -> str:
    return "farthing" if name == "__init__" else name


def _door(name: str) -> str:
    """`numerics/` or `errors.py`."""
    return f"{name}/" if (SOURCE / name).is_dir() else f"{name}.py"


def _page(tables: dict[str, Any]) -> str:
    allowed = arrows(tables)
    parts = [
        "<!-- made by `make map` from architecture.toml: edit that, not this -->\n\n# Architecture\n",
        _INTRODUCTION,
        "![The packages of farthing in layers: each may import what its arrows lead to](architecture.svg)\n",
        "## Packages\n",
    ]
    for name, facts in tables["packages"].items():
        parts.append(f"### `{_door(name)}`\n\n{facts['text'].strip()}\n")
        parts.append(_imports_of(name, facts, allowed[name], tables))
    parts.append(_WALKS)
    for walk in tables["walks"]:
        files = [f"{n}. `{file}`: {_first_line(file)}" for n, file in enumerate(walk["files"], 1)]
        parts.append(f"### {walk['title']}\n\n{walk['text']}\n\n" + "\n".join(files) + "\n")
    return "\n".join(parts)


def _imports_of(name: str, facts: dict[str, Any], allowed: list[str], tables: dict[str, Any]) -> str:
    shown = "anything" if facts["imports"] == ["*"] else _listed(allowed) or "nothing"
    lines = [f"May import: {shown}."]
    for folder, table in tables["inside"].items():
        if folder.partition("/")[0] == name:
            rows = [f"{_part(folder, part)} -> {_listed(row, folder)}" for part, row in table.items() if row]
            if rows:
                lines.append(f"Inside `{folder}/`: " + "; ".join(rows) + ".")
    return "\n\n".join(lines) + "\n"


def _listed(names: list[str], folder: str = "") -> str:
    return ", ".join(_part(folder, name) for name in names)


def _part(folder: str, name: str) -> str:
    return f"`{name}`" if name != "." else "its own modules"


def _first_line(file: str) -> str:
    """The first sentence of a module, which says what is in it."""
    text = ast.get_docstring(ast.parse((SOURCE / file).read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0]


def _with_map(guide: str, tables: dict[str, Any]) -> str:
    before, _, rest = guide.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n```text\n{_map(tables)}\n```\n\n{END}{after}"


def _map(tables: dict[str, Any]) -> str:
    doors = {name: _door(name) for name in tables["packages"]}
    wide = max(map(len, doors.values())) + 1
    lines = ["src/farthing/"]
    for name, facts in tables["packages"].items():
        imports = facts["imports"]
        there = "anything" if imports == ["*"] else ", ".join(imports)
        lines.append(f"  {doors[name]:<{wide}} {facts['holds']}")
        if there:
            lines.append(f"  {'':<{wide}}   -> {there}")
    return "\n".join(lines)


def main() -> None:
    """Write every file that is made."""
    for path, text in made().items():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(TOP))


if __name__ == "__main__":
    main()
