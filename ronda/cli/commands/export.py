"""``ronda export``: a round's model for other solvers, or a schedule for other tools."""

from pathlib import Path
from typing import Any

import click

from ronda.cli.command import taught
from ronda.cli.load import instance as load_instance
from ronda.cli.load import milp_question, schedule_of
from ronda.cli.load import round_ as load_round
from ronda.cli.options import TARGET, Source, out_file_options, policy_options, was_given
from ronda.cli.output import show
from ronda.instances.check.checker import check
from ronda.instances.errors import InputError, printable
from ronda.instances.files.storage import label, write_bytes
from ronda.instances.tables.table import Report


@taught(
    "export",
    "ronda export round.json --out model.mps",
    "ronda export round.json --policy 'milp(placement=exact)' --out exact.lp",
    "ronda export pollux-1 pollux-milp --out trace.json.gz",
    "ronda export pollux-1 pollux-milp/schedule.json.zst --out jobs.csv",
    "ronda export pollux-1 pollux-milp --out pollux.swf",
    "ronda export philly-batches --out philly.swf",
    "ronda export pollux-1 pollux-milp --format batsim --out batsim_jobs.csv",
)
@click.argument("source", metavar="ROUND|INSTANCE", type=Source())
@click.argument(
    "answer", metavar="[SCHEDULE]", type=click.Path(path_type=Path), required=False, default=None
)
@policy_options
@click.option(
    "--format",
    "name",
    type=click.Choice(["perfetto", "csv", "swf", "batsim"]),
    help="Of a schedule, where the suffix does not say: a .csv is a row for each job unless this "
    "is batsim.",
)
@out_file_options(
    TARGET,
    "Of a round: .mps or .lp. Of a schedule: .json or .json.gz (Perfetto), .csv, .swf. Of an "
    "instance: .swf.",
    required=True,
)
def command(
    source: str,
    answer: Path | None,
    policy: str,
    extra: str,
    name: str | None,
    out: Path,
    as_json: bool,
) -> None:
    """Write the model of a ROUND for other solvers, or a SCHEDULE of an INSTANCE for other tools.

    The model is the mixed-integer program of milp. Its objective is the one that `ronda solve`
    reports; in .mps it has the opposite sign and is minimised, because some solvers always
    minimise. Resources are in GPUs, watts and joules. A variable is called
    x(job,pool,GPUs,clock,batch), and is 1 if the job gets that option. With milp(placement=exact)
    the model also has the nodes, and x(i) stands for entry i of the list at the head of the file.
    `ronda import-solution` turns a solver's solution into a plan.

    SCHEDULE is a file, or a folder of `ronda run`; without it, an INSTANCE becomes a log of its
    jobs in the Standard Workload Format. The output of a schedule is a timeline of every GPU for
    Perfetto or Chrome (ui.perfetto.dev, chrome://tracing), a table of jobs, a log in the Standard
    Workload Format, or the jobs.csv of Batsim 4.2.1 (docs/exports.md).
    """
    if answer is None and (name == "swf" or out.suffix == ".swf"):
        from ronda.bench.exports.formats import format_of
        from ronda.bench.exports.workload import standard_workload

        format_of(out, name)
        instance = load_instance(source)
        write_bytes(out, standard_workload(instance).encode())
        fields = {"out": str(out), "instance": instance.name, "jobs": len(instance.jobs)}
        counts: tuple[str, ...] = ("jobs",)
    elif answer is None:
        if was_given("name"):
            raise InputError("--format", "no schedule", "INSTANCE SCHEDULE, or no --format")
        fields = _model(source, policy, extra, out)
        counts = "variables", "constraints"
    else:
        for option, words in {"policy": "--policy", "extra": "--with"}.items():
            if was_given(option):
                raise InputError(words, "a schedule, which is decided", "a ROUND alone")
        fields = _schedule(source, answer, name, out)
        counts = "jobs", "allocations"
    words = f"{out}: {', '.join(f'{fields[each]:,} {each}' for each in counts)}"
    show(Report(fields, [words]), as_json=as_json)


def _schedule(source: str, answer: Path, name: str | None, out: Path) -> dict[str, Any]:
    """Write a schedule that keeps every rule of its instance."""
    from ronda.bench.exports.formats import format_of, write_schedule

    format_of(out, name)  # refuses other suffixes before any work
    file = answer / "schedule.json.zst" if answer.is_dir() else answer
    if not file.exists() and file != answer:
        raise InputError(label(answer), "a folder without a schedule", "one of `ronda run --out`")
    instance = load_instance(source)
    schedule = schedule_of(file, source, instance)
    if broken := check(instance, schedule):
        found = f"a schedule that breaks {len(broken)} rules: {broken[0]}"
        raise InputError(label(file), found, "one that keeps them all")
    write_schedule(instance, schedule, out, name)
    allocations = sum(len(outcome.segments) for outcome in schedule.jobs)
    fields = {"out": str(out), "instance": instance.name, "policy": schedule.policy}
    return fields | {"jobs": len(schedule.jobs), "allocations": allocations}


def _model(source: str, policy: str, extra: str, out: Path) -> dict[str, Any]:
    if out.suffix not in {".mps", ".lp"}:
        raise InputError(label(out), "another suffix", "the name of an .mps or .lp file")
    round_ = load_round(source)

    from ronda.solvers.decision.by_file import meanings, model_of
    from ronda.solvers.exact.model_file import export

    _, question, milp = milp_question(round_, policy, extra)
    model = model_of(question, exact=milp.exact)
    sense = "Minimise minus" if out.suffix == ".mps" else "Maximise"
    head = (
        f"ronda: round {printable(round_.name)}, policy {printable(policy)}",
        f"{sense} the objective that `ronda solve` reports for this round.",
        "Rows are in GPUs, watts (beyond what is drawn with nothing running) and joules.",
    )
    export(model, out, [*head, *meanings(model, exact=milp.exact)])
    return {
        "out": str(out),
        "round": round_.name,
        "variables": model.nvariables(),
        "constraints": model.nconstraints(),
    }
