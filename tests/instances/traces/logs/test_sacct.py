"""Slurm's accounting as text and JSON: ids, times, devices, runs of a job, and odd rows."""

import gzip
import json
from zoneinfo import ZoneInfo

import pytest

from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Partition
from ronda.instances.errors import InputError
from ronda.instances.rules.validate import validate
from ronda.instances.traces.logs.instance import log_instance
from ronda.instances.traces.logs.runs import LogFilter, RowAccount
from ronda.instances.traces.logs.sacct import LogFormat, sacct_runs
from ronda.instances.traces.recorded import RecordedRun

HEAD = "JobID|JobName|User|Partition|Submit|Start|End|State|Timelimit|AllocTRES|ReqTRES|NodeList"
DAY = "2024-05-01T"
ONE = "billing=8,cpu=8,gres/gpu:a100=1,gres/gpu=1,mem=60G,node=1"


def row(job, state="COMPLETED", start="09:00:00", end="10:00:00", **more):
    """Return a row of a job submitted at 8 that ran on one A100 from 9 to 10."""
    told = {"name": "x", "user": "ann", "part": "gpu", "submit": "08:00:00", "limit": "02:00:00"}
    told |= {"held": ONE, "asked": ONE, "nodes": "n1"} | more
    times = (f"{DAY}{t}" if t[:1].isdigit() else t for t in (told["submit"], start, end))
    cells = (job, told["name"], told["user"], told["part"], *times, state, told["limit"])
    return "|".join((*cells, told["held"], told["asked"], told["nodes"]))


def read(tmp_path, text, *, zone="UTC", columns=(), cluster=None, files=None, **choice):
    """Return what a log becomes, which is valid, with a row in the account for each line."""
    paths = []
    for name, part in (files or {"sacct.txt": text}).items():
        paths.append(tmp_path / name)
        paths[-1].write_text(part, encoding="utf-8")
    account = RowAccount()
    how = LogFormat(zone=ZoneInfo(zone), columns=columns)
    runs = sacct_runs(paths, how, account, LogFilter(**choice))
    found = log_instance(runs, account, place="sacct", name="log", source="log", cluster=cluster)
    validate(found.instance)
    steps = account.folded.get("steps", 0)
    assert account.rows == found.runs + steps + account.dropped.total()
    assert account.dropped.keys() == account.dropped.examples.keys()
    assert found.recorded.runs.keys() == {job.id for job in found.instance.jobs}
    return found


def log(tmp_path, *rows, head=HEAD, **more):
    """Return what rows under the usual header become."""
    return read(tmp_path, "\n".join([head, *rows, ""]), **more)


def test_a_job_has_all_that_the_log_says(tmp_path):
    """Who, where, how long at most, and how many cores and GiB with each GPU."""
    head = f"{HEAD}|Account|QOS|Eligible|Constraints|Priority|ConsumedEnergyRaw"
    four = "cpu=32,gres/gpu:a100=4,gres/gpu=4,mem=240G,node=1"
    text = row("7", held=four, asked=four) + f"|nlp|high|{DAY}08:30:00|nvlink|99|7200000"
    found = log(tmp_path, text, head=head)
    (job,) = found.instance.jobs
    assert (job.id, job.user, job.name, job.gpus, job.partition) == ("7", "ann", "x", 4, "gpu")
    assert (job.tenant, job.priority, job.limit_s, job.eligible_s) == ("nlp", "high", 7200, 1800)
    assert (job.truth.work, job.estimate.work) == (3600, 7200)
    assert {name: need.per_gpu for name, need in job.needs.items()} == {"cpu": 8, "memory_gib": 60}
    assert job.gpu_types == ("a100",)
    assert [t.name for t in found.instance.site.tenants] == ["nlp"]
    assert [c.name for c in found.instance.site.classes] == ["high"]
    assert found.recorded.runs["7"] == (
        RecordedRun(3600.0, 7200.0, {0: 4}, "COMPLETED", energy_j=7.2e6),
    )
    assert found.account.unread == ("priority",)


