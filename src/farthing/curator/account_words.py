"""What is said of the account that pays for a table: it is opened, a table joins it, a frame has none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from farthing.curator.payers import Accounts
from farthing.data import Dataset
from farthing.errors import InvalidValue
from farthing.ledger.lifetime import lifetime_words
from farthing.numerics.bounds import number_text

if TYPE_CHECKING:
    from farthing.ledger import Budget


def is_nameless(dataset: Dataset) -> bool:
    """Whether nothing says which table it is: a frame that nobody named, so that no account can be its own."""
    source = dataset.home.sources()[0]
    return source.frame is not None and not source.is_named


def nameless_refusal(dataset: Dataset, earlier: str | None) -> InvalidValue:
    """Why such a frame is not spent on; `earlier` is the account from which earlier versions paid for it."""
    before = f"; earlier versions paid from account={earlier!r}" if earlier is not None else ""
    return InvalidValue(
        "account",
        None,
        f"must be given for a frame that nobody named: a ledger cannot tell one {dataset.name} from another, and "
        "whoever is in it must pay from their own account",
        f'pass account="..." to Study, or name="..." to dataset{before}',
    )


def account_news(accounts: Accounts, budget: Budget) -> str | None:
    """What a release would do besides spending, in one line: open an account, or register a table to one.

    >>> from farthing.ledger.budget import untouched_budget
    >>> from farthing.privacy.units import Unit
    >>> budget = untouched_budget("patients", 1.0, 1e-9, Unit(("person",)))
    >>> print(account_news(Accounts("patients", title="visits.csv", is_open=False), budget))
    opens the account 'patients' (protects person, add-remove; epsilon 1, delta 1e-09) for visits.csv
    """
    lifelong = lifetime_words(budget.protects, budget.total)
    if lifelong:
        return f"{_news(accounts, budget) or f'pays from the account {accounts.name!r}'}; {lifelong}"
    return _news(accounts, budget)


def _news(accounts: Accounts, budget: Budget) -> str | None:
    if not accounts.is_open:
        amount = f"epsilon {number_text(budget.total.epsilon, 6)}, delta {budget.total.delta:g}"
        return f"opens the account {accounts.name!r} (protects {budget.unit}; {amount}) for {accounts.title}"
    if accounts.part is not None:
        whole = accounts.part.account
        return f"pays from its part: what all parts by {accounts.part.by} may cost is charged to {whole!r} once"
    if accounts.is_new:
        return f"registers {accounts.title} to the account {accounts.name!r}, which pays for it from now on"
    return None
