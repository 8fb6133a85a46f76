"""The reasons that Slurm prints, for limits that the files do not show.

The codes are those of squeue's manual page (JOB REASON CODES).
"""

from ronda.questions.why.earliest import WaitingJob
from ronda.questions.why.reason import Dominant
from ronda.questions.why.words import many

_BY_START = (
    ("Assoc", "limit", "a limit of its account or user", "sacctmgr show assoc -P"),
    ("MaxGRESPerAccount", "limit", "a limit of its account", "sacctmgr show qos -P"),
    ("QOS", "limit", "a limit of its QOS", "sacctmgr show qos -P"),
    ("Max", "limit", "a limit of its user or account", "sacctmgr show qos -P"),
    ("PartitionTimeLimit", "request", "its time limit", "scontrol show partition -o"),
    ("Partition", "request", "its partition", "scontrol show partition -o"),
    ("Licenses", "limit", "licences", "scontrol show licenses"),
    ("Reservation", "outage", "a reservation", "scontrol show reservation -o"),
    ("ReqNodeNotAvail", "machine", "nodes out of service", "scontrol show node -o"),
    ("NodeDown", "machine", "nodes out of service", "scontrol show node -o"),
    ("JobArrayTaskLimit", "limit", "the limit of its job array", "squeue --json"),
)
"""Beginnings of printed reasons: their kinds, their words, and the commands that show the rest."""

ASSUMED = "node that powers up, taken to be in service"
"""What the reader of Slurm assumes of a node, which may never come up."""


def as_printed(waiting: WaitingJob) -> Dominant | None:
    """Return the reason that the host prints for a job that could start by all that files show.

    None for a printed reason that says nothing by itself.
    """
    reason = waiting.job.reason or ""
    for start, kind, words, command in _BY_START:
        if reason.startswith(start):
            text = f"The scheduler says {reason}: {words}, which the files do not show."
            proof = f"By all that they show it could start now; add the output of {command}."
            return Dominant(kind, "printed", never=False, text=text, proof=(proof,))
    powering = waiting.outlook.snapshot.noted.counts.get(ASSUMED, 0)
    if reason == "Resources" and powering:
        text = f"{many(powering, 'node')} power up and were taken to be in service, but may not be."
        proof = "Without them it may have no room: the scheduler says Resources."
        return Dominant("machine", "out", never=False, text=text, proof=(proof,))
    return None
