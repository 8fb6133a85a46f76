"""Jobs, GPU-hours and users of real logs against plain counts that share no code with readers."""

import csv
import gzip
import json
from datetime import UTC, datetime
from math import isclose
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from ronda.instances.errors import InputError
from ronda.instances.traces.columns import columns_of
from ronda.instances.traces.logs.instance import log_instance
from ronda.instances.traces.logs.runs import LogFilter, RowAccount
from ronda.instances.traces.logs.sacct import LogFormat, sacct_runs
from ronda.instances.traces.logs.tally import count_log
from ronda.instances.traces.mapped import read_mapped
from ronda.instances.traces.rigid import V100_NODE

BESIDE = Path(__file__).resolve().parents[4] / ".." / "shared"
XDMOD = (
    *("jobid", "jobidraw", "cluster", "partition", "qos", "account", "group", "gid", "user", "uid"),
    *("submit", "eligible", "start", "end", "elapsed", "exitcode", "state", "nnodes", "ncpus"),
    *("reqcpus", "reqmem", "reqtres", "alloctres", "timelimit", "nodelist", "jobname"),
)

beside = pytest.mark.skipif(not BESIDE.is_dir(), reason="the logs beside the repository are absent")


def runs_of(path, account, columns=(), device="gpu"):
    """Return the runs of a log in UTC."""
    how = LogFormat(zone=ZoneInfo("UTC"), columns=tuple(columns))
    return sacct_runs([path], how, account, LogFilter(device=device))


def seconds(text):
    """Return a date as seconds, None for Unknown."""
    if not text[:1].isdigit():
        return None
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def devices(tres, key):
    """Return the number behind a key of TRES."""
    return sum(int(part.split("=")[1]) for part in tres.split(",") if part.startswith(f"{key}="))


def plain(rows):
    """Return (id, user, start, end, TRES held or asked for) of rows of sacct."""
    for row in rows:
        r = {name.lower(): cell for name, cell in row.items()}
        times = seconds(r["start"]), seconds(r["end"])
        yield r["jobid"], r["user"], *times, r["alloctres"] or r["reqtres"]


def counted(rows, key):
    """Return jobs, GPU-hours and users of rows (id, user, start, end, TRES held or asked for)."""
    jobs, users, hours = set(), set(), 0.0
    for job, user, start, end, tres in rows:
        if "." not in job and (count := devices(tres, key)):
            jobs.add(job)
            users.add(user)
            if start is not None:
                hours += count * (end - start) / 3600
    return len(jobs), hours, len(users)


def agree(path, rows, *, columns=(), device="gpu"):
    """Assert that the reader counts the rows as a plain count does, and return what it makes."""
    found = count_log(runs_of(path, RowAccount(), columns, device)).whole
    jobs, hours, users = counted(rows, "gres/gpu" if device == "gpu" else "cpu")
    assert (found.jobs, found.users) == (jobs, users)
    assert isclose(found.gpu_hours, hours, rel_tol=1e-9)
    account = RowAccount()
    told = {"place": "x", "name": "x", "source": "x"}
    made = log_instance(runs_of(path, account, columns, device), account, **told)
    assert account.rows == made.runs + account.dropped.total() + account.folded.get("steps", 0)
    assert isclose(made.gpu_hours, hours, rel_tol=1e-9)  # who never ran held nothing
    return made


@beside
def test_a_log_of_three_partitions():
    """305 jobs with 1,903.7 GPU-hours of 7 users; 12 of them never started."""
    path = BESIDE / "attack" / "sacct-partitions" / "sacct.txt"
    with path.open() as file:
        rows = list(plain(csv.DictReader(file, delimiter="|")))
    made = agree(path, rows)
    started = {job for job, _, start, _, _ in rows if start is not None and "." not in job}
    assert {job.id for job in made.instance.jobs} == started


