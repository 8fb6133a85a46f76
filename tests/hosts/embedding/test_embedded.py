"""The façade: what it is told, what it says to change, and what it remembers."""

import inspect
import threading
import time
import warnings
from collections import Counter
from typing import ClassVar

import msgspec
import numpy as np
import pytest

import ronda
from ronda.formulations.prediction.sizes import VARIANCE, Sizes
from ronda.instances.clock import Deadline, checkpoint
from ronda.instances.cluster import GpuType, uniform_cluster
from ronda.instances.errors import InputError
from ronda.instances.job import Costs
from ronda.instances.models.sharing import narrowed
from ronda.instances.plan import Plan, SolutionStatus, StopReason
from ronda.instances.profile import AffineTime, NoiseScale, Parametric, Sharing
from ronda.solvers.contract import Capability
from ronda.solvers.policies.rigid.queues import Fifo
from tests.helpers.ways import ways

CLUSTER = uniform_cluster(GpuType(name="A100", memory_gib=40), 3, 8)
NET = ronda.Profile(
    name="net", throughput={"A100": Parametric(alpha_c_s=0.1, beta_c_s=0.01)}, base_batch=32.0
)
LINEAR = {n: float(n) for n in (1, 2, 4, 8, 16, 24)}
FLAT = {1: 1.0, 2: 1.1, 4: 1.2, 8: 1.3}


def host(policy="prices", **rest):
    """Return a façade of three nodes."""
    return ronda.Embedded(policy, CLUSTER, **rest)


def test_jobs_start_change_and_stop():
    """One job takes all; a second of which nothing is gained by more takes some of it."""
    found = host()
    found.update(added=[{"id": "a", "work": 1e5, "rates": ways(LINEAR)}])
    first = found.decide()
    assert first.start["a"].option.gpus == 24
    assert first.start["a"].placement == {"nodes-0": 8, "nodes-1": 8, "nodes-2": 8}
    found.update(now_s=60.0, added=[{"id": "b", "work": 10.0, "rates": ways(FLAT)}])
    second = found.decide()
    assert second.resize["a"].option.gpus == 16
    assert set(second.start) == {"b"}
    found.update(now_s=120.0, completed=["b"])
    assert found.decide().resize["a"].option.gpus == 24
    found.update(now_s=180.0, removed=["a"])
    assert found.jobs == ()
    last = found.decide()
    assert (last.start, last.stop, last.resize) == ({}, (), {})


def test_nothing_changes_when_nothing_has_happened():
    """The next decision says so."""
    found = host(costs=Costs(restart_s=30.0))
    found.update(
        added=[{"id": f"j{k}", "work": 500.0 * (k + 1), "rates": ways(LINEAR)} for k in range(4)]
    )
    found.decide()
    found.update(now_s=1.0)
    again = found.decide()
    assert (again.start, again.stop, again.resize) == ({}, (), {})


def test_pauses_and_progress_are_kept():
    """By hand: 8 of 24 samples/s x (60 - 30) s; the host's own report takes their place."""
    found = host(costs=Costs(start_s=30.0))
    found.update(added=[{"id": "a", "work": 1e5, "rates": ways(LINEAR)}])
    found.decide()
    found.update(now_s=60.0)
    state = found.round().running[0]
    assert state.since_s == 30.0
    assert state.done_at(60.0) == 24.0 * 30.0
    found.update(now_s=60.0, progress={"a": 700.0})
    assert found.round().running[0].done_at(60.0) == 700.0


def test_other_rates_count_from_now_on():
    """What was done was done at the old rate; what runs keeps its place."""
    found = host()
    found.update(added=[{"id": "a", "work": 1e5, "rates": ways(LINEAR)}])
    found.decide()
    found.update(now_s=10.0, measured={"a": ways({n: 0.5 * rate for n, rate in LINEAR.items()})})
    state = found.round().running[0]
    assert state.done_at(10.0) == 240.0
    assert state.done_at(20.0) == 240.0 + 120.0
    assert found.decide().resize == {}
    found.update(now_s=20.0, measured={"a": ways({8: 4.0})})  # no row for its 24 GPUs
    assert found.round().running[0].allocation.option.rate == 12.0
    found.decide()


@pytest.mark.parametrize("policy", ["prices", "milp", "fifo", "pollux-like"])
@pytest.mark.parametrize("speeds", ["given", "learnt"])
@pytest.mark.parametrize("firm", [False, True])
def test_a_job_that_lost_its_row_goes_on_or_is_resized(policy, speeds, firm):
    """Its limits followed from the rows: 1 to 8, now 1 to 4; what it holds is not taken from it."""
    found = host(policy, speeds=speeds)
    job = {"id": "a", "gpus": 4, "work": 1e5, "rates": ways({1: 1.0, 4: 3.0, 8: 5.0})}
    found.update(added=[job | {"preemptible": not firm}])
    before = found.decide().start["a"].option.gpus
    for second, rates in ((60.0, {1: 1.0, 2: 1.9}), (120.0, {2: 1.9}), (180.0, {1: 0.1, 8: 5.0})):
        found.update(now_s=second, measured={"a": ways(rates)})
        changes = found.decide()
        assert changes.stop == ()
        assert changes.plan.status is not SolutionStatus.FALLBACK
        assert not firm or found.running["a"].option.gpus == before


def test_a_job_keeps_more_than_its_application_was_measured_on():
    """The host moved it to 8 GPUs, none of its application was measured on any: no limit of 2."""
    found = host(profiles={"net": NET}, speeds="learnt")
    found.update(added=[{"id": "a", "profile": "net", "max_gpus": 8, "preemptible": False}])
    found.decide()
    found.update(now_s=60.0, running={"a": {1: 8}})
    assert found.decide().stop == ()
    assert found.running["a"].placement == ((1, 8),)


