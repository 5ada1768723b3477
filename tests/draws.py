"""Nothing in a test is left to chance: what can be seeded is seeded by the test's name, and what cannot be is known.

Code in this process asks the operating system for randomness, or DuckDB beside it. Both are seeded here with the name
of the test that runs; a fixture of wider scope has a seed of its own, so that it does not matter which test needs it
first. Nobody seeds a database server, OpenDP, or a process that a test starts or forks. A test that lets one of them
draw says

    @pytest.mark.draws(false_alarm=1e-12, miss=1e-10)

`false_alarm` bounds the probability, over those draws, that the test fails although the code is right, and `miss` the
probability that it passes although the fault that it looks for is there. Both are below 1e-9; they are 0 where the
claim holds whatever is drawn. A test that draws without saying so fails. The fixture `system_randomness` takes the
seed away, for tests of the generator itself; such a test is marked as well. Examples in docstrings and on pages cannot
be marked: theirs stand in `EXAMPLES`.

A seed that is lucky proves little, and a change of the code reshuffles what follows from it. So what is claimed of the
draws holds for nearly all seeds: `--seed-offset=7` runs every test as if its seeds, and those that tests and their
`TestSource`s write down, were others. A statistical test that fails there has too little margin.

Production code has no seed: its private doors are replaced from outside, here and nowhere else.
"""

from __future__ import annotations

import math
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sources import Buffered

LIMIT = 1e-9
EXAMPLES: dict[str, str] = {  # the start of the name of an example, and why no draw can fail it
    "docs/samplers.md::": "OpenDP's part shows how many numbers were drawn, not which",
    "src/farthing/mechanisms/samplers/opendp_samplers.py::": "shows how many numbers were drawn, not which",
}
_ADVICE = (
    "draws what no seed reaches ({}): take that out (workers=1, a source of your own, no process), or mark it "
    "@pytest.mark.draws(false_alarm=..., miss=...) with the probabilities that it fails although the code is right "
    "and passes although it is wrong, both below 1e-9 and argued in its docstring (0: the claim holds whatever is "
    "drawn); see tests/draws.py"
)
_DRAWING = re.compile(r"\b(random|uuid|gen_random_uuid|rand)\(", re.IGNORECASE)
_PYTHON = re.compile(r"(python[\d.]*|farthing)$")
# Processes that have nothing to draw: the server's arithmetic, and whoever starts and stops databases for the tests.
_QUIET = ("server/services/accountant_answers.py", "backends.keeper")
_HERE = str(Path(__file__).parent) + os.sep
_system = os.urandom
_offset = 0


class Stream:
    """Bytes that follow from a name."""

    def __init__(self, *name: object) -> None:
        self._name = name
        name = (*name, _offset) if _offset else name
        seed = int.from_bytes(sha256("\0".join(map(str, name)).encode()).digest()[:16], "big")
        self.take = Buffered(np.random.Generator(np.random.PCG64(seed))).take

    def of_fork(self, number: int) -> Stream:
        """The stream of a forked process: a copy of this one would say the same in each of them."""
        return Stream(*self._name, number)


class _Scope:
    """A test or a fixture of wider scope: its streams, and what drew beside them."""

    def __init__(self, name: str) -> None:
        self.noise = Stream(name, "noise")
        self.words = Stream(name, "words")  # apart: how many tokens are made may depend on how often a test polls
        self.beside: set[str] = set()
        self.forks = 0


