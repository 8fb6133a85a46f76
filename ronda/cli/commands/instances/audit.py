"""``ronda instances audit``: what a log says about itself before anyone simulates it."""

import time
from pathlib import Path
from typing import Any

from ronda.cli.command import taught
from ronda.cli.logs import log_of, log_options
from ronda.cli.options import output_options, picture_option
from ronda.cli.output import note, show
from ronda.instances.errors import need
from ronda.instances.files.storage import label


@taught(
    "audit",
    "ronda instances audit march.txt --slurm nodes.txt",
    "ronda instances audit old.log --device cpu --columns jobid,submit,start,end,state,alloctres",
    "ronda instances audit pods.csv --reader openb --picture pods.png",
    "ronda instances audit jobs.csv --reader philly --cluster 321x8 --json",
)
@log_options
@picture_option(
    "Draw demand, use and capacity of each pool over time as a PNG, with a CSV beside it."
)
@output_options
def command(picture: Path | None, as_json: bool, **given: Any) -> int:
    """Say what a log is worth before anyone simulates it.

    It tells of holes and cut ends, of doubles and impossible times, of users, shapes and limits,
    and, for each pool, of demand against capacity: until when work is behind under any scheduler.
    """
    from ronda.instances.traces.audit.answer import Audit

    if picture is not None:
        need("--picture", "matplotlib")
    source, zone = " ".join(map(label, given["files"][:3])), str(given["zone"])
    found = Audit(log_of(given), time.time(), zone)
    if picture is not None:
        from ronda.bench.figures.answers.audit import audited
        from ronda.bench.figures.draw import save_chart

        save_chart(audited(source, found), picture.with_suffix(""))
        if not as_json:
            note(f"{picture}: the picture")
    return show(found.report(source), as_json=as_json)
