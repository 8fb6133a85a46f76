"""The contract that every policy should keep, as checks for your own policies.

>>> import ronda, ronda.testing
>>> ronda.testing.check_policy(ronda.policy("prices"))
"""

import time
import warnings
from collections import Counter
from functools import lru_cache

import msgspec

from ronda.formulations.options.table import rows_of
from ronda.formulations.sleeping import woken
from ronda.horizon.solve import solve
from ronda.instances import generate
from ronda.instances.check.checker import check
from ronda.instances.clock import Deadline
from ronda.instances.job import Allocation, JobState, Option
from ronda.instances.learning import Sweep, SweepState, TrainingLog
from ronda.instances.models.learning import training_log
from ronda.instances.models.sharing import together
from ronda.instances.plan import Plan, StopReason
from ronda.instances.round import Round
from ronda.instances.rules.validate import validate
from ronda.solvers.as_one import seen_by
from ronda.solvers.contract import Capability, Policy
from ronda.solvers.greedy.policy import fill
from ronda.solvers.registry import as_policy

LIMIT_S, LATE_S = 0.5, 0.25
"""The time limit for a large round in seconds, and the permitted delay of its plan."""


def check_policy(policy: Policy | str) -> None:
    """Run all checks of `Contract` on a policy; the first that fails raises an AssertionError.

    An undeclared effect of the seed only gives a warning, since runs use all seeds anyway.
    """
    contract = Contract(as_policy(policy))
    for name in CHECKS:
        getattr(contract, name)()


