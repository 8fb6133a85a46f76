"""The answer to whether a request would run, for people, programs and scripts."""

from ronda.instances.site import GPUS
from ronda.instances.snapshots.snapshot import Snapshot
from ronda.instances.tables.table import Report, Table
from ronda.questions.fits.answer import Prospect
from ronda.questions.why.help.differences import work
from ronda.questions.why.report import finite, why_report
from ronda.questions.why.words import amounts, many, when

WORDS = {
    "now": "It would start now.",
    "later": "It would start, but not now.",
    "changed": "It would never start as it asks; with a change it would.",
    "never": "It would never start, by what is known, and no small change of it helps.",
}


def fit_report(source: str, snapshot: Snapshot, found: Prospect) -> Report:
    """Return the report of whether a request would run; its exit code tells the verdict."""
    told, now_s = why_report(source, snapshot, found.why), snapshot.now_s
    rows, sizes = list[tuple[str, ...]](), list[dict[str, object]]()
    for one in found.sizes:
        job, in_s = one.job, one.start_s - now_s
        rows.append(
            (f"{work(job):g}", f"{many(job.count, 'piece')} of {amounts(job.per)}", when(in_s))
        )
        told_as = {"size": work(job), "pieces": job.count, "per": dict(job.per)}
        sizes.append(told_as | {"start_in_s": finite(in_s)})
    size = "GPUs" if GPUS in found.why.waiting.job.per else "pieces"
    header = (size, "shape that starts first", "start")
    title = "Earliest start at each size, whatever the order of the queue"
    table = Table(title, header, tuple(rows), left=(1, 2))
    return Report(
        {**told.fields, "fits": found.verdict, "sizes": sizes},
        [WORDS[found.verdict], *told.parts, table],
        told.notes,
        {"now": 0, "later": 1, "changed": 1, "never": 3}[found.verdict],
    )
