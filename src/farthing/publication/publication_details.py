"""The details of a publication that only people know: who made it, what it is about, what it is for, who may use it.

[publication]                      # in a study.toml, below [study]
title = "Health of made-up people, 2026"
description = "Counts, means and a median from a survey."
purpose = "For planning of services by district."
rationale = "Epsilon 1 keeps every error below what the planners round to."
region = "Norway"
licence = "CC-BY-4.0"
subject = ["Medicine, Health and Life Sciences"]
authors = [{ name = "Finch, Fiona", affiliation = "Institute of Birds", orcid = "0000-0002-1825-0097" }]
contact = { name = "Finch, Fiona", email = "data@example.org" }
curators = ["Institute of Birds"]  # who publishes; by default the affiliations of the authors, or their names
keywords = ["survey"]
sector = "Healthcare"
url = "https://example.org/survey"
related = ["https://doi.org/10.5072/FK2/EXAMPLE"]
slug = "health-2026"               # the name of its record in the public registry; by default derived from the title
version = 1
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from farthing.errors import InvalidValue

LICENCES = {
    "CC0-1.0": ("CC0 1.0", "http://creativecommons.org/publicdomain/zero/1.0"),
    "CC-BY-4.0": ("CC BY 4.0", "http://creativecommons.org/licenses/by/4.0"),
    "CC-BY-SA-4.0": ("CC BY-SA 4.0", "http://creativecommons.org/licenses/by-sa/4.0"),
    "CC-BY-NC-4.0": ("CC BY-NC 4.0", "http://creativecommons.org/licenses/by-nc/4.0"),
}
"""By their SPDX names: what Dataverse calls them, and where they are."""

SUBJECTS = (
    "Agricultural Sciences",
    "Arts and Humanities",
    "Astronomy and Astrophysics",
    "Business and Management",
    "Chemistry",
    "Computer and Information Science",
    "Earth and Environmental Sciences",
    "Engineering",
    "Law",
    "Mathematical Sciences",
    "Medicine, Health and Life Sciences",
    "Physics",
    "Social Sciences",
    "Other",
)
SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")

_ORCID = re.compile(r"\d{4}-\d{4}-\d{4}-\d{3}[\dX]")
_EMAIL = re.compile(r"[^@\s<>\"]{1,64}@[A-Za-z0-9.-]{1,255}")
_SLUG = re.compile(r"[a-z0-9][a-z0-9_-]{0,99}")
_URL = re.compile(r"https?://[^\s<>\"]{1,500}")
_LONGEST = 10_000
_MOST = 200
_EXAMPLES = {
    "title": 'title = "Health survey 2026"',
    "description": 'description = "what the numbers are about"',
    "purpose": 'purpose = "what they are for"',
    "rationale": 'rationale = "why this epsilon and this unit"',
    "region": 'region = "Norway"',
    "licence": 'licence = "CC-BY-4.0"',
    "subject": 'subject = ["Social Sciences"]',
    "authors": 'authors = [{ name = "Finch, Fiona" }]',
    "contact": 'contact = { name = "Finch, Fiona", email = "data@example.org" }',
}


@dataclass(frozen=True)
class Author:
    """Somebody who made the release: a person as "Family, Given", or an organisation.

    Args:
        name: The name.
        affiliation: Where they work.
        orcid: Their ORCID, such as 0000-0002-1825-0097.

    >>> Author("Finch, Fiona").parts
    ('Finch', 'Fiona')
    """

    name: str
    affiliation: str = ""
    orcid: str = ""

    def __post_init__(self) -> None:
        _line("authors.name", self.name)
        _line("authors.affiliation", self.affiliation, optional=True)
        if self.orcid and not (isinstance(self.orcid, str) and _ORCID.fullmatch(self.orcid)):
            raise InvalidValue("authors.orcid", self.orcid, "must be like 0000-0002-1825-0097", "leave it out")

    @property
    def parts(self) -> tuple[str, str] | None:
        """Family name and given name; None for an organisation."""
        family, comma, given = self.name.partition(", ")
        return (family, given) if comma and family and given else None


@dataclass(frozen=True)
class Contact:
    """Whom readers can ask.

    Args:
        name: The name.
        email: The address, which will be public.

    >>> Contact("Finch, Fiona", "data@example.org").email
    'data@example.org'
    """

    name: str
    email: str

    def __post_init__(self) -> None:
        _line("contact.name", self.name)
        if not (isinstance(self.email, str) and _EMAIL.fullmatch(self.email)):
            raise InvalidValue("contact.email", self.email, "must be an address such as data@example.org")


@dataclass(frozen=True)
class PublicationDetails:
    """The details of a publication that only people know. `Release.publish` names what is missing, and writes nothing.

    Args:
        title: What it is called.
        description: What the numbers are about.
        purpose: What they are for.
        rationale: Why this unit, this epsilon and these statistics.
        region: Which region the data describe.
        licence: The SPDX name of the licence: CC0-1.0, CC-BY-4.0, CC-BY-SA-4.0 or CC-BY-NC-4.0.
        subject: The subjects, from the list of Dataverse.
        authors: Who made it.
        contact: Whom readers can ask.
        curators: Who publishes it; by default the affiliations of the authors, or their names.
        keywords: Words by which readers can find it.
        sector: Technology, Healthcare, Education, Government, Energy or Finance.
        url: Where it is described.
        related: Addresses of related datasets, such as the restricted original.
        slug: The name of its record in the public registry; by default derived from the title.
        version: Which version of the publication it is.

    >>> publication = PublicationDetails.of({"title": "Survey", "authors": [{"name": "Finch, Fiona"}]})
    >>> publication.missing
    ('description', 'purpose', 'rationale', 'region', 'licence', 'subject', 'contact')
    >>> publication.authors[0].name, publication.registry_slug
    ('Finch, Fiona', 'survey')
    """

    title: str = ""
    description: str = ""
    purpose: str = ""
    rationale: str = ""
    region: str = ""
    licence: str = ""
    subject: tuple[str, ...] = ()
    authors: tuple[Author, ...] = ()
    contact: Contact | None = None
    curators: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    sector: str = ""
    url: str = ""
    related: tuple[str, ...] = ()
    slug: str = ""
    version: int = field(default=1)

    def __post_init__(self) -> None:
        _line("title", self.title, optional=True)
        _line("region", self.region, optional=True)
        for name in ("description", "purpose", "rationale"):
            _prose(name, getattr(self, name))
        for name in ("subject", "curators", "keywords", "related"):
            listed = getattr(self, name)
            if not (isinstance(listed, tuple) and len(listed) <= _MOST):
                raise InvalidValue(f"publication.{name}", listed, "must be a list of texts")
            for one in listed:
                _line(name, one)
        _choice("licence", self.licence, LICENCES)
        _choice("sector", self.sector, SECTORS)
        for one in self.subject:
            _choice("subject", one, SUBJECTS)
        _line("url", self.url, optional=True)
        for one in (self.url, *self.related):
            if one and not (isinstance(one, str) and _URL.fullmatch(one)):
                raise InvalidValue("publication.url", one, "must be an address that begins with https://")
        if self.slug and not (isinstance(self.slug, str) and _SLUG.fullmatch(self.slug)):
            raise InvalidValue("publication.slug", self.slug, "must be small letters, digits, - and _")
        if not (type(self.version) is int and 1 <= self.version <= 1_000_000):
            raise InvalidValue("publication.version", self.version, "must be a whole number, at least 1")

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> PublicationDetails:
        """The publication that a table of a study.toml, or a body of JSON, describes.

        Args:
            facts: The fields by name; a list for those with several, a table for each author and the contact.

        Returns:
            The publication.

        Raises:
            InvalidValue: If there is a field of another name, or one is of the wrong kind.

        >>> PublicationDetails.of({"titel": "Survey"})
        Traceback (most recent call last):
            ...
        farthing.errors.InvalidValue: publication.titel='Survey': is not a field of a publication; ...
        """
        if not isinstance(facts, Mapping):
            raise InvalidValue("publication", facts, "must be a table", "write [publication]")
        known = tuple(each.name for each in fields(cls))
        for name, value in facts.items():
            if name not in known:
                rule = f"the fields are: {', '.join(known)}"
                raise InvalidValue(f"publication.{name}", value, "is not a field of a publication", rule)
        given = dict(facts)
        for name in ("subject", "curators", "keywords", "related"):
            listed = given.get(name, ())
            if isinstance(listed, str):
                listed = (listed,)
            if not isinstance(listed, Sequence):
                raise InvalidValue(f"publication.{name}", listed, "must be a list of texts")
            given[name] = tuple(listed)
        authors = given.get("authors", ())
        if not isinstance(authors, Sequence) or isinstance(authors, str) or len(authors) > _MOST:
            raise InvalidValue("publication.authors", authors, "must be a list", _EXAMPLES["authors"])
        given["authors"] = tuple(_part(Author, "authors", one, _EXAMPLES["authors"]) for one in authors)
        if given.get("contact") is not None:
            given["contact"] = _part(Contact, "contact", given["contact"], _EXAMPLES["contact"])
        return cls(**given)

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON-ready data, without empty ones.

        Returns:
            What `of` reads.

        >>> PublicationDetails(title="Survey").to_dict()
        {'title': 'Survey', 'version': 1}
        """
        parts = asdict(self)
        parts["authors"] = [{name: text for name, text in one.items() if text} for one in parts["authors"]]
        return {name: list(part) if isinstance(part, tuple) else part for name, part in parts.items() if part}

    @property
    def missing(self) -> tuple[str, ...]:
        """The fields that must be filled in and are not."""
        return tuple(name for name in _EXAMPLES if not getattr(self, name))

    def checked(self) -> PublicationDetails:
        """This publication, if nothing is missing.

        Returns:
            Itself.

        Raises:
            InvalidValue: If something is missing; the message names all of it.

        >>> PublicationDetails(title="Survey").checked()
        Traceback (most recent call last):
            ...
        farthing.errors.InvalidValue: publication=None: must say its description, purpose, ...
        """
        missing = self.missing
        if missing:
            lines = "; ".join(_EXAMPLES[name] for name in missing)
            raise InvalidValue("publication", None, f"must say its {', '.join(missing)}", f"write {lines}")
        return self

    @property
    def publishers(self) -> tuple[str, ...]:
        """Who publishes it: curators, affiliations, or authors."""
        affiliations = tuple(dict.fromkeys(one.affiliation for one in self.authors if one.affiliation))
        return self.curators or affiliations or tuple(one.name for one in self.authors)

    @property
    def registry_slug(self) -> str:
        """The name of its record in the public registry."""
        return self.slug or re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")[:80] or "release"

    @property
    def byline(self) -> str:
        """The authors in one line.

        >>> PublicationDetails(authors=(Author("Finch, Fiona"), Author("Wren, W."))).byline
        'Finch, Fiona; Wren, W.'
        """
        return "; ".join(one.name for one in self.authors)


