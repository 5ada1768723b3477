"""Sessions in a ledger: charged once as a whole, each round written down before its first question and after its last.

The opening is a charge like any other. A round is a charge of nothing, since the session paid for it: its request id
is charged once, so that of several processes one begins it, and the number of rounds never exceeds what was paid for.
A round's request id ends with letters that were drawn for the session and are recorded with its opening, so that nobody
knows them who may not see that: nobody else can take a round away, or record something under its name. (Marks of the
chain are no secret: each also stands in the next entry, which may be anybody's.)
"""

from __future__ import annotations

import json
import re
import secrets
import threading
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from farthing.adaptive.session_journal import checked_record, checked_round
from farthing.curator.curator import Curator, ReleaseTerms, stored_answer
from farthing.curator.payers import take_up
from farthing.curator.questions import Progress, digest_of, record
from farthing.curator.session_notes import SessionNotes
from farthing.data import Dataset
from farthing.errors import FarthingError, InvalidValue
from farthing.ledger.entries import checked_name
from farthing.privacy import ApproxDP, Event

if TYPE_CHECKING:
    from farthing.ledger import Charge, Receipt

Record = Mapping[str, Any]

T = TypeVar("T")
PATIENCE = 60.0  # seconds for another process to finish the opening that it has charged
_NOTHING = ApproxDP(0.0)
_LETTERS = 16  # at the end of a round's request id
_MOST_NOTES = 9_999  # each holds more answers than the one before


class RoundId(NamedTuple):
    """The request id of one round: that of its session, its number, and letters that nobody else can guess.

    Args:
        session: The request id of its session.
        number: Its number, from 1 on.
        letters: Random letters, which keep others from taking the round.
        word: "round", or "notes" for answers that were free.

    >>> text = str(RoundId("answers-1", 3, "ab12"))
    >>> text, RoundId.read(text).number, RoundId.read("answers-1 notes 1 ab12").word, RoundId.read("answers-1")
    ('answers-1 round 3 ab12', 3, 'notes', None)
    """

    session: str
    number: int
    letters: str
    word: str = "round"

    def __str__(self) -> str:
        return f"{self.public} {self.letters}"

    @property
    def public(self) -> str:
        """Without the letters, which keep others from taking the round."""
        return f"{self.session} {self.word} {self.number}"

    @classmethod
    def read(cls, request_id: str) -> RoundId | None:
        """The parts of a request id; None where it is not that of a round.

        Args:
            request_id: The text of a request id.

        Returns:
            Its parts, or None.

        >>> RoundId.read("answers-1 round 3 ab12").number
        3
        """
        match = re.fullmatch(r"(.+) (round|notes) (\d+)(?: (.*))?", request_id, re.DOTALL)
        return None if match is None else cls(match[1], int(match[3]), match[4] or "", match[2])


@dataclass(frozen=True)
class Session:
    """What a session costs and may do, fixed before it is opened.

    `event` is its whole price, `rounds` the most rounds that it pays for, `digest` a fingerprint of everything public
    about it, `check` refuses a dataset whose neighbours are further apart than it was priced for. `facts` are recorded
    beside the opening, so that the session can be resumed by anybody who knows its request id. `listen` is told
    whom to report to how far the opening is, just before it is drawn.

    >>> Session(ApproxDP(1.0), "alpha=0.01", rounds=50, check=lambda dataset: None).rounds
    50
    """

    event: Event
    digest: str
    rounds: int
    check: Callable[[Dataset], None]
    facts: Record = field(default_factory=dict)
    listen: Callable[[Progress], None] | None = None


