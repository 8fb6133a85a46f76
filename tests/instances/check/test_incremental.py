"""The incremental check finds what the check from scratch finds."""

import random

import hypothesis.strategies as st
import pytest
from hypothesis import event, given, settings
from msgspec.structs import replace

from ronda.instances.check import incremental as ledger_module
from ronda.instances.check.checker import Ledger, check
from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Rack
from ronda.instances.errors import RondaError
from ronda.instances.job import Allocation, Estimate, Job, JobState, Option
from ronda.instances.plan import Plan
from ronda.instances.profile import Parametric, PowerCurve, Profile, Rigid
from ronda.instances.round import Round

FIT = Parametric(alpha_c_s=0.1, beta_c_s=0.01, alpha_r_s=0.4, alpha_n_s=0.7)
PROFILES = {
    "elastic": Profile(
        name="elastic",
        throughput={"A": FIT},
        power={"A": PowerCurve(a_w=40, b_w=160)},
        base_batch=40,
    ),
    "rigid": Profile(name="rigid", throughput={"A": Rigid()}, power={"A": PowerCurve(a_w=200)}),
}
# A batch of 40 on one GPU: 0.1 + 0.4 = 0.5 s; on two in a node 0.3 + 0.4 s; on four 0.2 + 0.4 s.
RATE = {1: 80.0, 2: 40 / 0.7, 4: 40 / 0.6}


