"""Slurm's own outputs, JSON and text, of 22.05 and in later shapes: one cluster, one snapshot."""

import json
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

import ronda
from ronda.hosts.clusters.read import read_snapshot
from ronda.instances.check.plan import check_plan
from ronda.instances.errors import InputError
from ronda.instances.rules.validate import problems
from ronda.instances.snapshots.rounds import round_of
from ronda.instances.snapshots.snapshot import Noted
from ronda.instances.traces.hostlists import host_names
from ronda.instances.traces.slurm_cells import gpus_of
from ronda.questions.why.answer import why
from tests.hosts.clusters import slurm_documents as documents
from tests.hosts.clusters.slurm_documents import ACCOUNTS, DATA, JSON, REST, TEXT

SHARED = Path(__file__).parents[4] / "shared"


def read(*names, now_s=None):
    """Return the snapshot of packaged files."""
    return read_snapshot("slurm", [DATA / name for name in names], now_s)


@pytest.fixture
def written(tmp_path):
    """Return a function that reads documents (objects or texts) from files of odd names."""

    def look(*parts, now_s=None):
        paths = []
        for k, part in enumerate(parts):
            path = tmp_path / f"{k}.dat"
            path.write_text(part if isinstance(part, str) else json.dumps(part))
            paths.append(path)
        return read_snapshot("slurm", paths, now_s)

    return look


@pytest.fixture(scope="module")
def seen():
    """Return the snapshot of all JSON and tables of a real cluster."""
    return read(*JSON, *REST, *ACCOUNTS)


def node(name="n1", **more):
    """Return a node of 8 A100 in JSON."""
    fields = {"name": name, "state": ["IDLE"], "cpus": 64, "real_memory": 1024000}
    return fields | {"gres": "gpu:a100:8"} | more


def job(number=1, **more):
    """Return a waiting job in JSON."""
    fields = {"job_id": number, "job_state": ["PENDING"], "cpus": 4, "node_count": 1}
    return fields | {"time_limit": 60, "submit_time": 100, "priority": 5} | more


def running(number=1, nodes="n1", **more):
    """Return a running job in JSON."""
    return job(number, job_state=["RUNNING"], nodes=nodes, start_time=100, **more)


def alike(one, other):
    """Return whether two snapshots show one cluster, whatever the order of jobs."""
    for field in ("nodes", "jobs", "tenants", "classes", "licences", "licences_taken"):
        a, b = getattr(one, field), getattr(other, field)
        if field == "jobs":
            a, b = (sorted(jobs, key=lambda each: each.id) for jobs in (a, b))
        assert list(a) == list(b), field
    return True


def test_what_jobs_hold_is_what_slurm_says_of_its_nodes(seen):
    """GPUs, cores and memory on each node add up to those that sinfo shows as used."""
    for shown in documents.real("sinfo.json")["nodes"]:
        held = Counter()
        for each in seen.jobs:
            held.update(each.holds(shown["name"]))
        assert held["gpus"] == sum(gpus_of(shown["gres_used"]).values())
        assert held["cpu"] == shown["alloc_cpus"]
        assert held["memory_gib"] == pytest.approx(shown["alloc_memory"] / 1024)


def test_jobs_are_those_of_squeue_with_each_task_of_an_array(seen):
    """Counts by state equal an independent count; forecasts are no starts."""
    records = documents.real("squeue.json")["jobs"]
    runs = [r for r in records if r["job_state"] == "RUNNING"]
    waits = [r for r in records if r["job_state"] == "PENDING"]
    assert sum(1 for j in seen.jobs if j.on) == len(runs) == 8
    assert sum(1 for j in seen.jobs if not j.on) == len(waits) - 1 + 37
    assert all(j.start_s is None for j in seen.jobs if not j.on)
    assert any(r["start_time"] > seen.now_s for r in waits)
    assert max(j.start_s for j in seen.jobs if j.on) <= seen.now_s
    tasks = [j for j in seen.jobs if j.job_array == "2"]
    assert {j.id for j in tasks} == {f"2_{k}" for k in range(40)}
    assert {j.array_most for j in tasks} == {3}


