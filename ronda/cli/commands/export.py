"""``ronda export``: a round's model, for any other solver."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ronda.cli.command import taught
from ronda.cli.options import (
    TARGET,
    force_option,
    json_option,
    policy_option,
    round_argument,
    with_option,
)
from ronda.instances.errors import printable

if TYPE_CHECKING:
    from ronda.formulations.positions.choices import Ways


@taught(
    "export",
    "ronda export round.json --out model.mps",
    "ronda export round.json --policy 'milp(elastic=false)' --out model.lp",
    "ronda export round.json --policy 'milp(placement=exact)' --out exact.mps",
)
@round_argument
@policy_option
@with_option
@click.option("--out", type=TARGET, required=True, metavar="FILE", help="An .mps or .lp file.")
@force_option
@json_option
def command(source: str, policy: str, extra: str, out: Path, as_json: bool) -> None:
    """Write the mixed-integer program of a ROUND in a format that every solver reads.

    The objective is the one that `ronda solve` reports, in .mps with the other sign: it is
    minimised there, as some solvers always do. Resources are in GPUs, watts and joules. A variable
    is called x(job,pool,GPUs,clock,batch), and is 1 if the job gets that option. With
    milp(placement=exact) the model has the nodes too, and x(i) is way i of those that stand at the
    head of the file. `ronda import-solution` makes a plan of what the solver finds.
    """
    from ronda.cli.load import milp_question
    from ronda.cli.load import round_ as load_round
    from ronda.cli.output import emit, tell
    from ronda.instances.errors import InputError
    from ronda.instances.files.storage import label

    if out.suffix not in {".mps", ".lp"}:
        raise InputError(label(out), "another suffix", "the name of an .mps or .lp file")
    round_ = load_round(source)

    from ronda.solvers.decision.by_file import model_of
    from ronda.solvers.exact.model_file import export

    _, question, milp = milp_question(round_, policy, extra)
    model = model_of(question, exact=milp.exact)
    names = _ways(model.ways) if milp.exact else [OPTIONS]
    export(model, out, [*_head(round_.name, policy, out), *names])
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


OPTIONS = "x(job,pool,GPUs,clock,batch) = 1: the job gets that option, at most one of its own."


def _head(round: str, policy: str, out: Path) -> list[str]:
    sense = "Minimise minus" if out.suffix == ".mps" else "Maximise"
    return [
        f"ronda: round {printable(round)}, policy {printable(policy)}",
        f"{sense} the objective that `ronda solve` reports for this round.",
        "Rows are in GPUs, watts (beyond what is drawn with nothing running) and joules.",
    ]


def _ways(found: "Ways") -> list[str]:
    """Return what each x of the exact model stands for."""
    from ronda.formulations.allocation.rows import UNNAMED

    case = found.case
    table, racks = case.table, case.round.cluster.topology.racks
    head = "x(i) = 1: the job gets way i, at most one of its own; others cut nodes for it."
    made = [head, "x(i): job, pool, GPUs, clock, batch, the rack if tied to it, if it stays"]
    for i, (row, job, stays) in enumerate(zip(case.rows, case.job, found.stay, strict=True)):
        words = [printable(table.jobs[job].job.id), str(table.pool[row]), str(table.gpus[row])]
        words += [f"{table.clock[row]:g}", f"{table.batch[row]:g}"]
        if case.rack[i] >= 0:
            words.append(printable(racks[case.rack[i]] or UNNAMED))
        words += ["stays"] * bool(stays)
        made.append(f"x({i}): {', '.join(words)}")
    return made
