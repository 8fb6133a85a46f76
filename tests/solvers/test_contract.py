"""One behaviour suite over all policies: what anyone may expect of `policy.plan(round)`."""

from collections import Counter
from functools import cache

import msgspec
import numpy as np
import pytest

from ronda.formulations import clock
from ronda.formulations.clock import Deadline
from ronda.instances import generate
from ronda.instances.check.answer import check
from ronda.instances.errors import InputError
from ronda.instances.plan import SolutionStatus, StopReason
from ronda.instances.round import Round
from ronda.solvers.contract import Capability, Policy
from ronda.solvers.policies.optimising.prices import Prices
from ronda.solvers.registry import POLICIES, config_of, parameters_of, policy
from ronda.solvers.solve import solve

ROUNDS = (
    "asleep",
    "balanced",
    "loose",
    "must run",
    "several pools",
    "structured",
    "tight",
    "nodes out",
    "a pool out",
)


def all_asleep():
    """Return a round of 3 jobs whose fair share, 5 GPUs, goes once into a node; both sleep."""
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


@cache
def round_of(name):
    """Return a round by its name."""
    if name == "asleep":
        return all_asleep()
    if name == "several pools":
        return generate.tiny_round(4)
    if name == "structured":
        shape = {"types": 2, "pods": 2, "racks": 2, "deadlines": 0.5, "gangs": 0.2, "error": 1.0}
        structure = generate.Structure(restart_s=300.0, **shape)
        return generate.round(14, 128, "balanced", 4, structure)
    if name == "nodes out":
        return without(generate.round(20, 64, "balanced", 7), {0: 8, 3: 8, 5: 3})
    if name == "a pool out":
        round_ = generate.round(14, 64, "balanced", 4, generate.Structure(types=2))
        topology = round_.cluster.topology
        own = (node for node, pool in enumerate(topology.node_pool.tolist()) if pool == 0)
        return without(round_, {node: int(topology.node_gpus[node]) for node in own})
    if name == "must run":
        tiny = map(generate.tiny_round, range(100))
        return next(r for r in tiny if any(not s.job.preemptible for s in r.running))
    jobs, seed = {"loose": (12, 1), "balanced": (24, 2), "tight": (24, 3)}[name]
    return generate.round(jobs=jobs, severity=name, seed=seed)


@cache
def plan_of(made, name):
    """Return the plan of a policy for a round, by the round's name; decided once for all tests."""
    round_ = round_of(name)
    before = msgspec.json.encode(round_)
    plan = solve(round_, made, seed=7)
    assert msgspec.json.encode(round_) == before
    return plan


def without(round_, out):
    """Return a round with GPUs out of service, by node; jobs that held any of them wait."""
    used = Counter()
    running, waiting = [], list(round_.waiting)
    for state in round_.running:
        placement = state.allocation.placement
        size = round_.cluster.topology.node_gpus
        if all(used[n] + gpus <= size[n] - out.get(n, 0) for n, gpus in placement):
            used.update(dict(placement))
            running.append(state)
        else:
            waiting.append(msgspec.structs.replace(state, allocation=None, pause_s=None))
    cluster = msgspec.structs.replace(round_.cluster, out=tuple(sorted(out.items())))
    waiting.sort(key=lambda state: state.job.submit_s)
    changed = {"running": tuple(running), "waiting": tuple(waiting), "cluster": cluster}
    return msgspec.structs.replace(round_, **changed)


def capable(capability):
    """Parametrise a test by the policies that promise something."""
    able = [name for name in sorted(POLICIES) if capability in policy(name).capabilities]
    return pytest.mark.parametrize("made", able, indirect=True)


@pytest.fixture(params=sorted(POLICIES))
def made(request):
    """Each registered policy with its defaults."""
    return policy(request.param)


def test_policy_has_the_face_of_the_contract(made):
    """A name that the registry knows, and capability flags."""
    assert isinstance(made, Policy)
    assert made.name in POLICIES
    assert isinstance(made.capabilities, Capability)


@pytest.mark.parametrize("name", ROUNDS)
def test_plan_is_valid_and_the_round_untouched(made, name):
    """The independent checker finds nothing; the round is what it was."""
    round_, plan = round_of(name), plan_of(made, name)
    assert plan.stop is not StopReason.ERROR, plan.record.message  # no other's plan in its place
    assert check(round_, plan) == []
    assert plan.policy == made.name


@pytest.mark.parametrize("name", ROUNDS)
def test_same_seed_gives_the_same_plan(made, name):
    """Twice from scratch: the same allocations and nodes asleep."""
    first, second = plan_of(made, name), solve(round_of(name), policy(made.name), seed=7)
    assert first.allocations == second.allocations
    assert (first.asleep, first.objective) == (second.asleep, second.objective)


def test_round_without_jobs_has_an_empty_plan(made):
    """Nothing to decide is no special case for the caller."""
    empty = msgspec.structs.replace(round_of("loose"), waiting=(), running=())
    assert solve(empty, made).allocations == {}


@capable(Capability.BOUND)
def test_bound_is_above_the_objective(made):
    """Policies that promise a bound give one, and it bounds."""
    for name in ROUNDS:
        plan = plan_of(made, name)
        assert plan.bound >= plan.objective * (1 - 1e-9)
        assert 0 <= plan.gap < 0.2