def test_requests_are_read_whole(seen):
    """Shapes, holds, dependencies, licences, reservations and node lists of a real cluster."""
    of = {each.id: each for each in seen.jobs}
    assert (of["1"].count, of["1"].per["gpus"], of["1"].per["cpu"]) == (2, 3, 8)
    assert of["1"].licences == {"matlab": 2}
    assert (of["9"].count, of["9"].per["gpus"], of["9"].per["cpu"]) == (6, 1, 3)
    assert not of["9"].own_nodes
    assert (of["12"].count, of["12"].own_nodes, of["12"].per["gpus"]) == (4, True, 4)
    assert "held by its user" in of["3"].blocked
    assert of["4"].exclusive
    assert {a.job for a in of["6"].after} == {f"2_{k}" for k in range(40)}
    assert [a.job for a in of["14"].after] == ["13"]
    assert of["15"].eligible_s == seen.now_s + 7191
    assert (of["10"].nodes, of["10"].not_nodes) == (("n1",), ("n2",))
    assert (of["20"].reservation, of["20"].nodes) == ("class", ("n2",))
    assert of["8"].per == {"cpu": 20, "memory_gib": 40}
    nodes = {each.name: each for each in seen.nodes}
    assert nodes["n3"].out == "drained: fan broken"
    assert (nodes["n2"].reserved, nodes["n2"].leaves_s < seen.now_s) == ("class", True)
    assert nodes["n4"].back_s - nodes["n4"].leaves_s == 7200
    assert nodes["n1"].racks == (("switch1", "top"), ("switch", "s1"))


def test_limits_are_tenants_and_groups(seen):
    """Accounts form their tree, and each limit stands where Slurm has it."""
    assert [(t.name, t.parent, t.weight) for t in seen.tenants] == [
        ("root", None, 1),
        ("dept", "root", 1),
        ("nlp", "dept", 1),
        ("vision", "dept", 3),
    ]
    assert (seen.tenants[2].max_jobs, seen.tenants[2].max_gpu_s) == (5, 50000 * 60)
    assert seen.tenants[3].quotas[0].limit == 8
    told = {g.name: g for g in seen.groups}
    assert told["QOS long"].most == {"a100": 12}
    each = told["QOS long, each user"]
    assert (each.per, each.most, each.max_jobs) == ("user", {"cpu": 48, "gpus": 6}, 3)
    assert told["QOS long, each job"].max_limit_s == 7 * 86400
    assert told["partition short"].max_limit_s == 1800
    assert told["account vision, each job"].max_limit_s == 86400
    assert told["account nlp, each user"].users == ("nobody",)
    assert seen.noted.counts["limit on node, left out"] == 1


def test_text_and_json_show_one_cluster(seen):
    """`scontrol show job -d -o`, without -o too, and the association manager say the same."""
    text = read(*TEXT, *REST, "association-manager.txt", now_s=seen.now_s)
    assert alike(seen, text)
    assert read(*TEXT, *REST).now_s == seen.now_s  # by the run times
    assert {g.name for g in seen.groups} - {g.name for g in text.groups} == {"QOS long, each user"}


def test_indented_text_is_read_as_lines(seen, tmp_path):
    """Without -o, a record has further lines."""
    path = tmp_path / "jobs"
    lines = (DATA / "jobs.txt").read_text().splitlines()
    path.write_text("\n\n".join(line.replace(" Priority=", "\n   Priority=") for line in lines))
    files = [path, *(DATA / name for name in ("nodes.txt", *REST))]
    assert alike(read(*TEXT, *REST), read_snapshot("slurm", files))


@pytest.mark.parametrize(
    ("comment", "shown"),
    [
        ("ronda:gpus=1:1/2:1.9", "ronda:gpus=1:1/2:1.9"),
        ("None", "None"),
        ("a" * 10_000, "a" * 10_000),
        ("one\ntwo\r\n\t three", "one two three"),
        ("caf\udce9 \x1b[31m", "caf\ufffd \x1b[31m"),
        ("x NumNodes=7 TresPerNode=gres:gpu:a100:8 Power=", "x"),
    ],
)
def test_a_comment_is_any_text_and_changes_nothing_else(tmp_path, comment, shown):
    """Slurm prints comments as they are, with newlines and with bytes that are no UTF-8."""
    power = " Power= TresPerNode="
    lines = (DATA / "jobs.txt").read_text().replace(power, f" Comment={comment} {power}")
    queue = documents.real("squeue.json")
    queue["jobs"] = [each | {"comment": comment} for each in queue["jobs"]]
    whole = json.dumps(queue).replace("\\udce9", "\udce9")
    rest = [DATA / other for other in ("nodes.txt", *REST)]
    path, said = tmp_path / "jobs", comment.replace("\udce9", "\ufffd")
    for name, text, told in (("jobs.txt", lines, shown), ("squeue.json", whole, said)):
        path.write_bytes(text.encode(errors="surrogateescape"))
        found = read_snapshot("slurm", [path, *rest])
        assert {job.comment for job in found.jobs} - {""} == {told}
        jobs = tuple(structs.replace(each, comment="") for each in found.jobs)
        assert alike(replace(found, jobs=jobs), read(name, "nodes.txt", *REST))