class Contract:
    """A policy and its plans for the test rounds, where each plan is made only once."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._plans: dict[tuple[str, int], Plan] = {}

    def plan(self, name: str, seed: int = 7) -> Plan:
        """Return the plan for a round, and check that the policy leaves the round unchanged."""
        if (name, seed) not in self._plans:
            round_ = rounds()[name]
            before = msgspec.json.encode(round_)
            self._plans[name, seed] = solve(round_, self.policy, seed=seed)
            assert msgspec.json.encode(round_) == before, f"round {name!r} has been changed"
        return self._plans[name, seed]

    def has_the_face_of_a_policy(self) -> None:
        """Check that the policy has a name and capability flags."""
        assert isinstance(self.policy, Policy)
        assert isinstance(self.policy.capabilities, Capability)

    def plans_are_valid(self) -> None:
        """Check that the independent checker accepts each plan, and that it is the policy's own."""
        for name, round_ in rounds().items():
            plan = self.plan(name)
            assert plan.stop is not StopReason.ERROR, f"round {name!r}: {plan.record.message}"
            found = check(round_, plan)
            assert found == [], f"round {name!r}: {found[0]}"
            assert plan.policy == self.policy.name, f"plan of {plan.policy!r}"

    def same_seed_gives_the_same_plan(self) -> None:
        """Check that two decisions from scratch give the same allocations and sleeping nodes.

        A policy whose plan is the same with another seed has already decided twice.
        """
        random = Capability.RANDOM in self.policy.capabilities
        for name, round_ in rounds().items():
            first = self.plan(name)
            if random or not alike(first, self.plan(name, seed=8)):
                assert alike(first, solve(round_, self.policy, seed=7)), name

    def a_seed_that_matters_is_declared(self) -> None:
        """Warn if another seed changes a plan, unless the policy declares that it is random."""
        if Capability.RANDOM not in self.policy.capabilities:
            for name in rounds():
                if self.plan(name).allocations != self.plan(name, seed=8).allocations:
                    said = f"{self.policy.name}: plans of round {name!r} differ by seed"
                    warnings.warn(f"{said}; declare Capability.RANDOM", stacklevel=3)
                    return

    def nothing_to_decide_is_no_special_case(self) -> None:
        """Check that the plan for a round without jobs is empty."""
        empty = msgspec.structs.replace(rounds()["loose"], waiting=(), running=())
        plan = solve(empty, self.policy)
        assert plan.stop is not StopReason.ERROR, plan.record.message
        assert plan.allocations == {}

    def a_promised_bound_bounds(self) -> None:
        """Check that the bound is above the objective, by at most a fifth where GPUs are whole.

        In the split room, the bound of a relaxation by options only knows the number of free GPUs.
        """
        if Capability.BOUND in self.policy.capabilities:
            for name in rounds():
                plan = self.plan(name)
                assert plan.bound is not None, name
                assert plan.objective is not None, name
                assert plan.bound >= plan.objective * (1 - 1e-9), name
                assert plan.gap is not None, name
                assert 0 <= plan.gap < (1.0 if name == "split room" else 0.2), name

    def its_own_plan_is_a_good_start(self) -> None:
        """Check that the policy does no worse when it starts from its own plan."""
        if Capability.WARM_START in self.policy.capabilities:
            first = self.plan("balanced")
            again = solve(rounds()["balanced"], self.policy, initial=first)
            assert first.objective is not None
            assert again.objective is not None
            assert again.objective >= first.objective * (1 - 1e-4)

    def jobs_that_may_not_be_stopped_keep_their_allocation(self) -> None:
        """Check that such jobs keep the identical object, as `Plan` promises for unchanged jobs."""
        plan = self.plan("must run")
        for state in rounds()["must run"].running:
            if not state.job.preemptible:
                assert plan.allocations[state.job.id] is state.allocation, state.job.id

    def nodes_wake_when_jobs_wait(self) -> None:
        """Check that some job starts when all nodes sleep, without and with a limit on power."""
        for name in ("asleep", "asleep, capped"):
            plan = self.plan(name)
            assert plan.allocations, f"round {name!r}: jobs wait, all nodes sleep, and none wakes"

    def an_array_is_one_thing(self) -> None:
        """Check that an array's jobs all go on, change alike or stop, unless the policy decides."""
        if Capability.ARRAYS in self.policy.capabilities:
            return
        for name, round_ in sharing().items():
            plan = self.plan(name)
            for states in together(round_.running):
                array = states[0].allocation and states[0].allocation.array
                given = [plan.allocations.get(state.job.id) for state in states]
                kept = [now is state.allocation for now, state in zip(given, states, strict=True)]
                ways = {now and (now.array, now.placement, now.option.clock) for now in given}
                assert len(ways) == 1, f"round {name!r}: array {array!r}: {ways}"
                assert len(set(kept)) == 1, f"round {name!r}: array {array!r}: a part goes on"

    def nothing_is_stopped_in_vain(self) -> None:
        """Check that the plan uses a part of what each stopped job gave up."""
        for name, round_ in rounds().items():
            found = stopped_in_vain(round_, self.plan(name))
            assert not found, f"round {name!r}: {found[0]} stops, and could go on where it is"

    def going_on_is_worth_no_more(self) -> None:
        """Check the plan's worth against the running jobs plus those that fit next to them."""
        for name, round_ in rounds().items():
            objective, least = self.plan(name).objective, worth_of_going_on(self.policy, round_)
            if objective is not None and least is not None:
                gap = getattr(self.policy, "gap", 0.0)
                assert objective >= least - gap * abs(least), (
                    f"round {name!r}: worth {objective}; {least} if what runs goes on"
                )

    def a_deadline_is_kept(self) -> None:
        """Check that a plan for 600 jobs in half a second is in time, is valid and stops no job."""
        round_ = large()
        self.plan("loose")  # the test should not include imports
        began_s = time.process_time()  # the time of other processes does not count
        plan = solve(round_, self.policy, deadline=Deadline(LIMIT_S))
        spent_s = time.process_time() - began_s
        assert spent_s < LIMIT_S + LATE_S, f"{spent_s:.2f} s of {LIMIT_S} s"
        assert plan.stop is not StopReason.ERROR, plan.record.message
        assert plan.stop is not StopReason.TIME_LIMIT or len(plan.allocations) >= len(round_.held)
        assert check(round_, plan) == []


