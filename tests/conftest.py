"""What holds for every test: hypothesis settings, no silent skips in CI, no search for garbage in vain."""

from __future__ import annotations

import gc
import os
import signal
import tempfile
from collections.abc import Generator

# What Spark's client talks through stops its threads at every fork, and sometimes the process with them.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

import pytest
from hypothesis import HealthCheck, settings

# Shells start jobs in the background with Ctrl-C ignored, and children inherit that; the tests of Ctrl-C need it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Machines are shared and noisy, so no test may fail by the clock. The cases are the same each time, so that a change is
# judged by itself; `--hypothesis-profile=search` looks for new ones.
settings.register_profile(
    "farthing",
    deadline=None,
    print_blob=True,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("search", settings.get_profile("farthing"), derandomize=False)
settings.load_profile("farthing")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected, thousands of tests and all they import, lives to the end: do not search it for garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


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
            verdict = "a failure under CI=true" if os.environ.get("CI") == "true" else "would fail under CI=true"
            terminalreporter.section(f"{len(self.skips)} skipped: {verdict}", red=True, bold=True)
            for line in self.skips:
                terminalreporter.write_line(line)


def pytest_configure(config: pytest.Config) -> None:
    if "FARTHING_CACHE" not in os.environ:
        kept = tempfile.TemporaryDirectory(prefix="farthing-cache-")
        os.environ["FARTHING_CACHE"] = kept.name
        config.add_cleanup(kept.cleanup)
    # What is still frozen when Python ends is never freed, and DuckDB's bindings print it as leaked, page after page.
    config.add_cleanup(gc.unfreeze)
    config.pluginmanager.register(SkipsAreFailuresInCI(), "skips-are-failures-in-ci")