def test_jobs_that_have_ended_are_told_apart(written):
    """One failed, one was started anew, one suspended, one on two nodes, and one is a task."""
    nodes, shown = (DATA / "toy-nodes.json").read_text(), documents.real("ended.json")["jobs"]
    found = written({"jobs": shown}, nodes)
    assert not found.jobs
    jobs = sorted(found.ended, key=lambda job: job.id)
    assert [(job.id, job.gpus, job.ran_s, job.whole) for job in jobs] == [
        ("16", 4, 3.0, True),
        ("17_0", 1, 4.0, True),
        ("18", 1, 0.0, False),
        ("23", 1, 6.0, True),
        ("24", 1, 8.0, False),
    ]
    assert {(job.name, job.user) for job in jobs} >= {("susp-2", "root"), ("two", "root")}
    for text in ({"jobs": list(map(documents.later_job, shown))}, (DATA / "ended.txt").read_text()):
        assert sorted(written(text, nodes).ended, key=lambda job: job.id) == jobs


def test_later_versions_show_the_same(seen, written):
    """{set, infinite, number}, lists of states, and lines of sinfo for each partition."""
    jobs = [documents.later_job(each) for each in documents.real("squeue.json")["jobs"]]
    nodes = [documents.later_node(each) for each in documents.real("sinfo.json")["nodes"]]
    rest = [(DATA / name).read_text() for name in REST if name != "partitions.txt"]
    limits = {"associations": documents.associations(), "qos": documents.qualities()}
    parts = {"partitions": documents.partitions(), "last_update": documents.later(5)}
    found = written({"jobs": jobs}, {"nodes": nodes}, *rest, parts, limits, now_s=seen.now_s)
    assert alike(seen, found)
    assert found.groups == seen.groups
    lines = {"sinfo": list(documents.sinfo_lines(nodes))}
    assert alike(found, written({"jobs": jobs}, lines, *rest, parts, limits, now_s=seen.now_s))


def test_a_round_of_a_real_cluster_is_decided(seen):
    """Its jobs with GPUs are all there but for the one of a reservation."""
    round_ = round_of(replace(seen, noted=Noted()))
    assert problems(round_) == []
    assert len(round_.jobs) == sum(j.has_gpus for j in seen.jobs) - 1
    assert set(ronda.solve(round_, "slurm-like").allocations) >= {s.job.id for s in round_.running}


@pytest.mark.parametrize(
    ("fields", "per", "count", "own_nodes"),
    [
        ({"tres_per_node": "gres:gpu:a100:2", "node_count": 3, "cpus": 12}, (2, 4), 3, True),
        ({"tres_per_node": "gres/gpu:2", "node_count": 2, "max_nodes": 4}, (2, 2), 4, True),
        ({"tres_per_job": "gres/gpu=8", "node_count": 2}, (4, 2), 2, True),
        ({"tres_per_job": "gres:gpu:7", "node_count": 2, "cpus": 14}, (1, 2), 7, True),
        ({"tres_per_task": "gres/gpu:1", "tasks": 6, "cpus": 12}, (1, 2), 6, False),
        ({"tres_per_socket": "gres/gpu:2", "sockets_per_node": 2}, (4, 4), 1, True),
        ({"tres_per_node": "gpu:2(IDX:0,3)", "cpus_per_tres": "gres:gpu:6"}, (2, 12), 1, True),
        ({"tres_req_str": "cpu=8,node=1,gres/gpu=8", "cpus": None}, (8, 8), 1, False),
        ({"tasks": 6, "cpus": 12}, (0, 2), 6, False),
        ({"node_count": 2, "cpus": 1, "minimum_cpus_per_node": 3}, (0, 3), 2, True),
        ({"tres_per_node": "gpu:1", "node_count": 2, "cpus": 1}, (1, 1), 2, True),
        ({"tasks": 6, "cpus": 12, "memory_per_node": 1024}, (0, 12), 1, False),
        ({"required_nodes": "n[1-2]", "cpus": 4}, (0, 4), 2, False),
    ],
)
def test_each_way_to_ask_becomes_pieces(written, fields, per, count, own_nodes):
    """GPUs and cores of a piece, and the number of pieces."""
    seen = written({"jobs": [job(**fields)], "nodes": [node(f"n{k}") for k in range(1, 5)]})
    (found,) = seen.jobs
    assert (found.per.get("gpus", 0), found.per["cpu"]) == per
    assert (found.count, found.own_nodes) == (count, own_nodes)


