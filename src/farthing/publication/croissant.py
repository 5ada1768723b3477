"""An edition as Croissant 1.1, the JSON-LD that dataset search and machine-learning tools read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from farthing.publication.edition import COLUMNS, Edition
from farthing.publication.publication_details import LICENCES
from farthing.publication.published_tables import MEANINGS, is_text

_OF_CROISSANT = (
    "citeAs", "column", "containedIn", "equivalentProperty", "extract", "field", "fileProperty", "fileObject",
    "fileSet", "format", "includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet",
    "references", "regex", "repeated", "replace", "samplingRate", "separator", "source", "subField", "transform",
    "arrayShape", "isArray",
)  # fmt: skip

_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "description": {"@container": "@language"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "name": {"@container": "@language"},
    **{name: f"cr:{name}" for name in _OF_CROISSANT},
}


def croissant_of(edition: Edition, digests: Mapping[str, str]) -> bytes:
    """The description as JSON-LD; `digests` has the SHA-256 of the files by their paths."""
    form = edition.publication
    described: dict[str, Any] = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "name": form.registry_slug,
        "alternateName": form.title,
        "description": f"{form.description} Differentially private: {edition.guarantee}, protecting {edition.whom}.",
        "license": LICENCES[form.licence][1],
        "citeAs": edition.citation,
        "creator": [
            {
                "@type": "sc:Person" if author.parts else "sc:Organization",
                "name": author.name,
                **({"identifier": f"https://orcid.org/{author.orcid}"} if author.orcid else {}),
            }
            for author in form.authors
        ],
        "publisher": [{"@type": "sc:Organization", "name": name} for name in form.publishers],
        "datePublished": edition.day,
        "version": f"{form.version}.0.0",
        "isLiveDataset": False,
        "rai:personalSensitiveInformation": (
            f"Every number was computed with differential privacy, unit {edition.release['unit']}, {edition.guarantee}."
        ),
        "rai:dataLimitations": "; ".join(
            dict.fromkeys(note for one in edition.tables for note in edition.caveats(one))
        ),
        "rai:dataUseCases": form.purpose,
        "distribution": [_file(table, digests) for table in edition.tables],
        "recordSet": [_records(table) for table in edition.tables],
        **({"url": form.url} if form.url else {}),
        **({"keywords": list(form.keywords)} if form.keywords else {}),
    }
    return (json.dumps(described, indent=2, ensure_ascii=False) + "\n").encode()


def _file(table: Mapping[str, Any], digests: Mapping[str, str]) -> dict[str, Any]:
    path = f"tables/{table['file']}.csv"
    return {
        "@type": "cr:FileObject",
        "@id": path,
        "name": f"{table['file']}.csv",
        "description": f"{table['statistic']}; counts {table['counts']}",
        "contentUrl": path,
        "encodingFormat": "text/csv",
        "sha256": digests[path],
    }


def _records(table: Mapping[str, Any]) -> dict[str, Any]:
    path = f"tables/{table['file']}.csv"
    return {
        "@type": "cr:RecordSet",
        "@id": table["file"],
        "name": table["file"],
        "description": str(table["statistic"]),
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{table['file']}/{column}",
                "name": column,
                "description": MEANINGS[column],
                "dataType": "sc:Text" if is_text(column) else "sc:Float",
                "source": {"fileObject": {"@id": path}, "extract": {"column": column}},
            }
            for column in COLUMNS
        ],
    }
