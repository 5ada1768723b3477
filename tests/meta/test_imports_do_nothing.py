"""`import farthing` is quick, silent and light, whatever is installed beside it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.draws(false_alarm=0, miss=0)]  # holds whatever the processes draw

HEAVY = (
    "scipy",
    "altair",
    "vl_convert",
    "click",
    "rich",
    "hypothesis",
    "mpmath",
    "dp_accounting",
    "prv_accountant",
)
SERVING = ("fastapi", "pydantic", "starlette", "uvicorn", "sqlalchemy", "argon2", "jwt", "httpx")


# In this order in one process: each imports what stands before it anyway.
STEPS = {
    "farthing": (*HEAVY, *SERVING),
    "farthing.accounting": HEAVY,
    "farthing.plots": HEAVY,
    "farthing.cli": ("scipy", "altair", "vl_convert", "hypothesis", "mpmath", *SERVING),
}
PROGRAM = """
import decimal, flint, importlib, json, locale, numpy, sys, warnings

def state():
    return (list(warnings.filters), numpy.geterr(), flint.ctx.prec, decimal.getcontext().prec,
            sys.getrecursionlimit(), locale.setlocale(locale.LC_ALL), sys.excepthook)

before, steps, loaded = state(), json.loads(sys.argv[1]), {}
for name, heavy in steps.items():
    importlib.import_module(name)
    loaded[name] = [module for module in heavy if module in sys.modules]
print("TOLD", json.dumps({"loaded": loaded, "same": state() == before}))
"""


@pytest.fixture(scope="module")
def told() -> tuple[dict[str, Any], str]:
    """What a process says that imports one after the other, with every warning an error, and what else it printed."""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, json.dumps(STEPS)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    printed, _, answer = run.stdout.partition("TOLD ")
    return json.loads(answer), printed + run.stderr


@pytest.mark.parametrize("name", STEPS)
def test_importing_loads_nothing_heavy(told: tuple[dict[str, Any], str], name: str) -> None:
    assert told[0]["loaded"][name] == []


def test_importing_prints_nothing_and_warns_of_nothing(told: tuple[dict[str, Any], str]) -> None:
    """With every warning an error; a warning, a patch or a setting made at import would surprise somebody's program."""
    assert told[1] == ""


def test_importing_leaves_global_settings_alone(told: tuple[dict[str, Any], str]) -> None:
    assert told[0]["same"]


def test_a_plan_of_a_text_file_loads_no_engine(tmp_path: Path) -> None:
    """It sees the header of the file and nothing else."""
    (tmp_path / "people.csv").write_text("age,sex\n30,F\n", encoding="utf-8")
    program = """
import sys, farthing as ft
people = ft.dataset("people.csv", schema={"age": (0, 110), "sex": ["F", "M"]})
study = ft.Study(people, epsilon=1.0, account="people", ledger="study.db")
study.plan(ft.count(by="sex"), ft.mean("age")).statistics
print(sorted({"ibis", "duckdb", "pyarrow"} & set(sys.modules)))
"""
    run = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.stdout.splitlines()[-1:] == ["[]"], run.stderr