def test_jobs_that_run_when_the_log_ends_are_in_use_until_then(tmp_path):
    """Two of 4 GPUs at once on one node need 8."""
    four = {"held": "gres/gpu:a100=4", "asked": "gres/gpu:a100=4", "end": "Unknown"}
    rows = (row(str(k), "RUNNING", f"09:{k}0:00", **four) for k in (1, 2))
    (group, _) = log(tmp_path, *rows, row("3", nodes="other")).instance.cluster.node_groups
    assert (group.count, group.gpus_per_node) == (1, 8)


@pytest.mark.parametrize("delimiter", ["|", ",", ";", "\t", "^", "::"])
def test_any_delimiter_any_order_with_or_without_a_header(tmp_path, delimiter):
    """A header says its own; without one the columns are told as sacct was told them."""
    told = row("7", held="gres/gpu:a100=1", asked="")
    names, cells = HEAD.split("|")[::-1], told.split("|")[::-1]
    body = delimiter.join(cells)
    whole = read(tmp_path, f"{delimiter.join(names)}\n{body}\n")
    trailing = read(tmp_path, f"{delimiter.join(names)}{delimiter}\n{body}{delimiter}\n")
    assert trailing.instance.jobs == whole.instance.jobs
    if len(delimiter) == 1:
        bare = read(tmp_path, f"{body}\n", columns=names)
        assert bare.instance.jobs == whole.instance.jobs


def test_steps_are_folded_and_a_packed_file_is_read(tmp_path):
    """What belongs to a job is no job of its own."""
    rows = [HEAD, row("7"), row("7.batch"), row("7.extern"), row("7.0"), row("12+1.0"), row("8")]
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress("\n".join(rows).encode()))
    account = RowAccount()
    runs = list(sacct_runs([path], LogFormat(zone=ZoneInfo("UTC")), account))
    assert [run.job for run in runs] == ["7", "8"]
    assert account.folded == {"steps": 4}
    path.write_bytes(gzip.compress("\n".join(rows).encode())[:-20])
    with pytest.raises(InputError, match="damaged compressed data"):
        list(sacct_runs([path], LogFormat(zone=ZoneInfo("UTC")), RowAccount()))


def test_names_with_delimiters_and_line_breaks(tmp_path):
    """Only the name can hold them here; a line that is no row is counted and shown."""
    rows = [row("1", name="a|b|c"), row("2", name="two\nlines"), row("3", name='"q'), "odd|line"]
    found = log(tmp_path, *rows, *(row(f"{k}") for k in range(4, 200)))
    names = {job.id: job.name for job in found.instance.jobs[:3]}
    assert names == {"1": "a|b|c", "2": "two\nlines", "3": '"q'}
    assert found.dropped == {"a row that cannot be read": 1}
    assert found.dropped.examples == {"a row that cannot be read": "row 6"}
    with pytest.raises(InputError, match=r"a row that cannot be read \(row 2\), and 1 of 2"):
        log(tmp_path, "odd|line", row("1"))


def test_all_runs_of_an_id_are_one_job(tmp_path):
    """A requeue may reset the submission; the last run is the outcome, and all are recorded."""
    runs = (
        row("7", "NODE_FAIL", "09:00:00", "09:30:00"),
        row("7", "REQUEUED", "10:00:00", "10:10:00", submit="09:31:00"),
        row("7", "COMPLETED", "11:00:00", "13:00:00", submit="10:11:00"),
    )
    found = log(tmp_path, *runs, runs[0], row("8", "RUNNING", "12:00:00", "Unknown"))
    seven, eight = found.instance.jobs
    assert (seven.id, seven.submit_s, seven.truth.work) == ("7", 0, 7200)
    told = found.recorded.runs["7"]
    assert [(r.start_s, r.end_s, r.state) for r in told] == [
        *((3600, 5400, "NODE_FAIL"), (7200, 7800, "REQUEUED"), (10800, 18000, "COMPLETED")),
    ]
    assert found.dropped == {"the same run once more": 1}
    assert found.recorded.runs["8"][0].end_s is None
    assert (eight.truth.work, found.recorded.until_s) == (3600, 18000)
    said = " ".join(found.words)
    assert "ran more than once: 1, taken" in said
    assert "0.7 GPU-hours of earlier runs" in said
    assert "ran when the log ended, and end there: 1" in said


