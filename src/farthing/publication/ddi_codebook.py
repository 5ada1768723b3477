"""An edition as DDI-Codebook 2.5, the XML that data archives read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

from farthing.privacy import Event
from farthing.publication.edition import COLUMNS, Edition
from farthing.publication.methods import composition_words, mechanism_words, processing_words
from farthing.publication.publication_details import LICENCES
from farthing.publication.published_tables import MEANINGS, is_text

_NAMESPACE = "ddi:codebook:2_5"
_MOST_CELLS = 500
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def ddi_of(edition: Edition) -> bytes:
    """The codebook of an edition as XML."""
    book = ElementTree.Element("codeBook", {"xmlns": _NAMESPACE, "version": "2.5"})
    study = ElementTree.SubElement(book, "stdyDscr")
    _citation(study, edition)
    _information(study, edition)
    _method(study, edition)
    form = edition.publication
    use = _below(_below(study, "dataAccs"), "useStmt")
    _below(use, "restrctn", f"{LICENCES[form.licence][0]}, {LICENCES[form.licence][1]}")
    _below(use, "citReq", edition.citation)
    if form.related:
        material = _below(study, "othrStdyMat")
        for one in form.related:
            _below(material, "relStdy", one)
    for place, table in enumerate(edition.tables, 1):
        _file(book, edition, table, place)
    variables = ElementTree.SubElement(book, "dataDscr")
    for place, table in enumerate(edition.tables, 1):
        _variables(variables, edition, table, place)
    ElementTree.indent(book)
    text: bytes = ElementTree.tostring(book, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _below(parent: ElementTree.Element, tag: str, text: str | None = None, **given: str) -> ElementTree.Element:
    made = ElementTree.SubElement(parent, tag, {name: _clean(value) for name, value in given.items()})
    if text is not None:
        made.text = _clean(text)
    return made


def _clean(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)


def _citation(study: ElementTree.Element, edition: Edition) -> None:
    form = edition.publication
    citation = _below(study, "citation")
    _below(_below(citation, "titlStmt"), "titl", form.title)
    responsible = _below(citation, "rspStmt")
    for author in form.authors:
        given = {"affiliation": author.affiliation} if author.affiliation else {}
        _below(responsible, "AuthEnty", author.name, **given)
    production = _below(citation, "prodStmt")
    for one in form.publishers:
        _below(production, "producer", one)
    _below(production, "prodDate", edition.day, date=edition.day)
    _below(production, "software", "farthing", version=str(edition.release["software"]["version"]))
    distribution = _below(citation, "distStmt")
    for one in form.publishers:
        _below(distribution, "distrbtr", one)
    assert form.contact is not None
    _below(distribution, "contact", form.contact.name, email=form.contact.email)
    _below(distribution, "distDate", edition.day, date=edition.day)
    version = _below(citation, "verStmt")
    _below(version, "version", str(form.version), date=edition.day)
    _below(citation, "biblCit", edition.citation)


def _information(study: ElementTree.Element, edition: Edition) -> None:
    form = edition.publication
    information = _below(study, "stdyInfo")
    subject = _below(information, "subject")
    for one in form.keywords:
        _below(subject, "keyword", one)
    for one in form.subject:
        _below(subject, "topcClas", one)
    _below(information, "abstract", form.description)
    _below(information, "abstract", form.purpose, contentType="purpose")
    summary = _below(information, "sumDscr")
    _below(summary, "geogCover", form.region)
    _below(summary, "anlyUnit", f"cells of statistics; the unit of privacy is {edition.whom}")
    if edition.release.get("about"):
        _below(summary, "universe", str(edition.release["about"]))
    _below(summary, "dataKind", "aggregate data: differentially private statistics")


def _method(study: ElementTree.Element, edition: Edition) -> None:
    method = _below(study, "method")
    event = Event.from_dict(dict(edition.release["mechanisms"]))
    collection = _below(method, "dataColl")
    _below(collection, "cleanOps", processing_words(edition))
    _below(method, "notes", f"differential privacy: {edition.guarantee}", subject="privacy guarantee")
    _below(method, "notes", str(edition.release["unit"]), subject="unit of privacy")
    _below(method, "notes", mechanism_words(event), subject="mechanisms")
    _below(method, "notes", composition_words(edition), subject="composition")
    _below(method, "notes", edition.publication.rationale, subject="rationale")
    analysis = _below(method, "anlyInfo")
    _below(analysis, "dataAppr", "Intervals cover the noise only, not sampling or errors in the data.")


def _file(book: ElementTree.Element, edition: Edition, table: Mapping[str, Any], place: int) -> None:
    described = _below(book, "fileDscr", ID=f"F{place}", URI=f"tables/{table['file']}.csv")
    text = _below(described, "fileTxt")
    _below(text, "fileName", f"{table['file']}.csv")
    _below(text, "fileCont", f"{table['statistic']}; counts {table['counts']}")
    dimensions = _below(text, "dimensns")
    _below(dimensions, "caseQnty", str(len(table["cells"])))
    _below(dimensions, "varQnty", str(len(COLUMNS)))
    _below(text, "fileType", "text/csv")
    for note in edition.caveats(table):
        _below(described, "notes", note)


def _variables(parent: ElementTree.Element, edition: Edition, table: Mapping[str, Any], place: int) -> None:
    for number, column in enumerate(COLUMNS, 1):
        kind = {"intrvl": "discrete"} if is_text(column) else {"intrvl": "contin"}
        variable = _below(parent, "var", ID=f"V{place}_{number}", name=column, files=f"F{place}", **kind)
        _below(variable, "labl", MEANINGS[column])
        if column == "value":
            _below(variable, "universe", f"counts {table['counts']}")
        if column == "cell":
            for cell in table["cells"][:_MOST_CELLS]:
                category = _below(variable, "catgry")
                _below(category, "catValu", cell["cell"])
        _below(variable, "varFormat", type="character" if is_text(column) else "numeric")
