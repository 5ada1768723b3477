"""No test wavers: what can be seeded is, a test that draws anything else says how often it fails by chance."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tree import TOP, parsed, project_files

import draws

TESTS = '''
import multiprocessing, random, secrets, subprocess, sys
from fractions import Fraction

import ibis
import numpy as np
import pytest

from farthing.data.engines.duckdb import DuckDBEngine, connection
from farthing.mechanisms import DiscreteLaplace
from farthing.mechanisms.samplers import opendp_samplers as opendp

marked = pytest.mark.draws(false_alarm=1e-12, miss=0)

@pytest.fixture(scope="module")
def shared():
    return secrets.token_hex(8)

def seen():
    """One number from every door."""
    database = DuckDBEngine.around(connection())
    return [DiscreteLaplace(0.01).release(0), secrets.token_hex(4), random.random(),
            float(np.random.random()), float(np.random.default_rng().random()), random.SystemRandom().random(),
            database.rows("SELECT random(), uuid()")]

def test_first(shared):
    print("SEEN", shared, seen(), seen())

def test_second(shared):
    print("SEEN", shared, seen())

def test_process():
    subprocess.run([sys.executable, "-c", ""], check=True)

def test_fork():
    child = multiprocessing.get_context("fork").Process(target=print)
    child.start()
    child.join()

def test_opendp():
    opendp.discrete_laplace_noise(Fraction(1), 1)

def test_system(system_randomness):
    pass

@marked
def test_system_marked(system_randomness):
    print("SEEN", secrets.token_hex(8))

@pytest.fixture(scope="module")
def started():
    subprocess.run([sys.executable, "-c", ""], check=True)

def test_started_by_a_fixture(started):
    pass

def test_started_by_the_same_fixture(started):
    pass

@marked
def test_started_marked(started):
    pass

@pytest.mark.draws(false_alarm=1e-9, miss=0)
def test_too_often():
    pass

@pytest.mark.draws(false_alarm=0)
def test_half_a_mark():
    pass

@pytest.mark.draws(false_alarm=float("nan"), miss=0)
def test_no_number():
    pass
'''
RIGHT = {"test_first", "test_second", "test_system_marked", "test_started_marked"}
# Where a caller may choose randomness: none of it hides a row.
SEEDS = {
    "src/farthing/accounting/game_strategies.py": "a made-up bit, and answers about it",
    "src/farthing/cli/play_command.py": "a made-up bit, and answers about it",
    "src/farthing/server/services/accountant_answers.py": "a made-up bit, and answers about it",
    "src/farthing/auditing/attacks/difference_attack.py": "made-up people, and noise that is wrong on purpose",
    "src/farthing/auditing/attacks/linear_reconstruction.py": "made-up people, and noise that is wrong on purpose",
    "src/farthing/inference/graphical/graphical_model.py": "rows drawn from a model that was released",
    "src/farthing/adaptive/synthesis/layered_model.py": "rows drawn from a model that was released",
    "src/farthing/study/synthesis/cell_values.py": "rows drawn from a model that was released",
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What two runs of TESTS say, in either order."""
    folder = tmp_path_factory.mktemp("drawing")
    (folder / "conftest.py").write_text('pytest_plugins = ["draws"]\n', encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (folder / "test_it.py").write_text(TESTS, encoding="utf-8")
    names = re.findall(r"^def (test_\w+)", TESTS, re.MULTILINE)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    environment |= {"PYTHONPATH": str(TOP / "tests"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider"]
    orders = [[f"test_it.py::{name}" for name in order] for order in (names, names[::-1])]
    started = [
        subprocess.Popen([*command, *order], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
        for order in orders
    ]
    return [run.communicate()[0] for run in started]


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=2.0**-64)
def test_only_what_is_seeded_or_marked_passes(runs: list[str]) -> None:
    for told in runs:
        assert set(re.findall(r"^PASSED \S+::(\w+)", told, re.MULTILINE)) == RIGHT, told
        wrong = set(re.findall(r"^FAILED \S+::(\w+)", told, re.MULTILINE))
        assert wrong == set(re.findall(r"^def (test_\w+)", TESTS, re.MULTILINE)) - RIGHT
        for word in ("a process", "a forked process", "OpenDP", "the operating system"):
            assert f"draws what no seed reaches ({word}): take that out" in told
        assert told.count("draws(false_alarm=1e-09): must be at least 0 and below 1e-09") >= 1
        assert told.count("draws(false_alarm=nan): must be") >= 1
        assert told.count("takes exactly false_alarm=... and miss=...") >= 1


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=2.0**-64)
def test_every_run_draws_the_same_in_whatever_order(runs: list[str]) -> None:
    """What is not seeded differs, but for once in 2**64: the comparison can fail."""
    first, second = (sorted(re.findall(r"^SEEN .*", told, re.MULTILINE)) for told in runs)
    assert len(first) == 3
    assert len(set(first) & set(second)) == 2
    assert len({re.search(r"\w{16}", line)[0] for line in first}) == 2  # one of the fixture, one of the system


def test_every_mark_in_the_tree_states_two_numbers_below_the_limit() -> None:
    """Also of tests that this run leaves out; each stands in the source as numbers or as a name of a number."""
    marks = [
        (path, call)
        for path in project_files()
        if path.is_relative_to(TOP / "tests") and path.suffix == ".py" and path != Path(__file__)
        if "mark.draws(" in (text := path.read_text(encoding="utf-8"))
        for call in ast.walk(parsed(text))
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("mark.draws")
    ]
    assert marks
    for path, call in marks:
        chances = {word.arg: eval(ast.unparse(word.value)) for word in call.keywords}
        assert not call.args and set(chances) == {"false_alarm", "miss"}, f"{path}:{call.lineno}"
        assert all(0 <= chance < draws.LIMIT for chance in chances.values()), f"{path}:{call.lineno}"


def test_a_generator_of_a_module_is_used_up_before_the_first_test() -> None:
    """One that tests share would give each what the others left, and the order of tests is not always the same."""
    assert [found for path in project_files() if path.is_relative_to(TOP / "tests") for found in _shared(path)] == []


def _shared(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8") if path.suffix == ".py" else ""
    if not re.search(r"^\w+ = .*(default_rng|Random|TestSource)\(", text, re.MULTILINE):
        return []
    tree = parsed(text)
    made = {
        target.id
        for statement in tree.body
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call)
        for target in statement.targets
        if isinstance(target, ast.Name)
        and ast.unparse(statement.value.func).endswith(("default_rng", "random.Random", "TestSource"))
    }
    inside = [
        name
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.Lambda)
        for part in (function.body if isinstance(function.body, list) else [function.body])
        for name in ast.walk(part)
        if isinstance(name, ast.Name) and name.id in made
    ]
    return [f"{path.relative_to(TOP)}:{name.lineno}: {name.id}" for name in inside]


def test_nothing_in_the_source_offers_a_seed() -> None:
    """No parameter of a public function is a seed or a generator, but where it hides no row."""
    offered = {
        str(path.relative_to(TOP))
        for path in (TOP / "src").rglob("*.py")
        if re.search(r"seed|rng|random_state|generator|Generator", text := path.read_text(encoding="utf-8"))
        for function in ast.walk(parsed(text))
        if isinstance(function, ast.FunctionDef) and not function.name.startswith("_")
        for argument in ast.walk(function.args)
        if isinstance(argument, ast.arg)
        and (
            argument.arg in {"seed", "rng", "random_state", "generator"}
            or (argument.annotation is not None and "random.Generator" in ast.unparse(argument.annotation))
        )
    }
    assert offered == set(SEEDS)


def test_only_the_faces_of_the_game_know_the_game() -> None:
    """What draws with a seed about a made-up bit is imported by nothing that draws for people."""
    imports = re.compile(r"^\s*(from|import) .*(composition_game|game_strategies)", re.MULTILINE)
    found = {
        str(path.relative_to(TOP / "src/farthing"))
        for path in (TOP / "src").rglob("*.py")
        if imports.search(path.read_text(encoding="utf-8"))
    }
    assert found == {
        "accounting/__init__.py",
        "accounting/game_strategies.py",
        "cli/play_command.py",
        "server/services/accountant_answers.py",
    }


def test_the_door_to_randomness_reads_no_setting_and_nobody_replaces_it() -> None:
    door = TOP / "src/farthing/mechanisms/randomness.py"
    source = door.read_text(encoding="utf-8")
    imported = [node for node in ast.walk(parsed(source)) if isinstance(node, ast.Import)]
    assert [name.name for node in imported for name in node.names] == ["os"]
    assert source.count("os.") == 1 and "return os.urandom(count)" in source
    assigned = re.compile(r"\bSYSTEM\s*(:.*)?=[^=]|\b_System\b|urandom\s*=[^=]")
    assert [path for path in (TOP / "src").rglob("*.py") if assigned.search(path.read_text("utf-8"))] == [door]
