"""``ronda instances``: the group of commands around instance files."""

import click

from ronda.cli.app import LazyGroup

COMMANDS = {
    "list": ("ronda.cli.commands.instances.list", "List the packaged instances."),
    "show": ("ronda.cli.commands.instances.show", "Show what an instance or a round holds."),
    "check": ("ronda.cli.commands.instances.check", "Check a file, or an answer to it."),
    "convert": ("ronda.cli.commands.instances.convert", "Convert a published trace."),
    "detect-sweeps": (
        "ronda.cli.commands.instances.detect_sweeps",
        "Find repetitive jobs in a trace.",
    ),
    "demand": ("ronda.cli.commands.instances.demand", "Tell how many nodes a schedule used."),
    "generate": ("ronda.cli.commands.instances.generate", "Generate a round or a horizon."),
}


@click.group(
    name="instances",
    cls=LazyGroup,
    lazy=COMMANDS,
    examples=(
        "ronda instances list",
        "ronda instances show pollux-1",
        "ronda instances convert helios cluster_log.csv --nodes vcvGl=20 --out vcvgl.json.zst",
        "ronda instances detect-sweeps cluster_log.csv --out groups.csv",
        "ronda instances generate round --jobs 64 --out round.json",
        "ronda instances check venus-vcvly results/schedule.json.zst",
    ),
)
def command() -> None:
    """List, show, check, convert and generate instances and rounds."""
