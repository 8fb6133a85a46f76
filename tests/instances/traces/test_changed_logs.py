"""Logs in which cells were changed at random: refused in one line, or each row a job or counted."""

from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from ronda.instances.cluster import Cluster, GpuType, NodeGroup
from ronda.instances.errors import InputError
from ronda.instances.rules.validate import validate
from ronda.instances.traces.happened import recorded_schedule
from ronda.instances.traces.logs.instance import log_instance
from ronda.instances.traces.logs.runs import RowAccount
from ronda.instances.traces.logs.sacct import LogFormat, sacct_runs
from ronda.instances.traces.logs.swf import SwfLog

ROOM = Cluster(
    gpu_types=(GpuType(name="a100", memory_gib=40),),
    node_groups=(NodeGroup(name="n", count=4, gpus_per_node=8, gpu_type="a100"),),
)
SLURM = "JobID|User|Submit|Start|End|Elapsed|State|Timelimit|AllocTRES|ReqTRES"
DAY = "2025-10-26T0"
ROW = f"u|{DAY}1:00:00|{DAY}2:10:00|{DAY}2:40:00|00:30:00|COMPLETED|01:00:00|gres/gpu:a100=2|"
REST = " -1 1 1 1 1 1 -1 -1 -1"
LOGS = {
    "sacct": (f"{SLURM}\n", "|", [f"{k}|{ROW}" for k in range(150)]),
    "swf": (
        "; v\n",
        " ",
        [f"{k + 1} {k} 5 60 2 -1 -1 2 90 -1 1 1 1 1 1 -1 -1 -1" for k in range(150)],
    ),
}
"""Headers, separators and rows."""

CELLS = st.sampled_from(
    [
        *("-1", "0", "7", "1e400", "5,400", "nan", "Unknown", "None", "UNLIMITED", "1-00:00:00"),
        *("2025-10-26T02:30:00", "2025-03-30T02:30:00", "gres/gpu=", "gres/gpu=9,gres/gpu=8"),
        *("gres/gpu:a100=3", "7_[0-3%2]", "7_[1,...", "7.batch", "7+0", "PENDING", "x", "\u202e"),
    ]
)


@settings(max_examples=10, deadline=None)
@given(
    log=st.sampled_from([*LOGS]),
    own=st.booleans(),
    changes=st.lists(st.tuples(st.integers(0, 149), st.integers(0, 17), CELLS), max_size=8),
)
def test_a_changed_log_is_refused_or_adds_up(tmp_path_factory, log, own, changes):
    """Rows are runs of jobs, dropped, or repeat others; what comes of it is valid."""
    header, separator, rows = LOGS[log]
    cells = [row.split(separator) for row in rows]
    for row, column, cell in changes:
        cells[row][column % len(cells[row])] = cell
    path = tmp_path_factory.getbasetemp() / f"changed-{log}"
    path.write_text(header + "".join(separator.join(row) + "\n" for row in cells))
    account = RowAccount()
    runs = SwfLog(path, account).runs()
    if log == "sacct":
        runs = sacct_runs([path], LogFormat(zone=ZoneInfo("Europe/Berlin")), account)
    room = ROOM if own else None
    found, said = became(runs, account, room)
    assert said.isprintable()
    if found is None:
        return
    folded = account.folded.get("steps", 0) + account.folded.get("sums of parts", 0)
    assert found.runs + folded + account.dropped.total() == account.rows == len(rows)
    assert account.dropped.keys() == account.dropped.examples.keys()
    validate(found.instance)
    recorded_schedule(found.instance, found.recorded)


def became(runs, account, room):
    """Return what a log becomes, or what is said of it."""
    try:
        return log_instance(runs, account, place="x", name="x", source="x", cluster=room), ""
    except InputError as error:
        return None, str(error)
