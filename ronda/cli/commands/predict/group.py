"""``ronda predict``: the group of commands around sizes of jobs that are not known."""

import click

from ronda.cli.app import LazyGroup

COMMANDS = {
    "train": ("ronda.cli.commands.predict.train", "Train a predictor of sizes on an instance."),
    "errors": ("ronda.cli.commands.predict.errors", "Make declared sizes as wrong as published."),
}


@click.group(
    name="predict",
    cls=LazyGroup,
    lazy=COMMANDS,
    examples=(
        "ronda predict train venus-vcvgl --out sizes.json.zst",
        "ronda run venus-vcvly --policy qssf --knowledge history --predictor sizes.json.zst",
        "ronda predict errors venus-vcvgl --out wrong.json.zst",
    ),
)
def command() -> None:
    """Predict how large jobs are from those that ran before."""