CHECKS = tuple(name for name in vars(Contract) if not name.startswith("_") and name != "plan")
"""The names of the checks, which are methods of `Contract`."""


def alike(one: Plan, other: Plan) -> bool:
    """Return whether two plans have the same allocations, sleeping nodes and objective."""
    return all(getattr(one, n) == getattr(other, n) for n in ("allocations", "asleep", "objective"))


def stopped_in_vain(round: Round, plan: Plan) -> list[str]:
    """Return the running jobs that a plan stops although they could go on next to its other jobs.

    An array continues as a whole. Trials of a sweep are exempt: they may wait for others' reports.
    """
    found = list[str]()
    for states in together(round.running):
        held = {state.job.id: state.allocation for state in states if state.allocation is not None}
        trials = any(state.job.sweep is not None for state in states)
        if trials or not held.keys().isdisjoint(plan.allocations):
            continue
        more = msgspec.structs.replace(plan, allocations=plan.allocations | held, objective=None)
        if not check(round, woken(round, more)):
            found += held
    return found


def worth_of_going_on(policy: Policy, round: Round) -> float | None:
    """Return the worth, to a policy, of continuing all running jobs and starting those that fit.

    Jobs of negative worth count as 0. Return None if a limit forbids it, or if the worth of the
    policy's options is unknown, for example because the policy decides about arrays.
    """
    ask = getattr(policy, "question", None)
    known = Capability.OBJECTIVE in policy.capabilities
    if ask is None or not known or Capability.ARRAYS in policy.capabilities:
        return None
    seen = seen_by(policy.capabilities, round).round
    kept = Plan(allocations=seen.held | fill(seen, seen.held, Deadline()))
    if check(seen, woken(seen, kept)):
        return None
    question = ask(seen, Deadline(), seed=7)
    rows = rows_of(question.table, kept)
    return float(question.values[rows[rows >= 0]].clip(0.0).sum())


@lru_cache(maxsize=1)
def rounds() -> dict[str, Round]:
    """Return small rounds by their special property."""
    structure = generate.Structure(
        types=2, pods=2, racks=2, restart_s=300.0, deadlines=0.5, gangs=0.2, error=1.0
    )
    two_types = generate.round(14, 64, "balanced", 4, generate.Structure(types=2))
    tiny = map(generate.tiny_round, range(100))
    return {
        "asleep": all_asleep(),
        "asleep and out": without(all_asleep(), {1: 8}),
        "asleep, capped": msgspec.structs.replace(all_asleep(), power_cap_w=2000.0),
        "balanced": generate.round(16, None, "balanced", 2),
        "loose": generate.round(12, None, "loose", 1),
        "must run": next(r for r in tiny if any(not s.job.preemptible for s in r.running)),
        "several pools": generate.tiny_round(4),
        "structured": generate.round(14, 128, "balanced", 4, structure),
        "split room": split_room(),
        "tight": generate.round(24, None, "tight", 3),
        "searching": searching(),
        "nodes out": without(generate.round(20, 64, "balanced", 7), {0: 8, 3: 8, 5: 3}),
        "a pool out": without(two_types, pool(two_types, 0)),
        **sharing(),
    }


@lru_cache(maxsize=1)
def large() -> Round:
    """Return a round that is too large for long deliberation."""
    return generate.round(600, None, "tight", 5)


