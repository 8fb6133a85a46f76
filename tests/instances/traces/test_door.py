"""One door for logs: recognised or named readers, each with one account of its rows."""

import json
from pathlib import Path

import pytest

import ronda
from ronda.bench.exports.job_table import batsim_jobs
from ronda.instances.errors import InputError
from ronda.instances.traces.door import READERS, LogReading, read_log
from ronda.instances.traces.logs.runs import LogFilter
from ronda.instances.traces.rigid import plain_cluster

SACCT = (
    "JobID|State|Submit|Start|End|AllocTRES|Partition|NodeList\n"
    "7|COMPLETED|2024-05-01T08:00:00|2024-05-01T09:00:00|2024-05-01T10:00:00|gres/gpu=2|main|n1\n"
)
SWF = "; MaxProcs: 4\n; MaxNodes: 2\n1 0 3 10 2 -1 -1 2 20 -1 1 1 1 -1 1 1 -1 -1\n"
OPENB = (
    "name,creation_time,num_gpu,gpu_milli,scheduled_time,deletion_time\n"
    "a,0,1,1000,5,65\nb,3,1,500,5,65\nc,9,2,1000,9,29\n"
)
PHILLY = "job_id,submit_s,num_gpus,duration_s,vc,user,status\na,1000,2,60,v1,,\nb,1060,1,30,v2,,\n"
BATSIM = {
    "nb_res": 4,
    "jobs": [
        {"id": "a", "subtime": 0, "res": 2, "profile": "d"},
        {"id": 2, "subtime": 5.5, "res": 1, "profile": "s", "walltime": 50},
        {"id": "c", "subtime": 6, "res": 1, "profile": "p", "walltime": 30},
        {"id": "w", "subtime": 7, "res": 1, "profile": "d", "walltime": 10},
        {"id": "x", "subtime": 7, "res": 5, "profile": "d"},
    ],
    "profiles": {
        "d": {"type": "delay", "delay": 20.25},
        "s": {"type": "composed", "repeat": 2, "seq": ["d", "e"]},
        "e": {"type": "DelayProfile", "delay": 1},
        "p": {"type": "parallel_homogeneous", "cpu": 1e6, "com": 0},
    },
}


@pytest.fixture
def made(tmp_path):
    """A function that writes a log and returns its path."""

    def write(text, name="log"):
        path = Path(tmp_path / name)
        path.write_text(text if isinstance(text, str) else json.dumps(text))
        return path

    return write


@pytest.mark.parametrize(
    ("text", "machines", "gpus", "starts"),
    [
        (SACCT, "seen", 2, [3600.0]),
        (SWF, "given", 4, [3.0]),
        (SWF.split("\n")[2] + "\n", "seen", 2, [3.0]),
        (BATSIM, "given", 4, []),
    ],
)
def test_a_log_is_recognised(made, text, machines, gpus, starts):
    """By the header of sacct, the comments or the 18 numbers of SWF, the resources of Batsim."""
    read = read_log([made(text)])
    assert (read.machines, read.instance.cluster.gpus) == (machines, gpus)
    assert [run.start_s for runs in read.recorded.runs.values() for run in runs] == starts


def test_a_table_has_a_reader_by_name_or_by_columns(made):
    """Openb has starts, and machines that were published with it; philly has neither."""
    path = made(OPENB)
    read = read_log([path], LogReading(reader="openb"))
    assert (read.machines, read.instance.cluster.gpus) == ("given", 6212)
    assert read.dropped == {"a part of a GPU": 1}
    assert [(run.start_s, run.end_s) for (run,) in read.recorded.runs.values()] == [
        (5.0, 65.0),
        (9.0, 29.0),
    ]
    path = made(PHILLY)
    read = read_log([path], LogReading(reader="philly"))
    assert (read.machines, read.recorded.runs) == ("unknown", {})
    assert [job.partition for job in read.instance.jobs] == ["v1", "v2"]
    columns = "submit=submit_s,gpus=num_gpus,duration=duration_s"
    how = LogReading(reader=columns, cluster=plain_cluster([(2, 8), (1, 4)]))
    read = read_log([path], how)
    assert (read.machines, read.instance.cluster.gpus) == ("given", 20)
    assert {job.partition for job in read.instance.jobs} == {"default"}
    only = LogReading(reader="philly", choice=LogFilter(partitions=frozenset({"v2"})))
    read = read_log([path], only)
    assert [job.id for job in read.instance.jobs] == ["b"]
    assert read.dropped == {"another partition": 1}