def _part(kind: type[Any], name: str, facts: Any, example: str) -> Any:
    if not isinstance(facts, Mapping) or not set(facts) <= {each.name for each in fields(kind)}:
        raise InvalidValue(f"publication.{name}", facts, "must be a table", f"write {example}")
    try:
        return kind(**facts)
    except TypeError:
        raise InvalidValue(f"publication.{name}", dict(facts), "lacks a field", f"write {example}") from None


def _line(name: str, value: object, *, optional: bool = False) -> None:
    if optional and value == "":
        return
    if not (isinstance(value, str) and 0 < len(value) <= 500 and value.isprintable() and value.strip() == value):
        raise InvalidValue(f"publication.{name}", value, "must be one line of text, at most 500 characters")


def _prose(name: str, value: object) -> None:
    printable = isinstance(value, str) and all(one.isprintable() or one == "\n" for one in value)
    if not (isinstance(value, str) and printable and len(value) <= _LONGEST):
        raise InvalidValue(f"publication.{name}", value, f"must be text, at most {_LONGEST} characters")


def _choice(name: str, value: object, choices: Sequence[str] | Mapping[str, Any]) -> None:
    if value != "" and not (isinstance(value, str) and value in choices):
        between = "; " if any("," in one for one in choices) else ", "
        raise InvalidValue(f"publication.{name}", value, f"must be one of {between.join(choices)}")
