"""``ronda profile``: the group of commands around models of what was measured."""

import click

from ronda.cli.app import LazyGroup

COMMANDS = {
    "fit": ("ronda.cli.commands.profile.fit", "Fit models to a table of measurements."),
    "fit-fusion": (
        "ronda.cli.commands.profile.fit_fusion",
        "Fit time and memory of models that share a GPU.",
    ),
    "list": ("ronda.cli.commands.profile.list", "List the packaged models and their errors."),
    "show": ("ronda.cli.commands.profile.show", "Show a model and how far to trust it."),
}


@click.group(
    name="profile",
    cls=LazyGroup,
    lazy=COMMANDS,
    examples=(
        "ronda profile fit steps.csv --gpus-per-node 8 --out profile.json",
        "ronda profile fit-fusion fused.csv --out fusion.json --figure fusion.png",
        "ronda profile list bert",
        "ronda profile show elasticflow-bert-A100",
    ),
)
def command() -> None:
    """Fit models of speed, power and sharing to measurements, and look at fitted ones."""