def test_a_speed_that_is_not_known_becomes_known():
    """Until then the job has what its user asked for, and the work it reports is only noted."""
    found = host()
    found.update(added=[{"id": "a", "gpus": 4}])
    assert found.decide().start["a"].option.gpus == 4
    found.update(now_s=60.0, progress={"a": 30.0})
    state = found.round().running[0]  # 4 GPUs for 60 s are all that is known of it
    likely = Sizes(np.array([480.0]), np.ones(1), np.sqrt(VARIANCE))
    told = state.done_at(60.0), state.job.estimate.work
    assert told == pytest.approx((240.0, 240.0 + likely.left(240.0)[0]))
    with pytest.raises(InputError, match="4 GPUs"):
        found.update(measured={"a": ways({8: 8.0})})
    found.update(now_s=61.0, measured={"a": ways(LINEAR)}, changed=[{"id": "a", "work": 1e5}])
    state = found.round().running[0]
    assert state.done_at(61.0) == 30.0
    assert state.job.estimate.work == 1e5
    assert found.decide().resize["a"].option.gpus == 24


@pytest.mark.parametrize("more", [{}, {"max_gpus": 8}])
def test_a_told_size_without_rates_counts_in_seconds(more):
    """On the GPUs that were asked for: 60 s come before 100 h, on what holds one of them."""
    jobs = [{"id": "long", "gpus": 24, "work": 3.6e5}, {"id": "short", "gpus": 24, "work": 60.0}]
    jobs = [job | more if more and job["gpus"] < more["max_gpus"] else job for job in jobs]
    for policy in ("prices", "milp", "srtf", "sjf"):
        assert [*ronda.solve(ronda.make_round(CLUSTER, jobs), policy).allocations] == ["short"]
        found = ronda.Embedded(policy, CLUSTER)
        found.update(added=jobs)
        assert [*found.decide().start] == ["short"]
    found.update(now_s=20.0)
    (state,) = found.round().running
    assert (state.done_at(20.0), state.job.estimate.work) == (20.0, 60.0)
    found.update(now_s=30.0, progress={"short": 10.0}, changed=[{"id": "short", "work": 90.0}])
    (state,) = found.round().running
    assert (state.done_at(30.0), state.job.estimate.work) == (10.0, 90.0)


def test_a_size_in_seconds_counts_in_the_unit_of_the_first_rates():
    """Nothing was reported: 60 s at 3 a second; a reported amount is in that unit already."""
    found = host()
    found.update(added=[{"id": name, "gpus": 4, "work": 1e5} for name in "ab"])
    found.decide()
    found.update(now_s=60.0, progress={"b": 50.0})
    found.update(changed=[{"id": "a", "weight": 2.0}])
    with pytest.raises(InputError, match="4 GPUs"):
        found.update(measured={"a": ways({8: 8.0})})
    found.update(measured={"a": ways({4: 3.0}), "b": ways({4: 3.0})})
    done = {s.job.id: s.done_at(60.0) for s in found.round().running}
    assert done == {"a": 180.0, "b": 50.0}


def test_sizes_are_learnt_from_jobs_alike():
    """Two of the application took 100; a third one is believed to."""
    found = host()
    alike = {"application": "bert", "rates": ways(LINEAR)}
    found.update(added=[{"id": f"j{k}", "user": "eve"} | alike for k in range(2)])
    assert found.round().waiting[0].job.estimate is None
    found.update(completed={"j0": 100.0, "j1": 100.0}, added=[{"id": "j2", "user": "eve"} | alike])
    assert found.round().waiting[0].job.estimate.work == pytest.approx(100.0)
    none = host(history=False)
    none.update(added=[{"id": "j0"} | alike])
    none.update(completed={"j0": 100.0}, added=[{"id": "j2"} | alike])
    assert none.round().waiting[0].job.estimate is None


def test_rates_count_as_told_last_where_speeds_are_learnt():
    """They are no model that is to be learnt."""
    found = host(speeds="learnt")
    found.update(added=[{"id": "a", "rates": ways({8: 1.0})}])
    found.decide()
    found.update(now_s=60.0, measured={"a": ways({8: 3.0})})
    found.decide()
    assert found.round().profiles["rates of a"].throughput["A100"].rate == (3.0,)


def test_work_before_the_first_rates_is_done_at_these():
    """Nothing was reported: 4 GPUs for 60 s, of which 30 s were a pause, at 3 a second."""
    found = host(costs=Costs(start_s=30.0))
    found.update(added=[{"id": "a", "gpus": 4, "work": 1e5}])
    found.decide()
    found.update(now_s=60.0, measured={"a": ways({4: 3.0, 8: 5.0})})
    assert found.round().running[0].done_at(60.0) == 90.0


def test_models_that_jobs_share_are_given_or_learnt():
    """A given one has its speed; one to be learnt has that of the steps that a job measures."""
    model = ronda.Profile(
        name="net",
        throughput={"A100": Parametric(alpha_c_s=0.1, beta_c_s=0.01)},
        base_batch=32.0,
    )
    job = {"id": "a", "profile": "net", "gpus": 2, "max_gpus": 8, "work": 1e6}
    given = host(profiles={"net": model})
    given.update(added=[job])
    assert given.decide().start["a"].option.gpus == 8
    learnt = host(profiles={"net": model}, speeds="learnt")
    learnt.update(added=[job])
    assert learnt.decide().start["a"].option.gpus == 2
    learnt.update(now_s=9.0, measured={"a": ronda.StepTime(compute_s=0.52, sync_s=0.02)})
    shown = learnt.round().profiles["net"].throughput["A100"]
    assert shown.alpha_c_s + 16 * shown.beta_c_s == pytest.approx(0.52)