@capable(Capability.WARM_START)
def test_own_plan_is_a_good_start(made):
    """Starting from its own plan, a policy does no worse."""
    first = plan_of(made, "balanced")
    again = solve(round_of("balanced"), made, initial=first)
    assert again.objective >= first.objective * (1 - 1e-4)


def test_jobs_that_may_not_be_stopped_keep_their_allocation(made):
    """The very same object, as the plan's docstring promises for what is left alone."""
    round_, plan = round_of("must run"), plan_of(made, "must run")
    for state in round_.running:
        if not state.job.preemptible:
            assert plan.allocations[state.job.id] is state.allocation


@cache
def large_round():
    """Return a round that keeps a solver busy for some seconds."""
    return generate.round(jobs=600, severity="tight", seed=5)


def test_deadline_is_honoured(made, processor_time):
    """A large round within 0.5 s: back in time, with a valid plan."""
    round_ = large_round()
    plan_of(made, "loose")  # imports are not what is tested here
    deadline = Deadline(0.5)
    plan = solve(round_, made, deadline=deadline)
    assert deadline.elapsed() < 0.75
    assert plan.stop is not StopReason.TIME_LIMIT or len(plan.allocations) >= len(round_.held)
    assert check(round_, plan) == []


class Watch:
    """A clock that stands still at first, and is past every end after some looks."""

    def __init__(self, looks):
        self.looks = looks

    def perf_counter(self):
        """Look at it."""
        self.looks -= 1
        return 0.0 if self.looks >= 0 else float("inf")


@pytest.mark.parametrize("looks", [0, 2, 10, 50])
def test_cut_at_any_moment_no_fewer_jobs_run_than_before(made, looks, monkeypatch):
    """Time is over at some checkpoint of building: what runs keeps running, and more may start."""
    round_, deadline = round_of("tight"), Deadline(1e6)
    monkeypatch.setattr(clock, "time", Watch(looks))
    plan = made.plan(round_, deadline=deadline, seed=0)
    assert check(round_, plan) == []
    if clock.time.looks < 0:
        assert len(plan.allocations) >= len(round_.held)
    if not looks and clock.time.looks < 0:
        assert (plan.stop, plan.status) == (StopReason.TIME_LIMIT, SolutionStatus.FALLBACK)
        assert plan.allocations.items() >= round_.held.items()


@pytest.mark.parametrize("limit_s", [1e-6, 1e-3, 4e-3, 1e-2])
def test_deadlines_too_short_for_anything_stop_nobody(made, limit_s):
    """Whatever the stage at which time is over, and however slow the machine."""
    round_ = generate.round(jobs=64, severity="tight", seed=7)
    plan = made.plan(round_, deadline=Deadline(limit_s), seed=0)
    assert check(round_, plan) == []
    if plan.stop is StopReason.TIME_LIMIT:
        assert len(plan.allocations) >= len(round_.held)


def test_details_outlive_a_plan_that_was_cut(made):
    """What a policy remembers from round to round is not lost for lack of time."""
    round_, first = round_of("tight"), plan_of(made, "tight")
    cut = made.plan(round_, deadline=Deadline(1e-9), seed=0, initial=first)
    if cut.status is SolutionStatus.FALLBACK:
        assert (cut.details, cut.prices) == (first.details, first.prices)


def test_unknown_parameter_is_refused_with_the_list_of_known_ones(made):
    """The message names the parameters that there are, or says that there are none."""
    with pytest.raises(InputError) as caught:
        policy(f"{made.name}(colour=red)")
    known = parameters_of(made.name)
    assert all(key in str(caught.value) for key in known)
    assert "colour" in str(caught.value)


def test_parameters_go_round(made):
    """The effective parameters make the same policy again."""
    assert policy(made.name, **config_of(made)) == made


def test_parameters_of_the_objective_are_parameters_of_the_policy():
    """By name in words and in Python; which there are depends on the objective."""
    made = policy("prices(patience=3)")
    assert made == policy("prices", patience=3.0) == Prices(parameters={"patience": 3})
    assert config_of(made) == config_of(policy("prices")) | {"patience": 3.0}
    assert parameters_of("prices", "energy")["eta"] == 0.5
    assert config_of(policy("powerflow-prices(horizon_s=90)"))["horizon_s"] == 90.0
    for spec in ("prices(eta=0.5)", "prices(patience=x)", "prices(patience=-1)", "milp(power=1)"):
        with pytest.raises(InputError, match=r"patience|power"):
            policy(spec)


def test_parameters_of_the_objective_decide():
    """Another horizon, other values: what runs is worth more."""
    round_ = round_of("tight")
    worth = [
        policy("prices", horizon_s=each).question(round_, Deadline(), 0).values
        for each in (None, 30.0)
    ]
    assert not np.array_equal(*worth)


@pytest.mark.parametrize("spec", ["", "milp(", "milp(gap)", "milp(gap=)", "nope", "milp(gap=x)"])
def test_words_that_name_no_policy_are_refused(spec):
    """One line that says what was expected."""
    with pytest.raises(InputError, match="expected"):
        policy(spec)
