"""An edition as CITATION.cff, the file that GitHub, Zenodo and reference managers read."""

from __future__ import annotations

from typing import Any

from farthing.publication.edition import Edition
from farthing.publication.yaml_text import yaml_of


def citation_of(edition: Edition) -> bytes:
    """The citation file of an edition."""
    form = edition.publication
    authors: list[dict[str, Any]] = []
    for author in form.authors:
        parts = author.parts
        named: dict[str, Any] = (
            {"family-names": parts[0], "given-names": parts[1]} if parts is not None else {"name": author.name}
        )
        if parts is not None and author.affiliation:
            named["affiliation"] = author.affiliation
        if author.orcid:
            named["orcid"] = f"https://orcid.org/{author.orcid}"
        authors.append(named)
    data: dict[str, Any] = {
        "cff-version": "1.2.0",
        "message": "If you use these statistics, please cite them.",
        "type": "dataset",
        "title": form.title,
        "abstract": f"{form.description} Differentially private: {edition.guarantee}.",
        "authors": authors,
        "version": str(form.version),
        "date-released": edition.day,
        "license": form.licence,
        **({"keywords": list(dict.fromkeys(form.keywords))} if form.keywords else {}),
        **({"url": form.url} if form.url else {}),
    }
    return yaml_of(data).encode()
