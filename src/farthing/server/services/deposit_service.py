"""Deposits of publications in a Dataverse that the server's operator has allowed.

A deposit runs in a thread of the server that was asked, because nothing may keep the token: it is in no row, log or
message, and gone when the deposit ends. How far it is stands in the store, so that any server can say so, and whoever
comes later can continue. Nothing is spent, and no row of a table is read.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import secrets
import threading
import traceback
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict
from typing import Any

from farthing.errors import FarthingError, InvalidValue, LedgerUnavailable, RequestRefused
from farthing.publication import PublicationDetails
from farthing.publication.bundle import Files
from farthing.publication.dataverse import TOKEN_VARIABLE, Dataverse, checked_address, checked_token, read_token
from farthing.publication.dataverse_launch import read_launch
from farthing.publication.deposit import DepositNotes, DepositPlan, deposit, page_of
from farthing.publication.deposit_ledger import LedgerNotes
from farthing.publication.edition import Edition
from farthing.publication.form_fields import FORM_FIELDS
from farthing.publication.publisher import publication_files
from farthing.server.auth.permissions import Caller
from farthing.server.http.error_envelope import ErrorBody, error_of
from farthing.server.schemas.deposit_schema import AllowedDataverse, DepositForm, DepositView, PublishingView
from farthing.server.schemas.launch_schema import LaunchView
from farthing.server.schemas.publication_schema import FormFieldView
from farthing.server.services.app_state import State
from farthing.server.services.publication_service import publishable_release
from farthing.server.settings import Settings
from farthing.server.store import deposit_rows as rows
from farthing.server.store.deposit_rows import DONE, FAILED, PUBLISHED, DepositRow
from farthing.study.reports.release_report import report_page

BEAT = 5.0  # seconds between two signs of life

_log = logging.getLogger("farthing.server.deposits")


def publishing(state: State) -> PublishingView:
    """What the form of a publication asks, and where this server may deposit."""
    own = _has_token(state.settings)
    return PublishingView(
        fields=[FormFieldView.of(one) for one in FORM_FIELDS],
        dataverses=[AllowedDataverse(url=url, has_token=own) for url in state.settings.dataverses],
    )


def deposits(state: State, who: Caller, request_id: str) -> list[DepositView]:
    """The deposits of a release."""
    release = publishable_release(state, who, request_id)
    return [_view(row) for row in rows.deposits_of(state.store, release.request_id)]


def launched(state: State, callback: str) -> LaunchView:
    """Which file of a Dataverse a link is about."""
    launch = read_launch(callback, state.settings.dataverses)
    return LaunchView(**asdict(launch), url=page_of(launch.dataverse, launch.dataset))


def begun(state: State, who: Caller, request_id: str, form: DepositForm) -> DepositView:
    """Begin a deposit, or continue one; while it runs, the same request finds it running."""
    release = publishable_release(state, who, request_id)
    publication = PublicationDetails.of(form.publication.plain()).checked()
    url = _allowed(state.settings, form.dataverse)
    plan = DepositPlan(form.collection, form.dataset, form.original, form.ingest, form.publish)
    secret = form.token.get_secret_value()
    token = checked_token(secret) if secret else _own_token(state.settings)
    asked = {"publication": publication.to_dict(), **form.plan()}
    run = _Run(state, release.request_id, url)
    with state.deposits.room():
        if not rows.begin(state.store, release.request_id, url, who.name, asked, run.name):
            row = rows.deposit_of(state.store, release.request_id, url)
            if row is None or row.asked != asked:
                raise RequestRefused(
                    "conflict", "another deposit of this release in this Dataverse is running; wait until it has ended."
                )
            return _view(row)

        def work() -> None:
            with run:
                edition, files = publication_files(release, publication, ledger=state.root, report=report_page)
                run.deposit(token, plan, edition, files)

        state.deposits.start(work)
    row = rows.deposit_of(state.store, release.request_id, url)
    assert row is not None
    return _view(row)


class _Run:
    """One attempt: it keeps the notes of the deposit in the store, says what it does, and shows that it lives."""

    def __init__(self, state: State, release: str, url: str) -> None:
        self.name = secrets.token_hex(8)
        self._state, self._release, self._url = state, release, url
        self._steps: list[str] = []
        self._ended = threading.Event()

    def deposit(self, token: str, plan: DepositPlan, edition: Edition, files: Files) -> None:
        """Deposit, and write down what it came to."""
        server = Dataverse(self._url, token, sleep=self._wait)
        try:
            done = deposit(edition, files, server, plan, LedgerNotes(self._state.root, edition, self), self._say)
        finally:
            server.close()
        self._write(state=PUBLISHED if done.published else DONE)

    def load(self, server: str) -> DepositNotes:
        """The notes of earlier attempts."""
        row = rows.deposit_of(self._state.store, self._release, self._url)
        assert row is not None
        attempt = hashlib.sha256(f"{self._release} {row.created}".encode()).hexdigest()[:16]  # that of its row
        return DepositNotes(server, row.persistent_id, row.digest, row.noted, attempt)

    def save(self, notes: DepositNotes) -> None:
        """Keep the notes in the store."""
        self._write(persistent_id=notes.persistent_id, digest=notes.digest, noted=notes.state)

    def alone(self) -> AbstractContextManager[None]:
        """Nothing to wait for: the process that began it holds its row."""
        return nullcontext()

    def __enter__(self) -> None:
        threading.Thread(target=self._beat, name="farthing-deposit-beat", daemon=True).start()

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: Any) -> bool:
        """Write a failure down. The log gets its place and kind, and not its words."""
        self._ended.set()
        if problem is None:
            return True
        if isinstance(problem, FarthingError):
            error = error_of(problem)
        else:
            places = "".join(traceback.format_tb(trace))
            _log.error("a deposit ended with %s\n%s", type(problem).__name__, places)
            error = {"code": "internal", "message": "the deposit failed; the server's log says where.", "fields": {}}
        with suppress(FarthingError):
            self._write(state=FAILED, error=json.dumps(error))
        return isinstance(problem, Exception)

    def _say(self, words: str) -> None:
        self._steps = [*self._steps, words][-rows.MOST_STEPS :]
        self._write(steps=json.dumps(self._steps))

    def _write(self, **facts: Any) -> None:
        if not rows.change(self._state.store, self._release, self._url, self.name, **facts):
            raise RequestRefused("conflict", "another attempt has taken this deposit over.")

    def _wait(self, seconds: float) -> None:
        if self._state.stopping.wait(seconds):
            raise RequestRefused("interrupted", "the server was stopped; continue the deposit when it runs again.")

    def _beat(self) -> None:
        while not self._ended.wait(BEAT):
            with suppress(RequestRefused, LedgerUnavailable):
                self._write()


def _view(row: DepositRow) -> DepositView:
    asked: Mapping[str, Any] = row.asked
    return DepositView(
        dataverse=row.dataverse,
        state=row.state,  # type: ignore[arg-type]
        steps=list(row.steps),
        persistent_id=row.persistent_id or None,
        url=page_of(row.dataverse, row.persistent_id) if row.persistent_id else None,
        error=None if row.error is None else ErrorBody.model_validate(row.error),
        **asked,
    )


def _allowed(settings: Settings, url: str) -> str:
    """The address, if the operator has allowed it: a server that asks any address for a curator could be misled."""
    try:
        wanted = checked_address(url)
    except InvalidValue:
        wanted = ""
    if wanted not in settings.dataverses:
        allowed = ", ".join(settings.dataverses) or "none"
        rule = f"must be a Dataverse that this server may deposit in ({allowed})"
        raise InvalidValue("dataverse", url, rule, "the server's operator allows one with --dataverse URL")
    return wanted


def _has_token(settings: Settings) -> bool:
    """Whether the server has a token of its own. It is for one Dataverse: no other one may ever see it."""
    held = settings.dataverse_token_file is not None or bool(os.environ.get(TOKEN_VARIABLE, "").strip())
    return held and len(settings.dataverses) == 1


def _own_token(settings: Settings) -> str:
    if not _has_token(settings):
        raise InvalidValue("token", "", "is needed for a deposit", "paste your API token of this Dataverse")
    try:
        return read_token(settings.dataverse_token_file)
    except InvalidValue:  # its words name a file
        raise RequestRefused(
            "conflict", "the server's own token cannot be read; give one, or ask the server's operator."
        ) from None
