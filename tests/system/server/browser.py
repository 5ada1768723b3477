"""A real browser before a real server, for tests of the page.

`serving(folder)` runs the application on a free port, with two tables, a declared dataset, three people and a worker.
`watched(browser, site)` is a browser window of its own that fails the test on any error in the console, on any failing
file and on any request that leaves this machine. `sign_in(page, user)` signs in without spending an attempt of the
rate limit, `screenshot(page, name)` keeps pictures if FARTHING_SCREENSHOTS names a folder.

The fixtures `site` and `browser` (one a module each) and `new_page` stand in conftest.py beside this file.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, Response, expect

from backends.keeper import CannotStart
from backends.processes import installed
from farthing.server import Settings, create_app
from farthing.server.auth.api_tokens import SCOPES_OF_ROLE, make_token, new_secret, secret_hash
from farthing.server.auth.login_sessions import COOKIE, csrf_of
from farthing.server.auth.permissions import Caller
from farthing.server.auth.user_rules import add_user, known_user
from farthing.server.jobs.job_worker import Worker
from farthing.server.services.app_state import State
from farthing.server.store import now
from farthing.server.store.store_tables import declarations, logins

PEOPLE = {"ada": "curator", "bob": "analyst", "eve": "auditor"}
PASSWORD = "a long enough password"  # of everybody
DATASET = "people"
DECLARATION: dict[str, Any] = {
    "name": DATASET,
    "source": "people.csv",
    "unit": None,
    "max_rows": None,
    "neighbours": "add-remove",
    "rows": None,
    "columns": {
        "age": {"range": [0, 110]},
        "sex": {"categories": ["F", "M"]},
        "region": {"categories": ["north", "south", "east", "west"]},
        "income": {"range": [0, 100_000]},
    },
    "epsilon": 3.0,
    "delta": 1e-6,
}
GRANT = (1.0, 1e-7)  # of bob
CHROMIUM = Path("/usr/bin/chromium")
SHELL = Path("/usr/bin/chromium-headless-shell")  # the same without windows: a third of the time for a page
WIDE, PHONE = 1200, 360
# Machines are noisy, and what is there is seen at once all the same; who writes a test says FARTHING_PATIENCE=15.
PATIENCE = 1000 * int(os.environ.get("FARTHING_PATIENCE", "300"))  # milliseconds for what never comes
LOOKS, TALLEST = ("light", "dark", "phone"), 1500


@dataclass
class Site:
    """A running server, and what a test may know about it."""

    url: str
    state: State
    settings: Settings
    folder: Path

    def caller(self, user: str, role: str | None = None) -> Caller:
        """Somebody as routes see them."""
        known = role or PEOPLE[user]
        return Caller(user, known, SCOPES_OF_ROLE[known], "session")

    def add(self, user: str, role: str) -> None:
        """Give somebody an account."""
        add_user(self.state.store, self.state.passwords, user, role, by="a test", password=PASSWORD)

    def session(self, user: str) -> str:
        """The word of a new web session of this user."""
        word = new_secret()
        with self.state.store.begin() as connection:
            connection.execute(
                logins.insert().values(
                    hash=secret_hash(word),
                    user=user,
                    csrf_hash=secret_hash(csrf_of(word)),
                    expires=now() + 3600 * 10**9,
                    via="session",
                )
            )
        return word

    def token(self, user: str, *scopes: str) -> str:
        """A token of this user for scripts."""
        known = known_user(self.state.store, user)
        return make_token(self.state.store, known, "a test", frozenset(scopes), 1, by="a test")[1]

    def declare(self, body: dict[str, Any], grants: dict[str, tuple[float, float]] | None = None) -> None:
        """Declare a dataset as ada, and grant parts of its budget.

        Every one but the first has a table of its own: all budgets that stand for one table pay for it.
        """
        if body["name"] != DATASET:
            body = {**body, "source": f"{body['name']}.csv"}
            (self.settings.data / body["source"]).write_text(people_csv(), encoding="utf-8")
        ledger = self.state.ledger(self.caller("ada"))
        ledger.register(body["name"], body["epsilon"], body["delta"])
        for user, (epsilon, delta) in (grants or {}).items():
            ledger.grant(body["name"], user, epsilon, delta)
        with self.state.store.begin() as connection:
            connection.execute(
                declarations.insert().values(name=body["name"], body=json.dumps(body), created_by="ada", created=now())
            )


def people_csv(rows: int = 400) -> str:
    """People who do not exist."""
    lines = [
        f"{20 + 7 * n % 60},{'FM'[n % 2]},{('north', 'south', 'east', 'west')[n % 3]},{20_000 + 911 * n % 40_000}"
        for n in range(rows)
    ]
    return "\n".join(["age,sex,region,income", *lines]) + "\n"


def visits_csv(rows: int = 90, people: int = 40) -> str:
    """Visits of people who do not exist; one has several."""
    lines = [
        f"p{n % people},{18 + n % 70},{('ward', 'clinic')[n % 2]},{'true' if n % 5 else 'false'}" for n in range(rows)
    ]
    return "\n".join(["person,age,place,insured", *lines]) + "\n"


@contextmanager
def serving(folder: Path, *, declared: bool = True, works: bool = True, **told: Any) -> Iterator[Site]:
    """The application on a free port of this machine, until the block ends.

    Its worker is a thread here, which imports nothing again.
    """
    data = folder / "data"
    data.mkdir()
    (data / "people.csv").write_text(people_csv(), encoding="utf-8")
    (data / "visits.csv").write_text(visits_csv(), encoding="utf-8")
    with closing(socket.socket()) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()  # whoever asks too soon waits instead of being refused
        port = listening.getsockname()[1]
        told = {"ledger": str(folder / "study.db"), **told}
        settings = Settings(data=data, port=port, cheap_passwords=True, log_requests=False, workers=0, **told)
        app = create_app(settings)
        site = Site(f"http://127.0.0.1:{port}", app.state.farthing, settings, folder)
        for user, role in PEOPLE.items():
            site.add(user, role)
        if declared:
            site.declare(DECLARATION, {"bob": GRANT})
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=5))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            _wait_until_it_answers(port)
            with _worker_of(site.state) if works else nullcontext():
                yield site
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def _worker_of(state: State) -> Iterator[None]:
    """A worker in a thread of this process; as it opens the tables of the server, each job finds them open."""
    worker = Worker(state)
    state.workers.wake = worker.wake  # type: ignore[method-assign]
    thread = threading.Thread(target=worker.run, name="worker", daemon=True)
    thread.start()
    try:
        yield
    finally:
        worker.drain()
        thread.join()


def _wait_until_it_answers(port: int) -> None:
    """The socket is open before the server is: the first byte of an answer says that it serves."""
    with closing(socket.create_connection(("127.0.0.1", port), timeout=300)) as asking:
        asking.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n" % port)
        assert asking.recv(15).startswith(b"HTTP/1.1 200")


def chromium() -> Path:
    """Debian's browser, installed if it must be and can be; otherwise a skip, which fails the run under CI."""
    with (Path(tempfile.gettempdir()) / "farthing-chromium.lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run side by side, and apt does not
        lock.seek(0)
        if not SHELL.exists() and CHROMIUM.exists() and not lock.read():
            lock.write("the shell was looked for\n")  # once: a machine may have no way to it
            lock.flush()
            _add_shell()
        if SHELL.exists() or CHROMIUM.exists():
            return SHELL if SHELL.exists() else CHROMIUM
        try:
            return installed(lambda: SHELL if SHELL.exists() else None, "chromium-headless-shell")
        except CannotStart as reason:
            pytest.skip(f"browser: {reason}")


def _add_shell() -> None:
    """Put the shell beside a browser that is there, of the same version, so that nothing else changes."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return
    version = subprocess.run(
        ["dpkg-query", "--show", "--showformat=${Version}", "chromium"], capture_output=True, text=True, check=False
    ).stdout
    install = ["apt-get", "-qq", "install", "--yes", "--no-install-recommends", "--no-remove"]
    subprocess.run(
        [*install, f"chromium-headless-shell={version}"], env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
        capture_output=True, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip


def launch(playwright: Any) -> Browser:
    """A browser that cannot find any machine but this one."""
    return playwright.chromium.launch(
        executable_path=chromium(),
        args=["--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"],
    )


@dataclass
class Watch:
    """Everything that went wrong in one browser window."""

    origin: str
    problems: list[str] = field(default_factory=list)
    # Refusals of the API are answers; the browser writes them into the console as well.
    _refused = re.compile(r"Failed to load resource: the server responded with a status of 4\d\d")

    def attach(self, context: BrowserContext) -> None:
        """Listen to every page of the window, those opened later included."""
        context.on("console", self._console)
        context.on("weberror", lambda error: self.problems.append(f"error in the page: {error.error}"))
        context.on("request", lambda request: self._address(request.url))
        context.on("response", self._response)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type not in ("error", "warning"):
            return
        if self._refused.match(message.text) and "/api/v1/" in message.location.get("url", ""):
            return
        self.problems.append(f"console {message.type}: {message.text} {message.location}")

    def _address(self, url: str) -> None:
        if not url.startswith((self.origin + "/", "data:", "blob:")):
            self.problems.append(f"a request to {url}")

    def _response(self, response: Response) -> None:
        if response.status >= 500 or (response.status >= 400 and "/api/v1/" not in response.url):
            self.problems.append(f"{response.status} from {response.url}")

    def check(self) -> None:
        """Fail if anything went wrong so far."""
        assert self.problems == []


NewPage = Callable[..., Page]


@contextmanager
def watched(browser: Browser, site: Site) -> Iterator[NewPage]:
    """Makes windows, each with its own cookies; at the end each must have been without a fault.

    `new_page("ada")` is signed in as ada; `width` and `dark` are the look of the window.
    """
    made: list[tuple[BrowserContext, Watch]] = []

    def new_page(user: str | None = None, *, width: int = WIDE, dark: bool = False, at: Site = site) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": 800},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
            base_url=at.url,
        )
        context.set_default_timeout(PATIENCE)
        watch = Watch(at.url)
        watch.attach(context)
        made.append((context, watch))
        page = context.new_page()
        if user is not None:
            sign_in(page, user, at)
        return page

    try:
        yield new_page
        for _, watch in made:
            watch.check()
    finally:
        for context, _ in made:
            context.close()


def sign_in(page: Page, user: str, site: Site) -> None:
    """Open the page as this user. The form is tested once; everywhere else a session is simply there."""
    page.context.add_cookies([{"name": COOKIE, "value": site.session(user), "url": site.url}])
    page.goto(site.url + "/")
    page.get_by_role("heading", name="Datasets").wait_for()


def go(page: Page, site: Site, hash_: str, heading: str | re.Pattern[str] | None = None) -> None:
    """Open a screen by its address, and wait for its heading."""
    page.goto(f"{site.url}/{hash_}")
    page.get_by_role("heading", level=1, name=heading).first.wait_for()
    settled(page)


def kept_plan(page: Page, user: str, dataset: str, *entries: dict[str, Any], **told: Any) -> None:
    """Let this window have a plan with these statistics, as a tab that was reloaded does."""
    draft = {"dataset": dataset, "statistics": entries, **told}
    keep = "([name, kept]) => sessionStorage.setItem(name, JSON.stringify(kept))"
    page.evaluate(keep, [f"farthing.draft.{user}.{dataset}", {"draft": draft, "saved": None}])


def settled(page: Page) -> None:
    """Wait until nothing is loading any more."""
    # Not wait_for_function: it evaluates text, which the page's own policy forbids.
    expect(page.locator(".loading, .starting, [aria-busy=true]")).to_have_count(0, timeout=PATIENCE)


def fits(page: Page) -> bool:
    """Whether the page can be read without scrolling sideways."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"))