@beside
@pytest.mark.parametrize(
    ("name", "device"),
    [
        *(("phillips", "gpu"), ("phillips", "cpu")),
        pytest.param("pozidriv", "cpu", marks=pytest.mark.soak),
    ],
)
def test_logs_of_xdmod(name, device):
    """Two GPU jobs with 1,824,886 GPU-seconds; the rest are cores."""
    path = BESIDE / "data" / "xdmod_slurm" / f"{name}.log.gz"
    with gzip.open(path, "rt") as file:
        rows = list(plain(dict(zip(XDMOD, line.split("|"), strict=True)) for line in file))
    made = agree(path, rows, columns=XDMOD, device=device)
    ran = sum(s is not None and e > s and devices(t, "cpu") > 0 for _, _, s, e, t in rows)
    assert len(made.instance.jobs) == (2 if device == "gpu" else ran)
    if device == "gpu":
        assert round(made.gpu_hours * 3600) == 1_824_886


@beside
def test_a_log_without_gpus_says_so():
    """And how to read it."""
    path = BESIDE / "data" / "xdmod_slurm" / "pozidriv.log.gz"
    account = RowAccount()
    with pytest.raises(InputError, match=r"11,704 with no GPUs \(row 1\).*--device cpu"):
        log_instance(runs_of(path, account, XDMOD), account, place="x", name="x", source="x")


@beside
def test_json_of_a_real_slurm():
    """Four records of three jobs: one was requeued, and two ended in the second they began."""
    path = BESIDE / "slurm" / "sacct.json"
    records = json.loads(path.read_text())["jobs"]
    rows = []
    for record in records:
        time, array = record["time"], record["array"]
        job = f"{array['job_id']}_{array['task_id']}" if array["job_id"] else str(record["job_id"])
        told = record["tres"]["allocated"]
        count = next(each["count"] for each in told if each["name"] == "gpu")
        end = time["end"] or time["start"] + time["elapsed"]
        rows.append((job, record["user"], time["start"], end, f"gres/gpu={count}"))
    made = agree(path, rows)
    assert [len(runs) for runs in made.recorded.runs.values()] == [2]


TABLES = {
    "helios/helios_venus_2vc_sept.csv": ("helios-slice,vc=", "num_chips", "duration_s"),
    "ms_itp2021/jobs_canonical.csv.gz": ("itp,vc=", "num_gpus", "duration_s"),
    "alibaba_openb2023/openb_pod_list_default.csv.gz": ("openb", "num_gpu", ""),
    "helios_venus/venus_jobs_canonical.csv.gz": ("helios", "num_gpus", "duration_s"),
    "philly/jobs_canonical.csv.gz": ("philly", "num_gpus", "duration_s"),
    "alibaba_pai2020/jobs_canonical.csv.gz": ("helios", "num_gpus", "duration_s"),
}
LARGE = [*TABLES][3:]


@beside
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.soak] * (n in LARGE)) for n in TABLES]
)
def test_tables_of_public_traces(name):
    """By their mappings: whole GPUs, times that can be, and every other row counted."""
    path = BESIDE / "data" / name
    mapping, gpus, lasts = TABLES[name]
    with gzip.open(path, "rt") if name.endswith(".gz") else path.open() as file:
        table = list(csv.DictReader(line for line in file if not line.startswith("#")))
    rows = []
    for r in table:
        begun_s, ended_s = r.get("scheduled_time") or "nan", r.get("deletion_time") or "nan"
        run_s = float(r[lasts]) if lasts else float(ended_s) - float(begun_s)
        if float(r[gpus] or 0) >= 1 and run_s > 0 and r.get("gpu_milli", "1000") == "1000":
            rows.append((int(float(r[gpus])), run_s, r.get("user", "")))
    found = read_mapped(path, columns_of(mapping), machine=V100_NODE, nodes=20_000)
    jobs = found.instance.jobs
    assert (len(jobs), found.rows) == (len(rows), len(table))
    hours = sum(job.gpus * job.truth.work for job in jobs)
    assert isclose(hours, sum(count * run_s for count, run_s, _ in rows), rel_tol=1e-9)
    assert len({job.user or "" for job in jobs}) == len({who for _, _, who in rows})
