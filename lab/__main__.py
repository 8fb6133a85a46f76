"""The command line of the studies: ``python -m lab NAME``."""

import importlib
import sys
from collections.abc import Sequence

import click

from lab.program import Listed, run_program

STUDIES = {
    "solvers": "HiGHS, SCIP, CBC, CP-SAT, prices and evolution on the same rounds.",
    "fusion": "Fusing, packing or running alone: rules against the MILP on batches of jobs.",
    "hfht": "What hyper-parameter tuning costs when trials share a GPU.",
    "pools": "Prices, whole models, relaxations and random parts where many GPU types couple jobs.",
    "placement": "Choosing nodes together with options against placing options afterwards.",
    "stranded": "How many GPUs host resources and fractions strand in a real mix of pods.",
    "consolidation": "How many nodes moves can empty, with a bound, at 25 to 500 nodes.",
    "nodes": "Plans for a million tasks on nodes, with a bound, beside best fit, greedy and HiGHS.",
    "slurm": "Slurm's own backfill against ronda, on a real Slurm with made-up GPUs.",
    "hindsight": "The best schedules known, and how much of the gap to a bound is left.",
}
"""Name of each study and what it asks."""

MODULES = {
    "solvers": "lab.solvers",
    "fusion": "lab.fusion.batches",
    "hfht": "lab.fusion.tuning",
    "pools": "lab.pools",
    "placement": "lab.placement",
    "stranded": "lab.stranded",
    "consolidation": "lab.consolidation",
    "nodes": "lab.nodes.study",
    "slurm": "lab.slurm.study",
    "hindsight": "lab.hindsight.report",
}


class Studies(Listed):
    """Loads a study when it is asked for."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a study's command."""
        if cmd_name not in STUDIES:
            return None
        command: click.Command = importlib.import_module(MODULES[cmd_name]).command
        return command


studies = Studies(
    "study",
    "Run an experiment of the docs; NAME --help teaches it. Results are kept in the folder --out, "
    "and a later call goes on from them.",
    STUDIES,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    return run_program(studies, "python -m lab", arguments)


if __name__ == "__main__":
    sys.exit(main())
