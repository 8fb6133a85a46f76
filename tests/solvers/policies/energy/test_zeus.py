"""BASE+zeus by hand: P(1) = 450 W, P(1/2) = 100 W; clocks 1/2 and 1; eta = 1/2 unless said."""

import pickle

import msgspec
import pytest

from ronda.horizon.driver import run
from ronda.horizon.solve import solve
from ronda.instances.check.checker import check
from ronda.instances.errors import InputError
from ronda.solvers.contract import Capability
from ronda.solvers.registry import POLICIES, ZEUS_BASES, config_of, parameters_of, policy

CLOCKS = (0.5, 1.0)


@pytest.mark.parametrize(
    ("profile", "eta", "clock"),
    [
        ("linear", 0.5, 1.0),  # (225 + 225)/1 = 450 < (50 + 225)/0.5 = 550
        ("linear", 1.0, 0.5),  # 450/1 > 100/0.5 = 200
        ("linear", 0.0, 1.0),
        ("half-bound", 0.5, 0.5),  # half the step slows down: rate 1/1.5; 275 x 1.5 = 412.5 < 450
        ("half-bound", 0.0, 1.0),
    ],
)
def test_least_cost_by_hand(elastic_round, live_job, profile, eta, clock):
    """The clock, and the rate and power that go with it."""
    round_ = elastic_round(live_job("a", profile, 10.0), clocks=CLOCKS)
    plan = solve(round_, f"fifo+zeus(eta={eta})")
    option = plan.allocations["a"].option
    assert option.clock == clock
    assert option.power_w == pytest.approx(450.0 if clock == 1.0 else 100.0)
    assert check(round_, plan) == []


def test_a_running_job_keeps_its_clock(elastic_round, live_job):
    """Full clock is not what Zeus would choose, but a change would cost a restart."""
    state = live_job("a", "half-bound", 10.0, held=(1, 1.0))
    round_ = elastic_round(state, clocks=CLOCKS, gpus_per_node=1)
    for base in ZEUS_BASES:
        assert solve(round_, f"{base}+zeus").allocations["a"] is state.allocation, base


def test_what_one_job_saves_another_can_use(elastic_round, live_job):
    """700 W, 160 W idle; a job adds 430 W at full clock, 80 W at half: one runs, or four."""
    jobs = [live_job(name, "half-bound", 10.0) for name in "abcd"]
    round_ = elastic_round(*jobs, clocks=CLOCKS, power_cap_w=700.0)
    assert len(solve(round_, "fifo").allocations) == 1
    for base in ("fifo", "tiresias", "pollux-like", "elasticflow-like"):
        plan = solve(round_, f"{base}+zeus")
        assert set(plan.allocations) == set("abcd"), base
        assert check(round_, plan) == []


@pytest.mark.parametrize("base", ZEUS_BASES)
def test_it_is_the_base_with_one_more_parameter(base):
    """Name, parameters, record of parameters, capabilities and pickling."""
    name = f"{base}+zeus"
    assert name in POLICIES
    assert parameters_of(name) == parameters_of(base) | {"eta": 0.5}
    made = policy(f"{name}(eta=0.25)")
    assert made.name == name
    assert config_of(made) == config_of(policy(base)) | {"eta": 0.25}
    assert Capability.ELASTIC in made.capabilities
    assert pickle.loads(pickle.dumps(made)) == made


@pytest.mark.parametrize(
    "spec", ["milp+zeus", "nope+zeus", "fifo+zeus(eta=2)", "race-to-idle+zeus"]
)
def test_what_cannot_be_composed_is_refused(spec):
    """Policies that choose clocks themselves have no such setting; eta is a share."""
    with pytest.raises(InputError, match="expected"):
        policy(spec)


def test_rigid_profiles_have_no_clock(make_instance):
    """A plain trace's jobs run as they are: the schedule is that of the base."""
    instance = make_instance([("a", 0.0, 4, 100.0), ("b", 5.0, 2, 50.0)])
    first, second = run(instance, "fifo"), run(instance, "fifo+zeus")
    assert msgspec.to_builtins(first.jobs) == msgspec.to_builtins(second.jobs)


def test_a_killed_run_goes_on(make_instance, tmp_path):
    """The journal names policy and parameters; the same command replays it."""
    instance = make_instance([("a", 0.0, 4, 100.0), ("b", 5.0, 2, 50.0)])
    first = run(instance, "tiresias+zeus(eta=0.3)", journal=tmp_path / "journal.jsonl")
    again = run(instance, "tiresias+zeus(eta=0.3)", journal=tmp_path / "journal.jsonl")
    assert first.jobs == again.jobs
    with pytest.raises(InputError, match="config"):
        run(instance, "tiresias+zeus(eta=0.4)", journal=tmp_path / "journal.jsonl")