@pytest.mark.parametrize(
    ("fields", "told", "per_gpu"),
    [
        ({}, True, False),
        ({"features": "fast&big"}, True, False),
        ({"features": "fast|big"}, False, False),
        ({"required_nodes": "n1", "node_count": 2}, False, False),
        ({"required_nodes": "n[1-2]", "node_count": 2}, True, False),
        ({"tres_per_node": "gpu:a100:1,gpu:v100:1"}, False, False),
        ({"tres_per_node": "", "tres_per_job": "gres/gpu:3", "node_count": 2}, False, False),
        ({"cpus_per_tres": "gres:gpu:6"}, True, True),
        ({"memory_per_tres": "gres:gpu:3072"}, True, True),
    ],
)
def test_a_job_says_whether_it_is_told_in_full(written, fields, told, per_gpu):
    """Whoever moves or resizes jobs must know all that they ask of their nodes."""
    asks = {"tres_per_node": "gres/gpu:1"} | fields
    (found,) = written({"jobs": [job(**asks)], "nodes": [node(), node("n2")]}).jobs
    assert (found.told, found.per_gpu) == (told, per_gpu)


def test_memory_is_per_node_or_per_core_or_per_gpu(written):
    """Zero memory is none that is told."""
    unset = {"set": False, "infinite": True, "number": 0}
    asks = [
        {"memory_per_node": 2048},
        {"memory_per_cpu": {"set": True, "infinite": False, "number": 1024}},
        {"memory_per_tres": "gres:gpu:3072", "tres_per_node": "gpu:2"},
        {"memory_per_node": unset},
        {"memory_per_node": {"set": True, "infinite": False, "number": 0}},
    ]
    jobs = [job(k, **fields) for k, fields in enumerate(asks, start=1)]
    seen = written({"jobs": jobs, "nodes": [node()]})
    assert [each.per.get("memory_gib") for each in seen.jobs] == [2, 4, 6, None, None]
    assert [line for line in seen.noted.lines() if "memory 0" in line and "job 5" in line]


@pytest.mark.parametrize(
    ("state", "out"),
    [
        ("idle", None),
        ("MIXED+PLANNED", None),
        ("MIXED+CLOUD+NOT_RESPONDING+POWERING_UP", None),
        ("DOWN+POWERED_DOWN", "down: x"),
        ("IDLE+POWERED_DOWN", None),
        ("idle~", None),
        ("IDLE+CLOUD+POWERING_UP", None),
        ("DOWN*", "down, not answering: x"),
        ("idle*", "not answering: x"),
        (["ALLOCATED", "DRAIN"], "drained: x"),
        ("drained", "drained: x"),
        (["IDLE", "MAINTENANCE"], "in maintenance"),
        (["IDLE", "RESERVED"], "reserved"),
        (["MIXED", "FAIL"], "failing: x"),
    ],
)
def test_states_of_nodes_say_who_takes_jobs(written, state, out):
    """Nodes that can be woken take jobs; nodes that do not answer take none."""
    (found,) = written({"jobs": [], "nodes": [node(state=state, reason="x")]}).nodes
    assert found.out == out


@pytest.mark.parametrize(
    ("state", "power"),
    [
        ("idle", "on"),
        ("idle!", "going down"),
        ("mixed!", "on"),
        ("idle%", "going down"),
        ("IDLE+CLOUD+POWERED_DOWN", "down"),
        (["IDLE", "POWER_UP", "POWERED_DOWN"], "waking"),
        ("alloc#", "waking"),
    ],
)
def test_states_of_nodes_say_whether_they_sleep(written, state, power):
    """A node with jobs that is to go down is on until they end."""
    (found,) = written({"jobs": [], "nodes": [node(state=state)]}).nodes
    assert found.power == power


