"""What the first plan would wait for is made ready while the page is being loaded."""

from __future__ import annotations

from contextlib import suppress

from farthing.server.callers import Caller
from farthing.server.permissions import SCOPES_OF_ROLE
from farthing.server.state import ACTOR, State
from farthing.server.store.declarations import Declaration, all_declarations
from farthing.server.views.draft import Draft
from farthing.server.views.plan import priced

_FILES = (".csv", ".parquet")  # an engine elsewhere is not called before somebody wants something of it


def warm_up(state: State) -> None:
    """Price a small plan, which imports the engine and the solver; nothing is spent and no row is read."""
    server = Caller(ACTOR, "curator", SCOPES_OF_ROLE["curator"], "session")
    # Whatever goes wrong here will go wrong again, in front of somebody who can be told.
    with suppress(Exception):
        state.passwords.warm()
        for declaration in all_declarations(state.store):
            if str(declaration.words["source"]).lower().endswith(_FILES):
                draft = _small_draft(declaration)
                priced(state, server, draft, proof=False)
                priced(state, server, draft, proof=True)
                return


def _small_draft(declaration: Declaration) -> Draft:
    columns: dict[str, dict[str, object]] = declaration.words["columns"]
    means = [{"kind": "mean", "column": name} for name, says in columns.items() if "range" in says]
    return Draft.model_validate({"dataset": declaration.name, "statistics": [{"kind": "count"}, *means[:1]]})
