"""What a form asks about a publication: one description for the page, the server, messages and the docs.

The rules of the fields are those of `PublicationDetails`, which checks them; what stands here is how to ask.
"""

from __future__ import annotations

from dataclasses import dataclass

from farthing.publication.publication_details import LICENCES, SECTORS, SUBJECTS


@dataclass(frozen=True)
class FormField:
    """One field of the form.

    Args:
        name: Its name in a study.toml.
        label: What people see.
        kind: "line", "text" (several lines), "lines" (a list), "choice", "choices", "number" or "table".
        hint: What belongs there.
        required: Whether a publication needs it.
        choices: What can be chosen, each with its name for people.
        parts: Of a table: its columns.
        row: What a row of a table is called, if there may be several.
    """

    name: str
    label: str
    kind: str
    hint: str = ""
    required: bool = False
    choices: tuple[tuple[str, str], ...] = ()
    parts: tuple[FormField, ...] = ()
    row: str = ""


def _same(names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return tuple((name, name) for name in names)


FORM_FIELDS = (
    FormField("title", "Title", "line", required=True),
    FormField("description", "Description", "text", "What the numbers are about.", required=True),
    FormField("purpose", "Purpose", "text", "What they are for.", required=True),
    FormField(
        "rationale",
        "Why this unit and this epsilon",
        "text",
        "What you weighed: who is protected, and how exact the numbers had to be.",
        required=True,
    ),
    FormField("region", "Region", "line", "Which region the data describe.", required=True),
    FormField(
        "authors",
        "Authors",
        "table",
        "A person as Family, Given; any other name is an organisation.",
        required=True,
        row="Author",
        parts=(
            FormField("name", "Name", "line", required=True),
            FormField("affiliation", "Affiliation", "line"),
            FormField("orcid", "ORCID", "line"),
        ),
    ),
    FormField(
        "contact",
        "Contact",
        "table",
        "Whom readers can ask. Name and e-mail address will be public.",
        required=True,
        parts=(
            FormField("name", "Name", "line", required=True),
            FormField("email", "E-mail", "line", required=True),
        ),
    ),
    FormField("subject", "Subjects", "choices", required=True, choices=_same(SUBJECTS)),
    FormField(
        "licence",
        "Licence",
        "choice",
        required=True,
        choices=tuple((spdx, name) for spdx, (name, _) in LICENCES.items()),
    ),
    FormField("keywords", "Keywords", "lines", "One on each line."),
    FormField(
        "curators",
        "Publishers",
        "lines",
        "One on each line; by default the affiliations of the authors, or their names.",
    ),
    FormField("sector", "Sector", "choice", "For the public registry.", choices=_same(SECTORS)),
    FormField("url", "Address", "line", "Where the data are described, such as https://example.org/survey."),
    FormField(
        "related",
        "Related datasets",
        "lines",
        "One address on each line, such as that of the restricted original.",
    ),
    FormField(
        "slug",
        "Name in the public registry",
        "line",
        "Small letters, digits, - and _; by default derived from the title.",
    ),
    FormField("version", "Version", "number", "A later release of the same study has a higher number."),
)
"""Every field, in the order in which it is asked."""
