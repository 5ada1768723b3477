"""A file is registered to an account that is open, before anything is asked about it."""

from __future__ import annotations

import datetime
import os
from typing import TYPE_CHECKING, Any

from farthing.curator.payers import Accounts, accounts_of, period_account, rate_of, take_up
from farthing.curator.same_people import Overlap, same_people
from farthing.data import dataset
from farthing.data.declaration_file import columns_of
from farthing.errors import InvalidValue, NotAllowed
from farthing.privacy.periods import Periods

if TYPE_CHECKING:
    from farthing.data import Dataset
    from farthing.ledger import Budget, Ledger

_ALL_DAYS = (datetime.date(1, 1, 1), datetime.date(9999, 12, 31))


def register_source(ledger: Ledger, account: str, source: str | os.PathLike[str]) -> tuple[Accounts, list[Overlap]]:
    """Register a file, a folder or a pattern to an account: whatever is computed from it is charged there.

    Args:
        ledger: The ledger, opened by a curator.
        account: The account that protects the people in it.
        source: The file, folder or pattern.

    Returns:
        What the ledger knows now, and the other accounts that protect many of these people. NOT PRIVATE: the second is
        computed from rows, for the steward.

    Raises:
        InvalidValue: If there is no such account, it protects another unit than the file has, or the file is registered
            to another one.
        NotAllowed: If the ledger was not opened by a curator.

    >>> import tempfile
    >>> from farthing.ledger import open_ledger
    >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
    ...     with open(f"{folder}/visits.csv", "w") as file:
    ...         _ = file.write("person,cost")
    ...     _ = ledger.register("patients", 1.0, unit="person, add-remove")
    ...     _ = register_source(ledger, "patients", f"{folder}/visits.csv")
    ...     [os.path.basename(title) for title in ledger.budget("patients").sources]
    ['visits.csv']
    """
    budget = ledger.budget(account)
    if account in ledger.parts():
        raise InvalidValue("account", account, "is a part of another account", "register the file to the whole")
    if ledger.role != "curator":
        raise NotAllowed(ledger.role, "register a table", "open the ledger as curator")
    rows, name = _rows(budget, os.fspath(source))
    # Whose its rows are is written down when they are first asked for: a key may lead to another table.
    accounts = accounts_of(ledger, rows, name, rate_of(budget), is_declared=False)
    if accounts.is_news:
        take_up(ledger, accounts)
        accounts = accounts_of(ledger, rows, name, rate_of(budget), is_declared=False)
    # Rows are compared by their declared columns, and nothing is declared here.
    return accounts, same_people(ledger, rows, account, is_registered=True) if rows.unit else []


def _rows(budget: Budget, source: str) -> tuple[Dataset, str]:
    """The rows of a file for the unit of an account, and which account pays; of one that renews, that of a period."""
    unit = budget.protects
    schema: dict[str, Any] = {columns_of(source)[0][0]: bool}  # one column of any kind: none of it is read
    if unit is None:
        return dataset(source, schema=schema), budget.dataset
    options: dict[str, Any] = {"unit": list(unit.columns), "max_rows": 1} if unit.columns else {}
    renewal = unit.renewal
    if renewal is not None:
        schema = {renewal.date: _ALL_DAYS}
    rows = dataset(source, schema=schema, neighbours=unit.neighbours, **options)
    if unit.group > 1:
        rows = rows.group_privacy(unit.group)
    if renewal is None:
        return rows, budget.dataset
    if renewal.period is not None:
        raise InvalidValue("account", budget.dataset, "is one period of an account", "register the file to the account")
    today = datetime.datetime.now(datetime.UTC).date()
    period = Periods.of(renewal.every, today, 1).names[0]
    return rows.during(renewal.date, renewal.every, period), period_account(budget.dataset, period)
