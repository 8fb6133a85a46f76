"""Records of real logs against figures that plain Python takes from the files alone."""

import gzip
from collections import defaultdict
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from ronda.instances.check.checker import check
from ronda.instances.outcome.metrics import summarise
from ronda.instances.traces.happened import recorded_schedule
from ronda.instances.traces.logs.instance import log_instance
from ronda.instances.traces.logs.runs import LogFilter, RowAccount
from ronda.instances.traces.logs.sacct import LogFormat, sacct_runs
from ronda.instances.traces.own import read_cluster

SHARED = Path(__file__).parents[4] / "shared"
FORMAT = (
    "jobid jobidraw cluster partition qos account group gid user uid submit eligible start end "
    "elapsed exitcode state nnodes ncpus reqcpus reqmem reqtres alloctres timelimit nodelist "
    "jobname"
)
XDMOD = tuple(FORMAT.split())
MADE = Path(__file__).parents[2] / "data" / "slurm" / "march.txt"
LOGS = {
    "march": (MADE, "gpu"),
    "phillips": ("data/xdmod_slurm/phillips.log.gz", "cpu"),
    "pozidriv": ("data/xdmod_slurm/pozidriv.log.gz", "cpu"),
    "sacct-partitions": ("attack/sacct-partitions/sacct.txt", "gpu"),
}


def spreadsheet(path):
    """Return the number of jobs that ran, and their mean wait and JCT: sums over rows alone.

    A job's rows are those of one id. It waited whenever it could run and did not.
    """
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    table = [line.split("|") for line in text.decode().splitlines()]
    head = [cell.lower() for cell in table.pop(0)] if path.suffix == ".txt" else XDMOD
    jobs = defaultdict(list)
    for cells in table:
        row = dict(zip(head, cells, strict=False))
        ran = row["elapsed"] != "00:00:00" and row["start"] not in ("Unknown", "None")
        if "." not in row["jobid"] and ran and row["end"] != "Unknown":
            when = [row["submit"], row.get("eligible") or row["submit"], row["start"], row["end"]]
            jobs[row["jobid"]].append([datetime.fromisoformat(each) for each in when])
    waits, jcts = [], []
    for runs in jobs.values():
        submit, eligible, start, _ = min(runs)
        early = min(max(eligible, submit), start) - submit
        jct = max(run[3] for run in runs) - submit
        held = [run[3] - run[2] for run in runs]
        waits.append((jct - early).total_seconds() - sum(each.total_seconds() for each in held))
        jcts.append(jct.total_seconds())
    return len(jobs), sum(waits) / len(jobs), sum(jcts) / len(jobs)


@pytest.mark.parametrize("name", sorted(LOGS))
def test_waits_and_completion_times_are_those_of_the_file(name):
    """Equal to the digit; and the record breaks no rule but time limits and full nodes."""
    file, device = LOGS[name]
    path = SHARED / file
    if not path.exists():
        pytest.skip(f"{path.name} is not here: a public log that is not packaged")
    account, named = RowAccount(), path.suffix == ".txt"
    form = LogFormat(zone=ZoneInfo("UTC"), columns=() if named else XDMOD)
    read = log_instance(
        sacct_runs((path,), form, account, LogFilter(device=device)),
        account,
        place=path.name,
        name=name,
        source=path.name,
        cluster=read_cluster(room) if (room := path.parent / "room.json").exists() else None,
    )
    made = recorded_schedule(read.instance, read.recorded)
    found = summarise(read.instance, made)
    jobs, wait_s, jct_s = spreadsheet(path)
    assert (found["jobs"], found["unfinished"]) == (jobs, 0)
    assert found["mean_queue_s"] == pytest.approx(wait_s, rel=1e-12)
    assert found["mean_jct_s"] == pytest.approx(jct_s, rel=1e-12)
    codes = {each.code for each in check(read.instance, made)}
    assert codes == ({"capacity"} if name == "sacct-partitions" else {"limit"})
    if name == "march":
        assert (jobs, round(wait_s, 3), round(jct_s, 3)) == (39, 6616.436, 9821.59)
