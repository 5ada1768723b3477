"""Plans and releases of the disjoint parts of a table, shown one below the other; and how a release is shown."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard

import click

from farthing.cli.terminal import confirm_spending
from farthing.errors import BudgetExceeded, Infeasible, InvalidValue
from farthing.numerics.bounds import number_text

if TYPE_CHECKING:
    from farthing.study import Plan, Release, Study
    from farthing.study.documents.study_file import Split, StudyFile
    from farthing.study.staged_plan import StagedPlan


def is_staged(plan: Plan) -> TypeGuard[StagedPlan]:
    """Whether something has to be found before the plan can be made."""
    from farthing.study.staged_plan import StagedPlan

    return isinstance(plan, StagedPlan)


def discover_words(plan: StagedPlan, file: str) -> str:
    """The command that finds what a plan in two stages needs, for what the plan says that it costs, and no more."""
    from farthing.study.findings import ROWS

    assert plan.stage is not None
    words = ["farthing", "discover", file]
    for search in plan.stage.searches:
        words += ["--rows-per-unit"] if search.name == ROWS else ["--column", search.name]
    if plan.stage.open:
        words += ["--epsilon", f"{plan.stage.cost:.12g}"]
    return shlex.join(words)


def planned(asked: StudyFile, study: Study) -> Plan:
    """The plan of a file for a study, with a word about it where that takes long."""
    from rich.console import Console

    from farthing.cli.terminal import stages

    with stages(Console(stderr=True)) as work:
        work.begin("planning")
        plan = asked.plan(study)
        _ = plan.cost
    return plan


def show_parts(asked: StudyFile, split: Split, study: Study, *, as_json: bool, explain: bool) -> None:
    """What dividing a table costs, and the plan of every part; one plan where all of them are alike."""
    division = split.division(study)
    with split.looked_at(study) as parts:
        alike = not division.is_paid and not as_json
        plans = {value: planned(asked, part) for value, part in list(parts.items())[: 1 if alike else None]}
        if as_json:
            data = {str(value): plan.to_dict() for value, plan in plans.items()}
            click.echo(json.dumps({"division": division.to_dict(), "parts": data}, indent=2, allow_nan=False))
            return
        again = "Releasing it" if division.before is None else "Releasing it with --fresh"
        click.echo(f"{again} {division}.\n" if not division.is_paid else f"{division}.\n")
        if division.before is not None:
            click.echo(f"{_changed(split)}: without --fresh, a release returns the answers from before.\n", err=True)
        for value, plan in plans.items():
            click.echo(f"{split.by} = {value}\n{plan}\n" + (f"\n{plan.explain()}\n" if explain else ""))
        if len(parts) > len(plans):
            click.echo(f"The same holds for each of the {len(parts)} parts: {', '.join(map(str, parts))}.\n")
    click.echo(f"To release it: farthing release {asked.path}")


def _changed(split: Split) -> str:
    return f"The table has changed since it was divided by {split.by}"


def _was_released(asked: StudyFile, part: Study, named: str | None) -> bool:
    """Whether the ledger has what a file asks of a part, by its words or by the id that is named."""
    if named is not None:
        return part.ledger.stored(named) is not None
    try:
        return planned(asked, part).earlier is not None
    except (BudgetExceeded, Infeasible):  # a new question, for which the old part has nothing left
        return False


@dataclass(frozen=True)
class Parts:
    """The parts to release; whether somebody has agreed to what they cost, and whether they were divided just now."""

    studies: dict[Any, Study]
    agreed: bool
    new: bool = False


def parts_to_release(
    asked: StudyFile, split: Split, study: Study, *, agreed: bool, fresh: bool, as_json: bool, single: Mapping[str, Any]
) -> Parts:
    """The parts, divided now if they were not before.

    If the table has changed since, they are those from before, which have stored answers, unless `fresh` ones are
    wanted: a table is not divided again, and charged for, without a word. `single` are options that are about one
    release: with several parts they are refused.
    """
    division = split.division(study)
    if split.part is None and len(division.values) > 1:
        for option, value in single.items():
            if value is not None:
                rule = f"is for one release, and there are {len(division.values)} parts"
                way_out = f'name one: split = {{ by = "{split.by}", ..., part = "{division.values[0]}" }}'
                raise InvalidValue(option, value, rule, way_out)
    if division.is_paid:
        return Parts(split.studies(study), agreed)
    if division.before is not None and not fresh:
        before = split.studies_before(study, division)
        named = single.get("request-id")
        if not all(_was_released(asked, part, named) for part in before.values()):
            raise InvalidValue(
                "study.split",
                split.by,
                "is that of the table as it was before it changed, and this was not released then",
                f"farthing release {shlex.quote(str(asked.path))} --fresh divides the table as it is now, which is "
                f"charged again: epsilon {number_text(division.cost.epsilon, 6)}",
            )
        return Parts(before, agreed)
    study.allowance(division.cost.epsilon)  # refused before anybody is asked
    if division.before is not None:
        click.echo(f"{_changed(split)}, and is divided again.", err=True)
    click.echo(f"This release {division}.", err=True)
    if not agreed:
        confirm_spending(study, division.cost.epsilon, "Divide and release?", err=as_json)
    return Parts(split.studies(study), True, new=True)


def print_parts(split: Split, study: Study, releases: Mapping[Any, Release], as_json: bool, table: str | None) -> None:
    """The releases of all parts, and a table of them."""
    from farthing.statistics.answer_records import plain

    if as_json:
        data = {str(value): release.to_dict() for value, release in releases.items()}
        click.echo(json.dumps(plain({"split": split.by, "parts": data}), indent=2))
    else:
        for value, release in releases.items():
            click.echo(f"{split.by} = {value}")
            print_release(release, study)
            click.echo()
    if table is not None:
        records = [
            {"part": str(value), **record} for value, release in releases.items() for record in release.records()
        ]
        write_table(records, table)
        click.echo(f"Written: {table}", err=as_json)


def print_release(release: Release, study: Study) -> None:
    """The answers, what was paid for them, and by whom."""
    if release.repeated:
        click.echo("Answered from the ledger: this release was made before; nothing was spent now.\n")
    click.echo(str(release))
    paid = "paid before" if release.repeated else "spent"
    cost = f"{paid}: epsilon {number_text(release.cost, 6)} {payers_text(release, study)}"
    click.echo(f"\n{cost}; request {release.request_id}")


def payers_text(release: Release, study: Study) -> str:
    """Who paid for a release."""
    part = study.ledger.parts().get(release.receipt.dataset) if " / " in release.receipt.dataset else None
    if part is not None:
        return f"from the part {part.value}; nothing more of {part.account!r}"
    return " and ".join(f"of {name!r}" for name in release.receipt.accounts)


def write_table(records: Sequence[Mapping[str, Any]], path: str) -> None:
    """A tidy table of cells."""
    import csv

    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(dict.fromkeys(key for one in records for key in one)))
        writer.writeheader()
        writer.writerows(records)
