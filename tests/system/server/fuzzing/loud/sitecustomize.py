"""Python imports this by itself where the folder is on its path: every process logs everything into one file."""

import logging
import os
import sys

if _file := os.environ.get("FARTHING_LOUD_LOG"):
    logging.basicConfig(
        level=logging.DEBUG,
        format="%(process)d %(levelname)s %(name)s: %(message)s",
        handlers=[logging.FileHandler(_file, encoding="utf-8", errors="backslashreplace")],
    )
    logging.getLogger("sqlalchemy").setLevel(logging.DEBUG)  # it would set itself to warnings
if (_plant := os.environ.get("FARTHING_PLANTED_IN_WORKERS")) and any(
    "jobs.job_worker" in word for word in sys.orig_argv
):
    print(_plant, file=sys.stderr)
