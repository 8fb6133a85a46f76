"""``ronda mcp``: the questions of a cluster for assistants."""

import click

from ronda.cli.clusters import cluster, cluster_options
from ronda.cli.command import taught
from ronda.instances.errors import need


@taught("mcp", "ronda mcp --slurm squeue.json sinfo.json", "ronda mcp round-tenants")
@click.argument("files", metavar="FILES...", nargs=-1, required=True)
@cluster_options
def command(files: tuple[str, ...], now_s: float | None, system: str | None = None) -> int:
    """Answer an assistant's questions about the cluster in FILES, until it hangs up.

    An assistant that speaks the Model Context Protocol starts this command, and asks over its
    standard input and output: why, fits, jobs, queues, solve, whatif. FILES are read anew for each
    question, so that a cron job may renew them. Nothing is written, and no question has a path.
    """
    need("ronda mcp", "mcp")
    cluster(files, system, now_s)  # what is wrong with the files is said at once

    from ronda.cli.assistants import Questions, server

    server(Questions(files, system, now_s)).run("stdio")
    return 0