def test_the_host_says_what_runs():
    """Its word counts, by name of node, number, or a node for each GPU."""
    found = host(node_names=["x", "y", "z"])
    found.update(added=[{"id": "a", "work": 1e3, "rates": ways(LINEAR | {3: 2.9})}])
    found.decide()
    found.update(now_s=5.0, running={"a": ["y", "y", "y"]})
    assert found.running["a"].placement == ((1, 3),)
    found.update(now_s=6.0, running={"a": {2: 4}})
    assert found.running["a"].placement == ((2, 4),)
    found.update(now_s=7.0, running={"a": None})
    assert found.running == {}
    assert found.decide().start["a"].placement == {"x": 8, "y": 8, "z": 8}


def test_a_power_cap_holds_as_soon_as_it_is_told():
    """16 GPUs draw 1,600 W, idle ones 50 W each, or nothing if their node sleeps."""
    cluster = uniform_cluster(GpuType(name="A100", memory_gib=40, idle_w=50), 3, 8)
    found = ronda.Embedded("prices", cluster)
    rates = {n: (rate, 100.0 * n) for n, rate in LINEAR.items()}
    found.update(added=[{"id": "a", "work": 1e5, "rates": ways(rates)}], power_cap_w=2000.0)
    assert found.decide().start["a"].option.gpus == 16
    found.update(now_s=60.0, power_cap_w=1600.0)
    asleep = found.decide()
    assert (asleep.resize, len(asleep.asleep)) == ({}, 1)
    found.update(now_s=90.0, power_cap_w=1100.0)
    assert found.decide().resize["a"].option.gpus == 8
    found.update(now_s=120.0, power_cap_w=float("inf"))
    assert found.decide().resize["a"].option.gpus == 24


def test_an_update_counts_as_a_whole_or_not_at_all():
    """What was wrong is named, and nothing of the rest has happened."""
    found = host()
    found.update(now_s=5.0, added=[{"id": "a", "rates": ways(LINEAR)}])
    for bad in (
        {"added": [{"id": "b", "rates": ways(LINEAR)}, {"id": "a", "rates": ways(LINEAR)}]},
        {"removed": ["a", "nobody"]},
        {"completed": ["a"], "progress": {"a": 1.0}},
        {"progress": {"a": -1.0}},
        {"measured": {"a": ways({8: -1.0})}},
        {"now_s": 4.0},
        {"running": {"a": {0: 3}}},
    ):
        before = found.save()
        with pytest.raises(InputError):
            found.update(**bad)
        assert found.save() == before
    assert found.decide().start["a"].option.gpus == 24


class Odd:
    """Of no type that a host would hand over; shown in two lines."""

    def __repr__(self):
        """Return two lines."""
        return "<odd\nobject>"


WRONG = ("x", b"x", -1, 10**400, float("nan"), Odd(), object, [["a"]], {"a": []}, {"a": Odd()})
WRONG += ({1: {2: 3}}, {"a": {0: 10**40}}, {"a": {(1, (2,)): 3}}, {"a": lambda *_: 1 / 0}, 7)
WRONG += ({"a": {"gpus": 8, "rate": (1, "x")}}, {"a": {"gpus": 1e300, "rate": 1.0}}, [None])
WRONG += ({"a": [(0,)]}, {"a": [np.ones(2)]}, {"a": {8: 1.0}}, {"a": {"gpus": {}, "rate": 1}})


@pytest.mark.parametrize("wrong", WRONG, ids=range(len(WRONG)))
@pytest.mark.parametrize("argument", list(inspect.signature(ronda.Embedded.update).parameters)[1:])
def test_a_wrong_type_is_refused_in_one_line_or_is_right(argument, wrong):
    """Whatever stands there; after a refusal the state is as before, and a decision is made."""
    found = host()
    found.update(added=[{"id": "a", "rates": ways(LINEAR)}])
    before, said = found.save(), ""
    try:
        found.update(**{argument: wrong})
    except InputError as error:
        said = str(error)
    assert said.isprintable()
    assert not said or found.save() == before
    assert found.decide().plan.status is not SolutionStatus.FALLBACK


def test_a_wrong_field_of_a_job_is_refused_in_one_line():
    """Fields that no job has, too."""
    for field in ("gpus", "profile", "rates", "work", "costs", 3, Odd()):
        with pytest.raises(InputError) as caught:
            host().update(added=[{"id": "a", field: {"odd": Odd()}}])
        assert str(caught.value).isprintable()


def test_what_is_said_to_run_must_fit():
    """By hand: 8 GPUs a node; 16 on one, or 5 beside 4; and nodes of types that a job may use."""
    found = host()
    rates = {(4, 1): 1.0, (5, 1): 1.1, (16, 1): 2.0, (16, 2): 2.0}
    found.update(added=[{"id": name, "rates": ways(rates), "preemptible": False} for name in "ab"])
    for running, said in (
        ({"a": {0: 16}}, "16 GPUs in use"),
        ({"a": {1: 5}, "b": {1: 4}}, "9 GPUs in use"),
    ):
        with pytest.raises(InputError, match=said):
            found.update(running=running)
    found.update(running={"a": {1: 4}, "b": {1: 4}})
    with pytest.raises(InputError, match="9 GPUs in use"):
        found.update(running={"a": {1: 5}})
    assert found.decide().stop == ()
    types = (GpuType(name="A", memory_gib=1), GpuType(name="B", memory_gib=1))
    groups = [
        ronda.NodeGroup(name=t.name, count=1, gpus_per_node=8, gpu_type=t.name) for t in types
    ]
    rates = {"gpus": 4, "gpu_type": ["A", "B"], "rate": 1.0}
    two = ronda.Embedded("fifo", ronda.Cluster(gpu_types=types, node_groups=tuple(groups)))
    two.update(added=[{"id": "a", "gpu_types": ["A"], "rates": rates}])
    with pytest.raises(InputError, match="GPUs that it may use"):
        two.update(running={"a": {1: 4}})


