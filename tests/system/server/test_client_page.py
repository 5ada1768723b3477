"""The examples of docs/server/client.md run against a real server, as they stand there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from system.server.browser import DATASET, serving

pytestmark = pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever noise the server's workers draw

PAGE = Path(__file__).parents[3] / "docs" / "server" / "client.md"


@pytest.mark.slow
def test_the_page_about_the_client_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 3
    with serving(tmp_path) as site:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("FARTHING_TOKEN", site.token("ada", "read", "plan", "spend"))
        code = "\n".join(blocks).replace("http://127.0.0.1:8642", site.url)
        space: dict[str, Any] = {}
        exec(compile(code, str(PAGE), "exec"), space)
        assert 1.4 < site.state.root.budget(DATASET).spent_upper <= 1.5  # the release and the session, each once
    assert "mean of income" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "100 mechanisms together cost epsilon 4.775" in capsys.readouterr().out
