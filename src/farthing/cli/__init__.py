"""The command line: thin commands over the library. `farthing --help` lists them."""

from farthing.cli.commands import main

__all__ = ["main"]