def test_jobs_that_share_a_gpu_are_told_their_array():
    """Twelve of a class on four GPUs: four arrays of three. Those that are left go on unnamed.

    T(3) = 1.3 s against T(2) = 1.2 s: two go on 1.3/1.2 times as fast as three, without a pause.
    """
    curves = [
        Sharing(mode=mode, time=AffineTime(alpha_s=1.0, beta_s=0.1))
        for mode in ("exclusive", "fused")
    ]
    net = msgspec.structs.replace(NET, sharing={"A100": tuple(curves)})
    cluster = uniform_cluster(GpuType(name="A100", memory_gib=40), 1, 4)
    found = ronda.Embedded("prices+fused", cluster, profiles={"net": net})
    job = {"profile": "net", "fusible": "class"}
    found.update(added=[{"id": f"j{k}", "work": 1e4 * (k + 1)} | job for k in range(12)])
    start = found.decide().start
    members = Counter(place.array for place in start.values())
    assert sorted(members.values()) == [3, 3, 3, 3]
    assert {place.option.mode for place in start.values()} == {"fused"}
    mates = [j for j, place in start.items() if place.array == start["j0"].array and j != "j0"]
    found.update(now_s=60.0, completed=["j0"])
    held = [found.running[job] for job in mates]
    assert {a.option.width for a in held} == {2}
    assert held[0].option.rate == pytest.approx(start["j0"].option.rate * 1.3 / 1.2)
    changes = found.decide()
    assert not set(mates) & (set(changes.resize) | set(changes.stop))
    assert changes.plan.status is not SolutionStatus.FALLBACK


class Leaving:
    """FIFO with arrays as they are, but for one job that it stops."""

    name, capabilities = "leaving", Capability.ARRAYS

    def __init__(self, job):
        self.job = job

    def plan(self, round, *, deadline, seed, initial=None):
        """Let the others of its array go on without the job."""
        kept = {job: held for job, held in round.held.items() if job != self.job}
        jobs = {state.job.id: state.job for state in round.jobs}
        return Plan(allocations=kept | narrowed(kept, jobs, round.profiles, round.cluster))


def test_a_plan_lets_an_array_go_on_without_a_job():
    """Two go on as two, from now on, and owe no pause though a change costs 30 s."""
    time = AffineTime(alpha_s=1.0, beta_s=0.1)
    sharing = tuple(Sharing(mode=mode, time=time) for mode in ("exclusive", "fused"))
    net = msgspec.structs.replace(NET, sharing={"A100": sharing})
    cluster = uniform_cluster(GpuType(name="A100", memory_gib=40), 1, 1)
    costs = Costs(restart_s=30.0)
    found = ronda.Embedded("prices+fused", cluster, profiles={"net": net}, costs=costs)
    job = {"profile": "net", "fusible": "class"}
    found.update(added=[{"id": f"j{k}", "work": 1e4} | job for k in range(3)])
    assert len(found.decide().start) == 3
    found.update(now_s=60.0)
    left = ronda.Embedded.restore(found.save(), Leaving("j0"))
    changes = left.decide()
    assert (changes.stop, changes.resize, changes.retune) == (("j0",), {}, {})
    after = {state.job.id: state for state in left.round().running}
    assert {of.allocation.option.width for of in after.values()} == {2}
    assert {(of.since_s, of.held_s, of.restarts) for of in after.values()} == {(60.0, 60.0, 0)}


def test_a_job_waits_for_nodes_that_wake():
    """Nodes take 40 s to wake, a start 5 s: from 100 s on it progresses at 145 s."""
    cluster = uniform_cluster(
        GpuType(name="A100", memory_gib=40, idle_w=50), 2, 8, sleep_w=1.0, wake_s=40.0
    )
    found = ronda.Embedded("race-to-idle", cluster, costs=Costs(start_s=5.0))
    assert found.decide().asleep == ("nodes-0", "nodes-1")
    found.update(now_s=100.0, added=[{"id": "a", "gpus": 8, "rates": ways({8: 1.0})}])
    assert list(found.decide().start) == ["a"]
    (state,) = found.round().running
    assert (state.since_s, state.pause_s) == (145.0, 5.0)


class Scripted(Fifo):
    """Lets all nodes sleep, then none; from then on FIFO."""

    name, capabilities = "scripted", Capability.SLEEPS

    def __init__(self):
        self.asleep = [(0,), ()]

    def plan(self, round, *, deadline, seed, initial=None):
        """Follow the script, then decide."""
        if self.asleep:
            return Plan(policy=self.name, asleep=self.asleep.pop(0))
        return super().plan(round, deadline=deadline, seed=seed, initial=initial)


def test_a_node_that_still_wakes_is_not_awake():
    """Ordered to wake at 10 s, in 120 s: a job of 20 s waits until 130 s, and 900 W are not free.

    8 x 50 W idle; of a cap of 2,000 W its waking leaves 1,100 to jobs and all nodes.
    """
    cluster = uniform_cluster(
        GpuType(name="A100", memory_gib=40, idle_w=50),
        1,
        8,
        sleep_w=1.0,
        wake_s=120.0,
        wake_w=900.0,
    )
    found = ronda.Embedded(Scripted(), cluster)
    found.update(power_cap_w=2000.0)
    assert found.decide().asleep == ("nodes-0",)
    found.update(now_s=10.0)
    assert found.decide().asleep == ()
    found.update(now_s=20.0, added=[{"id": "a", "gpus": 8, "rates": ways({8: 1.0})}])
    assert (found.round().waking, found.round().power_cap_w) == ((0,), 1100.0)
    assert list(found.decide().start) == ["a"]
    assert found.round().running[0].since_s == 130.0
    found.update(now_s=130.0)
    assert (found.round().waking, found.round().power_cap_w) == ((), 2000.0)


