"""An edition as a record of the public registry of differential-privacy deployments; people submit it."""

from __future__ import annotations

from typing import Any

from farthing.numerics.bounds import number_text
from farthing.privacy import Event
from farthing.publication.edition import Edition
from farthing.publication.methods import composition_words, mechanism_words, processing_words
from farthing.publication.yaml_text import yaml_of


def registry_of(edition: Edition) -> bytes:
    """The record of an edition as YAML."""
    return yaml_of(registry_record(edition)).encode()


def registry_record(edition: Edition) -> dict[str, Any]:
    """The record of an edition as data."""
    form, release = edition.publication, edition.release
    parameters = {"epsilon": edition.epsilon, **({"delta": edition.delta} if edition.delta else {})}
    cells = sum(len(one["cells"]) for one in edition.tables)
    deployment: dict[str, Any] = {
        "basic": {
            "name": form.title,
            "data_curators": list(form.publishers),
            "intended_use": form.purpose,
            "data_product_type": "Summary statistics",
            "data_product_region": form.region,
            "description": form.description,
            "publication_date": edition.day,
            **({"data_product_sector": form.sector} if form.sector else {}),
        },
        "dp_variant": {
            "variant_name": "Approximate DP" if edition.delta else "Pure DP",
            "data_domain": str(release.get("about") or f"Tables of the dataset {release['dataset']} with any rows."),
            "unprotected_quantities": _unprotected(edition),
        },
        "privacy_loss": {
            "privacy_unit": edition.whom,
            "privacy_unit_details": _neighbours(edition),
            "privacy_parameters": parameters,
            "privacy_parameters_details": (
                "For this release alone. Including it, the account had spent epsilon "
                f"{number_text(_total(edition), 6)}, as a plain sum."
            ),
        },
        "deployment_model": {
            "model_name": "Central",
            "model_name_details": "A trusted curator holds the table and adds noise before anything is released.",
            "release_type": "One release" if form.version == 1 else "Many releases",
            "access_type": "Non-interactive",
            "data_source_type": "Static",
        },
        "accounting": {"post_processing": processing_words(edition), "composition": composition_words(edition)},
        "implementation": {
            "mechanisms": (
                f"{mechanism_words(Event.from_dict(dict(release['mechanisms'])))}; {edition.software}. Sums run on "
                "whole numbers, and noise is discrete, from the operating system's random number generator. "
                f"{cells:,} numbers were released."
            ),
            "justification": form.rationale,
        },
        "administrative": {
            "registry_authors": [one.name for one in form.authors],
            **({"sources": form.url} if form.url else {}),
        },
    }
    return {"url_slug": form.registry_slug, "status": "Draft", "tier": 3, "deployment": deployment}


def _total(edition: Edition) -> float:
    nano = edition.receipt.total_nano
    return float("inf") if nano < 0 else nano / 1e9


def _unprotected(edition: Edition) -> str:
    rows = edition.release.get("rows")
    known = "The columns, their bounds and their categories are declared and public"
    return f"{known}; so is the number of rows, {rows:,}." if rows is not None else f"{known}."


def _neighbours(edition: Edition) -> str:
    unit = str(edition.release["unit"])
    how = "replaced by another" if ", replace" in unit else "added or removed"
    return f"{unit}: two tables are neighbours if they differ in {edition.whom}, which is {how}."
