"""The reasons that Slurm prints, for limits that the files do not show.

The codes are those of squeue's manual page (JOB REASON CODES).
"""

from typing import NamedTuple


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


def meaning(reason: str | None) -> Printed | None:
    """Return the meaning of a printed reason, None for one that says nothing by itself."""
    return next((said for start, said in _BY_START if (reason or "").startswith(start)), None)
