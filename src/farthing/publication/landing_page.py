"""The first page of a publication: what it is, its numbers, how far it protects, how to cite and verify it."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Mapping
from html import escape
from typing import Any

from farthing.inference.answers import with_interval
from farthing.publication.edition import Edition
from farthing.publication.publication_details import LICENCES

MOST_STATISTICS, MOST_CELLS = 12, 12
"""How many statistics, and numbers of each, are shown; the tables have all of them."""

_STYLE = """
:root { color-scheme: light dark; --ink: #1c1b19; --soft: #5f5b53; --line: #dcd8cf; --paper: #fffdf8; --card: #f6f2e8;
  --accent: #0b6150; }
@media (prefers-color-scheme: dark) { :root { --ink: #ece8df; --soft: #a9a397; --line: #3d3a34; --paper: #1b1a17;
  --card: #262420; --accent: #7ccdb9; } }
body { font: 16px/1.55 Helvetica, Arial, "DejaVu Sans", sans-serif; color: var(--ink); background: var(--paper);
  max-width: 54rem; margin: 0 auto; padding: 2rem 1rem 3rem; overflow-wrap: anywhere; }
h1 { font-size: 2rem; line-height: 1.2; margin: .3rem 0 .6rem; } h2 { font-size: 1.3rem; margin: 2.6rem 0 .6rem; }
h3 { font-size: 1.05rem; margin: 0; } a { color: var(--accent); } .soft { color: var(--soft); } p { margin: .5rem 0; }
.kind { color: var(--accent); font-weight: 600; font-size: .9rem; margin: 0; } .lead { font-size: 1.1rem; }
.numbers { display: flex; flex-wrap: wrap; gap: .8rem; margin: 1.2rem 0; padding: 0; list-style: none; }
.numbers li { flex: 1 1 6.5rem; background: var(--card); border-radius: 8px; padding: .7rem 1rem; }
.numbers b { display: block; font-size: 1.3rem; line-height: 1.3; }
.promise { border-left: 4px solid var(--accent); padding: .1rem 0 .1rem 1rem; margin: 1.2rem 0; }
.statistic { border: 1px solid var(--line); border-radius: 8px; padding: 1rem 1.2rem; margin: 1rem 0; }
.statistic img { display: block; max-width: 100%; height: auto; background: #fff; border-radius: 6px; margin: .8rem 0; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
td, th { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { font-weight: 600; } td + td, th + th { text-align: right; padding-right: 0; } .one { font-size: 1.3rem; }
.cite { background: var(--card); border-radius: 8px; padding: .8rem 1rem; margin: .6rem 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1.2rem; } dt { color: var(--soft); }
dd { margin: 0; } code { font-size: .95em; } footer { margin-top: 3rem; border-top: 1px solid var(--line); }
"""
_DIGEST = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
STYLE_DIGEST = f"sha256-{_DIGEST}"
"""By this the policy of a page that shows a landing page knows its style."""


def landing_page(edition: Edition, *, pictures: bool = True) -> str:
    """The page as HTML that loads nothing from elsewhere; a preview has no pictures, because they are files."""
    form = edition.publication
    facts = [
        (f"{edition.epsilon:.4g}", "epsilon"),
        (f"{edition.delta:.3g}" if edition.delta else "0", "delta"),
        (f"{len(edition.tables):,}", "statistic" if len(edition.tables) == 1 else "statistics"),
        (edition.day, "released"),
    ]
    numbers = "".join(f"<li><b>{escape(value)}</b>{label}</li>" for value, label in facts)
    warned = "".join(f"<p><b>Warning:</b> {escape(text)}</p>" for text in edition.release["warnings"])
    sections = "\n".join(_statistic(edition, one, pictures=pictures) for one in edition.tables[:MOST_STATISTICS])
    others = "".join(
        f"<tr><td>{escape(str(one['statistic']))}</td><td>{len(one['cells']):,} {_plural('number', one['cells'])}</td>"
        f"<td>{_links(one)}</td></tr>"
        for one in edition.tables[MOST_STATISTICS:]
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(form.title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<header>
<p class="kind">Differentially private statistics</p>
<h1>{escape(form.title)}</h1>
<p>{_authors(edition)}</p>
<p class="soft">{escape("; ".join(form.publishers))}. Version {form.version}, {edition.day}. {escape(form.region)}.</p>
<div class="lead"><p>{_paragraphs(form.description)}</p></div>
<ul class="numbers">{numbers}</ul>
<div class="promise"><p>Noise was added so that nothing here depends noticeably on {escape(edition.whom)}:
{escape(edition.guarantee)}. Intervals cover the noise only, not sampling or errors in the data.</p>{warned}</div>
</header>
<main>
<h2>The numbers</h2>
<p>Each with its {100 * float(edition.release["confidence"]):g}% interval.
<a href="report.html">The report</a> has all of them, with charts and what was spent.</p>
{sections}
{f"<div class='scroll'><table><tbody>{others}</tbody></table></div>" if others else ""}
{_about(edition)}
</main>
<footer class="soft"><p>Made by {escape(edition.software)}. This page loads nothing from elsewhere.</p></footer>
</body>
</html>
"""


def _authors(edition: Edition) -> str:
    parts = []
    for one in edition.publication.authors:
        name = escape(one.name)
        if one.orcid:
            name = f"<a href='https://orcid.org/{one.orcid}'>{name}</a>"
        parts.append(name + (f" <span class='soft'>({escape(one.affiliation)})</span>" if one.affiliation else ""))
    return "; ".join(parts)


def _statistic(edition: Edition, table: Mapping[str, Any], *, pictures: bool) -> str:
    """One statistic: its chart, its first numbers, its files."""
    cells, name = table["cells"], escape(str(table["statistic"]))
    counted = f"<p class='soft'>counts {escape(str(table['counts']))}</p>"
    drawn = pictures and len(cells) > 1 and any(one["value"] is not None for one in cells)
    chart = f"<img src='charts/{table['file']}.svg' alt='Chart of {name}' loading='lazy'>" if drawn else ""
    if len(cells) == 1 and not cells[0]["cell"]:
        numbers = f"<p class='one'>{_number(edition, cells[0])}</p>"
    else:
        rows = "".join(
            f"<tr><td>{escape(str(one['cell']))}</td><td>{_number(edition, one)}</td></tr>"
            for one in cells[:MOST_CELLS]
        )
        numbers = f"<div class='scroll'><table><tbody>{rows}</tbody></table></div>"
    left = len(cells) - MOST_CELLS
    more = f"<p class='soft'>... and {left:,} more in the table.</p>" if left > 0 else ""
    note = f"<p class='soft'>Note: {escape(str(table['note']))}.</p>" if table["note"] else ""
    files = f"<p>{_links(table)}</p>"
    return f"<section class='statistic'><h3>{name}</h3>{counted}{chart}{numbers}{more}{note}{files}</section>"


def _number(edition: Edition, cell: Mapping[str, Any]) -> str:
    if cell["value"] is None:
        return "withheld" if edition.release.get("withheld") else "unknown"
    ends = [math.nan if cell.get(end) is None else float(cell[end]) for end in ("lower", "upper")]
    lower, upper = (-math.inf if math.isnan(ends[0]) else ends[0]), (math.inf if math.isnan(ends[1]) else ends[1])
    return escape(with_interval(float(cell["value"]), lower, upper))


def _links(table: Mapping[str, Any]) -> str:
    file = table["file"]
    kinds = (
        ("tables", "csv", "CSV"),
        ("tables", "parquet", "Parquet"),
        ("charts", "svg", "SVG"),
        ("charts", "png", "PNG"),
    )
    return " ".join(f"<a href='{folder}/{file}.{ending}'>{word}</a>" for folder, ending, word in kinds)


def _about(edition: Edition) -> str:
    """What it is for, how to cite and to verify, who answers questions."""
    form = edition.publication
    assert form.contact is not None
    name, address = LICENCES[form.licence]
    email = escape(form.contact.email)
    facts = [
        ("Licence", f"<a href='{address}'>{escape(name)}</a>"),
        ("Questions", f"{escape(form.contact.name)}, <a href='mailto:{email}'>{email}</a>"),
        ("Subjects", escape("; ".join(form.subject))),
        ("Keywords", escape("; ".join(form.keywords))),
        ("Described at", _link(form.url)),
        ("Related", "<br>".join(_link(one) for one in form.related)),
        (
            "For programs",
            "<a href='ddi.xml'>DDI-Codebook</a>, <a href='croissant.jsonld'>Croissant</a>, "
            "<a href='registry.yaml'>registry record</a>, <a href='release.json'>JSON</a>",
        ),
    ]
    listed = "".join(f"<dt>{word}</dt><dd>{text}</dd>" for word, text in facts if text)
    return f"""<h2>What it is for</h2><p>{_paragraphs(form.purpose)}</p>
<h2>Why this unit and this epsilon</h2><p>{_paragraphs(form.rationale)}</p>
<h2>How it was made</h2>
<p><a href="methods.md">The methods</a> are a paragraph ready for a paper, with the mechanisms and their parameters.
Every row of a table carries its error, the unit of privacy and its notes.</p>
<h2>How to cite</h2><p class="cite">{escape(edition.citation)}</p><p><a href="CITATION.cff">CITATION.cff</a></p>
<h2>How to verify</h2>
<p><code>farthing verify</code> with this folder, or its zip file, checks the signature, every checksum, the
receipt, the tables, and that the stated epsilon follows from the stated mechanisms. It needs neither the data nor the
ledger. Compare the key in <a href="signature.json">signature.json</a> with the one that the publisher shows.</p>
<h2>About</h2><dl>{listed}</dl>"""


def _link(address: str) -> str:
    return f"<a href='{escape(address)}'>{escape(address)}</a>" if address else ""


def _plural(word: str, things: Any) -> str:
    return word if len(things) == 1 else f"{word}s"


def _paragraphs(text: str) -> str:
    return "</p><p>".join(escape(part) for part in text.split("\n\n"))