class Draws:
    """The plugin: gives each test its streams, notes what else draws, and fails the unmarked test that lets it."""

    def __init__(self) -> None:
        self._scope: _Scope | None = None
        self._wide: dict[tuple[str, str], set[str]] = {}
        self.real = False

    def noise(self, count: int) -> bytes:
        """Instead of the operating system, for mechanisms."""
        return _system(count) if self.real or self._scope is None else self._scope.noise.take(count)

    def words(self, count: int) -> bytes:
        """Instead of the operating system, for keys, names and everything else."""
        return _system(count) if self.real or self._scope is None else self._scope.words.take(count)

    def note(self, what: str) -> None:
        """Something draws that is not seeded."""
        if self._scope is not None:
            self._scope.beside.add(what)

    def before_fork(self) -> None:
        if self._scope is not None:
            self._scope.forks += 1
            self.note("a forked process")

    def after_fork(self) -> None:
        if (scope := self._scope) is not None:
            scope.noise, scope.words = scope.noise.of_fork(scope.forks), scope.words.of_fork(scope.forks)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._scope = _Scope(item.nodeid)
        globally = Stream(item.nodeid, "global")
        random.seed(globally.take(16))
        np.random.seed(int.from_bytes(globally.take(4), "big"))
        try:
            return (yield)
        finally:
            self._scope, self.real = None, False

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: pytest.FixtureRequest) -> Generator[None, object, object]:
        if request.scope == "function":
            return (yield)
        outer, key = self._scope, (fixturedef.baseid, fixturedef.argname)
        self._scope = inner = _Scope("/".join([*key, request.node.nodeid, repr(request.param_index)]))
        try:
            return (yield)
        finally:
            self._wide.setdefault(key, set()).update(inner.beside)
            self._scope = outer

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        mark = item.get_closest_marker("draws")
        if mark is not None and (problem := _problem_of(mark)):
            pytest.fail(problem, pytrace=False)
        result = yield
        assert self._scope is not None
        beside = self._scope.beside | self._of_wide_fixtures(item)
        if beside and mark is None and not item.nodeid.startswith(tuple(EXAMPLES)):
            pytest.fail(_ADVICE.format(", ".join(sorted(beside))), pytrace=False)
        return result

    def _of_wide_fixtures(self, item: pytest.Item) -> set[str]:
        info = getattr(item, "_fixtureinfo", None)  # an example has none
        needed = {} if info is None else info.name2fixturedefs
        found = [self._wide.get((defs[-1].baseid, name), set()) for name, defs in needed.items()]
        return set().union(*found)


def _problem_of(mark: pytest.Mark) -> str:
    """What is wrong with a mark, or nothing."""
    if mark.args or set(mark.kwargs) != {"false_alarm", "miss"}:
        return "draws(...) takes exactly false_alarm=... and miss=...; see tests/draws.py"
    for name, chance in mark.kwargs.items():
        if not (isinstance(chance, int | float) and 0 <= chance < LIMIT):  # NaN fails, too
            return f"draws({name}={chance!r}): must be at least 0 and below {LIMIT:g}; see tests/draws.py"
    return ""


DRAWS = Draws()


