"""The plugin in conftest.py: a skip is a failure under CI and named everywhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"
PASSES = "def test_a(): pass\n"
SKIPS = "import pytest\n@pytest.mark.skip(reason='no reason at all')\ndef test_b(): pass\n"
SKIPS_AS_A_FILE = "import pytest\npytest.importorskip('a_module_nobody_has')\ndef test_c(): pass\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("files", "ci", "workers", "code"),
    [
        ({"test_it.py": PASSES}, "true", (), 0),
        ({"test_it.py": PASSES + SKIPS}, "true", (), 1),
        ({"test_it.py": PASSES + SKIPS}, "", (), 0),
        ({"test_it.py": PASSES, "test_other.py": SKIPS_AS_A_FILE}, "true", (), 1),
        pytest.param({"test_it.py": PASSES + SKIPS}, "true", ("--forks", "1"), 1, marks=pytest.mark.slow),
        pytest.param(
            {"test_it.py": PASSES, "test_other.py": SKIPS_AS_A_FILE},
            "true",
            ("--forks", "1"),
            1,
            marks=pytest.mark.slow,
        ),
    ],
)
@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_a_skip_fails_the_run_only_under_ci(
    tmp_path: Path, files: dict[str, str], ci: str, workers: tuple[str, ...], code: int
) -> None:
    run = _run(tmp_path, files, ci, workers)
    assert run.returncode == code, run.stdout
    source = "".join(files.values())
    assert ("no reason at all" in run.stdout) == ("no reason at all" in source)
    assert ("a_module_nobody_has" in run.stdout) == ("a_module_nobody_has" in source)


def _run(folder: Path, files: dict[str, str], ci: str, workers: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    shutil.copy(CONFTEST, folder / "conftest.py")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    for name, source in files.items():
        (folder / name).write_text(source, encoding="utf-8")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    # Plugins of others, which take longer to import than all of this, have no say in it.
    environment |= {"CI": ci, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    own = ("-p", "forks", *workers) if workers else ()
    environment["PYTHONPATH"] = str(CONFTEST.parent)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *own],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
