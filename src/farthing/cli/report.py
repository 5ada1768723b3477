"""The story as one HTML page: pictures inside, no script, nothing to load."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from farthing.cli.story import Chapter
from farthing.plots.saving import svg_of

_STYLE = """
body { font: 16px/1.5 Helvetica, Arial, "DejaVu Sans", sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem;
       color: #1a1a1a; background: #fff; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.25rem; margin-top: 2.5rem; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { padding: .25rem .9rem .25rem 0; text-align: right; border-bottom: 1px solid #ddd;
         font-variant-numeric: tabular-nums; }
th:first-child, td:first-child { text-align: left; }
figure { margin: 1rem 0; overflow-x: auto; } svg { max-width: 100%; height: auto; }
footer { margin-top: 3rem; color: #555; font-size: .9rem; }
"""


def page_of(chapters: Sequence[Chapter], version: str) -> str:
    """The whole page as text.

    >>> page = page_of([Chapter("A claim", ("a",), (("1",),), "So what.")], "0.1")
    >>> "<h2>1. A claim</h2>" in page, "<script" in page
    (True, False)
    """
    body = "\n".join(_section(number, chapter) for number, chapter in enumerate(chapters, start=1))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>farthing: the accountant's story</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>What privacy costs, to the last farthing</h1>
<p>Every number below was computed when this page was made, on charges made up for the purpose. Intervals are proven:
the optimum lies inside them, rounding included.</p>
{body}
<footer>Made by <code>farthing demo</code>, farthing {escape(version)}. Nothing on this page loads anything.</footer>
</body>
</html>
"""


def _section(number: int, chapter: Chapter) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in chapter.columns)
    rows = "\n".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in chapter.rows
    )
    figure = "" if chapter.chart is None else f"<figure>{svg_of(chapter.chart)}</figure>"
    return (
        f"<section>\n<h2>{number}. {escape(chapter.title)}</h2>\n"
        f"<table><thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table>\n"
        f"<p>{escape(chapter.moral)}</p>\n{figure}\n</section>"
    )
