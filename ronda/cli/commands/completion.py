"""``ronda completion``: the script for completion of ronda's words in a shell."""

import click
from click.shell_completion import get_completion_class

from ronda.cli.command import taught
from ronda.instances.errors import InputError


@taught(
    "completion",
    "ronda completion bash >> ~/.bashrc",
    "ronda completion zsh >> ~/.zshrc",
    "ronda completion fish > ~/.config/fish/completions/ronda.fish",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a SHELL: bash, zsh or fish."""
    root = ctx.find_root()
    kind = get_completion_class(shell)
    if kind is None:
        raise InputError("SHELL", repr(shell), "bash, zsh or fish")
    click.echo(kind(root.command, {}, "ronda", "_RONDA_COMPLETE").source())