@pytest.mark.parametrize(
    ("moment", "power", "asleep", "waking"),
    [
        ("asked", ["on", "going down", "on", "on"], (1,), ()),
        ("going down", ["on", "going down", "on", "on"], (1,), ()),
        ("called", ["on", "on", "down", "on"], (), (2,)),
        ("asked up", ["on", "waking", "down", "going down"], (2, 3), (1,)),
        ("waking", ["on", "waking", "waking", "down"], (3,), (1, 2)),
    ],
)
def test_a_cluster_whose_nodes_sleep_and_wake(written, moment, power, asleep, waking):
    """Nodes of a real cluster sleep or wake in its round; what waits for one runs there already."""
    seen = written(json.loads((DATA / "power.json").read_text())[moment])
    assert [each.power for each in seen.nodes] == power
    assert {each.out for each in seen.nodes} == {None}
    counted = Noted()
    made = round_of(seen, counted)
    assert (made.asleep, made.waking) == (asleep, waking)
    assert problems(made) == []
    assert {group.wake_s for group in made.cluster.node_groups} == {300.0}
    assert any("to wake in 300 s" in line for line in counted.lines())
    said = [line for line in seen.noted.lines() if "Slurm wakes nodes for jobs" in line]
    assert len(said) == len({*power} - {"on"})
    for spec in ("fifo", "prices", "ces-queue", "wake-or-wait"):
        plan = ronda.solve(made, spec)
        assert check_plan(made, plan) == [], spec


def test_nodes_have_what_jobs_may_use(written):
    """Reserved cores and memory are off; other devices are counted; FUTURE nodes do not exist."""
    one = node(
        effective_cpus=60,
        specialized_memory=24000,
        gres="gpu:2080ti:4(S:0-1),shard:16",
        active_features=["ib"],
        resume_after={"set": True, "number": 900},
    )
    seen = written({"jobs": [], "nodes": [one, node("n2", state=["FUTURE"]), node("n3", gres="")]})
    assert [each.name for each in seen.nodes] == ["n1", "n3"]
    assert seen.nodes[0].has == {"gpus": 4, "cpu": 60, "memory_gib": 1000000 / 1024, "shard": 16}
    assert (seen.nodes[0].gpu_type, seen.nodes[0].features) == ("2080ti", ("ib",))
    assert "gpus" not in seen.nodes[1].has


def test_running_jobs_hold_what_is_told(written):
    """Details by node, else an even share, and for whole nodes all of them."""
    nodes = [node("n1"), node("n2"), node("n3"), node("n4")]
    jobs = [
        running(1, "n[1-2]", gres_detail=["gpu:a100:3(IDX:0-2)", "gpu:a100:1(IDX:0)"]),
        running(2, "n[1-2]", tres_alloc_str="cpu=8,mem=16G,node=2,gres/gpu=4,gres/gpu:a100=4"),
        running(3, "n3", shared=["none"], tres_per_node="gres:gpu:1"),
        running(4, "n[1-2]", tres_alloc_str="cpu=2,node=2,gres/gpu=3", gres_detail=[]),
        job(5, job_state=["COMPLETED"], nodes="n4", gres_detail=[]),
        job(6, job_state=["FAILED", "COMPLETING"], nodes="n4", tres_alloc_str="cpu=1,gres/gpu=1"),
    ]
    seen = written({"jobs": jobs, "nodes": nodes})
    gpus = [[each.holds(f"n{k}").get("gpus", 0) for k in (1, 2, 3, 4)] for each in seen.jobs]
    assert gpus == [[3, 1, 0, 0], [2, 2, 0, 0], [0, 0, 8, 0], [1, 2, 0, 0], [0, 0, 0, 1]]
    assert seen.jobs[2].holds("n3")["cpu"] == 64
    assert seen.noted.counts["finished job, left out"] == 1
    assert seen.noted.counts["running job whose GPUs on each node are not told, shared out"] == 1