def test_a_later_row_of_the_same_run_counts(tmp_path):
    """Of two logs one after the other, the second knows the end."""
    files = {
        "a.txt": f"{HEAD}\n{row('7', 'RUNNING', '09:00:00', 'Unknown')}\n",
        "b.txt": f"{HEAD}\n{row('7')}\n",
    }
    found = read(tmp_path, "", files=files)
    assert [run.state for run in found.recorded.runs["7"]] == ["COMPLETED"]
    (example,) = found.dropped.examples.values()
    assert example.endswith("a.txt, row 2")


def test_who_never_started_is_counted_by_state(tmp_path):
    """Whoever waits at the end, gave up, or waits in an array's row."""
    rows = (
        row("7", "PENDING", "Unknown", "Unknown", held=""),
        row("8", "CANCELLED by 7", "None", "09:00:00", held=""),
        row("9_[2-3,8-9%2]", "PENDING", "Unknown", "Unknown", held=""),
        row("9_1"),
        row("10_[1,2,...", "PENDING", "Unknown", "Unknown", held=""),
        row("11", "CANCELLED by 0", "09:00:00", "09:00:00"),
    )
    found = log(tmp_path, *rows)
    assert [(job.id, job.job_array) for job in found.instance.jobs] == [("9_1", "9")]
    assert found.instance.site.job_arrays == {"9": 2}
    assert found.dropped == {
        "never started: PENDING": 2,
        "never started: CANCELLED": 1,
        "a list of tasks that is cut off (SLURM_BITSTR_LEN)": 1,
        "no run time": 1,
    }
    assert found.account.folded == {"waiting tasks of arrays": 4}


def test_parts_of_a_heterogeneous_job(tmp_path):
    """In one pool they are one job; in two, a job each, which is said."""
    two = ONE.replace("=1,mem", "=2,mem").replace("a100=1", "a100=2")
    found = log(tmp_path, row("12+0"), row("12+1", held=two, nodes="n2"), row("13+0"))
    assert [(job.id, job.gpus) for job in found.instance.jobs] == [("12", 3), ("13", 1)]
    assert found.recorded.runs["12"][0].held == {0: 1, 1: 2}
    apart = log(tmp_path, row("12+0"), row("12+1", part="big", nodes="b1"))
    assert [(job.id, job.partition) for job in apart.instance.jobs] == [
        *(("12+0", "gpu"), ("12+1", "big")),
    ]
    assert any("parts of heterogeneous jobs in other pools" in word for word in apart.words)


def test_suspended_is_held_without_progress(tmp_path):
    """Slurm's Elapsed leaves it out; the record keeps it."""
    found = log(tmp_path, row("7") + "|00:40:00|00:20:00", head=f"{HEAD}|Elapsed|Suspended")
    silent = log(tmp_path, row("7") + "|00:40:00", head=f"{HEAD}|Elapsed")
    assert found.instance.jobs == silent.instance.jobs
    assert found.instance.jobs[0].truth.work == 2400
    (run,) = silent.recorded.runs["7"]
    assert (run.end_s - run.start_s, run.suspended_s) == (3600, 1200)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"start": "11:00:00"}, "an end before the start"),
        ({"submit": "09:30:00"}, "a start before the submission"),
        ({"held": "gres/gpu=1,gres/gpu:a100=2"}, "no number of GPUs"),
        ({"held": "gres/gpu=1K"}, "no number of GPUs"),
        ({"held": "cpu=8,gres/gpu=1,gres/gpu:a100_1g.5gb=1"}, "a part of a GPU"),
        ({"held": "gres/shard=4"}, "a part of a GPU"),
        ({"held": "cpu=8", "asked": "cpu=8"}, "no GPUs"),
        ({"end": "09:00:00"}, "no run time"),
        ({"start": "9:00"}, "a cell that cannot be read"),
        ({"limit": "soon"}, "a cell that cannot be read"),
        ({"nodes": "n[3-1]"}, "a cell that cannot be read"),
        ({"nodes": "n[1-2"}, "a cell that cannot be read"),
    ],
)
def test_odd_rows_are_counted_with_an_example(tmp_path, more, why):
    """The last of them is shown as it stands."""
    found = log(tmp_path, *(row(f"{k}") for k in range(1, 130)), row("130", **more))
    assert found.dropped == {why: 1}
    assert found.dropped.examples[why].startswith("row 131")
    assert len(found.instance.jobs) == 129


