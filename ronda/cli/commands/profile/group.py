"""``ronda profile``: the group of commands around models of speed and power."""

import click

from ronda.cli.app import LazyGroup

COMMANDS = {
    "fit": ("ronda.cli.commands.profile.fit", "Fit models to a table of measurements."),
    "list": ("ronda.cli.commands.profile.list", "List the packaged models and their errors."),
    "show": ("ronda.cli.commands.profile.show", "Show a model and how far to trust it."),
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
