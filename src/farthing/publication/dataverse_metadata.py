"""An edition in the words of Dataverse: the dataset as JSON, variables as XML, the external-tool manifest."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

from farthing.errors import InvalidValue
from farthing.publication.dataverse_launch import FILE_CALL
from farthing.publication.edition import Edition
from farthing.publication.methods import composition_words
from farthing.publication.publication_details import LICENCES
from farthing.publication.published_tables import MEANINGS

AGENCY = "farthing"


def dataset_of(edition: Edition, digest: str) -> dict[str, Any]:
    """The dataset as native JSON; `digest` is that of the manifest, by which it is recognised again."""
    form = edition.publication
    assert form.contact is not None
    fields = [
        _text("title", form.title),
        _compound("otherId", [{"otherIdAgency": AGENCY, "otherIdValue": digest}]),
        _compound(
            "author",
            [{"authorName": one.name, "authorAffiliation": one.affiliation} for one in form.authors],
            [{"authorIdentifierScheme": "ORCID", "authorIdentifier": one.orcid} for one in form.authors],
        ),
        _compound(
            "datasetContact", [{"datasetContactName": form.contact.name, "datasetContactEmail": form.contact.email}]
        ),
        _compound(
            "dsDescription",
            [
                {"dsDescriptionValue": form.description, "dsDescriptionDate": edition.day},
                {"dsDescriptionValue": f"Purpose: {form.purpose}", "dsDescriptionDate": edition.day},
            ],
        ),
        {"typeName": "subject", "typeClass": "controlledVocabulary", "multiple": True, "value": list(form.subject)},
        _compound("keyword", [{"keywordValue": one} for one in ("differential privacy", *form.keywords)]),
        _text("notesText", _notes(edition)),
        {
            "typeName": "kindOfData",
            "typeClass": "primitive",
            "multiple": True,
            "value": ["aggregate data: differentially private statistics"],
        },
        _compound(
            "software",
            [{"softwareName": "farthing", "softwareVersion": str(edition.release["software"]["version"])}],
        ),
    ]
    if form.related:
        related = {"typeName": "relatedDatasets", "typeClass": "primitive", "multiple": True}
        fields.append({**related, "value": list(form.related)})
    name, address = LICENCES[form.licence]
    return {
        "datasetVersion": {
            "license": {"name": name, "uri": address},
            "metadataBlocks": {"citation": {"displayName": "Citation Metadata", "fields": fields}},
        }
    }


def marker_of(version: Any) -> str:
    """The digest that a dataset's metadata carries; empty where it carries none of ours."""
    try:
        fields = version["metadataBlocks"]["citation"]["fields"]
        for other in next(one["value"] for one in fields if one["typeName"] == "otherId"):
            if other["otherIdAgency"]["value"] == AGENCY:
                return str(other["otherIdValue"]["value"])
    except (KeyError, TypeError, StopIteration):
        pass
    return ""


def _text(name: str, value: str) -> dict[str, Any]:
    return {"typeName": name, "typeClass": "primitive", "multiple": False, "value": value}


def _compound(name: str, *parts: list[dict[str, str]]) -> dict[str, Any]:
    """A field of several parts; of a part that says nothing nothing is sent, nor of its scheme."""
    values = []
    for pieces in zip(*parts, strict=True):
        value: dict[str, Any] = {}
        for piece in pieces:
            if "authorIdentifier" in piece and not piece["authorIdentifier"]:
                continue
            value |= {key: _part(key, text) for key, text in piece.items() if text}
        values.append(value)
    return {"typeName": name, "typeClass": "compound", "multiple": True, "value": values}


def _part(name: str, text: str) -> dict[str, Any]:
    kind = "controlledVocabulary" if name == "authorIdentifierScheme" else "primitive"
    return {"typeName": name, "typeClass": kind, "multiple": False, "value": text}


def _notes(edition: Edition) -> str:
    parts = [
        f"Differential privacy: {edition.guarantee}. Unit of privacy: {edition.release['unit']}.",
        composition_words(edition),
        f"Rationale: {edition.publication.rationale.rstrip().removesuffix('.')}.",
        "Intervals cover the noise only, not sampling or errors in the data.",
        "A download of the whole dataset can be verified with `farthing verify`.",
        *(f"Warning: {text}" for text in edition.release["warnings"]),
    ]
    return " ".join(parts)


def variables_xml(edition: Edition, table: Any, codebook: bytes, file_id: int) -> bytes:
    """Labels and notes for the variables of an ingested table, by the identities that the server gave them.

    Raises:
        InvalidValue: If the codebook of the server is not one.
    """
    try:
        text = codebook.decode("utf-8")
        if "<!DOCTYPE" in text or "<!ENTITY" in text:
            raise InvalidValue("codebook", "", "has a document type, which a codebook does not have")
        given = ElementTree.fromstring(text)  # a text: whatever encoding the document names, it is what was looked at
    except (ElementTree.ParseError, UnicodeDecodeError):
        raise InvalidValue("codebook", "", "of the server is not XML") from None
    described = ElementTree.Element("dataDscr")
    for one in given.iter():
        name, identity = one.get("name", ""), one.get("ID", "")
        if one.tag.rpartition("}")[2] != "var" or name not in MEANINGS or not identity:
            continue
        variable = ElementTree.SubElement(described, "var", {"ID": identity, "name": name})
        ElementTree.SubElement(variable, "location", {"fileid": f"f{file_id}"})
        ElementTree.SubElement(variable, "labl", {"level": "variable"}).text = MEANINGS[name]
        ElementTree.SubElement(variable, "universe").text = f"counts {table['counts']}; {edition.whom} is protected"
        if name == "value":
            ElementTree.SubElement(variable, "notes").text = "; ".join(edition.caveats(table))
    written: bytes = ElementTree.tostring(described, encoding="utf-8", xml_declaration=True)
    return written


def external_tool(address: str) -> dict[str, Any]:
    """The manifest with which an installation of Dataverse launches the page of a farthing server on a file."""
    if not address.startswith(("https://", "http://127.0.0.1", "http://localhost")):
        raise InvalidValue("tool-manifest", address, "must be the https:// address of a farthing server")
    parameters = ("siteUrl", "datasetPid", "fileId")
    return {
        "displayName": "farthing",
        "description": "Attach differentially private statistics to a restricted file.",
        "toolName": "farthing",
        "scope": "file",
        "types": ["configure"],
        "toolUrl": address,
        "contentType": "text/tab-separated-values",
        "httpMethod": "GET",
        "toolParameters": {"queryParameters": [{name: f"{{{name}}}"} for name in parameters]},
        "allowedApiCalls": [
            # No address from which rows could be read: farthing has no use for one.
            {"name": FILE_CALL, "httpMethod": "GET", "urlTemplate": "/api/v1/files/{fileId}", "timeOut": 10},
        ],
    }
