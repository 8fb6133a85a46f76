"""A cluster that lives: nodes are lost, drained, back and new, and users resize their jobs."""

import logging

import pytest

import ronda
from lab.speed.living import LivingHost
from ronda.instances.cluster import GpuType, NodeGroup, uniform_cluster
from ronda.instances.errors import InputError
from ronda.instances.job import Costs
from ronda.instances.plan import SolutionStatus
from tests.helpers.ways import ways

GPU = GpuType(name="A100", memory_gib=40)
CLUSTER = uniform_cluster(GPU, 3, 8)
ONE_NODE = ways({1: 1.0, 2: 2.0, 4: 4.0, 8: 8.0})
LINEAR = ways({n: float(n) for n in (1, 2, 4, 8, 16, 24)})


def host(policy="prices", **rest):
    """Return a façade of three nodes, x, y and z."""
    return ronda.Embedded(policy, CLUSTER, node_names=["x", "y", "z"], **rest)


def on(found):
    """Return the nodes that each job runs on, by name."""
    return {job: {"xyz"[k] for k, _ in held.placement} for job, held in found.running.items()}


def test_a_job_of_a_lost_node_goes_back_to_its_checkpoint():
    """Saved each 600 s from 30 s on: at 1,530 s it has the work of 1,200 s, at 8 a second.

    It is told apart from a stop in good order, which saves all, and starts on another node.
    """
    found = host(costs=Costs(start_s=30.0, checkpoint_s=600.0, restart_s=5.0))
    found.update(added=[{"id": "a", "work": 1e5, "gpus": 8, "max_gpus": 8, "rates": ONE_NODE}])
    node = next(iter(found.decide().start["a"].placement))
    again = ronda.Embedded.restore(found.save())
    found.update(now_s=1530.0, nodes={node: "lost"})
    (state,) = found.round().waiting
    assert (state.done, state.restarts, state.started) == (9600.0, 0, True)
    assert dict(found.round().cluster.out) == {"xyz".index(node): 8}
    changes = found.decide()
    assert node not in changes.start["a"].placement
    assert found.round().running[0].since_s == 1535.0
    again.update(now_s=1530.0, nodes={node: "lost"}, progress={"a": 11_000.0})
    assert again.round().waiting[0].done == 11_000.0  # its host knows better
    again.update(nodes={node: "back"})
    assert again.round().cluster.out == ()


def test_without_checkpoints_a_lost_node_costs_no_progress():
    """As in a run; and what is complete has not lost its node."""
    found = host()
    rows = [{"id": name, "work": 1e5, "gpus": 8, "rates": ONE_NODE} for name in "abc"]
    found.update(added=rows)
    found.decide()
    found.update(now_s=100.0, nodes=dict.fromkeys("xyz", "lost"), completed={"a": 900.0})
    assert {s.job.id: s.done for s in found.round().waiting} == {"b": 800.0, "c": 800.0}
    assert found.decide().start == {}
    with pytest.raises(InputError, match='node "x", which is lost'):
        found.update(running={"b": {"x": 8}})
    found.update(nodes={"x": "back"})
    assert len(found.decide().start) == 1


@pytest.mark.parametrize("policy", ["prices", "milp", "fifo", "srtf", "pollux-like"])
def test_what_runs_on_a_drained_node_goes_on_and_nothing_new_starts(policy):
    """One job of 4 GPUs: nobody gets its other 4; once it is complete the node is off."""
    found = host(policy)
    found.update(added=[{"id": "a", "work": 1e6, "gpus": 4, "rates": ways({4: 4.0})}])
    found.decide()
    (node,) = on(found)["a"]
    small = ways({1: 1.0, 2: 1.5, 4: 2.0})
    new = [{"id": f"b{k}", "work": 10.0 + k, "gpus": 4, "rates": small} for k in range(9)]
    found.update(now_s=60.0, nodes={node: "drained"}, added=new)
    for k in range(1, 4):
        changes = found.decide()
        assert changes.plan.status is not SolutionStatus.FALLBACK
        assert not {"a"} & {*changes.stop, *changes.resize, *changes.retune}
        assert {job for job, nodes in on(found).items() if node in nodes} == {"a"}
        found.update(now_s=60.0 + k)
    assert dict(found.round().cluster.out)["xyz".index(node)] == 4
    found.update(now_s=90.0, completed=["a"])
    assert dict(found.round().cluster.out)["xyz".index(node)] == 8
    found.decide()
    assert node not in set().union(*on(found).values())
    found.update(nodes={node: "back"})
    found.update(now_s=91.0, added=[{"id": "last", "work": 1e3, "gpus": 4, "rates": small}])
    found.decide()
    assert node in set().union(*on(found).values())


