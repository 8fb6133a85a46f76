"""Click commands as programs, as those of `ronda` are."""

import math
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from ronda.bench.runs.worker import ONE_THREAD
from ronda.cli.app import finish

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Above0(click.ParamType[float]):
    """A finite number above 0, and below a limit if there is one."""

    name = "number"

    def __init__(self, below: float = math.inf) -> None:
        self.below = below

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number, or refuse it."""
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not 0 < number < self.below:
            top = "" if self.below == math.inf else f" and below {self.below:g}"
            self.fail(f"found {value}; expected a number above 0{top}", param, ctx)
        return number


class Listed(click.Group):
    """A group whose help lists its commands in order, each with a whole sentence."""

    def __init__(self, name: str, about: str, sentences: Mapping[str, str]) -> None:
        super().__init__(name, context_settings=CONTEXT, help=about)
        self.sentences = sentences

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in order."""
        return list(self.sentences)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sentences, without loading any command."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.sentences.items()))


def run_program(command: click.Command, name: str, arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; an error is one line on stderr."""
    words = None if arguments is None else list(arguments)
    return finish(lambda: command.main(words, name, standalone_mode=False))


def apart(*words: str) -> "subprocess.CompletedProcess[str]":
    """Run Python with some words in a process of its own, on one thread, and keep its output."""
    command = (sys.executable, *words)
    return subprocess.run(
        command, env=os.environ | ONE_THREAD, stdout=subprocess.PIPE, text=True, check=False
    )
