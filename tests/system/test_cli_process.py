"""The installed command as its own process: start-up, pipes, interruption."""

from __future__ import annotations

import fcntl
import json
import signal
import subprocess
import sys
import termios
import time
from array import array
from pathlib import Path
from typing import IO

import pytest

import farthing

pytestmark = [pytest.mark.slow, pytest.mark.draws(false_alarm=0, miss=0)]  # holds whatever the processes draw

PATIENCE = 600.0  # seconds, for a busy machine; no test fails by the clock before that
COMMAND = [sys.executable, "-c", "from farthing.cli import main; main(prog_name='farthing')"]


def run(*words: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *words], input=text, capture_output=True, text=True, timeout=PATIENCE, check=False)


def test_the_script_named_in_the_package_is_the_command() -> None:
    from importlib.metadata import entry_points

    [script] = [point for point in entry_points(group="console_scripts") if point.name == "farthing"]
    assert script.value == "farthing.cli:main"
    assert callable(script.load())


def test_help_and_version_load_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from click.testing import CliRunner\n"
        "from farthing.cli import main\n"
        "for words in (['--help'], ['--version'], ['compose', '--help'], ['demo', '--help']):\n"
        "    result = CliRunner().invoke(main, words)\n"
        "    assert result.exit_code == 0\n"
        "    print(result.output)\n"
        "heavy = {'scipy', 'altair', 'vl_convert', 'pandas', 'rich.progress'} & set(sys.modules)\n"
        "print('heavy:', sorted(heavy))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert "heavy: []" in done.stdout
    assert f"farthing {farthing.__version__}" in done.stdout
    assert "gaussian:4x10" in done.stdout  # the grammar is in the help


def test_a_pipe_gets_plain_text_and_json_stays_json() -> None:
    done = run("compose", "-", "--json", text="0.1x100\n")
    assert done.returncode == 0
    assert done.stderr == ""
    assert round(json.loads(done.stdout)["optimal"]["upper"], 6) == 4.774568


def test_a_refusal_is_one_message_on_stderr_with_code_2() -> None:
    done = run("compose", "-0.1x3")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("Error: charge='-0.1x3': epsilon must be a finite number >= 0; write ")
    assert done.stderr.count("\n") == 1


def unread(pipe: IO[str]) -> int:
    """How many bytes nobody has taken out of a pipe."""
    count = array("i", [0])
    fcntl.ioctl(pipe.fileno(), termios.FIONREAD, count)
    return count[0]


def test_an_interruption_ends_with_code_130_and_no_traceback() -> None:
    code = "from farthing.cli import main; print('ready', flush=True); main(['compose', '-'])"
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    assert process.stdin is not None
    process.stdin.write("0.1\n")
    process.stdin.flush()
    while unread(process.stdin):  # then it is inside the command, waiting for more
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "interrupted" in said
    assert "Traceback" not in said


def test_a_reader_that_leaves_early_causes_no_traceback(tmp_path: Path) -> None:
    errors = tmp_path / "errors"
    with errors.open("w") as said:
        process = subprocess.Popen([*COMMAND, "compose", "0.1x100"], stdout=subprocess.PIPE, stderr=said)
        assert process.stdout is not None
        process.stdout.close()
        process.wait(timeout=PATIENCE)
    assert "Traceback" not in errors.read_text()