def test_a_drained_node_does_not_bind_its_jobs_when_it_is_back():
    """Nobody may move them before, as others would take their place."""
    found = host()
    found.update(added=[{"id": "a", "work": 1e6, "gpus": 8, "max_gpus": 24, "rates": LINEAR}])
    found.decide()
    assert found.running["a"].option.gpus == 24
    found.update(now_s=10.0, nodes={"y": "drained"})
    assert not found.round().running[0].job.preemptible
    found.update(added=[{"id": "b", "work": 1.0, "gpus": 8, "rates": ONE_NODE}])
    assert found.decide().start == {}
    found.update(now_s=20.0, nodes={"y": "back"})
    assert found.round().running[0].job.preemptible
    changes = found.decide()
    assert (set(changes.start), set(changes.resize)) == ({"b"}, {"a"})


def test_new_nodes_are_like_those_of_a_group():
    """They stand behind the others of it; what runs, and what is lost, is known by its name."""
    groups = [NodeGroup(name=n, count=2, gpus_per_node=8, gpu_type="A100") for n in ("p", "q")]
    found = ronda.Embedded("fifo", ronda.Cluster(gpu_types=(GPU,), node_groups=tuple(groups)))
    found.update(added=[{"id": f"j{k}", "gpus": 8, "rates": ONE_NODE} for k in range(6)])
    found.decide()
    before = {job: held.placement for job, held in found.running.items()}
    assert len(before) == 4
    found.update(now_s=1.0, nodes={"q-1": "lost"})
    found.update(now_s=2.0, nodes_added={"p-2": "p", "r": "q"})
    assert dict(found.round().cluster.out) == {4: 8}  # q-1, now behind p-2
    changes = found.decide()
    assert {node for place in changes.start.values() for node in place.placement} == {"p-2", "r"}
    assert changes.stop == ()
    names = ["p-0", "p-1", "p-2", "q-0", "q-1", "r"]
    for job, place in before.items():
        held = found.running.get(job)
        old = ["p-0", "p-1", "q-0", "q-1"][place[0][0]]
        assert held is None or names[held.placement[0][0]] in (old, "p-2", "r")


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (
            {"nodes": {"w": "lost"}},
            'nodes: node "w": found no node of the cluster; expected one of',
        ),
        ({"nodes": {"x": "gone"}}, 'nodes: node "x": found "gone"; expected one of "lost"'),
        ({"nodes": {"x": "back"}}, 'nodes: node "x": found a node in service; expected one that'),
        ({"nodes": ["x"]}, "nodes: found list; expected a dict"),
        (
            {"nodes_added": {"x": "nodes"}},
            "found a node of the cluster; expected a name that is new",
        ),
        ({"nodes_added": {"w": "racks"}}, 'node "w": found "racks"; expected the group'),
        ({"changed": [{"id": "a", "gpus": 99}]}, "99"),
    ],
)
def test_what_cannot_be_is_one_line_and_nothing_is_lost(told, said):
    """With place, found and expected; nodes that are in order in the same update count neither."""
    found = host()
    found.update(added=[{"id": "a", "gpus": 8, "rates": ONE_NODE}])
    found.decide()
    before = found.save()
    if isinstance(told.get("nodes"), dict):
        told = {"nodes": {"y": "lost"} | told["nodes"]}
    with pytest.raises(InputError) as caught:
        found.update(now_s=9.0, **told)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert found.save() == before


def test_a_lost_node_is_not_drained():
    """It is off already."""
    found = host()
    found.update(nodes={"x": "drained"})
    found.update(nodes={"x": "lost"})
    found.update(nodes={"x": "lost"})  # told again
    with pytest.raises(InputError, match="a node that is lost; expected one in service"):
        found.update(nodes={"x": "drained"})


def test_a_resized_job_keeps_its_history():
    """8 GPUs for 100 s of progress, then 4 at most: with the next decision, all work kept."""
    found = host(costs=Costs(start_s=10.0, restart_s=30.0, scale_s=2.0))
    job = {"id": "a", "work": 1e5, "gpus": 8, "max_gpus": 8, "application": "net", "user": "eve"}
    found.update(added=[job | {"rates": ONE_NODE}])
    found.decide()
    told = {"id": "a", "gpus": 4, "max_gpus": 4, "weight": 3.0, "deadline_s": 900.0, "work": 2e5}
    found.update(now_s=110.0, changed=[told])
    changes = found.decide()
    assert (set(changes.resize), changes.start, changes.stop) == ({"a"}, {}, ())
    assert changes.resize["a"].option.gpus == 4
    (state,) = found.round().running
    assert (state.done, state.gpu_s, state.started, state.restarts) == (800.0, 880.0, True, 1)
    assert state.since_s == 112.0  # it changes size in place
    assert (state.job.weight, state.job.deadline_s, state.job.estimate.work) == (3.0, 900.0, 2e5)
    found.update(now_s=200.0, changed=[{"id": "a", "max_gpus": 24}])  # no reason to leave
    assert found.running["a"].option.gpus == 4


