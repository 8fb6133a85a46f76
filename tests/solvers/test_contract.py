"""One behaviour suite over all policies: what anyone may expect of `policy.plan(round)`."""

import time
from collections import Counter
from functools import cache

import msgspec
import pytest

from ronda.instances import generate
from ronda.instances.check.answer import check
from ronda.instances.errors import InputError
from ronda.instances.plan import SolutionStatus
from ronda.solvers.contract import Capability, Deadline, Policy
from ronda.solvers.registry import POLICIES, config_of, parameters_of, policy
from ronda.solvers.solve import solve

ROUNDS = (
    "balanced",
    "loose",
    "must run",
    "several pools",
    "structured",
    "tight",
    "nodes out",
    "a pool out",
)


@cache
def round_of(name):
    """Return a round by its name."""
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
    round_ = round_of(name)
    before = msgspec.json.encode(round_)
    plan = solve(round_, made)
    assert check(round_, plan) == []
    assert msgspec.json.encode(round_) == before
    assert plan.policy == made.name


@pytest.mark.parametrize("name", ROUNDS)
def test_same_seed_gives_the_same_plan(made, name):
    """Twice from scratch: the same allocations and nodes asleep."""
    first, second = (solve(round_of(name), policy(made.name), seed=7) for _ in range(2))
    assert first.allocations == second.allocations
    assert (first.asleep, first.objective) == (second.asleep, second.objective)


def test_round_without_jobs_has_an_empty_plan(made):
    """Nothing to decide is no special case for the caller."""
    empty = msgspec.structs.replace(round_of("loose"), waiting=(), running=())
    assert solve(empty, made).allocations == {}


@capable(Capability.BOUND)
def test_bound_is_above_the_objective(made):
    """Policies that promise a bound give one, and it bounds."""
    for round_ in map(round_of, ROUNDS):
        plan = solve(round_, made)
        assert plan.bound >= plan.objective * (1 - 1e-9)
        assert 0 <= plan.gap < 0.2


@capable(Capability.WARM_START)
def test_own_plan_is_a_good_start(made):
    """Starting from its own plan, a policy does no worse."""
    round_ = round_of("balanced")
    first = solve(round_, made)
    again = solve(round_, made, initial=first)
    assert again.objective >= first.objective * (1 - 1e-4)


def test_jobs_that_may_not_be_stopped_keep_their_allocation(made):
    """The very same object, as the plan's docstring promises for what is left alone."""
    round_ = round_of("must run")
    plan = solve(round_, made)
    for state in round_.running:
        if not state.job.preemptible:
            assert plan.allocations[state.job.id] is state.allocation


@capable(Capability.DEADLINE)
def test_deadline_is_honoured(made):
    """A large round within 1 s: back in time, with a valid plan."""
    round_ = generate.round(jobs=600, severity="tight", seed=5)
    solve(round_of("loose"), made)  # imports are not what is tested here
    started = time.process_time()
    plan = solve(round_, made, deadline=Deadline(1.0))
    assert time.process_time() - started < 3  # not by the wall: test machines are busy
    assert plan.status in (SolutionStatus.FEASIBLE, SolutionStatus.OPTIMAL)
    assert plan.allocations
    assert check(round_, plan) == []


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


@pytest.mark.parametrize("spec", ["", "milp(", "milp(gap)", "milp(gap=)", "nope", "milp(gap=x)"])
def test_words_that_name_no_policy_are_refused(spec):
    """One line that says what was expected."""
    with pytest.raises(InputError, match="expected"):
        policy(spec)
