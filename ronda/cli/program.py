"""The exit code of a click command, and the output of its errors on one line."""

import errno
import os
import sys
from collections.abc import Callable
from typing import Any

import click

from ronda.instances.errors import RondaError, explained, printable, short

WRITING = {errno.EBADF, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC}
"""The errors of writing; one without a file name concerns the standard output."""


def finish(call: Callable[[], Any]) -> int:
    """Return the exit code of a command's call; print an error as one line on stderr."""
    try:
        code = call()
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return error.exit_code
    except click.ClickException as error:
        ctx = getattr(error, "ctx", None)
        where = f" (see '{ctx.command_path} --help')" if ctx is not None else ""
        return _failed(error.format_message().rstrip(".") + where, error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return _failed("interrupted", 130)  # as in shells: 128 + SIGINT
    except RondaError as error:
        return _failed(str(error), error.exit_code)
    except BrokenPipeError:  # the reader (say, `head`) has read enough
        _give_up_stdout()
        return 1
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        return _failed(f"{place}: {reason}" if (place := _place(error)) else reason, 2)
    except MemoryError:
        return _failed("not enough memory", 1)
    except ModuleNotFoundError as error:
        if (said := explained(error)) is None:
            raise
        return _failed(str(said), said.exit_code)
    return code if isinstance(code, int) else 0


def _place(error: OSError) -> str:
    """Return the file of an error, or the standard output if a failed write names no file."""
    if error.filename:
        from ronda.instances.files.storage import label  # not for every --help

        return label(error.filename)
    if error.errno not in WRITING:
        return ""
    _give_up_stdout()
    return "standard output"


def _give_up_stdout() -> None:
    """Drop the remaining output, so that Python does not report it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _failed(message: str, code: int) -> int:
    click.echo("error: " + short(printable(" ".join(message.split())), 3500), err=True)
    return code