def test_a_resized_job_that_finds_no_room_stops_and_keeps_its_history():
    """Another one, which may not be stopped, has all other nodes: 24 GPUs are not to be had."""
    found = host("fifo")
    firm = {"id": "b", "gpus": 16, "rates": LINEAR, "preemptible": False}
    found.update(added=[{"id": "a", "work": 1e5, "gpus": 8, "rates": LINEAR}, firm])
    found.decide()
    found.update(now_s=50.0, changed=[{"id": "a", "gpus": 24}])
    assert found.decide().stop == ("a",)
    (state,) = found.round().waiting
    assert (state.done, state.job.gpus) == (400.0, 24)
    found.update(now_s=60.0, completed=["b"])
    assert found.decide().start["a"].option.gpus == 24


def test_a_job_of_unknown_speed_is_resized():
    """It has what its user asks for, and keeps the GPU-seconds of which its size is guessed."""
    found = host(costs=Costs(restart_s=30.0))
    found.update(added=[{"id": "a", "gpus": 4, "application": "net"}])
    found.decide()
    found.update(now_s=60.0, changed=[{"id": "a", "gpus": 8}])
    assert found.decide().resize["a"].option.gpus == 8
    (state,) = found.round().running
    assert (state.gpu_s, state.done) == (240.0, 240.0)
    found.update(now_s=70.0, changed=[{"id": "a", "gpus": 2}])
    found.update(changed=[{"id": "a", "gpus": 8}])  # and back, before anybody decided
    changes = found.decide()
    assert (changes.stop, changes.start, changes.resize) == ((), {}, {})
    assert found.round().running[0].since_s == 90.0  # as if nothing had been said


def test_a_job_that_may_not_be_stopped_stays_where_it_may_not_run_any_more():
    """More than its limits it keeps; a GPU type that it holds cannot be taken from it."""
    types = (GPU, GpuType(name="H100", memory_gib=80))
    groups = (NodeGroup(name=t.name, count=1, gpus_per_node=8, gpu_type=t.name) for t in types)
    found = ronda.Embedded("fifo", ronda.Cluster(gpu_types=types, node_groups=tuple(groups)))
    rates = {"gpus": 8, "gpu_type": ["A100", "H100"], "rate": [1.0, 2.0]}
    found.update(added=[{"id": "a", "gpus": 8, "rates": rates, "preemptible": False}])
    held = next(iter(found.decide().start.values())).gpu_type
    other = ({"A100", "H100"} - {held}).pop()
    with pytest.raises(InputError, match=f"changed: job 'a': found no default/{held} any more"):
        found.update(changed=[{"id": "a", "gpu_types": [other]}])
    found.update(now_s=5.0, changed=[{"id": "a", "gpu_types": [other], "preemptible": True}])
    assert found.decide().resize["a"].gpu_type == other


def test_what_cannot_be_taken_is_refused_item_by_item(caplog):
    """The rest counts, in the order of an update; a warning and a record say why."""
    found = host()
    found.update(added=[{"id": name, "gpus": 4, "rates": ONE_NODE} for name in "abc"])
    found.decide()
    with caplog.at_level(logging.WARNING, logger="ronda"):
        refused = found.update(
            now_s=60.0,
            nodes={"x": "drained", "w": "lost"},
            added=(row for row in ({"id": "d", "gpus": 2}, {"id": "a"}, 7, {"id": "e", "gpu": 1})),
            completed=["c", "nobody"],
            progress={"a": 50.0, "b": -1.0, "c": 3.0},
            measured={"a": LINEAR, "b": {"gpus": [1], "rate": ["fast"]}},
            changed=[{"id": "b", "weight": 2.0}, {"id": "b", "wieght": 2.0}],
            running={"a": {"z": 4}, "b": {"q": 4}},
            noise={"a": 9.0, "b": "loud"},
            errors="return",
        )
    assert [(each.argument, each.item) for each in refused] == [
        ("completed", "nobody"),
        ("nodes", "w"),
        ("added", "a"),
        ("added", ""),
        ("added", "e"),
        ("measured", "b"),
        ("changed", "b"),
        ("progress", "b"),
        ("progress", "c"),
        ("running", "b"),
        ("noise", "b"),
    ]
    assert len(caplog.records) == len(refused)
    assert all("expected" in each.message and "\n" not in each.message for each in refused)
    states = {state.job.id: state for state in found.round().jobs}
    assert set(states) == {"a", "b", "d"}
    assert (states["a"].done, states["b"].job.weight) == (50.0, 2.0)
    assert found.running["a"].placement == ((2, 4),)
    rows = (row for row in ({"id": "new", "gpus": 1}, {"id": "a"}))  # read once, taken by item
    (refusal,) = found.update(now_s=61.0, added=rows, errors="return")
    assert (refusal.item, "new" in found.jobs) == ("a", True)
    with pytest.raises(InputError, match="now_s"):  # the time is nobody's alone
        found.update(now_s=1.0, removed=["a"], errors="return")
    assert "a" in found.jobs