def cluster(nodes, **caps):
    """Return nodes of four GPUs in two racks under a row, with these power caps."""
    groups = tuple(
        NodeGroup(
            name=f"g{k}",
            count=count,
            gpus_per_node=4,
            gpu_type="A",
            rack=f"r{k}",
            host_idle_w=100,
            sleep_w=8,
            wake_s=40,
            wake_w=90,
        )
        for k, count in enumerate((nodes - nodes // 2, nodes // 2))
        if count
    )
    racks = tuple(
        Rack(name=name, parent=None if name == "row" else "row", power_cap_w=caps.get(name))
        for name in ("row", "r0", "r1")
    )
    gpu_type = GpuType(name="A", memory_gib=16, idle_w=50)
    return Cluster(gpu_types=(gpu_type,), node_groups=groups, racks=racks)


def option(job, gpus):
    """Return the option of a job on `gpus` GPUs in a node."""
    if job.profile == "rigid":
        return Option(pool=0, gpus=gpus, rate=1, power_w=200 * gpus)
    return Option(pool=0, gpus=gpus, batch=40, rate=RATE[gpus], power_w=200 * gpus)


class Run:
    """A driver in small: it applies random plans that pass, and completes jobs at random."""

    def __init__(self, rng, room):
        self.rng, self.room, self.ledger = rng, room, Ledger(room)
        self.states = {}
        self.asleep = ()
        self.now_s = 0.0
        for k in range(10):
            profile = rng.choice(["elastic", "rigid"])
            job = Job(
                id=f"j{k}",
                submit_s=0,
                profile=profile,
                gpus=rng.choice([1, 2, 4]),
                min_gpus=1,
                max_gpus=4,
                preemptible=rng.random() < 0.8,
                estimate=rng.choice([None, Estimate(work=rng.choice([1.0, 30.0, 3000.0]))]),
                limit_s=rng.choice([None, None, 20.0, 100.0]),
            )
            self.states[job.id] = JobState(job=job, since_s=0)

    def round(self):
        """Return the round now, sometimes with limits that bite."""
        rng, states = self.rng, self.states.values()
        self.now_s += rng.choice([0.0, 1.0, 7.5])
        return Round(
            now_s=self.now_s,
            cluster=self.room,
            profiles=PROFILES,
            running=tuple(s for s in states if s.allocation is not None),
            waiting=tuple(s for s in states if s.allocation is None),
            power_cap_w=rng.choice([None, 3000.0, 2000.0]),
            energy_j=rng.choice([None, 2200.0 * 60, 3000.0 * 60]),
            banked_j=rng.choice([None, 1000.0]),
            window_s=60,
            asleep=self.asleep,
            waking=tuple(n for n in range(2) if n not in self.asleep),
        )

    def plan(self):
        """Return a plan that changes a little, not always by the rules."""
        rng = self.rng
        free = [4] * len(self.room.topology.node_gpus)
        given = {}
        for job_id, state in self.states.items():
            held = state.allocation
            if held is not None and rng.random() < 0.85:
                given[job_id] = held if rng.random() < 0.8 else replace(held)
                for node, count in held.placement:
                    free[node] -= count
        for job_id, state in self.states.items():
            gpus = state.job.gpus
            nodes = [n for n, left in enumerate(free) if left >= gpus and n not in self.asleep]
            if job_id in given or rng.random() < 0.5 or not nodes:
                continue
            node = rng.choice(nodes) if rng.random() < 0.95 else rng.randrange(-1, len(free) + 1)
            chosen = option(state.job, gpus)
            if rng.random() < 0.03:
                chosen = replace(chosen, rate=chosen.rate * 1.5, power_w=chosen.power_w + 1)
            given[job_id] = Allocation(option=chosen, placement=((node, gpus),))
            if 0 <= node < len(free):
                free[node] -= gpus
        if rng.random() < 0.03:
            given["ghost"] = Allocation(option=Option(pool=0, gpus=1), placement=((0, 1),))
        asleep = None
        if rng.random() < 0.3:
            idle = [n for n, left in enumerate(free) if left == 4 or rng.random() < 0.05]
            asleep = tuple(n for n in idle if rng.random() < 0.5)
        return Plan(allocations=given, asleep=asleep)

    def apply(self, plan):
        """Carry out a plan that passed."""
        self.ledger.accept(plan)
        self.asleep = self.asleep if plan.asleep is None else plan.asleep
        for job_id, state in self.states.items():
            given = plan.allocations.get(job_id)
            if given is not state.allocation:
                since_s, done = self.now_s + 2.0, state.done_at(self.now_s)
                self.states[job_id] = replace(state, allocation=given, since_s=since_s, done=done)
            elif given is not None and self.rng.random() < 0.3:  # its progress is measured
                self.states[job_id] = replace(state, done=state.done + 20.0)

    def complete(self):
        """Let some running jobs end."""
        for job_id, state in list(self.states.items()):
            if state.allocation is not None and self.rng.random() < 0.1:
                self.ledger.release(job_id)
                del self.states[job_id]


def lines(violations):
    """Return violations in an order that does not depend on how they were found."""
    return sorted(map(str, violations))


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    caps=st.fixed_dictionaries({}, optional={"row": st.just(3000.0), "r0": st.just(1200.0)}),
)
def test_the_ledger_finds_what_the_full_check_finds(seed, caps):
    """On random sequences of plans, good and bad, both report the same violations."""
    run = Run(random.Random(seed), cluster(4, **caps))
    for _ in range(30):
        round_, plan = run.round(), run.plan()
        full = check(round_, plan)
        assert lines(run.ledger.check(round_, plan)) == lines(full)
        for violation in full:
            event(violation.code)
        if not full:
            event("accepted")
            run.apply(plan)
            run.complete()


def test_the_books_agree_with_what_they_are_made_of(monkeypatch):
    """They do before every plan that random runs accept, else it raises an error."""
    monkeypatch.setattr(ledger_module, "AUDITED_AFTER", 1)
    test_the_ledger_finds_what_the_full_check_finds()


@pytest.mark.parametrize(
    ("books", "wrong"),
    [
        (lambda ledger: ledger._used.__setitem__(7, 1), "GPUs in use"),
        (lambda ledger: ledger._members.update(["never"]), "arrays"),
        (lambda ledger: ledger._extra_w.__setitem__(0, ledger._extra_w[0] + 1e-3), "watts"),
        (lambda ledger: ledger._expected._rows.__setitem__((5, 5), 1.0), "expected ends"),
    ],
)
def test_wrong_books_end_the_run(monkeypatch, books, wrong):
    """What was not kept as it should have been is found within some plans, and named."""
    monkeypatch.setattr(ledger_module, "AUDITED_AFTER", 1)
    ledger, round_, held = hundred()
    round_, plan = replace(round_, energy_j=1e9), Plan(allocations=held)
    assert ledger.check(round_, plan) == []
    books(ledger)
    with pytest.raises(RondaError, match=f"wrong on {wrong}$"):
        ledger.accept(plan)


def test_books_that_do_not_fit_the_round_are_not_trusted():
    """A ledger that knows nothing of what runs checks from scratch."""
    run = Run(random.Random(1), cluster(4))
    job = replace(run.states["j0"].job, preemptible=False)
    held = Allocation(option=option(job, job.gpus), placement=((0, job.gpus),))
    round_ = Round(
        cluster=run.room,
        profiles=PROFILES,
        running=(JobState(job=job, since_s=0, allocation=held, started=True),),
    )
    assert [v.code for v in Ledger(run.room).check(round_, Plan())] == ["must-run"]
    elsewhere = replace(round_, cluster=cluster(2))
    assert [v.code for v in run.ledger.check(elsewhere, Plan())] == ["must-run"]


def test_releasing_a_job_that_does_not_run_is_an_error():
    """Books that would go wrong in silence are worse than an exception."""
    with pytest.raises(KeyError):
        Ledger(cluster(2)).release("nobody")


def hundred():
    """Return a ledger with 100 running jobs, their states, and a waiting job."""
    room = cluster(100)
    jobs = [Job(id=f"j{k}", submit_s=k, profile="rigid", gpus=2) for k in range(101)]
    held = {
        job.id: Allocation(option=option(job, 2), placement=((k, 2),))
        for k, job in enumerate(jobs[:100])
    }
    ledger = Ledger(room)
    ledger.accept(Plan(allocations=held))
    running = tuple(JobState(job=j, since_s=0, allocation=held[j.id]) for j in jobs[:100])
    waiting = (JobState(job=jobs[100], since_s=0),)
    round_ = Round(
        cluster=room, profiles=PROFILES, running=running, waiting=waiting, power_cap_w=1e6
    )
    return ledger, round_, held


def test_only_what_changed_is_examined(monkeypatch):
    """Of 101 allocations only the new one is looked at, and is judged as by the full check."""
    ledger, round_, held = hundred()
    examined = []
    original = ledger_module.allocation_violations

    def spy(examiner, job_id, *rest):
        examined.append(job_id)
        return original(examiner, job_id, *rest)

    monkeypatch.setattr(ledger_module, "allocation_violations", spy)
    new = Allocation(option=option(round_.waiting[0].job, 2), placement=((7, 2),))
    plan = Plan(allocations={**held, "j100": new})
    assert ledger.check(round_, plan) == check(round_, plan) == []
    assert examined == ["j100"]
    # Node 7 has four GPUs: j7 holds two, so three more do not fit.
    wide = Allocation(option=option(round_.waiting[0].job, 2), placement=((7, 3),))
    found = ledger.check(round_, Plan(allocations={**held, "j100": wide}))
    assert sorted(v.code for v in found) == ["capacity", "gang"]
