"""What commands that open a session have in common: its plan is shown for free, and agreed to before it is charged."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from farthing.cli.terminal import confirm_spending, study_to_spend, warn_of_budget

if TYPE_CHECKING:
    from farthing.study import Study
    from farthing.study.documents.study_file import StudyFile


def show_session_plan(declared: StudyFile, plan: Callable[[Study], Any], *, as_json: bool) -> None:
    """Print price and errors; nothing is spent."""
    with declared.looked_at() as study:
        if as_json:  # a plan in words says it itself
            warn_of_budget(study.epsilon, study.delta, study.dataset.rows)
        offer = plan(study)
    click.echo(json.dumps(offer.to_dict(), indent=2, allow_nan=False) if as_json else str(offer))


def study_for_session(declared: StudyFile, agreed: bool) -> Study:
    """The study that pays, with a warning where its budget protects little."""
    study = study_to_spend(declared, agreed)
    warn_of_budget(study.epsilon, study.delta, study.dataset.rows)
    return study


def agree_to_open(study: Study, name: str, plan: Callable[[Study], Any], *, agreed: bool, as_json: bool) -> None:
    """Show the plan and ask, unless somebody has agreed, or the session of this name was paid for."""
    if study.ledger.stored(name) is None and not agreed:
        offer = plan(study)
        click.echo(str(offer), err=as_json)
        confirm_spending(study, offer.epsilon, "Open it?", err=as_json)