def test_a_negative_elapsed_time_cannot_be_read(tmp_path):
    """As a broken clock leaves it."""
    rows = [row(f"{k}") + "|01:00:00" for k in range(1, 120)]
    found = log(tmp_path, *rows, row("120") + "|-1:-5:-9", head=f"{HEAD}|Elapsed")
    assert found.dropped.examples == {"a cell that cannot be read": "row 121: '-1:-5:-9'"}


TWICE = """\
JobID|User|State|Submit|Start|End|AllocTRES|Elapsed
1|a|COMPLETED|2025-10-26T00:30:00|2025-10-26T01:50:00|2025-10-26T02:10:00|gres/gpu=8|01:20:00
2|a|COMPLETED|2025-10-26T00:31:00|2025-10-26T02:50:00|2025-10-26T02:20:00|gres/gpu=8|00:30:00
3|b|COMPLETED|2025-10-26T02:55:00|2025-10-26T02:05:00|2025-10-26T04:05:00|gres/gpu=8|02:00:00
4|b|COMPLETED|2025-10-26T00:40:00|2025-10-26T01:00:00|2025-10-26T04:00:00|gres/gpu=8|04:00:00
"""


def test_of_an_hour_that_comes_twice_run_time_and_order_decide(tmp_path):
    """Job 1 ends at the second 2:10, job 2 too ends in the second hour, job 3 starts in it."""
    found = read(tmp_path, TWICE, zone="Europe/Berlin")
    told = sorted((job.id, job.submit_s, job.truth.work) for job in found.instance.jobs)
    # from 0:30 on: 0:31 is 1 minute, 0:40 10 minutes, the first 2:55 145 minutes later
    assert told == [("1", 0, 4800), ("2", 60, 1800), ("3", 8700, 7200), ("4", 600, 14400)]
    with pytest.raises(InputError, match="2025-03-30T02: an hour that Europe/Berlin does not"):
        read(tmp_path, TWICE.replace("2025-10-26T02", "2025-03-30T02"), zone="Europe/Berlin")


@pytest.mark.parametrize(
    ("limit", "seconds"),
    [
        *(("01:00:00", 3600), ("90:00", 5400), ("1-00:00:00", 86400), ("2-12", 216000)),
        *(("75", 4500), ("UNLIMITED", None), ("Partition_Limit", None)),
    ],
)
def test_time_limits_as_slurm_writes_them(tmp_path, limit, seconds):
    """Who has none is estimated by what he ran."""
    (job,) = log(tmp_path, row("1", limit=limit)).instance.jobs
    assert (job.limit_s, job.estimate.work) == (seconds, seconds or 3600)


def test_who_ran_longer_than_his_limit_does_so_again_unless_it_ended_him(tmp_path):
    """Slurm grants some seconds more, and an operator hours."""
    found = log(tmp_path, row("1", limit="30:00"), row("2", "TIMEOUT", limit="30:00"))
    assert [job.limit_s for job in found.instance.jobs] == [3600, 1800]
    assert any("longer than their limits, which are as long as these: 1" in w for w in found.words)