def test_an_unknown_log_is_one_line_with_all_readers(made):
    """A table could be anything, so it is not guessed."""
    with pytest.raises(InputError, match="--reader and one of") as told:
        read_log([made(PHILLY)])
    assert all(name in str(told.value) for name in READERS)
    with pytest.raises(InputError, match="an empty file"):
        read_log([made("\n")])
    with pytest.raises(InputError, match="--reader: found 'lines'"):
        read_log([made(PHILLY)], LogReading(reader="lines"))


def test_a_workload_of_batsim(made):
    """A delay or a sequence of them is a run time; other profiles are counted by type."""
    read = read_log([made(BATSIM)])
    jobs = {job.id: job for job in read.instance.jobs}
    assert {name: (job.gpus, job.truth.work, job.limit_s) for name, job in jobs.items()} == {
        "a": (2, 20.25, None),
        "2": (1, 42.5, 50.0),
        "w": (1, 20.25, 10.0),
    }
    assert [job.submit_s for job in jobs.values()] == [0.0, 5.5, 7.0]
    assert read.gpu_hours == pytest.approx((2 * 20.25 + 42.5 + 10.0) / 3600)
    assert read.dropped == {
        "a profile of type parallel_homogeneous, whose time depends on a platform": 1,
        "more than the 4 resources of the workload": 1,
    }


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"jobs": [BATSIM["jobs"][0]] * 2}, r"jobs\[1\].id: found 'a'"),
        ({"profiles": {}}, r"jobs\[0\].profile: found 'd', no such profile"),
        (
            {"profiles": {"d": {"type": "composed", "seq": ["d"]}}},
            "'d', a profile inside itself",
        ),
        ({"profiles": {"d": {"type": "delay", "delay": "long"}}}, r"profiles\[...\].delay"),
        ({"nb_res": 0}, r"Expected `int` >= 1 - at `\$.nb_res`"),
        ({"jobs": [{"id": "a", "subtime": -1, "res": 1, "profile": "d"}]}, r"jobs\[0\].subtime"),
    ],
)
def test_a_bad_workload_is_one_line(made, change, found):
    """It names the job or the profile."""
    with pytest.raises(InputError, match=found) as told:
        read_log([made(BATSIM | change)])
    assert "\n" not in str(told.value)


def test_batsim_there_and_back(made):
    """What a run writes as jobs.csv has the columns that evalys reads, and is a log again."""
    instance = read_log([made(BATSIM)]).instance
    text = batsim_jobs(instance, ronda.run(instance, "fifo"))
    columns = (
        "submit=submission_time,gpus=requested_number_of_resources,start=starting_time,"
        "end=finish_time,id=job_id,limit=requested_time,name=profile"
    )
    read = read_log([made(text, "jobs.csv")], LogReading(reader=columns))
    told = {name: (run.start_s, run.end_s) for name, (run,) in read.recorded.runs.items()}
    assert told == {"a": (0.0, 20.25), "2": (5.5, 48.0), "w": (7.0, 17.0)}
    assert [job.estimate.work for job in read.instance.jobs] == [20.25, 50.0, 10.0]
    states = [line.split(",")[7] for line in text.split("\n")[1:4]]
    assert states == [*["COMPLETED_SUCCESSFULLY"] * 2, "COMPLETED_WALLTIME_REACHED"]


def test_a_reader_of_others():
    """It returns an instance, whose machines it knows; one that needs more is refused."""
    read = read_log([Path("any")], LogReading(reader=lambda path: ronda.load("two-jobs")))
    assert (read.machines, len(read.instance.jobs)) == ("given", 2)
    with pytest.raises(InputError, match="one that needs nodes as well"):
        read_log([Path("any")], LogReading(reader=lambda path, nodes: None))
    with pytest.raises(InputError, match="found a int of its reader"):
        read_log([Path("any")], LogReading(reader=lambda path: 3))
