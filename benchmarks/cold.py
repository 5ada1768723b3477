"""What a command costs from a cold start: `python -m benchmarks.cold [--beside SRC] [--times N]`.

Each command runs in a fresh process, and the seconds are those of the processor; the best of a few runs counts, with
the bytecode written before. `--beside` names the `src` folder of another version, which takes turns with this one, so
that both have the same load beside them.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parents[1] / "src"
STUDY = """
[dataset]
source = "people.csv"
[schema]
sex = { categories = ["F", "M"] }
age = { range = [0, 110] }
income = { range = [0, 250000] }
[study]
epsilon = 1.0
delta = 1e-9
ledger = "study.db"
[expected]
rows = 2000
[[statistics]]
kind = "count"
[[statistics]]
kind = "mean"
column = "age"
by = "sex"
[[statistics]]
kind = "histogram"
column = "age"
bins = 11
[[statistics]]
kind = "median"
column = "income"
"""
COMMANDS = {
    "farthing --help": ("--help",),
    "farthing compose": ("compose", "0.1x100", "--delta", "1e-6"),
    "farthing plan": ("plan", "study.toml"),
    "farthing ledger show": ("ledger", "show", "study.db"),
    "import farthing": (),
}


def processor_seconds(source: Path, words: tuple[str, ...], folder: Path) -> float:
    """Of one run, with all that it starts."""
    command = f"import sys; sys.argv = ['farthing', *{words!r}]; from farthing.cli import main; main()"
    program = ["-c", command if words else "import farthing"]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *program], cwd=folder, env=environment, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure in turns, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cold", description="commands from a cold start")
    parser.add_argument("--beside", type=Path, help="the src folder of another version")
    parser.add_argument("--times", type=int, default=5, help="runs of each; the best counts")
    options = parser.parse_args()
    sources = [source.resolve() for source in (options.beside, HERE) if source is not None]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = "".join(f"{'FM'[row % 2]},{20 + row % 50},{row * 37 % 90_000}\n" for row in range(2000))
        (folder / "people.csv").write_text(f"sex,age,income\n{rows}", encoding="utf-8")
        (folder / "study.toml").write_text(STUDY, encoding="utf-8")
        processor_seconds(HERE, ("release", "study.toml", "--yes"), folder)
        for title, words in COMMANDS.items():
            best = [float("inf")] * len(sources)
            for _ in range(options.times + 1):
                best = [
                    min(least, processor_seconds(source, words, folder))
                    for least, source in zip(best, sources, strict=True)
                ]
            print(f"{title:22}", "  ".join(f"{seconds:5.2f} s" for seconds in best), flush=True)


if __name__ == "__main__":
    main()
