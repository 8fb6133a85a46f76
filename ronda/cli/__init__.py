"""The command line.

Time limits and the handling of Ctrl-C start here, so this module imports little before them.
"""

import logging
import os
import signal
import sys
import time
import warnings
from types import FrameType

STARTED = time.perf_counter()
"""``time.perf_counter()`` when the process entered ronda; commands get it as click's object."""


def main() -> None:
    """Run the command line and end the process with its exit code."""
    heard: list[int] = []

    def hear(number: int, _frame: FrameType | None) -> None:
        heard.append(number)
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where it is ignored
        signal.signal(signal.SIGINT, hear)
    try:
        _start()
    except SystemExit as end:
        # A solver that ran out of time may still run in this process.
        apart = sys.modules.get("ronda.solvers.exact.threads")
        if apart is not None and apart.left_alone() and isinstance(end.code, int | None):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(end.code or 0)
        raise
    except (Exception, KeyboardInterrupt):
        # Extensions in C may turn an interrupt into an ImportError or a SystemError.
        if not heard:
            raise
        print("error: interrupted", file=sys.stderr)
        sys.exit(130)  # as in shells: 128 + SIGINT
    finally:
        if heard or signal.getsignal(signal.SIGINT) is hear:  # the exit code is settled
            signal.signal(signal.SIGINT, signal.SIG_DFL if heard else signal.SIG_IGN)


def _start() -> None:
    # Closed streams are attached to a file, so that no other file gets their numbers: reading from
    # such a stdin gives nothing, and writing to such a stdout is an error.
    for name, flags in (("stdin", os.O_RDONLY), ("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY)):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, flags)  # the lowest free number: the stream's own
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))
    if sys.flags.optimize > 1:
        print(
            "error: python -OO: found no docstrings; expected python or python -O: "
            "Pyomo and the help need them",
            file=sys.stderr,
        )
        sys.exit(2)
    if not sys.warnoptions:  # stderr is ronda's: warnings of libraries do not help a user
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
    from ronda.cli.app import cli

    cli.main(prog_name="ronda", obj=STARTED)