@pytest.fixture
def system_randomness() -> Generator[None]:
    """The operating system's own randomness, for a test that is marked `draws`."""
    DRAWS.note("the operating system")
    DRAWS.real = True
    yield
    DRAWS.real = False


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--chance", action="store_true", help="only tests marked `draws` with a probability above 0")
    parser.addoption("--times", type=int, default=1, help="run each test so many times")
    parser.addoption(
        "--seed-offset",
        type=int,
        default=0,
        help="run with other seeds: what tests claim of draws holds there too",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each time is a test by itself, with a name of its own: what fixtures of wider scope start is started once."""
    if (times := metafunc.config.getoption("--times")) > 1:
        metafunc.fixturenames.append("time_of_test")
        metafunc.parametrize("time_of_test", range(times))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--chance"):
        marks = [(item, item.get_closest_marker("draws")) for item in items]
        kept = [item for item, mark in marks if mark is not None and any(mark.kwargs.values())]
        config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
        items[:] = kept


def pytest_configure(config: pytest.Config) -> None:
    meaning = "draws(false_alarm, miss): lets something draw that no seed reaches; see tests/draws.py"
    config.addinivalue_line("markers", meaning)
    if not config.pluginmanager.has_plugin("draws-of-tests"):
        config.pluginmanager.register(DRAWS, "draws-of-tests")
        _replace_the_doors()
        if config.getoption("--seed-offset"):
            _offset_seeds(config.getoption("--seed-offset"))


def _offset_seeds(offset: int) -> None:
    """Other seeds than tests ask for; others (hypothesis, a public shuffle in farthing) get what they ask for."""
    global _offset
    _offset = offset

    def is_of_a_test() -> bool:
        return sys._getframe(2).f_code.co_filename.startswith(_HERE)

    class Generator(random.Random):
        def __init__(self, x: Any = None) -> None:
            super().__init__(f"{x!r} and {offset}" if x is not None and is_of_a_test() else x)

    def other(default_rng: Any) -> Any:
        def made(seed: Any = None) -> Any:
            return default_rng([seed, offset] if isinstance(seed, int) and is_of_a_test() else seed)

        return made

    random.Random = Generator  # type: ignore[misc]
    _replace(np.random, "default_rng", other)


def _replace_the_doors() -> None:
    from farthing.auditing import output_samples, self_test
    from farthing.data.engines import duckdb, postgres, spark
    from farthing.matrix.strategies.optimisation import laplace_optimum
    from farthing.matrix.strategies.optimisation import p_identity_error as descent
    from farthing.mechanisms import randomness
    from farthing.mechanisms.samplers import opendp_samplers

    _replace(randomness._System, "take", lambda take: lambda self, count, /: DRAWS.noise(count))
    # os.urandom itself stays: uuid4 names things on servers that several processes share, and means nothing else.
    _replace(random, "_urandom", lambda urandom: DRAWS.words)  # hence secrets, and NumPy's default_rng()
    _replace(opendp_samplers, "_drawn", _noted("OpenDP"))
    for name in ("rows", "each"):
        _replace(duckdb.DuckDBEngine, name, _seeded)
        _replace(postgres.PostgresEngine, name, _noted("a database server", _DRAWING))
        _replace(spark.SparkEngine, name, _noted("a database server", _DRAWING))
    _replace(subprocess.Popen, "__init__", _noted_if_python)
    os.register_at_fork(before=DRAWS.before_fork, after_in_child=DRAWS.after_fork)
    # How far a search comes in its seconds does not depend on who else is at work: they are this process's own.
    descent.time = laplace_optimum.time = SimpleNamespace(monotonic=time.process_time)  # type: ignore[attr-defined]
    # How many calls an audit times, and whether processes are worth starting, is not left to the clock and the machine.
    self_test.os = SimpleNamespace(cpu_count=lambda: 1)  # type: ignore[attr-defined]
    output_samples.os = SimpleNamespace(urandom=DRAWS.words, cpu_count=lambda: 1)  # type: ignore[attr-defined]
    output_samples._PILOT_SECONDS, output_samples._CHUNK_SECONDS, output_samples._PATIENCE = (
        -math.inf,
        math.inf,
        math.inf,
    )


def _replace(owner: Any, name: str, made: Callable[[Any], Any]) -> None:
    setattr(owner, name, made(getattr(owner, name)))


def _noted(what: str, where: re.Pattern[str] | None = None) -> Callable[[Any], Any]:
    """A function that draws by itself: whenever it is called, or when its text has such a word."""

    def made(function: Any) -> Any:
        def noted(*arguments: Any, **named: Any) -> Any:
            if where is None or where.search(arguments[1]):
                DRAWS.note(what)
            return function(*arguments, **named)

        return noted

    return made


def _seeded(run: Any) -> Any:
    """A query of DuckDB: its generator is seeded first. A table of one row group is read by one thread, in order."""

    def seeded(self: Any, sql: str, *rest: Any) -> Any:
        if _DRAWING.search(sql) and self.is_here():
            with self._turn:
                seed = int.from_bytes(DRAWS.words(4), "big") / 2**31 - 1
                self.backend.con.execute(f"SELECT setseed({seed})").fetchall()
        return run(self, sql, *rest)

    return seeded


def _noted_if_python(start: Any) -> Any:
    def starting(self: Any, args: Any, *rest: Any, **named: Any) -> None:
        words = [args] if isinstance(args, str | bytes | os.PathLike) else list(args)
        line = [os.fsdecode(word) for word in words]
        if any(_PYTHON.search(Path(word).name) for word in line) and not any(name in " ".join(line) for name in _QUIET):
            DRAWS.note("a process")
        start(self, args, *rest, **named)

    return starting
