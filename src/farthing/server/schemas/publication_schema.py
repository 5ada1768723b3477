"""Publications: the details that only people know, and how the landing page will look."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from farthing.publication.form_fields import FormField
from farthing.server.schemas.budget_schema import View

_Line = Annotated[str, Field(max_length=500)]
_Prose = Annotated[str, Field(max_length=10_000)]
_Lines = Annotated[list[_Line], Field(max_length=200)]


class AuthorForm(BaseModel):
    """Somebody who made it: a person as "Family, Given", or an organisation."""

    model_config = ConfigDict(extra="forbid")

    name: _Line
    affiliation: _Line = ""
    orcid: _Line = ""


class ContactForm(BaseModel):
    """Whom readers can ask; both fields will be public."""

    model_config = ConfigDict(extra="forbid")

    name: _Line
    email: _Line


class PublicationForm(BaseModel):
    """The details of a publication that only people know; a preview says what is missing."""

    model_config = ConfigDict(extra="forbid")

    title: _Line = ""
    description: _Prose = ""
    purpose: _Prose = ""
    rationale: _Prose = ""
    region: _Line = ""
    licence: _Line = Field(default="", description="CC0-1.0, CC-BY-4.0, CC-BY-SA-4.0 or CC-BY-NC-4.0")
    subject: _Lines = Field(default=[], description="from the list of Dataverse")
    authors: Annotated[list[AuthorForm], Field(max_length=200)] = []
    contact: ContactForm | None = None
    curators: _Lines = []
    keywords: _Lines = []
    sector: _Line = ""
    url: _Line = ""
    related: _Lines = []
    slug: _Line = ""
    version: Annotated[int, Field(ge=1, le=1_000_000)] = 1

    def plain(self) -> dict[str, Any]:
        """The fields that are filled in, as plain data."""
        return {name: value for name, value in self.model_dump().items() if value not in ("", [], None)}


class FormFieldView(View):
    """One field of the form, and how to ask for it."""

    name: str
    label: str
    kind: Literal["line", "text", "lines", "choice", "choices", "number", "table"]
    hint: str
    required: bool
    choices: list[list[str]] = Field(description="what can be chosen, each with its name for people")
    parts: list[FormFieldView] = Field(description="the columns of a table")
    row: str = Field(description="what a row of a table is called, if there may be several")

    @classmethod
    def of(cls, field: FormField) -> FormFieldView:
        """A field as the page sees it."""
        return cls(
            name=field.name,
            label=field.label,
            kind=field.kind,  # type: ignore[arg-type]
            hint=field.hint,
            required=field.required,
            choices=[list(one) for one in field.choices],
            parts=[cls.of(one) for one in field.parts],
            row=field.row,
        )


class PublicationPreview(View):
    """How a publication will look."""

    missing: list[str] = Field(description="fields that must be filled in before it can be published")
    landing_page: str | None = Field(description="the landing page as HTML, once nothing is missing")
    public_key: str = Field(description="the public key that verifies it: show it where readers trust you")