ROOM = Cluster(
    gpu_types=(GpuType(name="a100", memory_gib=80), GpuType(name="l4", memory_gib=24)),
    node_groups=(
        NodeGroup(name="a", count=2, gpus_per_node=8, gpu_type="a100", partition="gpu"),
        NodeGroup(name="l", count=1, gpus_per_node=4, gpu_type="l4", partition="short"),
    ),
    partitions=(Partition(name="gpu"), Partition(name="short")),
)


def test_a_given_cluster(tmp_path):
    """Names of nodes are put on nodes of their partition and type; what fits nowhere is counted."""
    four = "gres/gpu:l4=4"
    found = log(
        tmp_path,
        *(row("1", nodes="n7"), row("2", nodes="n3"), row("3", nodes="n9")),
        row("4", part="short", held=four, asked=four, nodes="s1"),
        row("5", part="gold"),
        row("6", part="short", held=four.replace("4=4", "4=8"), asked="", nodes="s1"),
        row("7", held="gres/gpu:h9=1", asked="gres/gpu:h9=1", nodes=""),
        cluster=ROOM,
    )
    held = {job: runs[0].held for job, runs in found.recorded.runs.items()}
    assert held == {"1": {1: 1}, "2": {0: 1}, "3": {}, "4": {2: 4}, "7": {}}
    assert found.dropped == {
        'partition is not one of "default", "gpu", "short"': 1,
        'gpus is not at most 4, its largest pool in partition "short"': 1,
    }
    said = " ".join(found.words)
    assert "nodes of the log that the cluster does not have: 2, such as n1" in said
    assert "jobs by GPU types that the cluster does not have: h9 1" in said


def test_an_inferred_cluster_has_what_was_in_use_at_once(tmp_path):
    """Of every kind of node, and partitions with common nodes are told apart by features."""
    five = ONE.replace("=1", "=5").replace("node=5", "node=1")
    untyped = "cpu=4,gres/gpu=2,node=2"
    found = log(
        tmp_path,
        *(row("1"), row("2", held=five), row("3", start="10:00:00", end="11:00:00")),
        *(row("4", part="long", nodes="n2"), row("5", part="gpu", nodes="n2")),
        row("6", part="any", held=untyped, asked=untyped, nodes="x[1-2]"),
    )
    groups = {
        g.name: (g.count, g.gpus_per_node, g.gpu_type) for g in found.instance.cluster.node_groups
    }
    assert sorted(groups.values()) == [(1, 2, "a100"), (1, 6, "a100"), (2, 1, "gpu")]
    jobs = {job.id: (job.partition, job.features, job.gpu_types) for job in found.instance.jobs}
    assert jobs["1"] == ("gpu+long", (), ("a100",))
    assert jobs["4"] == ("gpu+long", ("long",), ("a100",))
    assert jobs["6"] == ("any", (), ())
    assert [*found.recorded.runs["6"][0].held.values()] == [1, 1]


def test_a_part_of_a_log(tmp_path):
    """By partition, window and sample; a job's later runs stay with the first."""
    rows = (
        row("1", "REQUEUED", "09:00:00", "09:10:00"),
        row("1", submit="09:10:30", start="09:30:00"),
        row("2", submit="08:30:00"),
        row("3", part="cpu"),
    )
    eight = 1714550400.0  # 08:00 of that day
    found = log(tmp_path, *rows, since_s=eight, until_s=eight + 600, partitions=frozenset({"gpu"}))
    assert [(job.id, job.truth.work) for job in found.instance.jobs] == [("1", 1800)]
    assert len(found.recorded.runs["1"]) == 2
    assert found.dropped == {"a submission outside the window": 1, "another partition": 1}
    many = [row(f"{k}") for k in range(1000)]
    half = len(log(tmp_path, *many, sample=0.5).instance.jobs)
    assert 430 < half < 570
    assert half == len(log(tmp_path, *reversed(many), sample=0.5).instance.jobs)