def test_dependencies_and_holds(written):
    """Failed ones bar for ever, fulfilled ones are gone, and any of several may be enough."""
    texts = {
        2: "afterok:1(unfulfilled)",
        3: "afterok:9(failed)",
        4: "afterany:1(fulfilled)?after:7_*+5(unfulfilled)",
        5: "aftercorr:7_3(unfulfilled)",
        6: "expand:1",
    }
    jobs = [job(1), *(job(k, dependency=text) for k, text in texts.items())]
    jobs += [job(7, array_job_id=7, array_task_string="1-9:4%2"), job(8, priority=0)]
    jobs += [job(9, state_reason="DependencyNeverSatisfied"), job(10, hold=True)]
    seen = written({"jobs": jobs, "nodes": [node()]})
    of = {each.id: each for each in seen.jobs}
    assert set(of) == {"1", "2", "3", "4", "5", "6", "7_1", "7_5", "7_9", "8", "9", "10"}
    assert [(a.job, a.when) for a in of["2"].after] == [("1", "ok")]
    assert "has ended otherwise" in of["3"].blocked
    assert [(a.job, a.when, a.delay_s) for a in of["4"].after] == [
        (f"7_{k}", "start", 300) for k in (1, 5, 9)
    ]
    assert not of["4"].after_all
    assert seen.noted.counts["job with a dependency that is not read"] == 1
    assert "priority is 0" in of["8"].blocked
    assert "DependencyNeverSatisfied" in of["9"].blocked
    assert "held" in of["10"].blocked


def test_arrays_whose_list_is_cut_off_are_told(written):
    """Slurm prints 64 characters of the tasks of an array."""
    seen = written(
        {"jobs": [job(array_job_id=1, array_task_string="1,3,5-7,11...")], "nodes": [node()]}
    )
    assert [each.id for each in seen.jobs] == ["1_1", "1_3", "1_5", "1_6", "1_7"]
    assert seen.noted.counts[
        "job array whose list of tasks is cut off (SLURM_BITSTR_LEN=0 prints all)"
    ]


def test_features_licences_slices_and_more(written):
    """What a snapshot cannot state is counted, and what it can is there."""
    jobs = [
        job(1, features="a&b", licenses="x:2,y", segment_size=4, het_job_id=1, het_job_offset=2),
        job(2, features="a|b", licenses="x|y", required_switches=1, resv_name="gone"),
        job(3, required_nodes="n1", node_count=2, requeue=False, restart_cnt=2),
        job(4, partition="p,q", tres_per_node="gpu:a100:1,gpu:v100:1"),
        job(5, partition="shut"),
    ]
    shut = {"name": "shut", "nodes": {"configured": "n1"}, "partition": {"state": ["DOWN"]}}
    closed = {"name": "p", "nodes": {"configured": "n1"}, "accounts": {"allowed": "a"}}
    licences = {"licenses": [{"LicenseName": "x", "Total": 5, "Used": 3, "Reserved": 0}]}
    seen = written({"jobs": jobs, "nodes": [node()], "partitions": [shut, closed], **licences})
    one, two, three, four, five = seen.jobs
    assert (one.id, one.features, one.licences) == ("1+2", ("a", "b"), {"x": 2})
    assert one.slices.nodes == 4
    assert (two.features, two.licences) == ((), {})
    assert (three.nodes, three.preemptible, three.restarts) == ((), False, 2)
    assert (four.partitions, four.gpu_types) == (("p", "q"), ("a100", "v100"))
    assert five.blocked == "its partition shut is DOWN"
    assert seen.licences_taken == {"x": 3}
    assert seen.nodes[0].partitions == ("shut", "p")
    assert set(seen.noted.counts) >= {
        "part of a heterogeneous job, taken as a job of its own",
        "job with alternatives of features, which are left out",
        "job with a choice of licences, which is left out",
        "job with a licence that no file tells, left out",
        "job that prefers few switches, which is left out",
        "job of a reservation that no file tells",
        "job that needs some nodes by name and others, the names left out",
        "job with GPUs of several types, taken to be of any of them",
        "job in a partition for some accounts, groups or QOS",
    }


def test_reservations_that_are_over_or_later(written):
    """The next one of a node counts; one that is over does not, and one without nodes is told."""
    listed = [("old", 10, 90), ("late", 700, 800), ("next", 300, 400), ("soft", 300, 400)]
    records = [
        {"name": name, "start_time": a, "end_time": b, "node_list": "n1" if name != "soft" else ""}
        for name, a, b in listed
    ]
    doc = {"jobs": [job()], "nodes": [node(), node("n2")], "reservations": records}
    assert written(doc | {"last_update": 9e9}).now_s == 9e9
    one, two = written(doc, now_s=100).nodes
    assert (one.reserved, one.leaves_s, one.back_s) == ("next", 300, 400)
    assert (two.reserved, two.leaves_s) == (None, None)
    counts = written(doc, now_s=100).noted.counts
    assert counts["later reservation of a node, left out"] == 1
    assert counts["reservation of no whole nodes, left out"] == 1