def split_room() -> Round:
    """Return a round of two nodes of 2 GPUs, each with a pinned and a light job; a heavy one waits.

    It requests 2 GPUs of a node. No plan can empty a node, so a light job that stops does so in
    vain.
    """
    nodes = {"name": "nodes", "count": 2, "gpus_per_node": 2, "gpu_type": "T"}
    running = []
    for node in range(2):
        held = {"option": {"pool": 0, "gpus": 1}, "placement": [[node, 1]]}
        for name in ("pinned", "light"):
            job = {"id": f"{name}{node}", "submit_s": 0, "profile": "rigid", "gpus": 1}
            job |= {"estimate": {"work": 36_000}, "preemptible": name == "light"}
            running.append({"job": job, "since_s": 0, "started": True, "allocation": held})
    heavy = {"id": "heavy", "submit_s": 60, "profile": "rigid", "gpus": 2, "weight": 100}
    plain = {
        "cluster": {"gpu_types": [{"name": "T", "memory_gib": 80}], "node_groups": [nodes]},
        "profiles": {"rigid": {"name": "rigid", "throughput": {"T": {"kind": "rigid"}}}},
        "now_s": 700,
        "running": running,
        "waiting": [{"job": heavy | {"estimate": {"work": 600}}, "since_s": 60}],
    }
    return validate(msgspec.convert(plain, type=Round))


def all_asleep() -> Round:
    """Return a round of 3 jobs with a fair share of 5 GPUs on two sleeping nodes of 8 GPUs."""
    job = {"submit_s": 0, "profile": "a", "gpus": 1, "min_gpus": 1, "max_gpus": 8}
    waiting = [{"job": {"id": i, "estimate": {"work": 1e3}, **job}, "since_s": 0} for i in "abc"]
    speed = {"kind": "parametric", "alpha_c_s": 0.01, "beta_c_s": 0.002}
    nodes = {"name": "nodes", "count": 2, "gpus_per_node": 8, "gpu_type": "T"}
    plain = {
        "cluster": {
            "gpu_types": [{"name": "T", "memory_gib": 40, "idle_w": 50}],
            "node_groups": [nodes],
        },
        "profiles": {"a": {"name": "a", "base_batch": 64, "throughput": {"T": speed}}},
        "waiting": waiting,
        "asleep": [0, 1],
    }
    return msgspec.convert(plain, type=Round)


def searching() -> Round:
    """Return a round of 9 trials on 4 GPUs; three trials run, and the power cap allows no more."""
    made = generate.sweep(9, 4, 1, generate.Trials(reports=6, diverging=0.4))
    states = []
    for k, job in enumerate(made.jobs):
        reports = (3 * k) % 5
        assert job.truth is not None
        assert isinstance(job.truth.learning, tuple)
        state = JobState(
            job=msgspec.structs.replace(job, truth=None), since_s=1200.0, done=60.0 * reports
        )
        if reports:
            log = training_log(job.truth.learning, reports, reports / 6)
            state = msgspec.structs.replace(state, started=True, log=log)
        if k < 3:
            option = Option(pool=0, gpus=1, span="node", rate=1.0, power_w=250.0)
            held = Allocation(option=option, placement=((k, 1),))
            state = msgspec.structs.replace(state, started=True, allocation=held)
        states.append(state)
    return Round(
        cluster=made.cluster,
        profiles=made.profiles,
        now_s=1200.0,
        running=tuple(states[:3]),
        waiting=tuple(states[3:]),
        costs=made.costs,
        power_cap_w=1000.0,
        sweeps={"sweep": SweepState(sweep=made.sweeps["sweep"])},
    )


