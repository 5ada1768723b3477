"""Routes about datasets: registering and describing them, their budgets, grants and reserves. No row is read."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query

from farthing.server.auth.permissions import Who, guarded
from farthing.server.http.error_envelope import refusals
from farthing.server.schemas.budget_schema import BudgetDetails, BudgetView
from farthing.server.schemas.dataset_schema import (
    BudgetWords,
    CheckedCorrection,
    CheckedDeclaration,
    CheckView,
    Correction,
    CorrectionView,
    DatasetsView,
    DatasetView,
    Declaration,
    Division,
    DivisionView,
    DivisionWords,
    NextPeriod,
    SourcesView,
)
from farthing.server.services import dataset_corrections, dataset_parts, dataset_registry
from farthing.server.services.app_state import TheState

router = guarded("datasets")
Name = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$")]
User = Annotated[str, Path(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
Label = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$")]


@router.get(
    "/sources",
    response_model=SourcesView,
    responses=refusals("engine_error"),
    summary="Tables of the data folder that could be registered",
)
def sources(state: TheState, only: Annotated[str | None, Query(min_length=1, max_length=500)] = None) -> dict[str, Any]:
    """Names and types of columns, never a row. An engine's table shows its columns when it is asked for by name."""
    return dataset_registry.table_list(state, only)


@router.post(
    "/datasets/check",
    response_model=CheckView,
    responses=refusals("engine_error"),
    summary="Check a declaration before it is registered",
)
def check(body: CheckedDeclaration, state: TheState) -> dict[str, Any]:
    """A sentence for every column and for the unit, and what is still wrong. Nothing is written, no row is read."""
    return dataset_registry.check_of(state, body)


@router.get("/datasets", response_model=DatasetsView, summary="All datasets that you may plan with")
def datasets(state: TheState, who: Who) -> dict[str, Any]:
    """Each with its budget; an analyst sees those with a grant of their own, and the grant."""
    return dataset_registry.dataset_list(state, who)


@router.post(
    "/datasets",
    status_code=201,
    response_model=DatasetView,
    responses=refusals("conflict", "engine_error"),
    summary="Register a dataset and its budget",
)
def register(body: Declaration, state: TheState, who: Who) -> dict[str, Any]:
    """Write the declaration, then open the budget in the ledger. The same again finishes what was begun."""
    return dataset_registry.register(state, who, body)


@router.get(
    "/datasets/{name}",
    response_model=DatasetView,
    responses=refusals("not_found", "engine_error"),
    summary="What is public about a dataset",
)
def described(name: Name, state: TheState, who: Who) -> dict[str, Any]:
    """Columns, unit, stability and budget; curators also see the source, they and auditors the grants."""
    return dataset_registry.description(state, who, name)


@router.get(
    "/datasets/{name}/budget",
    response_model=BudgetDetails,
    responses=refusals("not_found"),
    summary="The state of a budget",
)
def budget(name: Name, state: TheState, who: Who, odometer: bool = False) -> BudgetDetails:
    """The dataset's budget; for an analyst, their grant in it. The `odometer` reads all charges again."""
    return dataset_registry.budget_of(state, who, name, odometer=odometer)


@router.put(
    "/datasets/{name}/budget",
    response_model=BudgetView,
    responses=refusals("not_found"),
    summary="Set a dataset's budget",
)
def set_budget(name: Name, body: BudgetWords, state: TheState, who: Who) -> BudgetView:
    """What was spent stays spent; a raise is an entry of the ledger forever."""
    return dataset_registry.set_budget(state, who, name, body)


@router.post(
    "/datasets/{name}/corrections/check",
    response_model=CorrectionView,
    responses=refusals("not_found", "engine_error"),
    summary="What a correction of a declaration would change",
)
def check_correction(name: Name, body: CheckedCorrection, state: TheState, who: Who) -> CorrectionView:
    """Before and after, and what later releases notice of it. Nothing is written, no row is read."""
    return dataset_corrections.checked(state, who, name, body)


@router.post(
    "/datasets/{name}/corrections",
    status_code=201,
    response_model=CorrectionView,
    responses=refusals("not_found", "conflict", "engine_error"),
    summary="Correct a declaration that was wrong",
)
def correct(name: Name, body: Correction, state: TheState, who: Who) -> CorrectionView:
    """An entry of the ledger says what changed and why; the budget, the unit and the neighbours stay as they are."""
    return dataset_corrections.correct(state, who, name, body)


@router.post(
    "/datasets/{name}/periods",
    status_code=201,
    response_model=DatasetView,
    responses=refusals("not_found", "conflict", "engine_error"),
    summary="Open the next period of an account that renews",
)
def open_period(name: Name, body: NextPeriod, state: TheState, who: Who) -> dict[str, Any]:
    """The rows of another period, as a dataset of its own, with the budget that every period has."""
    return dataset_registry.open_period(state, who, name, body)


@router.post(
    "/datasets/{name}/parts/price",
    response_model=DivisionView,
    responses=refusals("not_found", "engine_error"),
    summary="What it costs to divide a table into disjoint parts",
)
def price_parts(name: Name, body: DivisionWords, state: TheState, who: Who) -> DivisionView:
    """All parts together cost what one of them may. Nothing is charged; the file is compared with how it was."""
    return dataset_parts.priced(state, who, name, body)


@router.post(
    "/datasets/{name}/parts",
    status_code=201,
    response_model=DivisionView,
    responses=refusals("not_found", "conflict", "budget_exceeded", "engine_error"),
    summary="Divide a table into disjoint parts",
)
def divide(name: Name, body: Division, state: TheState, who: Who) -> DivisionView:
    """One charge for all parts; each becomes a dataset, whose plans cost the whole table's account nothing more."""
    return dataset_parts.divided(state, who, name, body)


@router.put(
    "/datasets/{name}/grants/{user}",
    response_model=BudgetView,
    responses=refusals("not_found"),
    summary="Set how much an analyst may spend in all",
)
def grant(name: Name, user: User, body: BudgetWords, state: TheState, who: Who) -> BudgetView:
    """The dataset's own budget still rules above it. What the analyst spent stays spent."""
    return dataset_registry.grant(state, who, name, user, body)


@router.put(
    "/datasets/{name}/reserves/{label}",
    response_model=BudgetView,
    responses=refusals("not_found"),
    summary="Set a part of a budget aside under a name",
)
def reserve(name: Name, label: Label, body: BudgetWords, state: TheState, who: Who) -> BudgetView:
    """Only charges that name it may use it; epsilon 0 and delta 0 free it."""
    return dataset_registry.reserve(state, who, name, label, body)
