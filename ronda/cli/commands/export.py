"""``ronda export``: a round's model, for any other solver."""

from pathlib import Path

import click

from ronda.cli.command import taught
from ronda.cli.options import TARGET, force_option, json_option, policy_option, round_argument
from ronda.instances.errors import printable


@taught(
    "export",
    "ronda export round.json --out model.mps",
    "ronda export round.json --policy 'milp(elastic=false)' --out model.lp",
)
@round_argument
@policy_option
@click.option("--out", type=TARGET, required=True, metavar="FILE", help="An .mps or .lp file.")
@force_option
@json_option
def command(source: str, policy: str, out: Path, force: bool, as_json: bool) -> None:
    """Write the mixed-integer program of a ROUND in a format that every solver reads.

    The objective is the one that `ronda solve` reports; resources are in GPUs, watts and joules. A
    variable is called x(job,pool,GPUs,clock,batch), and is 1 if the job gets that option.
    `ronda import-solution` makes a plan of what the solver finds.
    """
    from ronda.cli.load import allocation_model
    from ronda.cli.load import round_ as load_round
    from ronda.cli.output import emit, refuse_existing, tell
    from ronda.instances.errors import InputError
    from ronda.instances.files.storage import label

    refuse_existing(out, force=force)
    if out.suffix not in {".mps", ".lp"}:
        raise InputError(label(out), "another suffix", "the name of an .mps or .lp file")
    round_ = load_round(source)

    from ronda.solvers.exact.model_file import export

    model = allocation_model(round_, policy)
    export(model, out, _remarks(round_.name, policy))
    fields = {
        "out": str(out),
        "round": round_.name,
        "variables": model.nvariables(),
        "constraints": model.nconstraints(),
    }
    if as_json:
        emit(fields)
    else:
        tell(f"{out}: {fields['variables']:,} variables, {fields['constraints']:,} constraints")


def _remarks(round: str, policy: str) -> list[str]:
    """Return what a reader of the file needs to know."""
    return [
        f"ronda: round {printable(round)}, policy {printable(policy)}",
        "Maximise the objective that `ronda solve` reports for this round.",
        "x(job,pool,GPUs,clock,batch) = 1: the job gets that option, at most one of its own.",
        "Rows are in GPUs, watts (beyond what is drawn with nothing running) and joules.",
    ]
