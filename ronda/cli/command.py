"""Commands whose help ends with examples to copy."""

from collections.abc import Callable
from typing import Any

import click


class Taught(click.Command):
    """A command with examples: command lines, shown as they are."""

    def __init__(self, *args: Any, examples: tuple[str, ...] = (), **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.examples = examples

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(" " * formatter.current_indent + example + "\n")
        super().format_epilog(ctx, formatter)


def taught(name: str, *examples: str) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a function a command with examples."""
    return click.command(name=name, cls=Taught, examples=examples)


class TaughtGroup(Taught, click.Group):
    """A group with examples."""