def test_a_job_of_a_reservation_finds_its_nodes_open(written):
    """Others may not use them meanwhile; before it begins, the job may not start."""
    records = [
        {"name": "now", "start_time": 50, "end_time": 9000, "node_list": "n1"},
        {"name": "soon", "start_time": 500, "end_time": 9000, "node_list": "n2"},
    ]
    jobs = [job(1, resv_name="now"), job(2, resv_name="soon"), job(3), running(4)]
    doc = {"jobs": jobs, "nodes": [node(), node("n2")], "reservations": records}
    seen = written(doc, now_s=100)
    assert [each.eligible_s for each in seen.jobs[:3]] == [100, 500, None]
    inside = seen.within("now")
    assert [each.leaves_s for each in inside.nodes] == [None, 500]
    assert [each.not_nodes for each in inside.jobs] == [(), ("n1",), ("n1",), ()]
    assert seen.within(None) is seen
    assert why(seen, "1").start_s == 100
    assert why(seen, "2").start_s == 500
    assert why(seen, "3").start_s == 9000


def test_partition_qos_limits_its_partition(written):
    """Its limits bind all jobs of the partition, whatever their QOS."""
    part = {"name": "p", "nodes": {"configured": "n1"}, "qos": {"assigned": "q"}}
    limits = {"max": {"tres": {"total": [{"type": "gres", "name": "gpu", "count": 2}]}}}
    qos = {"name": "q", "limits": limits}
    doc = {"jobs": [job(partition="p", qos="z")], "nodes": [node()], "partitions": [part]}
    seen = written(doc | {"qos": [qos]})
    told = [(g.name, g.classes, g.partitions, g.most) for g in seen.groups]
    assert told == [
        ("QOS q", ("q",), (), {"gpus": 2}),
        ("partition p, QOS q", (), ("p",), {"gpus": 2}),
    ]
    assert [c.name for c in seen.classes] == ["q", "z"]


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (['{"jobs": ['], "cut off"),
        (['{"pods": []}'], "JSON with fields pods"),
        (["[1, 2]"], r"nodes\[0\]: found 1; expected an object"),
        (["hello\n"], 'text that begins with "hello"'),
        ([""], "an empty file"),
        (["\x00\x01"], "text that begins"),
        (["A|B\n1|2\n"], "a table of"),
        ([(DATA / "qos.txt").read_text() + "x|y\n"], "row 5: found 2 cells; expected 26"),
        (["NodeName=a\nbroken\n"], '"broken"'),
        ([{"nodes": [node(), node()]}], 'node "n1" twice'),
        ([{"nodes": [node()]}, {"nodes": [node("n2")]}], "nodes once more"),
        ([{"nodes": [{"state": "idle"}]}], "a node without a name"),
        ([{"nodes": [node(state=["IDLE", "DOWN"])]}], "one state such as IDLE"),
        ([{"nodes": [node()], "jobs": [{"job_state": "RUNNING"}]}], "a job without a job_id"),
        ([{"nodes": [node()], "jobs": [running(), running()]}], 'job "1" twice'),
        ([{"nodes": [node()], "jobs": [running(nodes="n9")]}], 'node "n9", which no file lists'),
        ([{"nodes": [node()], "jobs": [running(nodes="")]}], "and no nodes"),
        ([{"nodes": [node()], "jobs": [running(nodes="n[1-")]}], "the host list"),
        ([{"nodes": [node()], "jobs": [job(job_state=["RUNNING", "FAILED"])]}], "one state"),
        ([{"nodes": [node()], "jobs": [job(job_state=["DANCING"])]}], "DANCING"),
        (
            [{"nodes": [node()], "jobs": [running(gres_detail=["gpu:9"])]}],
            "node n1: 9 gpus held of 8",
        ),
        ([{"jobs": [job()]}], "no nodes"),
        ([{"nodes": [node()], "jobs": [job(array_task_string="1-99999999")]}], "RONDA_LIMITS=jobs"),
        (
            [{"nodes": [node()], "reservations": [{"name": "r", "start_time": 9, "end_time": 2}]}],
            "a start before its end",
        ),
        (["Account|User|ParentName|Share\na||b|1\nb||a|1\n", {"nodes": [node()]}], "a cycle"),
    ],
)
def test_bad_input_is_one_line(written, parts, words):
    """Half a document, unknown ones, and states that contradict each other."""
    with pytest.raises(InputError, match=words) as told:
        written(*parts)
    assert "\n" not in str(told.value)