def test_an_array_begins_when_all_its_jobs_are_ready():
    """Their starts take 0, 10 and 20 s: as in a run, nobody progresses before 20 s."""
    time = AffineTime(alpha_s=1.0, beta_s=0.1)
    sharing = tuple(Sharing(mode=mode, time=time) for mode in ("exclusive", "fused"))
    net = msgspec.structs.replace(NET, sharing={"A100": sharing})
    cluster = uniform_cluster(GpuType(name="A100", memory_gib=40), 1, 1)
    found = ronda.Embedded("prices+fused", cluster, profiles={"net": net})
    job = {"profile": "net", "fusible": "class", "work": 1e4}
    found.update(added=[{"id": f"j{k}", "costs": {"start_s": 10.0 * k}} | job for k in range(3)])
    assert len({place.array for place in found.decide().start.values()}) == 1
    assert [state.since_s for state in found.round().running] == [20.0, 20.0, 20.0]


def test_a_change_of_batch_alone_is_told_apart():
    """Noise says that a larger batch is worth more: same GPUs, no requeue."""
    rates = {"gpus": [8, 8], "batch": [32, 64], "rate": [1.0, 0.9]}
    found = host()
    found.update(added=[{"id": "a", "gpus": 8, "batch": 32, "work": 1e5, "rates": rates}])
    assert found.decide().start["a"].option.batch == 32.0
    found.update(now_s=60.0, measured={"a": rates | {"rate": [1.0, 9.0]}})
    changes = found.decide()
    assert (changes.resize, changes.retune["a"].option.batch) == ({}, 64.0)


def history(found):
    """Tell a façade of some rounds; return what it said."""
    said = []
    for k in range(6):
        new = [{"id": f"j{k}", "application": f"app{k % 2}", "user": "u", "rates": ways(LINEAR)}]
        done = {"completed": {f"j{k - 3}": 50.0}} if k >= 3 else {}
        found.update(now_s=60.0 * k, added=new, **done)
        said.append(found.decide())
    return said


def test_saved_and_restored_it_goes_on_as_if_nothing_had_happened(tmp_path):
    """To the last digit, from bytes and from a file; also with another policy."""
    whole, saved = host(seed=3), host(seed=3)
    history(whole), history(saved)
    path = tmp_path / "state"
    data = saved.save(path)
    for again in (ronda.Embedded.restore(data), ronda.Embedded.restore(path)):
        assert again.round() == whole.round()
        assert again.save() == ronda.Embedded.restore(again.save()).save()
    again = ronda.Embedded.restore(data)
    for each in (whole, again):
        each.update(now_s=400.0, added=[{"id": "new", "application": "app1", "rates": ways(FLAT)}])
    first, second = whole.decide(), again.decide()
    assert first.plan.allocations == second.plan.allocations
    assert first.plan.prices == second.plan.prices
    ronda.Embedded.restore(data, policy="fifo").decide()


@pytest.mark.parametrize("data", [b"", b"\x80", b"no state at all"])
def test_what_is_no_saved_state_is_refused(data):
    """In one line."""
    with pytest.raises(InputError, match="saved state"):
        ronda.Embedded.restore(data)


class Broken(Fifo):
    """Fails from the second decision on."""

    name = "broken"

    def plan(self, round, *, deadline, seed, initial=None):
        """Fail as soon as something runs."""
        if round.running:
            raise RuntimeError("out of luck")
        return super().plan(round, deadline=deadline, seed=seed, initial=initial)


def test_whatever_a_policy_does_there_is_an_answer():
    """What runs keeps running, what fits starts, and the plan says why."""
    found = host(Broken())
    found.update(added=[{"id": "a", "gpus": 8, "rates": ways(LINEAR)}])
    found.decide()
    found.update(now_s=60.0, added=[{"id": "b", "gpus": 8, "rates": ways(LINEAR)}])
    changes = found.decide()
    assert set(changes.start) == {"b"}
    assert "out of luck" in changes.plan.record.message
    assert changes.plan.status is SolutionStatus.FALLBACK


class Stubborn:
    """Puts every job where the first one was put."""

    name, capabilities = "stubborn", Capability.NONE
    first = None

    def plan(self, round, *, deadline, seed, initial=None):
        """Remember what the first job got."""
        if self.first is None:
            made = Fifo().plan(round, deadline=deadline, seed=seed, initial=initial)
            (self.first,) = made.allocations.values()
        jobs = [state.job.id for state in round.jobs]
        return Plan(policy=self.name, allocations=dict.fromkeys(jobs, self.first))


def test_only_plans_that_can_be_carried_out_are():
    """No second job on GPUs in use, and no move of a job that may not."""
    found = host(Stubborn())
    found.update(added=[{"id": "a", "gpus": 8, "rates": ways(LINEAR), "preemptible": False}])
    assert found.decide().start["a"].placement == {"nodes-0": 8}
    found.update(now_s=60.0, added=[{"id": "b", "gpus": 8, "rates": ways(LINEAR)}])
    second = found.decide()
    assert "capacity" in second.plan.record.message
    assert second.start["b"].placement == {"nodes-1": 8}
    found.update(now_s=120.0, removed=["b"], running={"a": {2: 8}})
    third = found.decide()
    assert "must-run" in third.plan.record.message
    assert found.running["a"].placement == ((2, 8),)
    found.update(now_s=180.0, removed=["a"], added=[{"id": "c", "gpus": 8, "rates": ways(LINEAR)}])
    assert found.decide().plan.status is SolutionStatus.FEASIBLE


