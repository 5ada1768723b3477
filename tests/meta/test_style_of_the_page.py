"""`make lint` checks the page with Biome where Node is there, and only says so where it is not."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from tree import TOP

pytestmark = pytest.mark.draws(false_alarm=0, miss=0)  # make and a script of three lines draw nothing


def run_style(venv: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "--no-print-directory", "style-page", f"VENV={venv}", "NPM=/nowhere/npm"],
        cwd=TOP, capture_output=True, text=True, check=False,
    )  # fmt: skip


def with_biome(venv: Path, code: int) -> Path:
    """An environment in which a Biome is installed that finds something (code 1) or nothing (code 0)."""
    version = re.search(r"^BIOME_VERSION := (\S+)$", (TOP / "Makefile").read_text(encoding="utf-8"), re.M)
    assert version is not None
    script = venv / f"biome-{version[1]}" / "node_modules" / ".bin" / "biome"
    script.parent.mkdir(parents=True)
    script.write_text(f'#!/bin/sh\n[ "$1" = --version ] && exit 0\necho "$@"\nexit {code}\n', encoding="utf-8")
    script.chmod(0o755)
    return venv


def test_without_node_the_page_is_skipped_and_a_line_says_so(tmp_path: Path) -> None:
    run = run_style(tmp_path)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("skipped: the page's JavaScript and CSS were not checked")


def test_findings_fail_where_biome_is_there(tmp_path: Path) -> None:
    found = run_style(with_biome(tmp_path / "findings", code=1))
    assert found.returncode != 0
    clean = run_style(with_biome(tmp_path / "clean", code=0))
    assert (clean.returncode, clean.stdout.split()) == (0, ["check", "--error-on-warnings"])


def test_lint_and_test_check_the_page() -> None:
    makefile = (TOP / "Makefile").read_text(encoding="utf-8")
    needs = {name: rest.split("##")[0].split() for name, rest in re.findall(r"^([a-z-]+):(.*)$", makefile, re.M)}
    assert "style-page" in needs["style"]
    assert "style" in needs["lint"] and "style" in needs["test"]


def test_one_line_length_holds_for_python_and_the_page() -> None:
    ruff = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ruff"]
    text = re.sub(r"\s//.*$", "", (TOP / "biome.jsonc").read_text(encoding="utf-8"), flags=re.M)
    assert json.loads(text)["formatter"]["lineWidth"] == ruff["lint"]["pycodestyle"]["max-line-length"]
