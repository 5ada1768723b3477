"""A process that is killed between charge and answer leaves the charge, and its request is never drawn again."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from asking import the_people
from farthing.curator import Curator
from farthing.data import Count
from farthing.errors import AnswerForfeited
from farthing.ledger import Ledger, open_ledger
from farthing.mechanisms import DiscreteLaplace

# The table has 10^10 rows: the query runs until the process is killed.
CHILD = """
import sys
from farthing.curator import Curator
from farthing.data import Count, connection, dataset
from farthing.ledger import open_ledger
from farthing.mechanisms import DiscreteLaplace
tables = connection(threads=1)
tables.raw_sql("CREATE VIEW long AS SELECT (a.range + b.range) % 110 AS age FROM range(100000) a, range(100000) b")
slow = dataset(tables.table("long"), schema={"age": (0, 110)})
curator = Curator(open_ledger(sys.argv[1]))
curator.answer(slow, "people", Count(), DiscreteLaplace(0.25), ledger_name="survey", request_id="r-1")
"""


def ask(ledger: Ledger, request_id: str) -> None:
    Curator(ledger).answer(
        the_people(), "people", Count(), DiscreteLaplace(0.25), ledger_name="survey", request_id=request_id
    )


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_a_killed_process_leaves_its_charge_and_no_second_draw(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "study.db") as ledger:
        Curator(ledger).register(the_people(), "survey", epsilon=1.0)
        child = subprocess.Popen([sys.executable, "-W", "ignore", "-c", CHILD, str(tmp_path / "study.db")])
        try:
            while ledger.stored("r-1") is None:
                assert child.poll() is None, "the child ended before it charged"
                time.sleep(0.05)
            time.sleep(0.2)
        finally:
            child.kill()
            child.wait()
        assert ledger.budget("survey").reserved == 0.25
        with pytest.raises(AnswerForfeited):
            ask(ledger, "r-1")
        budget = ledger.budget("survey")
        assert (budget.count, budget.spent_upper, budget.reserved) == (1, 0.25, 0.0)
        ask(ledger, "r-2")
        assert ledger.verify().ok and ledger.budget("survey").count == 2
