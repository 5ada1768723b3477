"""The ledger that people open: what may be done with it, and by whom."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from farthing.errors import InvalidValue, NotAllowed
from farthing.ledger import budget_policy, charge_lifecycle
from farthing.ledger.account_state import usage_in
from farthing.ledger.charge_lifecycle import (
    checked_charge,
    refusal,
)
from farthing.ledger.charge_quotes import Quote, Request, quoted
from farthing.ledger.deposit_records import DepositRecords
from farthing.ledger.entries import (
    ROLES,
    WORLDS,
    Change,
    Charge,
    Entry,
    Receipt,
    checked_answer,
    checked_budget,
    checked_change,
    checked_choice,
    checked_event,
    checked_name,
    checked_note,
)
from farthing.ledger.ledger_change import (
    Question,
    Snapshot,
    Transaction,
    known,
)
from farthing.ledger.ledger_reader import LedgerReader, SourceText
from farthing.ledger.partitions import Part
from farthing.ledger.people_sketches import PeopleSketches
from farthing.ledger.plan_requests import PlanRequests
from farthing.ledger.publication_key import PublicationKey
from farthing.ledger.rights import Contents
from farthing.ledger.table_versions import sealed_version
from farthing.privacy.events import Event, checked_delta
from farthing.privacy.units import Unit

_Done = TypeVar("_Done")


class Ledger(LedgerReader):
    """Budgets, charges and answers in an append-only, signed store. Made by `farthing.open_ledger`.

    Args:
        store: Where the entries are.
        chain: The key that signs them.
        witness: What was seen of the ledger, kept outside it.
        memory: What this process has seen of it.
        actor: Who acts.
        role: "curator", "analyst" or "auditor".
        opening: What verifying it came to when it was opened.
        notes: What is not wrong with the ledger but about it.

    >>> import tempfile, os
    >>> from farthing.ledger import open_ledger
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = open_ledger(os.path.join(folder.name, "study.db"))
    >>> _ = ledger.register("census", epsilon=1.0)

    Charge first, then run, then release; the same request id finds what it had.

    >>> charge = ledger.charge("census", 0.25, request_id="r-1")
    >>> receipt = ledger.release(charge, '{"count": 41}')
    >>> ledger.budget("census").remaining, ledger.stored("r-1").answer
    (ApproxDP(epsilon=0.75, delta=0.0), '{"count": 41}')
    >>> ledger.charge("census", 0.25, request_id="r-1").repeated
    True
    >>> ledger.charge("census", 0.9, request_id="r-2")
    Traceback (most recent call last):
        ...
    farthing.errors.BudgetExceeded: charge of epsilon=0.9 exceeds the epsilon=0.75 left in budget 'census'; ...
    >>> ledger.forfeit(ledger.charge("census", 0.05, request_id="r-3"), "the engine died").state
    'forfeited'

    A curator decides who may spend how much, and what is set aside.

    >>> _ = ledger.grant("census", "bob", 0.2)
    >>> _ = ledger.reserve("census", 0.3, name="census day")
    >>> ledger.budget("census").remaining.epsilon, ledger.budget("census", "bob").remaining.epsilon
    (0.4, 0.2)
    >>> ledger.set_budget("census", 1.5).body["raised"], ledger.datasets()
    (True, ['census'])

    Everything stays readable, and is checked.

    >>> [entry.kind for entry in ledger.entries("census")][:4]
    ['dataset', 'charge', 'released', 'refused']
    >>> ledger.verify(receipt).ok, ledger.receipt("r-1") == receipt
    (True, True)
    >>> ledger.export(os.path.join(folder.name, "entries.jsonl"))
    10

    A curator's ledger can be lent to somebody else; it stays open until the one it was lent from is closed.

    >>> bob = ledger.acting("bob", "analyst")
    >>> bob.charge("census", 0.1, request_id="bob:1").analyst, bob.actor, bob.role
    ('bob', 'bob', 'analyst')
    >>> bob.acting("ada", "curator")
    Traceback (most recent call last):
        ...
    farthing.errors.NotAllowed: role 'analyst' may not let somebody else act; open the ledger as curator.
    >>> ledger.close(); folder.cleanup()
    """

    def acting(self, actor: str, role: str) -> Ledger:
        """The same open ledger with another actor and role; only a curator's can be lent.

        Args:
            actor: Who acts.
            role: "curator", "analyst" or "auditor".

        Returns:
            A ledger that stays open until the one it was lent from is closed.

        Raises:
            InvalidValue: If the role is not one of these.
            NotAllowed: If the role of this one is not "curator".

        >>> import tempfile
        >>> from farthing.ledger import open_ledger
        >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
        ...     ledger.acting("bob", "analyst").role
        'analyst'
        """
        self._only("let somebody else act", "curator")
        lent = Ledger(
            self._store,
            self._chain,
            self._witness,
            self._memory,
            checked_name(actor, "actor"),
            checked_choice(role, "role", ROLES),
            self._opening,
            self._notes,
        )
        lent._lent = True
        return lent

    def publication_key(self) -> PublicationKey:
        """The key that signs what is published from this ledger; its public half is for readers.

        Returns:
            The key.

        Raises:
            NotAllowed: If the role is not "curator".

        >>> import tempfile
        >>> from farthing.ledger import open_ledger
        >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
        ...     len(ledger.publication_key().public), ledger.publication_key() == ledger.publication_key()
        (64, True)
        """
        self._only("sign a publication", "curator")
        return PublicationKey(self._chain.publication_seed())

    @property
    def requests(self) -> PlanRequests:
        """What analysts have asked for, and what curators have allowed them."""
        return PlanRequests(self)

    @property
    def people(self) -> PeopleSketches:
        """What is kept of the people of each table, so that a curator can tell where they are again."""
        return PeopleSketches(self)

    @property
    def deposits(self) -> DepositRecords:
        """Which release stands where in a repository."""
        return DepositRecords(self)

    # What a curator decides.

    def register(
        self,
        dataset: str,
        epsilon: float,
        delta: float = 0.0,
        *,
        unit: Unit | str = "",
        sources: Iterable[SourceText] = (),
        titles: Iterable[str] = (),
    ) -> Entry:
        """Open an account: a budget, and the people whom it protects.

        Args:
            dataset: The name of the dataset.
            epsilon: Its epsilon; rounded down to whole billionths.
            delta: Its delta; rounded down to whole units of 1e-40.
            unit: Whose privacy it is. Words such as "row, add-remove" or "person, replace" are stored as data: `row` is
                one row, and a column of that name is written in quotes. Other words are stored as they are, and no
                dataset has such a unit.
            sources: Texts by which tables are known whose people it protects (see `attach`).
            titles: What people call these tables.

        Returns:
            The entry.

        Raises:
            InvalidValue: If there is an account of that name, however it is spelled, or an argument has the wrong form.
            NotAllowed: If the role is not "curator".

        >>> import tempfile
        >>> from farthing.ledger import open_ledger
        >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
        ...     ledger.register("survey", epsilon=1.0, delta=1e-9, unit="person, add-remove").kind
        'dataset'
        """
        self._only("register a dataset", "curator")
        name, budget = checked_name(dataset, "dataset"), checked_budget(epsilon, delta)
        words = unit if isinstance(unit, Unit) else checked_note(unit, "unit")
        if isinstance(words, str):
            words = Unit.read(words) or words
        signatures, called = self.source_signatures(sources), [checked_name(title, "titles") for title in titles]
        names = self.datasets()
        budget_policy.refuse_spelling(name, names)
        for whole in budget_policy.wholes_of(name, names):
            budget_policy.refuse_name_of_period(name, words, self.budget(whole))
        return self._append(
            Question(name), lambda tx: budget_policy.register(tx, name, *budget, words, signatures, called)
        )

    def attach(self, dataset: str, sources: Iterable[SourceText], titles: Iterable[str] = ()) -> Entry | None:
        """Let an account stand for the people in further tables too; `Study.register` and `Curator.attach` do it.

        Whatever is computed from such a table is charged to this account, under whichever name it is asked for.

        Args:
            dataset: The name of the account.
            sources: Texts by which tables are known, as `farthing.data.table_identity` writes them. Only their
                signatures under the ledger's key are kept; of a pair, the second is kept as it is.
            titles: What people call these tables.

        Returns:
            The entry; None if the account stands for all of them already.

        Raises:
            InvalidValue: If there is no such account.
            NotAllowed: If the role is "auditor".

        >>> import tempfile
        >>> from farthing.ledger import open_ledger
        >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
        ...     _ = ledger.register("survey", 1.0)
        ...     ledger.attach("survey", ["survey.csv"]).kind, ledger.attach("survey", ["survey.csv"])
        ('source', None)
        """
        self._only("attach a source", "curator", "analyst")
        name, signatures = checked_name(dataset, "dataset"), self.source_signatures(sources)
        called = [checked_name(title, "titles") for title in titles]
        return self._append(Question(name), lambda tx: budget_policy.attach(tx, name, signatures, called))

    def open_part(self, part: Part, epsilon: float, delta: float, unit: Unit) -> Entry | None:
        """Open the account of a part of a partition that was charged; `Study.split` does it.

        Args:
            part: The part.
            epsilon: Its epsilon, which the charge of the partition reserved.
            delta: Its delta.
            unit: Whom it protects.

        Returns:
            The entry; None if it is open.

        Raises:
            InvalidValue: If no charge reserved it.
            NotAllowed: If the role is not "curator".
        """
        self._only("open a part", "curator")
        question, budget = Question(part.name, request_id=part.request_id), checked_budget(epsilon, delta)
        return self._append(question, lambda tx: budget_policy.open_part(tx, part, *budget, unit))

    def correct(self, dataset: str, changes: Mapping[str, tuple[str, str]], reason: str, source: str = "") -> Entry:
        """Write down that a declaration was corrected: the account, its budget and whom it protects stay as they are.

        Args:
            dataset: The name of the account.
            changes: By what was declared, such as a column, how it stood and how it stands now.
            reason: Why, in a few words that are not computed from rows.
            source: What people call the table.

        Returns:
            The entry.

        Raises:
            InvalidValue: If there is no such account, nothing changes, or the unit or neighbours would.
            NotAllowed: If the role is not "curator".

        >>> import tempfile
        >>> from farthing.ledger import open_ledger
        >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
        ...     _ = ledger.register("survey", 1.0)
        ...     ledger.correct("survey", {"age": ("0 to 110", "0 to 120")}, "some are older").kind
        'correction'
        """
        self._only("correct a declaration", "curator")
        name, body = checked_name(dataset, "dataset"), budget_policy.correction_body(changes, reason, source)
        return self._append(Question(name), lambda tx: budget_policy.correct(tx, name, body))

    def set_budget(self, dataset: str, epsilon: float, delta: float | None = None) -> Entry:
        """Give a dataset another budget.

        A raise is allowed, and is an entry that says so forever. A budget may be lowered below what was spent, but not
        to a delta at which no epsilon covers it.

        Args:
            dataset: The name of the dataset.
            epsilon: Its new epsilon.
            delta: Its new delta; by default it stays as it is.

        Returns:
            The entry.

        Raises:
            InvalidValue: If there is no such dataset, or an argument has the wrong form.
            NotAllowed: If the role is not "curator".

        >>> import tempfile
        >>> from farthing.ledger import open_ledger
        >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
        ...     _ = ledger.register("survey", 1.0)
        ...     ledger.set_budget("survey", 1.5).body["raised"], ledger.budget("survey").total.epsilon
        (True, 1.5)
        """
        self._only("set a budget", "curator")
        name, budget = checked_name(dataset, "dataset"), checked_change(epsilon, delta)
        return self._append(Question(name), lambda tx: budget_policy.set_budget(tx, name, *budget))

    def grant(self, dataset: str, analyst: str, epsilon: float, delta: float | None = None) -> Entry:
        """Let an analyst spend at most so much in all; the dataset's own budget still rules above it.

        Args:
            dataset: The name of the dataset.
            analyst: The name of the analyst.
            epsilon: The epsilon of the grant; a second grant replaces the first.
            delta: Its delta; by default a grant that is there keeps its own, and a new one has 0.

        Returns:
            The entry.

        Raises:
            InvalidValue: If there is no such dataset, or an argument has the wrong form.
            NotAllowed: If the role is not "curator".

        >>> import tempfile
        >>> from farthing.ledger import open_ledger
        >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
        ...     _ = ledger.register("survey", 1.0)
        ...     _ = ledger.grant("survey", "bob", 0.2)
        ...     ledger.budget("survey", "bob").remaining.epsilon
        0.2
        """
        self._only("grant a budget", "curator")
        name, who = checked_name(dataset, "dataset"), checked_name(analyst, "analyst")
        budget = checked_change(epsilon, delta)
        return self._append(Question(name, who), lambda tx: budget_policy.grant(tx, name, who, *budget))

    def reserve(self, dataset: str, epsilon: float, delta: float | None = None, name: str = "reserve") -> Entry:
        """Set aside a part of a budget under a name, for charges that name it.

        Args:
            dataset: The name of the dataset.
            epsilon: How much is set aside; 0 frees it.
            delta: Its delta; by default a reserve that is there keeps its own unless it is freed, and a new one has 0.
            name: The name of the reserve.

        Returns:
            The entry.

        Raises:
            InvalidValue: If there is no such dataset, or the budget does not have so much left.
            NotAllowed: If the role is not "curator".

        >>> import tempfile
        >>> from farthing.ledger import open_ledger
        >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
        ...     _ = ledger.register("survey", 1.0)
        ...     _ = ledger.reserve("survey", 0.25, name="spring")
        ...     ledger.budget("survey").remaining.epsilon
        0.75
        """
        self._only("set aside a reserve", "curator")
        whole, label = checked_name(dataset, "dataset"), checked_name(name, "name")
        budget = checked_change(epsilon, delta)
        return self._append(Question(whole), lambda tx: budget_policy.reserve(tx, whole, *budget, label))

    # What is spent.

    def charge(
        self,
        dataset: str,
        event: Event | float | tuple[float, float],
        *,
        request_id: str,
        world: str = "planned",
        delta: float | None = None,
        analyst: str | None = None,
        digest: str = "",
        use_reserve: str | None = None,
        others: Iterable[str] = (),
        table: str = "",
        contents: Contents | None = None,
        source: tuple[str, str] | None = None,
    ) -> Charge:
        """Charge an event, durably, before anything is computed; the same request id is never charged twice.

        Args:
            dataset: Whose budget pays.
            event: What is charged: an event, an epsilon, or an (epsilon, delta) pair.
            request_id: The name of the request.
            world: "planned" if the parameters were fixed in advance, "adaptive" if they depend on earlier answers.
            delta: The delta at which an event without a pure epsilon enters the plain sums; chosen by default.
            analyst: Whose grant pays too, if a curator charges for an analyst.
            digest: The caller's fingerprint of the request: a repeated request id must bring the same one.
            use_reserve: The reserve that pays, for curators.
            others: Further datasets whose people are touched: each pays from its own budget, all of them or none.
            table: A fingerprint of the rows, of which a signature is stored for `table_changed`.
            contents: What a policy looks at in a plan; without it no policy covers the charge.
            source: A text that names the table, and what people call it: with `table`, a sealed note of both is stored
                for `versions`.

        Returns:
            The charge, durable by now.

        Raises:
            BudgetExceeded: If it does not fit; then an entry says so and no account has changed.
            InvalidValue: If an argument has the wrong form, or the request id was charged for another request.
            NotAllowed: If the role may not charge.

        >>> import tempfile
        >>> from farthing.ledger import open_ledger
        >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
        ...     _ = ledger.register("survey", 1.0)
        ...     first = ledger.charge("survey", 0.25, request_id="r-1")
        ...     again = ledger.charge("survey", 0.25, request_id="r-1")
        ...     first.repeated, again.repeated, ledger.budget("survey").remaining.epsilon
        (False, True, 0.75)
        """
        self._only("charge", "curator", "analyst")
        name = checked_name(dataset, "dataset")
        request = Request(
            name,
            self._spender(analyst),
            checked_event(event),
            checked_name(request_id, "request_id"),
            checked_choice(world, "world", WORLDS),
            None if delta is None else checked_delta(delta),
            checked_note(digest, "digest"),
            None if use_reserve is None else checked_name(use_reserve, "use_reserve"),
            tuple(sorted({checked_name(other, "others") for other in others} - {name})),
            self._chain.table(request_id, table) if table else "",
            contents,
            sealed_version(self._chain, *source, table) if table and source else "",
            self.source_signatures(source[:1])[0] if source else "",
        )
        return self._charged(request)

    def _charged(self, request: Request) -> Charge:
        if request.reserve is not None:
            self._only("use a reserve", "curator")
        quote = self._quoted(request)
        question = Question(request.dataset, request.analyst, request.request_id, fresh=True, others=request.others)
        outcome = self._append(question, lambda tx: charge_lifecycle.charge(tx, request, quote))
        if isinstance(outcome, tuple):
            raise refusal(outcome, request, self.place)
        return charge_lifecycle.charge_made(self.id, request, outcome)

    def admits(
        self,
        dataset: str,
        event: Event | float | tuple[float, float],
        *,
        delta: float | None = None,
        analyst: str | None = None,
        requested: bool = False,
    ) -> bool:
        """Whether `charge` with the same arguments would be admitted now; nothing is written.

        Args:
            dataset: Whose budget would pay.
            event: What would be charged: an event, an epsilon, or an (epsilon, delta) pair.
            delta: The delta at which an event without a pure epsilon would enter the plain sums.
            analyst: Whose grant would pay too.
            requested: Whether a curator would have to approve it first, so that no grant pays.

        Returns:
            True if the budget, and the grant if there is one, have room for it.

        Raises:
            InvalidValue: If there is no such dataset, or an argument has the wrong form.
            NotAllowed: If an analyst asks for the grant of somebody else.

        >>> import tempfile
        >>> from farthing.ledger import open_ledger
        >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
        ...     _ = ledger.register("survey", 1.0)
        ...     ledger.admits("survey", 1.0), ledger.admits("survey", 1.5)
        (True, False)
        """
        return self.usage(dataset, event, delta=delta, analyst=analyst, requested=requested) <= 1

    def usage(
        self,
        dataset: str,
        event: Event | float | tuple[float, float],
        *,
        delta: float | None = None,
        analyst: str | None = None,
        requested: bool = False,
    ) -> float:
        """The part of what is left that `charge` with the same arguments would take; nothing is written.

        Of the clock, or of plain sums if that is less; of those it is squared, because what a clock pays grows with the
        square of an epsilon.

        Args:
            dataset: Whose budget would pay.
            event: What would be charged: an event, an epsilon, or an (epsilon, delta) pair.
            delta: The delta at which an event without a pure epsilon would enter the plain sums.
            analyst: Whose grant would pay too.
            requested: Whether a curator would have to approve it first, so that no grant pays.

        Returns:
            At most 1 if the budget, and the grant if there is one, have room for it; above 1 if not.

        Raises:
            InvalidValue: If there is no such dataset, or an argument has the wrong form.
            NotAllowed: If an analyst asks for the grant of somebody else.

        >>> import tempfile
        >>> from farthing.ledger import open_ledger
        >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
        ...     _ = ledger.register("survey", 1.0)
        ...     ledger.usage("survey", 0.5), ledger.usage("survey", 1.5)
        (0.25, 2.25)
        """
        who = "" if requested else self._spender(analyst)
        name, priced = checked_name(dataset, "dataset"), checked_event(event)
        target_delta = None if delta is None else checked_delta(delta)
        reader = self._reader(Question(name, who))
        whole = known(reader, name)
        return usage_in([whole, reader.own()] if who else [whole], priced, target_delta)

    def release(self, charge: Charge, answer: str) -> Receipt:
        """Store the answer of a charge and mark it released; a charge that has an answer keeps the one it has.

        Args:
            charge: The charge that `charge` returned.
            answer: The answer as text, such as JSON.

        Returns:
            The receipt.

        Raises:
            InvalidValue: If the charge was forfeited.
            InvalidData: If the answer is not text that both databases can hold.
            NotAllowed: If the role is "auditor".

        >>> import tempfile
        >>> from farthing.ledger import open_ledger
        >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
        ...     _ = ledger.register("survey", 1.0)
        ...     receipt = ledger.release(ledger.charge("survey", 0.25, request_id="r-1"), '{"count": 41}')
        ...     receipt.state, ledger.stored("r-1").answer
        ('released', '{"count": 41}')
        """
        text = checked_answer(answer)
        words = {"answer": self._chain.answer(checked_charge(charge).request_id, text), "bytes": len(text.encode())}
        entry = self._settle("released", charge, words, text)
        if entry.kind != "released":
            rule = "was forfeited and cannot be released"
            raise InvalidValue("charge", charge.request_id, rule, "use a new request id")
        return self._receipt(entry)

    def forfeit(self, charge: Charge, reason: str) -> Receipt:
        """Mark a charge that will never have an answer; it stays spent. A released charge stays released.

        Args:
            charge: The charge that `charge` returned.
            reason: Why there is no answer, in a few words that are not computed from rows.

        Returns:
            The receipt.

        Raises:
            InvalidValue: If an argument has the wrong form.
            NotAllowed: If the role is "auditor".

        >>> import tempfile
        >>> from farthing.ledger import open_ledger
        >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
        ...     _ = ledger.register("survey", 1.0)
        ...     receipt = ledger.forfeit(ledger.charge("survey", 0.25, request_id="r-1"), "the engine died")
        ...     receipt.state, ledger.budget("survey").remaining.epsilon
        ('forfeited', 0.75)
        """
        return self._receipt(self._settle("forfeited", charge, {"reason": checked_name(reason, "reason")}))

    def _settle(self, kind: str, charge: Charge, words: dict[str, object], answer: str | None = None) -> Entry:
        self._only("settle a charge", "curator", "analyst")
        checked_charge(charge)
        question = Question(charge.dataset, charge.analyst, charge.request_id, others=charge.others)
        return self._append(question, lambda tx: charge_lifecycle.settle(tx, kind, charge, words, answer))

    def _spender(self, analyst: str | None) -> str:
        """Whose grant pays: an analyst's own; for a curator the dataset's budget alone, or a named analyst's."""
        if self.role != "analyst":
            return "" if analyst is None else checked_name(analyst, "analyst")
        if analyst is not None and checked_name(analyst, "analyst") != self.actor:
            raise NotAllowed(self.role, "spend the grant of somebody else", "spend your own")
        return self.actor

    def _quoted(self, request: Request) -> Quote | None:
        """The price and the entry, worked out before the lock is taken from the accounts as they were seen last."""
        dataset, analyst = request.dataset, request.analyst
        whole = self._memory.holding(dataset)
        own = self._memory.holding(dataset, analyst) if analyst else None
        if whole is None or (analyst and own is None):
            reader = self._reader(Question(dataset, analyst))
            whole, own = reader.whole(), reader.own()
        # With others, or rights that may cover it, it is quoted under the lock: few requests have them.
        late = bool(request.others) or (own is not None and bool(own.rights))
        return None if whole is None or late else quoted(request, whole, own)

    def _only(self, action: str, *roles: str) -> None:
        if self.role not in roles:
            raise NotAllowed(self.role, action, f"open the ledger as {' or '.join(roles)}")

    def _append(self, question: Question, act: Callable[[Transaction], _Done]) -> _Done:
        """What `act` returns, once the entry that it appended is durable."""
        outcomes: list[tuple[Transaction, _Done]] = []

        def decide(snapshot: Snapshot | None) -> Change | None:
            tx = Transaction(question, snapshot, self._chain, self._memory, self._actor, self._role)
            assert snapshot is not None
            # Nobody writes now, and others note what they wrote before: if that is not seen here, they write elsewhere.
            noted = self._witness.read(self._chain, known=snapshot.head[1:])
            tx.check_seen(noted, f"the witness {self._witness.place}", *tx.last)
            outcomes.append((tx, act(tx)))
            return tx.change

        def then(change: Change | None) -> None:
            outcomes[0][0].remember(change)
            if change is not None:
                self._witness.note(change.head)

        self._store.change(question, decide, then)
        return outcomes[0][1]
