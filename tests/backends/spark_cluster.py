"""A real Spark standalone cluster: a master, two workers, and a Spark Connect server, each a process of its own."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from backends.keeper import CannotStart
from backends.processes import answers, end, free_port, installed, wait_for

WORKERS = 2
# The quick compiler only, and Spark's own classes taken as they are: a test run lives for minutes and shares the
# machine. Room for classes from the start: every step towards it would be a collection of the whole heap. Room for what
# is compiled: 48 MB, the default of the quick compiler, are full after hundreds of queries, and are then swept.
_QUICK = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:MetaspaceSize=192m -XX:ReservedCodeCacheSize=240m "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
# The driver plans hundreds of large queries. With 640 MB it was full after half of a run: collections of two seconds
# each, and now and then an OutOfMemoryError, which its clients see as a query that failed for an unknown reason.
_DRIVER_MEMORY = "2g"
_SETTINGS = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.executor.extraJavaOptions": _QUICK,
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.connect.progress.reportInterval": "200ms",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.catalogImplementation": "in-memory",
    # A dead worker is noticed by its closed connections; do not ask it many times over.
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "1s",
    "spark.task.maxFailures": "4",
    # Nobody looks at the queries that are over; by default the driver keeps the plans of the last thousand.
    "spark.sql.ui.retainedExecutions": "1",
    "spark.ui.retainedJobs": "1",
    "spark.ui.retainedStages": "1",
    "spark.ui.retainedTasks": "100",
    "spark.connect.ui.retainedSessions": "1",
    "spark.connect.ui.retainedStatements": "1",
    "spark.connect.session.planCache.maxSize": "0",
}


# What goes wrong is logged, and who has registered. By default every request is, with the text of its plan.
_LOGGING = """
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{yy/MM/dd HH:mm:ss} %p %c{1}: %m%n%ex
logger.registered.name = org.apache.spark.scheduler.cluster
logger.registered.level = info
"""

# Several processes of a test run share the cluster: none of them waits until another's queries are over.
_FAIR = '<allocations><pool name="default"><schedulingMode>FAIR</schedulingMode></pool></allocations>'


def server(directory: Path) -> SparkCluster:
    """What the keeper keeps."""
    return SparkCluster(directory)


def java() -> Path | None:
    """The Java that Spark will use."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    return Path(found) if found else None


class SparkCluster:
    """A master, `WORKERS` workers with a core each, and the Connect server, which is the one application."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._master: subprocess.Popen[bytes] | None = None
        self._workers: list[subprocess.Popen[bytes]] = []
        self._connect: subprocess.Popen[bytes] | None = None
        self._started = 0
        self._master_port = free_port()
        self._connect_port = free_port()

    def start(self) -> dict[str, Any]:
        """Start all of it; the facts once both workers have given an executor."""
        installed(java, "openjdk-17-jre-headless")
        found = importlib.util.find_spec("pyspark")
        if found is None or found.origin is None:
            raise CannotStart("pyspark is not installed: pip install 'farthing[test]'")
        self._home = Path(found.origin).parent
        if not list((self._home / "jars").glob("spark-connect_*.jar")):
            raise CannotStart("this pyspark is the client alone: pip install 'farthing[test]' brings a whole Spark")
        (self._directory / "log4j2.properties").write_text(_LOGGING, encoding="utf-8")
        self._master = self._launch("master", [
            "bin/spark-class", "org.apache.spark.deploy.master.Master",
            "--host", "127.0.0.1", "--port", str(self._master_port), "--webui-port", "0",
        ])  # fmt: skip
        wait_for(lambda: answers(self._master_port), "the Spark master", 600, self._master)
        for _ in range(WORKERS):
            self._start_worker()
        (self._directory / "pools.xml").write_text(_FAIR, encoding="utf-8")
        settings = {
            **_SETTINGS,
            "spark.scheduler.mode": "FAIR",
            "spark.scheduler.allocation.file": f"file://{self._directory}/pools.xml",
            "spark.connect.grpc.binding.port": str(self._connect_port),
            "spark.sql.warehouse.dir": str(self._directory / "warehouse"),
        }
        self._connect = self._launch("connect", [
            "bin/spark-submit", "--class", "org.apache.spark.sql.connect.service.SparkConnectServer",
            "--name", "connect", "--master", f"spark://127.0.0.1:{self._master_port}",
            "--driver-memory", _DRIVER_MEMORY, "--driver-java-options", f"{_QUICK} -Xms1g -Xss4m",
            *(word for key, value in settings.items() for word in ("--conf", f"{key}={value}")),
            "spark-internal",
        ])  # fmt: skip
        wait_for(lambda: answers(self._connect_port), "the Spark Connect server", 600, self._connect)
        wait_for(lambda: self._executors() >= WORKERS, "the executors", 600, self._connect)
        return self._facts()

    def grant(self, wish: str) -> dict[str, Any]:
        """`a worker for each dead one`: it joins when it is ready, some seconds later."""
        for worker in [w for w in self._workers if w.poll() is not None]:
            self._workers.remove(worker)
            end(worker)
            self._start_worker()
        return self._facts()

    def stop(self) -> None:
        """The application first, so that no worker starts another executor for it."""
        for process in (self._connect, *self._workers, self._master):
            if process is not None:
                end(process)

    def _facts(self) -> dict[str, Any]:
        return {
            "url": f"sc://127.0.0.1:{self._connect_port}",
            "workers": [worker.pid for worker in self._workers],
            "directory": str(self._directory),
        }

    def _start_worker(self) -> subprocess.Popen[bytes]:
        self._started += 1
        worker = self._launch(f"worker-{self._started}", [
            "bin/spark-class", "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--webui-port", "0",
            "--cores", "1", "--memory", "600m", "--work-dir", str(self._directory / f"work-{self._started}"),
            f"spark://127.0.0.1:{self._master_port}",
        ])  # fmt: skip
        self._workers.append(worker)
        return worker

    def _executors(self) -> int:
        """How many executors have ever registered, by the log of the Connect server."""
        return (self._directory / "connect.log").read_text(errors="replace").count("Registered executor")

    def _launch(self, name: str, command: list[str]) -> subprocess.Popen[bytes]:
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))}
        environment |= {
            "SPARK_HOME": str(self._home),
            "SPARK_CONF_DIR": str(self._directory),  # for how it logs
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(self._directory / "local"),
            "SPARK_DAEMON_JAVA_OPTS": _QUICK,
        }
        if name != "connect":  # the Connect server counts as a daemon as well, and needs its driver's memory
            environment["SPARK_DAEMON_MEMORY"] = "160m"
        return subprocess.Popen(
            [str(self._home / command[0]), *command[1:]],
            stdout=(self._directory / f"{name}.log").open("wb"),
            stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=environment, cwd=self._directory,
            start_new_session=True,
        )  # fmt: skip