@lru_cache(maxsize=1)
def sharing() -> dict[str, Round]:
    """Return rounds with 3 arrays and a single job on 2 nodes of 2 GPUs; a third node sleeps.

    Of a0 and a1, at half clock, a0 may not be stopped. wc and wd can share GPUs with others. The
    cluster draws 920 W.
    """
    held = {
        "packed": "a0 a1 0 0.5 c",
        "fused": "b0 b1 b2 0 1 c",
        "slices": "d0 d1 1 1 d",
        "exclusive": "e 1 1 e",
    }
    job = {"submit_s": 0, "profile": "net", "epoch": 100, "estimate": {"work": 600}}
    running = []
    for mode, words in held.items():
        *names, node, clock, fusible = words.split()
        option = {"pool": 0, "gpus": 1, "span": "node", "clock": float(clock), "mode": mode}
        allocation = {
            "option": option | {"width": len(names)},
            "placement": [[int(node), 1]],
            "array": names[0] if len(names) > 1 else None,
        }
        for name in names:
            own = {"id": name, "fusible": fusible, "preemptible": name != "a0", **job}
            state = {"job": own, "since_s": 50, "started": True, "allocation": allocation}
            running.append(state | {"done": 200 if name == "b1" else 0})
    waiting = [
        {"job": {"id": "wc", "fusible": "c", **job}, "since_s": 0},
        {"job": {"id": "wd", "fusible": "d", **job}, "since_s": 0},
        {"job": {"id": "wide", "gpus": 2, "min_gpus": 1, "max_gpus": 4, **job}, "since_s": 0},
    ]
    affine = {"kind": "affine", "alpha_s": 1.0, "beta_s": 0.0}
    sharing = [
        {"mode": "exclusive", "time": affine},
        {"mode": "packed", "time": affine | {"alpha_s": 0.0, "beta_s": 0.8, "floor_s": 1.0}},
        {"mode": "fused", "time": affine | {"beta_s": 0.25}},
        {"mode": "slices", "time": {"kind": "measured", "models": [1, 2], "step_s": [1.0, 1.25]}},
    ]
    nodes = {"name": "nodes", "count": 3, "gpus_per_node": 2, "gpu_type": "T", "host_idle_w": 100}
    gpu_type = {"name": "T", "memory_gib": 16, "idle_w": 50, "clocks": [0.5, 1.0]}
    net = {
        "name": "net",
        "throughput": {"T": {"kind": "parametric", "alpha_c_s": 1.0, "beta_c_s": 0.0}},
        "power": {"T": {"a_w": 40, "b_w": 160}},
        "sharing": {"T": sharing},
    }
    plain = {
        "cluster": {"gpu_types": [gpu_type], "node_groups": [nodes]},
        "profiles": {"net": net},
        "now_s": 100,
        "running": running,
        "waiting": waiting,
        "costs": {"start_s": 2, "restart_s": 3},
        "asleep": [2],
    }
    made = validate(msgspec.convert(plain, type=Round))
    trial = {"sweep": "sweep"}
    log = TrainingLog(epochs=1, initial_loss=1.0, loss=0.5, losses=(0.5,))
    trials = [
        msgspec.structs.replace(
            state,
            job=msgspec.structs.replace(state.job, **trial),
            log=log if state.job.id in "a1 b1 d0 d1" else None,
        )
        for state in made.running
    ]
    return {
        "arrays": made,
        "arrays below a cap": msgspec.structs.replace(made, power_cap_w=1000.0),
        "arrays below an energy budget": msgspec.structs.replace(made, energy_j=1000.0 * 3600),
        "arrays of trials": msgspec.structs.replace(
            made, running=tuple(trials), sweeps={"sweep": SweepState(sweep=Sweep(reports=6))}
        ),
    }


def pool(round: Round, index: int) -> dict[int, int]:
    """Return the number of GPUs on each node of a pool."""
    topology = round.cluster.topology
    own = (node for node, k in enumerate(topology.node_pool.tolist()) if k == index)
    return {node: int(topology.node_gpus[node]) for node in own}


def without(round: Round, out: dict[int, int]) -> Round:
    """Return a round with GPUs out of service, by node; jobs that held any of them must wait."""
    used = Counter[int]()
    running, waiting = [], list(round.waiting)
    size = round.cluster.topology.node_gpus
    for state in round.running:
        assert state.allocation is not None
        placement = state.allocation.placement
        if all(used[n] + gpus <= size[n] - out.get(n, 0) for n, gpus in placement):
            used.update(dict(placement))
            running.append(state)
        else:
            waiting.append(msgspec.structs.replace(state, allocation=None, pause_s=None))
    cluster = msgspec.structs.replace(round.cluster, out=tuple(sorted(out.items())))
    waiting.sort(key=lambda state: state.job.submit_s)
    return msgspec.structs.replace(
        round, running=tuple(running), waiting=tuple(waiting), cluster=cluster
    )
