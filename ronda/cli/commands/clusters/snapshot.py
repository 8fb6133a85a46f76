"""``ronda snapshot``: what the outputs of a scheduler's tools show, and the round made of it."""

from pathlib import Path

import click

from ronda.cli.clusters import cluster, cluster_options
from ronda.cli.command import taught
from ronda.cli.options import DOCUMENT, out_file_options
from ronda.cli.output import show
from ronda.instances.errors import InputError


@taught(
    "snapshot",
    "ronda snapshot --slurm squeue.json sinfo.json",
    "ronda snapshot --slurm squeue.json sinfo.json qos.txt assoc.txt --out round.json",
    "ronda snapshot --kueue kueue.json pods.json",
)
@click.argument("files", metavar="FILES...", nargs=-1, required=True)
@cluster_options
@out_file_options(
    DOCUMENT, "Write the round of the jobs with GPUs; ending .json, .json.gz or .json.zst."
)
def command(
    files: tuple[str, ...],
    now_s: float | None,
    out: Path | None,
    as_json: bool,
    system: str | None = None,
) -> int:
    """Say what FILES show of a cluster as it is now, and make a round of it.

    FILES are what the tools of a scheduler write, in any order and under any name: each is known
    by its content. What is not read, assumed or unknown is counted, with an example of it.

    \b
    --slurm reads the outputs of (the first two are needed):
      squeue --json                         jobs; or scontrol -d show job -o
      sinfo --json                          nodes; or scontrol show node -o
      scontrol show partition -o            time limits of partitions
      scontrol show reservation -o          nodes that leave, and for whom
      scontrol show licenses                licences
      scontrol show topology                switches or blocks
      sacctmgr show qos -P                  limits of QOS
      sacctmgr show assoc tree -P           accounts and their limits;
                                            or scontrol show assoc_mgr
    Since 23.02 --json in place of -o and -P says the same.

    \b
    --kueue: kubectl get … -A -o json (or yaml) of
      workloads.kueue.x-k8s.io,clusterqueues,localqueues,cohorts,
      resourceflavors,topologies.kueue.x-k8s.io,nodes,pods,priorityclasses
    --kai: the snapshot.zip of the scheduler's /get-snapshot
    --kubernetes: nodes,pods,podgroups,resourceslices,resourceclaims

    What each field becomes stands in docs/clusters.md.
    """  # noqa: D301  (click wants the character)
    if system is None:
        raise InputError("ronda snapshot", "no scheduler", "an option such as --slurm")
    seen = cluster(files, system, now_s)

    from ronda.hosts.clusters.report import snapshot_report

    if out is None:
        return show(snapshot_report(seen), as_json=as_json)

    from ronda.instances.files.json import write
    from ronda.instances.snapshots.rounds import round_of
    from ronda.instances.snapshots.snapshot import Noted

    noted = Noted()
    made = round_of(seen, noted)
    write(made, out)
    report = snapshot_report(seen, noted)
    words = f"{out}: a round of {len(made.running)} running and {len(made.waiting)} waiting jobs."
    report = report.added(words, out=str(out), round_jobs=len(made.jobs))
    return show(report, as_json=as_json)
