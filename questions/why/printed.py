"""The reasons that Slurm prints, for limits that the files do not show.

The codes are those of squeue's manual page (JOB REASON CODES).
"""

from typing import NamedTuple

from ronda.questions.why.earliest import WaitingJob
from ronda.questions.why.reason import Dominant
from ronda.questions.why.words import many


class Printed(NamedTuple):
    """The meaning of a printed reason: its kind, its words, and the command that shows the rest."""

    kind: str
    words: str
    command: str


_BY_START = (
    ("Assoc", Printed("limit", "a limit of its account or user", "sacctmgr show assoc -P")),
    ("MaxGRESPerAccount", Printed("limit", "a limit of its account", "sacctmgr show qos -P")),
    ("QOS", Printed("limit", "a limit of its QOS", "sacctmgr show qos -P")),
    ("Max", Printed("limit", "a limit of its user or account", "sacctmgr show qos -P")),
    ("PartitionTimeLimit", Printed("request", "its time limit", "scontrol show partition -o")),
    ("Partition", Printed("request", "its partition", "scontrol show partition -o")),
    ("Licenses", Printed("limit", "licences", "scontrol show licenses")),
    ("Reservation", Printed("outage", "a reservation", "scontrol show reservation -o")),
    ("ReqNodeNotAvail", Printed("machine", "nodes out of service", "scontrol show node -o")),
    ("NodeDown", Printed("machine", "nodes out of service", "scontrol show node -o")),
    ("JobArrayTaskLimit", Printed("limit", "the limit of its job array", "squeue --json")),
)


ASSUMED = "node that powers up, taken to be in service"
"""What the reader of Slurm assumes of a node, which may never come up."""


def as_printed(waiting: WaitingJob) -> Dominant | None:
    """Return the reason that the host prints for a job that could start by all that files show.

    None for a printed reason that says nothing by itself.
    """
    reason = waiting.job.reason or ""
    for start, said in _BY_START:
        if reason.startswith(start):
            text = f"The scheduler says {reason}: {said.words}, which the files do not show."
            proof = f"By all that they show it could start now; add the output of {said.command}."
            return Dominant(said.kind, "printed", never=False, text=text, proof=(proof,))
    powering = waiting.outlook.snapshot.noted.counts.get(ASSUMED, 0)
    if reason == "Resources" and powering:
        text = f"{many(powering, 'node')} power up and were taken to be in service, but may not be."
        proof = "Without them it may have no room: the scheduler says Resources."
        return Dominant("machine", "out", never=False, text=text, proof=(proof,))
    return None