class Endless:
    """Builds for ever, as its checkpoints tell it to stop."""

    name, capabilities = "endless", Capability.NONE

    def __init__(self):
        self.began = threading.Event()

    def plan(self, round, *, deadline, seed, initial=None):
        """Wait for the end."""
        self.began.set()
        while True:
            checkpoint()
            time.sleep(0.001)


def test_a_decision_is_cancelled_by_another_thread():
    """It changes nothing, and the next one is made as usual."""
    policy = Endless()
    found = host(policy)
    found.update(added=[{"id": "a", "gpus": 8, "rates": ways(LINEAR)}])
    said = []
    thread = threading.Thread(target=lambda: said.append(found.decide()), daemon=True)
    thread.start()
    assert policy.began.wait(10)
    found.cancel()
    thread.join(10)
    assert said[0].cancelled
    assert found.running == {}
    again = ronda.Embedded.restore(found.save(), policy="fifo")
    assert set(again.decide().start) == {"a"}


def test_two_threads_decide_in_turns():
    """Each with a façade of its own: solvers of one process do not block each other."""
    hosts, said = [host("milp"), host("prices")], []

    def work(found):
        for k in range(3):
            found.update(now_s=60.0 * k, added=[{"id": f"j{k}", "rates": ways(LINEAR)}])
            said.append(found.decide(deadline_s=20.0))

    threads = [threading.Thread(target=work, args=(found,)) for found in hosts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(said) == 6
    assert not any(each.plan.status is SolutionStatus.NONE for each in said)


def test_a_deadline_is_cut_with_what_there_is():
    """No time at all: what runs keeps running."""
    deadline = Deadline(1.0, cancelled=threading.Event())
    deadline.cancelled.set()
    assert deadline.left() == 0.0
    assert deadline.sooner(0.5).over()
    found = host()
    found.update(added=[{"id": f"j{k}", "work": 9.0, "rates": ways(LINEAR)} for k in range(30)])
    plan = found.decide(deadline_s=1e-6).plan
    assert plan.stop is StopReason.TIME_LIMIT
    assert ronda.check(found.round(), plan) is not None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"node_names": ["a", "b"]}, "node_names"),
        ({"speeds": "odd"}, "speeds"),
    ],
)
def test_settings_are_checked(given, said):
    """At once."""
    with pytest.raises(InputError, match=said):
        host(**given)


def learning(**rest):
    """Return a façade of an application whose steps are to be learnt, and a job of it."""
    net = ronda.unmeasured_profile("net", CLUSTER, base_batch=32, max_batch=512)
    found = host(profiles={"net": net}, speeds="learnt", **rest)
    found.update(added=[{"id": "a", "profile": "net", "max_gpus": 8, "application": "net"}])
    found.decide()
    return found


def test_gradient_noise_says_what_a_batch_is_worth():
    """Steps of 0.1 s and 1 ms a sample: a batch of 512 is 512/0.612 samples/s, of 32 32/0.132.

    With a noise scale of 0 a sample of 512 is worth 32/512, of 10^6 as much as one of 32.
    """
    found = learning()
    step = ronda.StepTime(compute_s=0.132, local_batch=32.0)
    found.update(now_s=30.0, measured={"a": step}, noise={"a": 0.0})
    found.update(measured={"a": ronda.StepTime(compute_s=0.164, local_batch=64.0)})
    kept = found.decide()
    assert (kept.retune, found.running["a"].option.batch) == ({}, 32.0)
    found.update(now_s=45.0, noise={"a": 1e6})
    changes = found.decide()
    assert (changes.resize | changes.retune)["a"].option.batch > 256.0
    found.update(now_s=50.0, added=[{"id": "b", "profile": "net", "application": "net"}])
    b = next(s for s in found.round().waiting if s.job.id == "b")
    assert b.noise.scale == (0.0,)  # that with which the last one of its application began
    noise = NoiseScale(batches=(64.0, 32.0), scale=(1.0, 1.0))
    with pytest.raises(InputError, match="ascending"):
        found.update(noise={"a": noise})


