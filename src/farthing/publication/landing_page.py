"""The first page of a publication: what it is, how far it protects, what is in it, how to cite and verify it."""

from __future__ import annotations

from html import escape

from farthing.publication.edition import Edition
from farthing.publication.publication_form import LICENCES

_STYLE = """
:root { color-scheme: light dark; --soft: #6b655b; --line: #8885; }
body { font: 16px/1.55 Helvetica, Arial, "DejaVu Sans", sans-serif; max-width: 50rem; }
body { margin: 2rem auto; padding: 0 1rem; }
h1 { line-height: 1.2; } .soft { color: var(--soft); } table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; padding: .35rem .8rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
.numbers { display: flex; flex-wrap: wrap; gap: 1rem 2rem; padding: 0; list-style: none; }
.numbers b { display: block; font-size: 1.3rem; } .scroll { overflow-x: auto; }
"""


def landing_page(edition: Edition) -> str:
    """The page as HTML that loads nothing from elsewhere."""
    form = edition.publication
    who = "; ".join(
        escape(one.name) + (f" <span class='soft'>({escape(one.affiliation)})</span>" if one.affiliation else "")
        for one in form.authors
    )
    tables = "".join(
        f"<tr><td>{escape(str(one['statistic']))}</td><td>{escape(str(one['counts']))}</td><td>{len(one['cells']):,}</td>"
        f"<td><a href='tables/{one['file']}.csv'>CSV</a> <a href='tables/{one['file']}.parquet'>Parquet</a> "
        f"<a href='charts/{one['file']}.svg'>chart</a></td></tr>"
        for one in edition.tables
    )
    facts = [
        (f"{edition.epsilon:.4g}", "epsilon"),
        (f"{edition.delta:g}", "delta"),
        (f"{len(edition.tables):,}", "statistics"),
        (edition.day, "released"),
    ]
    numbers = "".join(f"<li><b>{escape(value)}</b>{label}</li>" for value, label in facts)
    warned = "".join(f"<p><b>Warning:</b> {escape(text)}</p>" for text in edition.release["warnings"])
    head = f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(form.title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<header>
<h1>{escape(form.title)}</h1>
<p>{who}</p>
<p class="soft">Version {form.version}, {edition.day}. {escape("; ".join(form.publishers))}. {escape(form.region)}.</p>
<p>{_paragraphs(form.description)}</p>
<ul class="numbers">{numbers}</ul>
<p>Noise was added so that nothing here depends noticeably on {escape(edition.whom)}: {escape(edition.guarantee)}.
Intervals cover the noise only, not sampling or errors in the data.</p>
{warned}
</header>
"""
    return head + _main(edition, tables)


def _main(edition: Edition, tables: str) -> str:
    """The tables, what they are for, how to cite and to verify."""
    form = edition.publication
    assert form.contact is not None
    name, address = LICENCES[form.licence]
    related = "".join(f"<li>{escape(one)}</li>" for one in form.related)
    return f"""<main>
<h2>Tables</h2>
<div class="scroll"><table><thead><tr><th>statistic</th><th>counts</th><th>numbers</th><th>files</th></tr></thead>
<tbody>{tables}</tbody></table></div>
<p>Every row carries its error, the unit of privacy and its notes. <a href="report.html">The report</a> shows all of it
with charts; <a href="methods.md">the methods</a> are ready for a paper.</p>
<h2>What it is for</h2><p>{_paragraphs(form.purpose)}</p>
<h2>Why this unit and this epsilon</h2><p>{_paragraphs(form.rationale)}</p>
<h2>How to cite</h2><p>{escape(edition.citation)} <a href="CITATION.cff">CITATION.cff</a></p>
<p>Licence: <a href="{address}">{escape(name)}</a>. Questions: {escape(form.contact.name)},
<a href="mailto:{escape(form.contact.email)}">{escape(form.contact.email)}</a>.</p>
{f"<h2>Related</h2><ul>{related}</ul>" if related else ""}
<h2>How to verify</h2>
<p><code>farthing verify</code> with this folder, or its zip file, checks the signature, every checksum, the
receipt, the tables, and that the stated epsilon follows from the stated mechanisms. It needs neither the data nor the
ledger.</p>
</main>
<footer class="soft">Made by {escape(edition.software)}. This page loads nothing from elsewhere.</footer>
</body>
</html>
"""


def _paragraphs(text: str) -> str:
    return "</p><p>".join(escape(part) for part in text.split("\n\n"))
