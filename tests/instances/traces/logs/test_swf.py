"""The Standard Workload Format: 18 fields, the header, parts of jobs, and there and back."""

import pytest
from msgspec.structs import replace

from ronda.bench.exports.workload import standard_workload
from ronda.instances.errors import InputError
from ronda.instances.job import After
from ronda.instances.rules.validate import validate
from ronda.instances.traces.logs.instance import log_instance
from ronda.instances.traces.logs.runs import LogFilter, RowAccount
from ronda.instances.traces.logs.swf import SwfLog
from ronda.instances.traces.rigid import A100_NODE

HEAD = """\
; Version: 2.2
; UnixStartTime: 1000
; MaxNodes: 4
; MaxProcs: 32
; Queue: 1 batch
; Partition: 1 whole machine
; Note: user 3 is ann
"""


def read(tmp_path, text, *, described=(), **part):
    """Return what a log becomes, which is valid and adds up."""
    path = tmp_path / "log.swf"
    path.write_text(text)
    log = SwfLog(path, account := RowAccount(), LogFilter(**part))
    found = log_instance(
        log.runs(),
        account,
        place="log.swf",
        name="log",
        source="log",
        described=described,
        seen_cluster=lambda: log.cluster(described),
    )
    validate(found.instance)
    folded = account.folded.get("sums of parts", 0)
    assert found.runs + folded + account.dropped.total() == account.rows
    return found


def test_each_field_is_read(tmp_path):
    """Who, for how long at most, and after whom; the machine is that of the header."""
    text = f"{HEAD}1 0 10 3600 8 -1 -1 8 7200 1048576 1 3 2 5 1 1 -1 -1\n"
    found = read(tmp_path, text + "2 60 0 50 4 -1 -1 4 -1 -1 0 9 2 5 -1 1 1 30\n")
    one, two = found.instance.jobs
    assert (one.id, one.gpus, one.truth.work, one.estimate.work) == ("1", 8, 3600, 7200)
    assert (one.limit_s, one.user, one.tenant, one.name) == (7200, "ann", "2", "5")
    assert (one.priority, one.partition) == ("batch", "whole machine")
    assert (two.user, two.limit_s, two.priority) == ("9", None, None)
    assert two.after == (After(job="1", when="any", delay_s=30),)
    alone = read(tmp_path, text + "2 60 0 50 4 -1 -1 4 -1 -1 0 9 2 5 -1 1 7 30\n")
    assert alone.instance.jobs[1].after == ()  # the log has no job 7
    (group,) = found.instance.cluster.node_groups
    assert (group.count, group.gpus_per_node, group.gpu_type) == (4, 8, "processor")
    (run,) = found.recorded.runs["1"]
    assert (run.start_s, run.end_s, found.instance.made["unix_start_s"]) == (10, 3610, 1000)
    assert read(tmp_path, text, described=(A100_NODE,)).instance.cluster.gpu_types[0].idle_w == 50


def test_nodes_that_do_not_divide_and_a_header_without_any(tmp_path):
    """10 processors on 4 nodes are 3, 3, 2 and 2; without a header it is what was in use."""
    row = "1 0 10 3600 2 -1 -1 2 7200 -1 1 3 2 5 1 1 -1 -1\n"
    found = read(tmp_path, HEAD.replace("32", "10") + row)
    assert [(g.count, g.gpus_per_node) for g in found.instance.cluster.node_groups] == [
        *((2, 3), (2, 2)),
    ]
    assert read(tmp_path, row).instance.cluster.gpus == 2


def test_what_is_no_job_is_counted(tmp_path):
    """Unknown is -1; processors asked for stand in where those given are unknown."""
    rows = ["1 0 5 100 -1 -1 -1 4", "2 10 5 100 0 -1 -1 8", "3 20 5 -1 8 -1 -1 8"]
    more = ["4 -1 5 100 8 -1 -1 8", "6 30 5 100 -1 -1 -1 -1", "7 30 5 0 1 -1 -1 1"]
    text = "".join(f"{row} 9 -1 1 1 1 1 1 1 -1 -1\n" for row in (*rows, *more))
    found = read(tmp_path, HEAD + text)
    assert [(job.id, job.gpus) for job in found.instance.jobs] == [("1", 4), ("2", 8)]
    assert found.dropped == {
        "no time of submission": 1,
        "no processors": 1,
        "never started: COMPLETED": 1,
        "no run time": 1,
    }
    with pytest.raises(InputError, match=r"a line that is not 18 numbers \(row 1: 'x y'\), and 1"):
        read(tmp_path, "x y\n")


def test_parts_follow_their_job(tmp_path):
    """They are its runs, one after the other, and their work adds up."""
    rest = "-1 -1 4 9000 -1"
    text = (
        f"{HEAD}5 30 10 150 4 {rest} 1 3 1 1 1 1 -1 -1\n"
        f"5 30 10 100 4 {rest} 2 3 1 1 1 1 -1 -1\n"
        f"5 -1 20 50 2 {rest} 3 3 1 1 1 1 -1 -1\n"
        f"8 -1 20 50 2 {rest} 3 3 1 1 1 1 -1 -1\n"
    )
    found = read(tmp_path, text)
    (job,) = found.instance.jobs
    assert (job.gpus, job.truth.work) == (4, 150)
    assert [(r.start_s, r.end_s, r.state) for r in found.recorded.runs["5"]] == [
        *((10, 110, "REQUEUED"), (130, 180, "COMPLETED")),
    ]
    assert found.dropped == {"a part of a job without a line of the job before it": 1}


def test_a_part_of_a_log(tmp_path):
    """By window, partition and sample, as of any log."""
    rest = "-1 -1 1 90 -1 1 3 1 1 1"
    text = "".join(f"{k} {k} 0 9 1 {rest} {1 + k % 2} -1 -1\n" for k in range(1, 101))
    found = read(tmp_path, text, since_s=11, until_s=21, partitions=frozenset({"1"}))
    assert [job.id for job in found.instance.jobs] == ["12", "14", "16", "18", "20"]
    assert 30 < len(read(tmp_path, text, sample=0.5).instance.jobs) < 70


def test_there_and_back(tmp_path):
    """What was read is written and read again: the same instance, with its names and nodes."""
    rest = "8 7200 1048576 1 3 2 5 1 1"
    text = f"{HEAD}1 0 10 3600 8 -1 -1 {rest} -1 -1\n2 60 0 50 4 -1 -1 {rest} 1 30\n"
    once = read(tmp_path, text).instance
    named = [replace(once.jobs[0], id="bert", tenant="nlp", name="train it"), once.jobs[1]]
    named[1] = replace(named[1], after=(After(job="bert", when="any", delay_s=30),))
    tenants = tuple(replace(once.site.tenants[0], name=name) for name in ("nlp", "2"))
    given = replace(once, jobs=tuple(named), site=replace(once.site, tenants=tenants))
    again = read(tmp_path, standard_workload(given))
    assert again.instance.jobs == given.jobs
    assert again.instance.site == given.site
    assert again.instance.profiles == given.profiles
    assert [g.gpu_type for g in again.instance.cluster.node_groups] == ["processor"]
    assert again.instance.cluster.topology.node_gpus.tolist() == [8] * 4
    assert again.instance.made["unix_start_s"] == 1000
    assert again.recorded.runs == {}
