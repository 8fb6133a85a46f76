"""``ronda export``: a round's model, for any other solver."""

from pathlib import Path

import click

from ronda.cli.command import taught
from ronda.cli.options import TARGET, force_option, json_option, policy_option, round_argument


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
    """Write the mixed-integer program of a ROUND in a format that every solver reads."""
    from ronda.cli.load import allocation_model
    from ronda.cli.load import round_ as load_round
    from ronda.cli.output import emit, refuse_existing, tell
    from ronda.instances.errors import InputError
    from ronda.instances.files.storage import label

    refuse_existing(out, force=force)
    if out.suffix not in {".mps", ".lp"}:
        raise InputError(label(out), "another suffix", "the name of an .mps or .lp file")
    round_ = load_round(source)

    from ronda.solvers.exact.highs import export

    model = allocation_model(round_, policy)
    export(model, out)
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
