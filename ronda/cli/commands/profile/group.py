"""``ronda profile``: the group of commands around models of speed and power."""

import click

from ronda.cli.app import LazyGroup

COMMANDS = {
    "fit": "ronda.cli.commands.profile.fit",
    "list": "ronda.cli.commands.profile.list",
    "show": "ronda.cli.commands.profile.show",
}


@click.group(
    name="profile",
    cls=LazyGroup,
    lazy=COMMANDS,
    examples=(
        "ronda profile fit steps.csv --gpus-per-node 8 --out profile.json",
        "ronda profile list bert",
        "ronda profile show elasticflow-bert-A100",
    ),
)
def command() -> None:
    """Fit models of speed and power to measurements, and look at fitted ones."""
