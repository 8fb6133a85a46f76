"""The Standard Workload Format: its 18 fields by hand, and read back by ronda's own reader."""

import pytest
from msgspec.structs import replace

from ronda.bench.exports.workload import standard_workload
from ronda.instances.outcome.metrics import job_figures
from ronda.instances.traces.logs.instance import log_instance
from ronda.instances.traces.logs.runs import RowAccount
from ronda.instances.traces.logs.swf import SwfLog


def told(instance, schedule):
    """Return the header comments as pairs and the records as numbers."""
    lines = standard_workload(instance, schedule).splitlines()
    head = [line for line in lines if line.startswith(";")]
    assert lines[: len(head)] == head
    records = [[float(word) for word in line.split()] for line in lines[len(head) :]]
    assert {len(record) for record in records} == {18}
    return [tuple(line[2:].split(": ", 1)) for line in head], records


def read_back(path):
    """Return what ronda's reader makes of a log."""
    log = SwfLog(path, account := RowAccount())
    told = {"place": "x", "name": "x", "source": "x"}
    return log_instance(log.runs(), account, seen_cluster=lambda: log.cluster(()), **told)


def test_by_hand(two_nodes, by_hand):
    """Each job in one line: it waited, ran, and held as many GPUs as it asked for."""
    head, records = told(two_nodes, by_hand)
    fields = dict(head)
    assert fields["Version"] == "2.2"
    assert (fields["MaxJobs"], fields["MaxRecords"], fields["Preemption"]) == ("3", "3", "No")
    assert (fields["MaxNodes"], fields["MaxProcs"]) == ("2", "8")
    assert fields["Partition"] == "1 default"
    assert [record[:5] for record in records] == [
        [1, 0, 0, 100, 2],
        [2, 0, 100, 50, 8],
        [3, 10, 140, 10, 1],
    ]
    assert {tuple(record[8:16]) for record in records} == {(-1, -1, 1, -1, -1, 1, -1, 1)}
    assert [record[7] for record in records] == [2, 8, 1]


def test_a_stopped_job_has_lines_for_its_parts(loads):
    """They follow its own line, in order, and add up to it."""
    instance, schedule = loads
    head, records = told(instance, schedule)
    assert dict(head)["Preemption"] == "Double"
    figures, jobs = job_figures(schedule), [r for r in records if r[10] not in (2, 3, 4)]
    assert [job[0] for job in jobs] == list(range(1, 123))
    stopped = 0
    for k, job in enumerate(jobs):
        own = [r for r in records if r[0] == job[0] and r[10] in (2, 3, 4)]
        assert records[records.index(job) + 1 :][: len(own)] == own
        assert [r[10] for r in own] == [2] * (len(own) - 1) + [3] * bool(own)
        assert job[2] + job[3] <= figures.jct_s[k] + 1e-5
        if own:
            stopped += 1
            assert (own[0][1], own[0][2]) == (job[1], job[2])
            assert {r[1] for r in own[1:]} == {-1}
            assert sum(r[3] for r in own) == pytest.approx(job[3], abs=1e-5)
            assert sum(r[2] + r[3] for r in own) == pytest.approx(figures.jct_s[k], abs=1e-5)
        gpu_s = sum(r[3] * r[4] for r in own or [job])
        assert gpu_s == pytest.approx(figures.gpu_s[k], abs=1e-4)
    assert stopped > 5


def test_how_jobs_end(two_nodes, by_hand):
    """Failed 0, complete 1, given up 5; one that never ran has neither wait nor run time."""
    a, b, c = by_hand.jobs
    jobs = replace(a, failed=True), replace(b, discarded=True, segments=()), replace(c, end_s=None)
    _, records = told(two_nodes, replace(by_hand, jobs=jobs))
    assert [record[10] for record in records] == [0, 5, -1]
    assert records[1][2:5] == [-1, -1, -1]


def test_users_and_partitions_have_numbers(two_nodes, by_hand):
    """By first appearance, from 1 on; nobody is -1."""
    a, b, c = two_nodes.jobs
    jobs = replace(a, user="eve"), b, replace(c, user="ann\n; MaxProcs: 9")
    _, records = told(replace(two_nodes, jobs=jobs, name="x\n1 2"), by_hand)
    assert [record[11] for record in records] == [1, -1, 2]


def test_ronda_reads_it_back(loads, tmp_path):
    """As rigid jobs with the submissions, GPUs and run times of the schedule."""
    instance, schedule = loads
    path = tmp_path / "log.swf"
    path.write_text(standard_workload(instance, schedule))
    found = read_back(path)
    assert len(found.instance.jobs) == 122
    first_s = instance.jobs[0].submit_s
    for job, outcome, again in zip(instance.jobs, schedule.jobs, found.instance.jobs, strict=True):
        assert again.submit_s == pytest.approx(job.submit_s - first_s, abs=1e-6)
        assert again.gpus == max(s.option.gpus for s in outcome.segments)
        held_s = sum(s.end_s - s.start_s for s in outcome.segments)
        assert again.truth.work == pytest.approx(held_s, abs=1e-5)


def test_a_schedule_there_and_back(tmp_path, two_nodes, by_hand):
    """Starts, ends and GPUs are those of the schedule, on the nodes of the instance."""
    path = tmp_path / "log.swf"
    path.write_text(standard_workload(two_nodes, by_hand))
    found = read_back(path)
    starts = {job.id: [(s.start_s, s.end_s) for s in job.segments] for job in by_hand.jobs}
    told = {job: [(r.start_s, r.end_s) for r in runs] for job, runs in found.recorded.runs.items()}
    assert told == starts
    assert [(g.count, g.gpus_per_node, g.gpu_type) for g in found.instance.cluster.node_groups] == [
        (g.count, g.gpus_per_node, g.gpu_type) for g in two_nodes.cluster.node_groups
    ]
