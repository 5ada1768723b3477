"""`farthing demo`: the accountant's story, with an HTML report at the end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from farthing.errors import InvalidValue

if TYPE_CHECKING:
    from rich.console import Console

    from farthing.cli.story import Chapter

REPORT = "report.html"


@click.command("demo")
@click.option(
    "--out", default="farthing-demo", show_default=True, metavar="DIR", help="Where the report goes."
)
def demo_command(out: str) -> None:
    """Tell the accountant's story on made-up charges, and write it with its pictures to DIR/report.html."""
    from rich.console import Console

    from farthing import __version__
    from farthing.cli.report import page_of
    from farthing.cli.story import chapters
    from farthing.cli.waiting import stages
    from farthing.plots._style import require_renderer

    require_renderer()
    folder = _made(Path(out))
    console = Console()
    told: list[Chapter] = []
    for chapter in chapters():
        told.append(chapter)
        _tell(len(told), chapter, console)
    with stages(Console(stderr=True)) as work:
        work.begin("drawing")
        (folder / REPORT).write_text(page_of(told, __version__), encoding="utf-8")
    click.echo(f"The report with its pictures: {folder / REPORT}")


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        rule = f"cannot be made a directory ({problem.strerror})"
        raise InvalidValue("out", str(folder), rule, "choose another") from None
    return folder


def _tell(number: int, chapter: Chapter, console: Console) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    console.print(Text(f"{number}. {chapter.title}", style="bold"))
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, column in enumerate(chapter.columns):
        grid.add_column(column, justify="left" if place == 0 else "right", overflow="fold")
    for row in chapter.rows:
        grid.add_row(*(Text(cell) for cell in row))
    console.print(grid)
    console.print(chapter.moral, highlight=False, markup=False)
    console.print()