def screenshot(page: Page, name: str, *, about: Locator | None = None) -> None:
    """The pictures of docs/server/page.md: NAME-LOOK.webp, if FARTHING_SCREENSHOTS names a folder.

    A window is as tall as its page, up to TALLEST, and where that is not enough it is moved so that what the picture
    is `about` can be seen; the look is put back afterwards.
    """
    folder = os.environ.get("FARTHING_SCREENSHOTS")
    if not folder:
        return
    before = page.viewport_size
    camera = page.context.new_cdp_session(page)
    for look in LOOKS:
        width = PHONE if look == "phone" else WIDE
        page.set_viewport_size({"width": width, "height": 500})
        page.emulate_media(color_scheme="dark" if look == "dark" else "light")
        page.evaluate("window.scrollTo(0, 0)")  # the head of the page sticks to where one is
        tall = page.evaluate("document.documentElement.scrollHeight")
        page.set_viewport_size({"width": width, "height": min(tall, TALLEST)})
        if about is not None:
            about.evaluate("(element) => element.scrollIntoView({ block: 'center' })")
        page.evaluate(_PAINTED)
        taken = camera.send("Page.captureScreenshot", {"format": "webp", "quality": 60})
        (Path(folder) / f"{name}-{look}.webp").write_bytes(base64.b64decode(taken["data"]))
    camera.detach()
    page.emulate_media(color_scheme=None)
    if before is not None:
        page.set_viewport_size(before)


# A remark that goes away by itself is not a part of the screen.
_PAINTED = """() => new Promise((done) => {
  for (const one of document.querySelectorAll(".toasts")) one.hidden = true;
  requestAnimationFrame(() => requestAnimationFrame(done));
})"""
