"""``ronda fits``: whether a job would run if it was submitted, at which size, and when."""

from typing import Any

import click

from ronda.cli.clusters import cluster, cluster_options
from ronda.cli.command import taught
from ronda.cli.options import Parsed, json_option, lasting
from ronda.cli.output import show
from ronda.instances.errors import InputError
from ronda.instances.files.json import read_part
from ronda.instances.site import GPUS
from ronda.instances.snapshots.snapshot import CPU, MEMORY
from ronda.questions.fits.request import JobRequest, submitted


def _with_unit(text: str) -> float | None:
    return lasting(text) if text.strip()[-1:].isalpha() else None  # a bare number may be minutes


TIME = Parsed("time", "a time such as 90m, 2h or 1.5d", _with_unit)
ABOVE = click.FloatRange(min=0, min_open=True)


@taught(
    "fits",
    "ronda fits --slurm squeue.json sinfo.json job.json",
    "ronda fits --slurm squeue.json sinfo.json --gpus 8 --per-node 4 --time 2h --partition gpu",
    "ronda fits round.json job.json && sbatch job.sh",
)
@click.argument("files", metavar="FILES... [JOB.json]", nargs=-1, required=True)
@cluster_options
@click.option("--gpus", type=click.IntRange(1, 10**6), help="GPUs in all.")
@click.option(
    "--per-node",
    type=click.IntRange(1, 10**4),
    help="GPUs on each node, on nodes of their own; without it, GPUs may stand anywhere.",
)
@click.option("--cpus-per-gpu", type=ABOVE, help="Cores for each GPU.")
@click.option("--mem-per-gpu", type=ABOVE, metavar="GIB", help="Memory for each GPU.")
@click.option("--time", type=TIME, help="Its time limit, such as 90m or 2h.")
@click.option("--type", "model", metavar="MODEL", help="The model of its GPUs.")
@click.option("--partition", metavar="NAME", help="The partition that it goes to.")
@click.option("--tenant", metavar="NAME", help="The account or queue that is charged.")
@click.option("--user", metavar="NAME", help="Who submits it.")
@json_option
def command(
    files: tuple[str, ...],
    now_s: float | None,
    as_json: bool,
    system: str | None = None,
    **given: Any,
) -> int:
    """Say whether a job would run if it was submitted, at which size, and when.

    FILES are as for 'ronda why'. JOB.json has the fields of a request, all but one optional: "per"
    is what each piece holds on its node ({"gpus": 4, "cpu": 32, "memory_gib": 256}), "count" the
    number of pieces, "limit_s" its time limit in seconds; then partitions, user, tenant, priority,
    gpu_types, features, own_nodes, exclusive and others (docs/why.md). Or the options say it.

    The exit code is 0 if the job would start now, by the rule of the site; 1 if it would start
    later, or only with a change; 2 if the input cannot be used; 3 if it would never start.
    """
    if any(value is not None for value in given.values()):
        found_in, place, request = files, "ronda fits", _request(**given)
    elif len(files) == 1:
        expected = "a cluster and a JOB.json, or options such as --gpus 8"
        raise InputError("ronda fits", "one file and no options", expected)
    else:
        found_in, place = files[:-1], files[-1]
        request = read_part(place, JobRequest)
    seen = submitted(cluster(found_in, system, now_s), request, place)

    from ronda.questions.fits.answer import fit
    from ronda.questions.fits.report import fit_report

    return show(fit_report(" ".join(found_in), seen, fit(seen, request.id)), as_json=as_json)


def _request(gpus: int | None, per_node: int | None, **given: Any) -> JobRequest:
    if gpus is None:
        raise InputError("--gpus", "no number", "how many, or a JOB.json instead of options")
    each = per_node or 1
    if gpus % each:
        raise InputError("--per-node", str(each), f"a divisor of --gpus {gpus}")
    asked = {GPUS: 1, CPU: given["cpus_per_gpu"], MEMORY: given["mem_per_gpu"]}
    partitions, models = ((n,) if (n := given[k]) else () for k in ("partition", "model"))
    return JobRequest(
        user=given["user"],
        tenant=given["tenant"],
        partitions=partitions,
        limit_s=given["time"],
        count=gpus // each,
        per={of: float(each * per_gpu) for of, per_gpu in asked.items() if per_gpu},
        own_nodes=per_node is not None and gpus > each,
        gpu_types=models,
    )
