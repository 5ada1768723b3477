"""What holds for every test: hypothesis settings, and no silent skips in CI."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

# Machines are shared and noisy, so no test may fail by the clock. Under CI the cases are the same each time, so that a
# change is judged by itself; everywhere else hypothesis goes on searching.
settings.register_profile(
    "farthing",
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("farthing-ci", settings.get_profile("farthing"), derandomize=True, database=None)
settings.load_profile("farthing-ci" if os.environ.get("CI") == "true" else "farthing")


class SkipsAreFailuresInCI:
    """A skipped test looks like a passing one from afar. Here it is named, and under CI=true it fails the run."""

    def __init__(self) -> None:
        self.skips: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self._note(report)

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else "no reason given"
        self.skips.append(f"{report.nodeid}: {reason}")

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None]:
        yield
        if self.skips and os.environ.get("CI") == "true" and session.exitstatus in (0, 5):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.skips:
            verdict = (
                "a failure under CI=true" if os.environ.get("CI") == "true" else "would fail under CI=true"
            )
            terminalreporter.section(f"{len(self.skips)} skipped: {verdict}", red=True, bold=True)
            for line in self.skips:
                terminalreporter.write_line(line)


def pytest_configure(config: pytest.Config) -> None:
    # Workers of pytest-xdist report to the controller, which is the one that decides the exit code.
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(SkipsAreFailuresInCI(), "skips-are-failures-in-ci")
