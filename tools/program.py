"""The command line of what makes packaged files from public data."""

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from ronda.instances.errors import RondaError


def run(name: str, about: str, out: str, make: Callable[[Path, Path], Iterable[object]]) -> int:
    """Make files, print what they are line by line, and return the exit code.

    Parameters
    ----------
    name, about
        What follows ``python -m``, and what it does.
    out
        What ``--out`` is, as in "file to write".
    make
        From the folder of the public data and ``--out`` to the lines.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {name}", description=about)
    parser.add_argument("--source", type=Path, required=True, help="folder of the public data")
    parser.add_argument("--out", type=Path, required=True, help=out)
    options = parser.parse_args()
    try:
        for line in make(options.source, options.out):
            sys.stdout.write(f"{line}\n")
    except RondaError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0