def test_a_time_before_the_files_is_refused():
    """Jobs that start later than now make no sense."""
    with pytest.raises(InputError, match="submitted or started after now"):
        read(*JSON, now_s=5.0)


NAMES = st.from_regex(r"[a-z]{1,3}", fullmatch=True)


@given(
    NAMES,
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)), min_size=1, max_size=4),
    st.integers(1, 3),
)
def test_host_lists_expand_to_what_was_folded(prefix, ranges, width):
    """Ranges with leading zeros or without, and names beside brackets."""
    inside = ",".join(f"{a:0{width}d}-{a + n:0{width}d}" for a, n in ranges)
    plain = [f"{prefix}{k:0{width}d}-ib" for a, n in ranges for k in range(a, a + n + 1)]
    assert host_names(f"{prefix}[{inside}]-ib,login", "here") == [*plain, "login"]
    pairs = [f"r{r}{name}" for r in (1, 2) for name in plain]
    assert host_names(f"r[1-2]{prefix}[{inside}]-ib", "here") == pairs


@given(st.text(alphabet="n[]-,0129 ", max_size=12))
def test_any_host_list_is_read_or_refused(text):
    """No traceback, whatever is in it."""
    with suppress(InputError):
        host_names(text, "here")


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([*JSON, *TEXT, *REST, *ACCOUNTS, "association-manager.txt"]), st.data())
def test_half_documents_are_read_or_refused_in_one_line(tmp_path_factory, name, data):
    """Cut anywhere, or with a character changed: an answer or one line, never a traceback."""
    text = (DATA / name).read_text()
    cut = data.draw(st.integers(0, len(text)))
    changed = text[:cut] + data.draw(st.sampled_from(["", "x", "{", "[", "|", "=", "9", "null"]))
    if data.draw(st.booleans()):
        changed += text[cut + 1 :]
    path = tmp_path_factory.mktemp("half") / "half"
    path.write_text(changed)
    others = [DATA / other for other in (*JSON, *REST, *ACCOUNTS) if other != name]
    with suppress(InputError):
        round_of(read_snapshot("slurm", [path, *others]))


needs_samples = pytest.mark.skipif(not SHARED.exists(), reason="the samples are not here")


@needs_samples
def test_samples_of_a_real_cluster():
    """Jobs, GPUs and what they hold equal an independent count."""
    files = [SHARED / "slurm" / name for name in JSON]
    seen = read_snapshot("slurm", files)
    records = json.loads(files[0].read_text())["jobs"]
    live = [r for r in records if r["job_state"] in ("RUNNING", "PENDING")]
    waits = [r for r in live if r["job_state"] == "PENDING"]
    assert len(seen.jobs) >= len(live)
    assert sum(1 for j in seen.jobs if j.on) == len(live) - len(waits)
    for shown in json.loads(files[1].read_text())["nodes"]:
        held = sum(j.holds(shown["name"]).get("gpus", 0) for j in seen.jobs)
        assert held == sum(gpus_of(shown["gres_used"]).values())
    array = read_snapshot("slurm", [SHARED / "slurm" / "squeue-array-pending.json", files[1]])
    assert [j.id for j in array.jobs] == ["1_1", "1_2", "1_3"]


@needs_samples
def test_public_cases_with_documents_are_read(written):
    """Each document that someone was asked about is a snapshot, and has a round if it has GPUs."""
    count = 0
    for line in (SHARED / "why" / "cases.jsonl").read_text().splitlines():
        case = json.loads(line)
        raw, made = case.get("raw", {}).get("doc", {}), case.get("raw_derived", {})
        if case["id"][0] != "S" or not (raw or made):
            continue
        parts = list(made.values())
        both = [raw] if "nodes" in raw else [raw, *parts[1:]]
        for whole in (parts, both):
            if not any("nodes" in part for part in whole):
                whole = [*whole, {"nodes": [node()]}]
            seen = written(*(part for part in whole if part))
            if any("gpus" in each.has for each in seen.nodes):
                assert problems(round_of(seen)) == []
            count += 1
    assert count >= 30
