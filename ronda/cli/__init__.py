"""The command line.

A time limit counts from here: `STARTED` is read before anything else is imported.
"""

import time

STARTED = time.perf_counter()
"""``time.perf_counter()`` when the process entered ronda; commands get it as their object."""


def main() -> None:
    """Run the command line and end the process with its exit code."""
    from ronda.cli.app import cli

    cli.main(prog_name="ronda", obj=STARTED)