def test_a_frame_of_rates_is_refused_job_by_job():
    """By its column of jobs; and what cannot be read at all is refused as a whole."""
    found = host()
    found.update(added=[{"id": name, "gpus": 4, "rates": ONE_NODE} for name in "ab"])
    frame = {"job": ["a", "b", "c"], "gpus": [4, 4, 4], "rate": [3.0, -1.0, 1.0]}
    refused = found.update(measured=frame, errors="return")
    assert [each.item for each in refused] == ["b", "c"]
    assert found.round().profiles["rates of a"].throughput["A100"].rate == (3.0,)
    (refusal,) = found.update(progress=[3], errors="return")
    assert (refusal.argument, refusal.item) == ("progress", "")


def test_a_saved_state_knows_which_nodes_are_out():
    """And which jobs stay where they are."""
    found = host()
    found.update(added=[{"id": "a", "gpus": 8, "rates": ONE_NODE}], nodes={"x": "lost"})
    found.decide()
    (node,) = on(found)["a"]
    found.update(now_s=5.0, nodes={node: "drained"})
    again = ronda.Embedded.restore(found.save())
    assert again.round() == found.round()
    assert {again.round().running[0].job.preemptible} == {False}


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("policy", ["prices", "fifo", "srtf", "pollux-like"])
def test_a_cluster_lives(policy, seed):
    """Nodes are lost, drained, back and new, jobs are resized and cancelled, and some news are odd.

    The checker holds each plan to its rules, and the host what it is told of every job's history.
    """
    host = LivingHost(12, policy, seed)
    status = [changes.plan.status for changes in host.rounds(60)]
    assert not +host.wrong
    assert set(status) <= {SolutionStatus.OPTIMAL, SolutionStatus.FEASIBLE}
    assert {"lost", "drained", "back", "resized", "cancelled", "refused"} <= set(+host.happened)


def test_each_decision_is_told_to_a_hook_and_the_log(caplog):
    """With seconds by stage that add up, one line, and a warning of a decision without time."""
    seen = []
    found = host(on_decision=seen.append)
    found.update(added=[{"id": name, "work": 1e4, "rates": ONE_NODE} for name in "ab"])
    with caplog.at_level(logging.INFO, logger="ronda"):
        found.decide()
        found.update(now_s=60.0, changed=[{"id": "a", "max_gpus": 2, "gpus": 2}])
        plan = found.decide(deadline_s=5.0).plan
    first, second = seen
    assert (first.jobs, first.running, first.started, first.now_s) == (2, 2, 2, 0.0)
    assert (second.resized, second.stopped, second.started) == (1, 0, 0)
    assert (second.gap, second.status, second.stop) == (plan.gap, plan.status, plan.stop)
    total_s = second.seconds.pop("total")
    assert sum(second.seconds.values()) == pytest.approx(total_s)
    assert min(second.seconds.values()) >= 0.0
    assert [r.levelno for r in caplog.records] == [logging.INFO] * 2
    assert "2 jobs, 2 run, 2 start" in caplog.messages[0]
    again = ronda.Embedded.restore(found.save(), on_decision=seen.append)
    with caplog.at_level(logging.WARNING, logger="ronda"):
        again.decide(deadline_s=1e-6)
    assert "what runs goes on (fallback)" in caplog.messages[-1]
    assert len(seen) == 3


def test_a_hook_that_fails_costs_no_decision(caplog):
    """It is logged with where it failed."""
    found = host(on_decision=lambda decided: decided.nothing)
    found.update(added=[{"id": "a", "gpus": 8, "rates": ONE_NODE}])
    assert set(found.decide().start) == {"a"}
    assert "on_decision failed" in caplog.text
    assert "AttributeError" in caplog.text


def test_nothing_is_printed_by_default(capfd):
    """Whatever is refused."""
    found = host()
    assert len(found.update(removed=["nobody"], errors="return")) == 1
    assert capfd.readouterr() == ("", "")


def test_checkpoints_closer_than_a_float_can_tell_lose_nothing():
    """Of 1e17 s with one each 1e-308 s; of 70 s with one each 30 s, 60 are kept."""
    for every, seconds, kept in ((1e-308, 1e17, 1e17), (30.0, 70.0, 60.0), (0.0, 70.0, 70.0)):
        assert Costs(checkpoint_s=every).kept_s(seconds) == kept