def test_a_log_of_cpus_says_how_to_read_it(tmp_path):
    """Each core is a device then."""
    text = row("1", held="cpu=8,mem=16G,node=2", asked="", nodes="n[1-2]")
    with pytest.raises(InputError, match=r"1 with no GPUs \(row 2\); expected .* --device cpu"):
        log(tmp_path, text)
    found = log(tmp_path, text, device="cpu")
    assert (found.instance.jobs[0].gpus, found.instance.cluster.gpus) == (8, 8)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "an empty file"),
        ("a|b\n1|2\n", "a header with JobID"),
        ("JobID|State|Submit\n", "also AllocTRES or ReqTRES; Start, or End and Elapsed"),
        ("JobID|JobID|State|Submit|Start|End|AllocTRES\n", "each column once"),
        ('{"jobs": [', "sacct --json, whole"),
        ('{"jobs": [{"job_id": 7}]}', "sacct --json, whole"),
        (
            '{"jobs": [{"job_id": 7, "time": {}, "state": {"current": "FAILED"}, "tres": '
            '{"allocated": [{"count": 1}]}}]}',
            "an object with a type and a count",
        ),
        (f"{HEAD}\n", "no rows"),
        (f"{HEAD}|Cluster\n{row('1')}|a\n{row('2')}|b\n", "jobs of two clusters, 'a' and 'b'"),
    ],
)
def test_what_is_no_log_is_refused_in_a_line(tmp_path, text, said):
    """With the file and what was expected."""
    with pytest.raises(InputError) as refused:
        read(tmp_path, text)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def objects(*, later):
    """Return two jobs as sacct --json has them, before or since Slurm 23.11."""

    def number(value):
        return (
            {"set": value is not None, "infinite": False, "number": value or 0} if later else value
        )

    def job(k, state, **more):
        tres = [("cpu", None, 8), ("mem", None, 61440), ("gres", "gpu", 2), ("gres", "gpu:a100", 2)]
        told = [{"type": kind, "name": name, "id": 1, "count": n} for kind, name, n in tres]
        times = {"submission": 1000, "eligible": 1000, "start": 1100, "end": 1700, "elapsed": 500}
        return {
            **{"job_id": k, "name": "x", "user": "ann", "account": "nlp", "partition": "gpu"},
            **{"qos": "high", "cluster": "c", "nodes": "n1", "constraints": ""},
            "state": {"current": [state, "REQUEUED"] if later else state, "reason": "None"},
            "time": times | {"limit": number(60), "suspended": 100},
            "array": {"job_id": 0, "task_id": number(None), "task": ""},
            "het": {"job_id": 0, "job_offset": number(None)},
            "tres": {"allocated": told, "requested": told},
            "steps": [{}, {}],
        } | more

    limits = {"max": {"running": {"tasks": number(2) if not later else 2}}}
    array = {"job_id": 7, "task_id": number(3), "task": "", "limits": limits}
    het = {"job_id": 12, "job_offset": number(1)}
    return [job(1, "COMPLETED"), job(9, "TIMEOUT", array=array), job(13, "FAILED", het=het)]


@pytest.mark.parametrize("later", [False, True])
def test_json_of_any_version(tmp_path, later):
    """The same as text would be."""
    text = json.dumps({"meta": {}, "jobs": objects(later=later), "errors": []})
    found = read(tmp_path, text)
    one, task, part = found.instance.jobs
    assert (one.id, task.id, part.id) == ("1", "7_3", "12")
    assert (one.submit_s, one.limit_s, one.truth.work, one.gpus) == (0, 3600, 500, 2)
    assert one.needs["memory_gib"].per_gpu == 30
    assert (one.tenant, one.priority, one.gpu_types) == ("nlp", "high", ("a100",))
    assert (task.job_array, found.instance.site.job_arrays) == ("7", {"7": 2})
    assert found.recorded.runs["1"][0].suspended_s == 100
    assert found.account.folded == {"steps": 6}