def test_noise_that_nobody_tells_is_missed_once():
    """As soon as a job has run for a round, and not where it has a batch of its own."""
    found = learning()
    found.update(now_s=59.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found.decide()
        found.update(now_s=60.0, noise={"a": 9.0})
        found.decide()
        own = learning()
        own.update(now_s=60.0, changed=[{"id": "a", "batch": 64.0}])
        own.decide()
    silent = learning()
    silent.update(now_s=60.0)
    with pytest.warns(UserWarning, match="noise of job 'a' is not told"):
        silent.decide()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        silent.decide()


def test_fields_of_a_live_job_are_told_again():
    """Its size, and limits: what is not told stays, and what cannot be is refused."""
    found = host()
    found.update(
        added=[{"id": "a", "work": 1e3, "weight": 2.0, "rates": ways(LINEAR), "max_gpus": 8}]
    )
    assert found.decide().start["a"].option.gpus == 8
    found.update(now_s=60.0, changed=[{"id": "a", "work": 5e4, "max_gpus": 24}])
    job = found.round().running[0].job
    assert (job.estimate.work, job.weight, job.max_gpus) == (5e4, 2.0, 24)
    assert found.round().running[0].done_at(60.0) == 480.0
    assert found.decide().resize["a"].option.gpus == 24
    found.update(now_s=90.0, changed=[{"id": "a", "max_gpus": 8, "preemptible": False}])
    assert found.decide().resize == {}
    for row, said in (
        ({"id": "b"}, 'job "b"'),
        ({"id": "a", "submit_s": 1.0}, "submit_s"),
        ({"id": "a", "rates": {}}, "rates"),
        ({"id": "a", "wieght": 2.0}, "weight"),
        ({"id": "a", "min_gpus": 99}, "min_gpus"),
        ({"id": "a", "gpus": 9, "max_gpus": 8}, "gpus"),
        ({"id": "a", "work": -2.0}, "work"),
    ):
        before = found.save()
        with pytest.raises(InputError, match=said):
            found.update(changed=[row])
        assert found.save() == before


def test_jobs_of_an_application_share_rates():
    """The second one starts on what the first one was measured on last, instead of one GPU."""
    found = host()
    found.update(added=[{"id": "a", "application": "net", "work": 1e4}])
    assert found.decide().start["a"].option.gpus == 1
    found.update(now_s=60.0, measured={"a": ways({1: 1.0, 2: 1.9, 4: 3.5, 8: 6.0})})
    found.update(now_s=61.0, measured={"a": ways({1: 1.0, 2: 1.9})})  # no less is known for that
    found.update(completed={"a": 100.0}, added=[{"id": "b", "application": "net"}])
    found.update(added=[{"id": "c", "application": "other"}])
    start = found.decide().start
    assert (start["b"].option.gpus, start["b"].option.rate, start["c"].option.gpus) == (8, 6.0, 1)


def test_machines_come_and_go():
    """What runs on nodes of the same names goes on; on others it stops, and starts elsewhere."""
    found = host(node_names=["x", "y", "z"], costs=Costs(restart_s=30.0))
    rates = {(8, 1): 1.0}
    found.update(added=[{"id": name, "work": 1e5, "rates": ways(rates)} for name in "abc"])
    on = {job: next(iter(place.placement)) for job, place in found.decide().start.items()}
    wide = uniform_cluster(GpuType(name="A100", memory_gib=40), 2, 8)
    found.update(now_s=60.0, cluster=wide, node_names=["z", "y"])
    stays = {job for job, node in on.items() if node in "zy"}
    assert set(found.running) == stays
    assert {found.running[job].placement for job in stays} == {((0, 8),), ((1, 8),)}
    changes = found.decide()
    assert not set(changes.stop) & stays or len(changes.start) == len(changes.stop)
    small = uniform_cluster(GpuType(name="A100", memory_gib=40), 1, 4)
    found.update(now_s=90.0, cluster=small, node_names=["y"])
    assert found.running == {}
    found.update(now_s=99.0, added=[{"id": "d", "gpus": 2}])
    assert found.decide().start["d"].placement == {"y": 2}
    found.update(cluster=wide, node_names=["y", "z"], removed=["a", "b", "c", "d"])
    found.update(added=[{"id": "w", "work": 1e5, "rates": ways({16: 2.0})}])
    assert found.decide().start["w"].placement == {"y": 8, "z": 8}
    found.update(cluster=wide, node_names=["z", "x"])
    assert found.running == {}  # one of its two nodes is gone
    before = found.save()
    with pytest.raises(InputError, match="2, one a node"):
        found.update(cluster=wide, node_names=["y"])
    assert found.save() == before


class Watching(Fifo):
    """Notes the plan that it may start from."""

    name = "watching"
    seen: ClassVar[list] = []

    def plan(self, round, *, deadline, seed, initial=None):
        """Decide as usual."""
        self.seen.append(initial)
        return super().plan(round, deadline=deadline, seed=seed, initial=initial)


def test_a_plan_of_other_machines_is_no_start():
    """It speaks of their nodes."""
    policy = Watching()
    found = ronda.Embedded(policy, CLUSTER)
    found.update(added=[{"id": "a", "rates": ways(LINEAR)}])
    found.decide()
    found.update(now_s=1.0)
    found.decide()
    found.update(node_names=["x", "y", "z"])
    found.decide()
    assert [initial is None for initial in policy.seen] == [True, False, True]


def test_models_come_later_and_know_more():
    """A job of an application joins its model once there is one, and keeps what it has done."""
    found = host(speeds="learnt")
    found.update(added=[{"id": "a", "application": "net", "gpus": 2}])
    found.decide()
    small = ronda.unmeasured_profile("net", CLUSTER, base_batch=32, local_batch=(8, 64))
    found.update(now_s=60.0, profiles={"net": small})
    found.update(changed=[{"id": "a", "profile": "net", "min_gpus": 1, "max_gpus": 8}])
    found.update(progress={"a": 640.0}, measured={"a": ronda.StepTime(compute_s=0.1)})
    assert found.round().running[0].done == 640.0
    assert found.decide().resize["a"].option.gpus == 4  # twice as many as were measured
    other = ronda.unmeasured_profile("net", CLUSTER, base_batch=32, max_gpus=1)
    with pytest.raises(InputError, match="what job 'a' runs on"):
        found.update(profiles={"net": other})
    wide = ronda.unmeasured_profile("net", CLUSTER, base_batch=32, local_batch=(4, 64))
    found.update(now_s=90.0, profiles={"net": wide})
    shown = found.round().profiles["net"].throughput["A100"]
    assert min(shown.local_batch) == 4.0
    assert max(shown.step_s) == pytest.approx(0.4)  # measured: 0.1 s for 16 samples; for 64


@pytest.mark.parametrize(
    "argument",
    [
        "now_s",
        "added",
        "removed",
        "completed",
        "progress",
        "measured",
        "running",
        "noise",
        "changed",
        "profiles",
        "cluster",
        "node_names",
        "power_cap_w",
        "nodes",
        "nodes_added",
        "errors",
    ],
)
@pytest.mark.parametrize("odd", [np.array([1, 2]), np.array([]), np.array([["a"]])])
def test_an_array_is_taken_or_refused_in_one_line(argument, odd):
    """Wherever it stands; an empty list of jobs is one."""
    if not odd.size and argument in ("added", "removed", "completed", "changed"):
        assert host().update(**{argument: odd}) == ()
        return
    with pytest.raises(InputError) as refused:
        host().update(**{argument: odd})
    assert "\n" not in str(refused.value)


def test_jobs_are_named_by_an_array():
    """As by a list, numbers as numbers."""
    found = host()
    found.update(added=np.array([{"id": "a"}, {"id": "b"}]))
    found.update(removed=np.array(["a"]))
    assert found.jobs == ("b",)
    with pytest.raises(InputError, match="job 7"):
        found.update(completed=np.array([7]))


def test_a_step_and_a_new_limit_come_in_one_message():
    """The step was measured on what the job may not have any more."""
    profile = ronda.unmeasured_profile("net", CLUSTER, base_batch=32.0)
    found = host(profiles={"net": profile}, speeds="learnt")
    found.update(added=[{"id": "a", "profile": "net", "gpus": 8, "min_gpus": 8, "max_gpus": 8}])
    found.decide()
    step, row = ronda.StepTime(compute_s=0.5), {"id": "a", "gpus": 2, "min_gpus": 1, "max_gpus": 4}
    assert found.update(now_s=60.0, changed=[row], measured={"a": step}) == ()
    assert found.decide().resize["a"].option.gpus <= 4
    ((where, _),) = msgspec.msgpack.decode(found.save())["believed"]["measured"]
    assert where == ["net", "A100"]


def test_who_restores_is_warned_that_nobody_is_told():
    """A hook cannot be saved; one that is handed over is told."""
    told = []
    saved = host(on_decision=told.append).save()
    with pytest.warns(UserWarning, match="on_decision"):
        ronda.Embedded.restore(saved)
    found = ronda.Embedded.restore(saved, on_decision=told.append)
    found.decide()
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ronda.Embedded.restore(host().save())


def test_numpy_numbers_in_a_pair_are_numbers():
    """Of a model that is not measured; elsewhere they are refused by their place."""
    local = (np.int64(8), np.int64(64))
    net = ronda.unmeasured_profile("net", CLUSTER, base_batch=np.int64(32), local_batch=local)
    assert (type(net.min_local_batch), type(net.base_batch)) == (int, int)
    by_type = ronda.unmeasured_profile("net", CLUSTER, local_batch={"A100": local})
    host(profiles={"net": net}).update(profiles={"net": by_type})
    odd = msgspec.structs.replace(NET, base_batch=np.float32(32.0))
    with pytest.raises(InputError, match=r"profiles.net.base_batch"):
        host(profiles={"net": odd})


def test_a_rate_of_one_is_what_is_believed_now():
    """The unmeasured rate, 32 samples in 32 s, stands for none: an option may leave it out.

    Measured, a step of 32 samples takes 0.3 s: 106.7 a second for what runs, wherever it goes on.
    """
    net = ronda.unmeasured_profile("net", CLUSTER, base_batch=32.0)
    found = host(profiles={"net": net}, speeds="learnt")
    alike = {"profile": "net", "application": "net"}
    found.update(added=[{"id": name} | alike for name in "ab"])
    assert {place.option.rate for place in found.decide().start.values()} == {1.0}
    found.update(now_s=60.0, measured={"a": ronda.StepTime(compute_s=0.3)})
    before = found.round()
    rates = [state.allocation.option.rate for state in before.running]
    assert rates == pytest.approx([32 / 0.3] * 2)
    plan = found.decide().plan
    assert ronda.check(before, plan) == []


@pytest.mark.parametrize("row", [{"gpus": 4}, {"gpus": 4, "rates": ways({4: 1.0})}])
def test_a_step_tells_nothing_of_a_job_without_profile(row):
    """It is refused: no model of other jobs would learn from it."""
    found = host(speeds="learnt")
    found.update(added=[{"id": "a"} | row])
    found.decide()
    with pytest.raises(InputError, match="job without profile"):
        found.update(now_s=9.0, measured={"a": ronda.StepTime(compute_s=0.3)})


def test_a_size_that_is_told_later_counts_from_then_on():
    """Of a job that runs, too: after 60 s of 100 it has 40 s to go."""
    found = host()
    found.update(added=[{"id": "a", "gpus": 4}])
    found.decide()
    found.update(now_s=60.0, changed=[{"id": "a", "work": 100.0}])
    (state,) = found.round().running
    assert (state.done_at(60.0), state.job.estimate.work) == (60.0, 100.0)
    assert found.decide().plan.allocations["a"].option.rate == 1.0


def test_a_model_that_no_job_has_may_go_and_come_again():
    """One that a job has may not; what was learnt of it stays: 32 samples in 0.3 s."""
    net = ronda.unmeasured_profile("net", CLUSTER, base_batch=32.0)
    found = host(profiles={"net": net}, speeds="learnt")
    found.update(added=[{"id": "a", "profile": "net"}])
    found.decide()
    found.update(now_s=60.0, measured={"a": ronda.StepTime(compute_s=0.3)})
    with pytest.raises(InputError, match="model of job 'a'"):
        found.update(profiles={"net": None})
    found.update(completed=["a"], profiles={"net": None, "never": None})
    with pytest.raises(InputError, match="handed over"):
        found.update(added=[{"id": "b", "profile": "net"}])
    found.update(profiles={"net": net}, added=[{"id": "b", "profile": "net"}])
    assert found.decide().start["b"].option.rate == pytest.approx(32 / 0.3)
