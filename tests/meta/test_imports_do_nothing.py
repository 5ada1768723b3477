"""`import farthing` is quick, silent and light, whatever is installed beside it."""

from __future__ import annotations

import subprocess
import sys

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


@pytest.mark.parametrize(
    ("statement", "heavy"),
    [
        ("import farthing", (*HEAVY, *SERVING)),
        ("import farthing.accounting", HEAVY),
        ("import farthing.plots", HEAVY),
        ("import farthing.cli", ("scipy", "altair", "vl_convert", "hypothesis", "mpmath", *SERVING)),
    ],
)
def test_importing_loads_nothing_heavy(statement: str, heavy: tuple[str, ...]) -> None:
    loaded = _output_of(f"{statement}; import sys; print([m for m in {heavy!r} if m in sys.modules])")
    assert loaded == "[]\n"


def test_importing_prints_nothing_and_warns_of_nothing() -> None:
    """With every warning an error; a warning, a patch or a setting made at import would surprise somebody's program."""
    assert _output_of("import farthing, farthing.plots, farthing.cli") == ""


def test_importing_leaves_global_settings_alone() -> None:
    program = (
        "import sys, warnings, locale, decimal, numpy, flint\n"
        "def state():\n"
        "    return (list(warnings.filters), numpy.geterr(), flint.ctx.prec, decimal.getcontext().prec,"
        " sys.getrecursionlimit(), locale.setlocale(locale.LC_ALL), sys.excepthook)\n"
        "before = state()\n"
        "import farthing, farthing.plots, farthing.cli\n"
        "print(state() == before)"
    )
    assert _output_of(program) == "True\n"


def _output_of(program: str) -> str:
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    return run.stdout
