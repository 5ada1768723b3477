"""What people say is checked before anything is made of it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from farthing.errors import InvalidValue
from farthing.publication import Author, PublicationDetails
from farthing.publication.publication_details import SUBJECTS
from farthing.publication.yaml_text import yaml_of
from publications import FORM, SCHEMAS


def test_it_survives_its_own_words() -> None:
    form = PublicationDetails.of(FORM)
    assert PublicationDetails.of(form.to_dict()) == form == form.checked()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"title": "two\nlines"}, "one line"),
        ({"title": 7}, "one line"),
        ({"licence": "mine"}, "must be one of CC0-1.0"),
        ({"subject": ["Magic"]}, "Mathematical Sciences; Medicine, Health and Life Sciences; Physics"),
        ({"subject": 7}, "list of texts"),
        ({"sector": "Magic"}, "must be one of Technology"),
        ({"authors": "Finch"}, "must be a list"),
        ({"authors": [{"name": "Finch", "age": 7}]}, "must be a table"),
        ({"authors": [{}]}, "lacks a field"),
        ({"authors": [{"name": "F", "orcid": "7"}]}, "0000-0002-1825-0097"),
        ({"contact": {"name": "Finch"}}, "lacks a field"),
        ({"contact": {"name": "Finch", "email": "nobody"}}, "data@example.org"),
        ({"url": "javascript:alert(1)"}, "begins with https"),
        ({"url": "https://example.org/\x00"}, "one line"),
        ({"url": "https://example.org/\ud800"}, "one line"),
        ({"title": "a\ud800"}, "one line"),
        ({"title": "a\u202eb"}, "one line"),
        ({"title": "x" * 501}, "at most 500"),
        ({"description": "\ud800"}, "must be text"),
        ({"description": "x" * 10_001}, "at most 10000"),
        ({"related": ["ftp://a"]}, "begins with https"),
        ({"slug": "Two Words"}, "small letters"),
        ({"version": 0}, "at least 1"),
        ({"version": True}, "at least 1"),
        ({"description": "a\x00b"}, "must be text"),
        ({"colour": "red"}, "not a field"),
    ],
)
def test_what_breaks_a_rule_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidValue, match=said):
        PublicationDetails.of({**FORM, **change})


@pytest.mark.parametrize(
    "text",
    [
        "\U0001f426 & \u00e9",
        "no",
        "a: b # c",
        "- x",
        'a "b" \\',
        "\x7f\x85\u2028\ufeff",
        "</script>",
        "=1+1",
        "{{a}}\n%b",
    ],
)
def test_yaml_says_what_was_said(text: str) -> None:
    """Whatever YAML would take for a number, a list, a comment or two characters."""
    assert yaml.safe_load(yaml_of({"title": text, "authors": [text], "parts": [{"name": text}]})) == {
        "title": text,
        "authors": [text],
        "parts": [{"name": text}],
    }


def test_who_publishes() -> None:
    assert PublicationDetails.of(FORM).publishers == ("Institute of Birds",)
    assert PublicationDetails.of({**FORM, "curators": ["Ministry"]}).publishers == ("Ministry",)
    assert PublicationDetails(authors=(Author("Wren, W."),)).publishers == ("Wren, W.",)


def test_the_subjects_are_those_of_dataverse() -> None:
    lines = (SCHEMAS / "dataverse" / "citation.tsv").read_text(encoding="utf-8").splitlines()
    after = lines[next(place for place, line in enumerate(lines) if line.startswith("#controlledVocabulary")) :]
    theirs = [line.split("\t")[2] for line in after if line.split("\t")[1:2] == ["subject"]]
    assert list(SUBJECTS) == theirs