class LedgerJournal:
    """The journal of a session in a ledger: see `farthing.adaptive.session_journal.Journal`.

    Every process that opens it under the same request id takes part in the same session. `timeout` is how many seconds
    the opening may take; if it fails or is stopped, the charge stays and the session is lost.

    >>> import pyarrow, tempfile
    >>> from farthing.data import dataset
    >>> from farthing.ledger import open_ledger
    >>> people = dataset(pyarrow.table({"age": [30, 45, 51]}), schema={"age": (0, 110)})
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = open_ledger(f"{folder.name}/study.db")
    >>> curator = Curator(ledger)
    >>> curator.register(people, "survey", epsilon=1.0)
    >>> session = Session(ApproxDP(1.0), "alpha=0.01", rounds=2, check=lambda dataset: None)
    >>> journal = LedgerJournal(curator, people, session, ledger_name="survey", request_id="monday")
    >>> journal.opening(lambda: {"start": [3, -1]})
    {'start': [3, -1]}
    >>> journal.begin(1), journal.begin(1)
    (True, False)
    >>> journal.end(1, {"sign": 1})

    Another process finds what was recorded, and goes on with the next round.

    >>> later = LedgerJournal(curator, people, session, ledger_name="survey", request_id="monday")
    >>> later.opening(lambda: {"start": [0, 0]}), later.history()
    ({'start': [3, -1]}, [(1, {'sign': 1})])
    >>> later.begin(1), later.begin(2), ledger.budget("survey").remaining.epsilon
    (False, True, 0.0)
    >>> ledger.close(); folder.cleanup()
    """

    def __init__(
        self,
        curator: Curator,
        dataset: Dataset,
        session: Session,
        *,
        ledger_name: str,
        request_id: str,
        delta: float | None = None,
        timeout: float | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.request_id = checked_name(request_id, "request_id")
        longest = RoundId(request_id, max(session.rounds, _MOST_NOTES), "-" * _LETTERS)
        checked_name(str(longest), "request_id")  # that will be charged
        self._curator, self._dataset, self._session = curator, dataset, session
        self._name, self._delta, self._timeout, self._progress = ledger_name, delta, timeout, progress
        self._digest = digest_of(_Opening(session), dataset)
        self._lock = threading.RLock()
        self._mine: dict[int, Charge] = {}
        self._ended: dict[int, str] = {}
        self._begun = 0  # rounds 1 to here are known to be begun, by anybody
        self._open: set[int] = set()  # those of them whose record was not seen yet
        self._history: list[tuple[int, str]] = []
        self._letters: str | None = None  # until it is opened
        self._notes = SessionNotes(
            curator.ledger, lambda number: self._request(number, "notes"), lambda name: self._charged_nothing(name)
        )

    @property
    def receipt(self) -> Receipt | None:
        """The receipt of the session's one charge; None before it is opened."""
        return self._curator.ledger.receipt(self.request_id)

    @property
    def terms(self) -> ReleaseTerms:
        """What opening the session would be charged; nothing is."""
        return self._curator.terms_of(self._dataset, _Opening(self._session), self._name)

    def opening(self, draw: Callable[[], Record]) -> Record:
        """Charge the session and record what is drawn; what was recorded, if it was opened before."""
        answered = self._curator.run(
            self._dataset,
            _Opening(self._session, draw),
            ledger_name=self._name,
            request_id=self.request_id,
            delta=self._delta,
            timeout=self._timeout,
            progress=self._progress,
            patience=PATIENCE if self._timeout is None else None,
        )
        self._letters = answered.finished["letters"]
        if answered.repeated:  # the table may be about more people by now
            self.refuse_unpaid(self._dataset)
        opening_record: Record = answered.finished["opening"]
        return opening_record

    def refuse_unpaid(self, dataset: Dataset) -> None:
        """Refuse rows of people whose budget has not paid for the session; those of new files are added."""
        ledger = self._curator.ledger
        stored = ledger.stored(self.request_id)
        paid = set() if stored is None else {stored.charge.dataset, *stored.charge.others}
        paying = self._curator.accounts(dataset, self._name)
        unpaid = sorted(set(paying.all) - paid)
        if unpaid:
            raise InvalidValue(
                "dataset",
                dataset.name,
                f"now holds rows that the budget of {unpaid[0]!r} covers, which has not paid for this session",
                "open another session, under another request_id",
            )
        if paying.is_news:
            take_up(ledger, replace(paying, title="", is_new=False))

    def begin(self, round_number: int) -> bool:
        """Charge nothing under the round's own request id: the process that charges first has the round."""
        number = checked_round(round_number)
        with self._lock:
            charge = self._charge(number)
            if charge.repeated:  # by this process too: what it may have drawn then may have been seen
                return False
            self._mine[number] = charge
            return True

    def record_once(self, round_number: int, draw: Callable[[], Record]) -> Record:
        """What the ledger has for a round; if it has nothing, what is drawn, unless another process is quicker.

        A charge keeps the first answer that is recorded for it, in one transaction. What a process drew that died
        before, or came second, was shown to nobody and is in no ledger: the transcript holds one draw for each round.
        """
        number = checked_round(round_number)
        ledger = self._curator.ledger
        with self._lock:
            request_id = self._request(number)
            stored = ledger.stored(request_id)
            if stored is None or stored.answer is None:
                record(ledger, self._charge(number), checked_record(draw()))
                stored = ledger.stored(request_id)
                assert stored is not None and stored.answer is not None
            first: Record = json.loads(stored.answer)
            return first

    def _charge(self, number: int) -> Charge:
        """The charge of a round, which is of nothing; it may have been made before."""
        if number > self._session.rounds:
            raise InvalidValue(
                "round_number",
                number,
                f"must be at most {self._session.rounds}, which is all that was paid for",
            )
        if number > self._begun + 1:
            self._look()
        if number > self._begun + 1:
            raise InvalidValue("round_number", number, "must not come before an earlier round is begun")
        charge = self._charged_nothing(self._request(number))
        self._note(number)
        return charge

    def _charged_nothing(self, request_id: str) -> Charge:
        """The session has paid for it."""
        analyst = self._curator.analyst
        return self._curator.ledger.charge(
            self._name, _NOTHING, request_id=request_id, analyst=analyst, digest=self._digest
        )

    def begun(self) -> int:
        """The number of the last round in the ledger, recorded or not."""
        with self._lock:
            self._look()
            return self._begun

    def end(self, round_number: int, record_of_round: Record) -> None:
        """Record what a round of this process found."""
        number, text = checked_round(round_number), checked_record(record_of_round)
        charge = self._mine.get(number)
        if charge is None or self._ended.get(number, text) != text:
            raise InvalidValue(
                "round_number", number, "must be a round that this journal has begun and not recorded yet"
            )
        record(self._curator.ledger, charge, text)
        self._ended[number] = text

    def history(self) -> list[tuple[int, Record]]:
        """The records of all finished rounds, by whichever process, in the order of the ledger."""
        with self._lock:
            self._look()
            return [(number, json.loads(text)) for number, text in self._history]

    def note(self, answer: Record) -> None:
        """Keep an answer that was free; see `SessionNotes`."""
        self._notes.add(answer)

    def notes(self) -> list[Record]:
        """The free answers in the ledger, by whichever process."""
        return self._notes.read()

    def _look(self) -> None:
        """Find what was begun and recorded since the last look.

        One look at many rounds takes a while, in which an early round may be recorded behind a late one. So looks are
        repeated until one finds nothing: whatever is recorded after that stands further on in the ledger.
        """
        rounds: dict[int, tuple[int, str]] = {}
        while new := self._recorded(rounds.keys()):
            rounds |= new
        # Only now, and both at once: a look that fails half way must not take for shown what it found.
        recorded = [(number, text) for number, (_, text) in sorted(rounds.items(), key=lambda item: item[1])]
        self._open, self._history = self._open - rounds.keys(), self._history + recorded

    def _recorded(self, known: Set[int]) -> dict[int, tuple[int, str]]:
        """Place in the ledger and record of rounds that are open here and recorded there, but for those known."""
        ledger, rounds = self._curator.ledger, {}
        for number in sorted(self._open - known):
            stored = ledger.stored(self._request(number))
            if stored is not None and stored.answer is not None:
                rounds[number] = (stored.receipt.sequence, stored.answer)
        while self._begun < self._session.rounds:
            stored = ledger.stored(self._request(self._begun + 1))
            if stored is None:
                break
            self._note(self._begun + 1)
            if stored.answer is not None:
                rounds[self._begun] = (stored.receipt.sequence, stored.answer)
        return rounds

    def _note(self, number: int) -> None:
        if number > self._begun:
            self._open.add(number)
            self._begun = number

    def _request(self, number: int, word: str = "round") -> str:
        if self._letters is None:
            raise InvalidValue("request_id", self.request_id, "must be that of a session that was opened")
        return str(RoundId(self.request_id, number, self._letters, word))

    def __repr__(self) -> str:
        return f"LedgerJournal({self.request_id!r}, {self._begun} of {self._session.rounds} rounds begun)"


@dataclass
class _Opening:
    """The opening of a session as a question to the curator."""

    session: Session
    draw: Callable[[], Record] = field(default=dict, repr=False)
    _drawn: str | None = field(default=None, init=False, repr=False)
    _letters: str = field(default="", init=False, repr=False)

    @property
    def event(self) -> Event:
        """The price of all rounds together."""
        return self.session.event

    @property
    def digest(self) -> str:
        return json.dumps(["session", self.session.digest, self.session.rounds])

    def check(self, dataset: Dataset) -> None:
        self.session.check(dataset)

    def run(self, dataset: Dataset, progress: Progress) -> Mapping[str, Any]:
        """Draw; what is drawn is whole numbers and texts, and is recorded as it is."""
        if self.session.listen is not None:
            self.session.listen(progress)
        self._drawn, self._letters = checked_record(self.draw()), secrets.token_hex(_LETTERS // 2)
        return {}

    def finish(self, answers: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """What was drawn, and what the session was."""
        assert self._drawn is not None
        return {
            "session": dict(self.session.facts),
            "opening": json.loads(self._drawn),
            "letters": self._letters,
        }


def stored_session(curator: Curator, request_id: str) -> Record | None:
    """The facts of a session that was opened under this request id; None if nothing was charged under it.

    >>> import tempfile
    >>> from farthing.ledger import open_ledger
    >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
    ...     print(stored_session(Curator(ledger), "never opened"))
    None
    """
    if curator.ledger.stored(request_id) is None:
        return None
    session = curator.recorded(request_id, PATIENCE).finished
    if "opening" not in session:
        raise InvalidValue("request_id", request_id, "is that of something else in the ledger", "choose another")
    facts: Record = session["session"]
    return facts


def opened_once(curator: Curator, request_id: str, opened: Callable[[], T]) -> T:
    """What opens a session, or resumes it where another process was quicker.

    Of two that open one session at once, the second may find the budget that it was to be planned with spent by the
    first. Then it is tried again, and finds the session.

    >>> import tempfile
    >>> from farthing.ledger import open_ledger
    >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
    ...     opened_once(Curator(ledger), "s-1", lambda: "opened")
    'opened'
    """
    was_there = curator.ledger.stored(request_id) is not None
    try:
        return opened()
    except FarthingError:
        if was_there or curator.ledger.stored(request_id) is None:
            raise
    return opened()


def rounds_begun(curator: Curator, request_id: str, most: int) -> int:
    """How many rounds of a session were begun, by whomever; they are begun in order, so few questions find out.

    >>> import tempfile
    >>> from farthing.ledger import open_ledger
    >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
    ...     rounds_begun(Curator(ledger), "never opened", 10)
    Traceback (most recent call last):
        ...
    farthing.errors.InvalidValue: request_id='never opened': must be that of a release in the ledger.
    """
    letters = stored_answer(curator.ledger, request_id).finished.get("letters")
    if letters is None:
        raise InvalidValue("request_id", request_id, "must be that of a session that was opened")
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        begun = curator.ledger.stored(str(RoundId(request_id, middle, letters))) is not None
        low, high = (middle, high) if begun else (low, middle - 1)
    return low
