"""Generated rounds and horizons: valid, reproducible, and as hard as asked for."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from model_rate import work_rate
from ronda.instances import generate
from ronda.instances.errors import InputError
from ronda.instances.files import canonical
from ronda.instances.generate import applications
from ronda.instances.generate.tiny import COMBINATIONS, options_at_most
from ronda.instances.models.configuration import Configuration
from ronda.instances.models.efficiency import efficiency
from ronda.instances.models.power import gpu_power_w, job_power_w
from ronda.instances.rules.validate import problems
from site_drawn import with_classes, with_disruption

LEVELS = ("loose", "balanced", "tight")
sizes = st.integers(1, 200)
seeds = st.integers(0, 2**40)
levels = st.sampled_from(LEVELS)
gpus = st.one_of(st.none(), st.integers(1, 100))
quick = settings(max_examples=20, deadline=None)


def watts(round):
    """Return what the cluster draws as it runs now (all nodes awake)."""
    pools = round.cluster.topology.pools
    total = round.cluster.topology.idle_w
    for state in round.running:
        option = state.allocation.option
        total += option.power_w - option.gpus * pools[option.pool].gpu_type.idle_w
    return total


@quick
@given(jobs=sizes, gpus=gpus, severity=levels, seed=seeds)
def test_rounds_are_valid_and_feasible(jobs, gpus, severity, seed):
    """A round of any size has its jobs, no problem, and runs within its limits."""
    made = generate.round(jobs, gpus, severity, seed)
    assert problems(made) == []
    assert len(made.jobs) == jobs
    assert gpus is None or made.cluster.gpus == gpus
    assert watts(made) <= made.watts
    for state in made.running:
        expected = state.job.estimate.work
        assert 0.1 <= state.done_at(made.now_s) / expected <= 0.9 + 1e-6


@quick
@given(jobs=sizes, gpus=st.integers(1, 100), severity=levels, seed=seeds)
def test_horizons_are_valid_and_have_the_load(jobs, gpus, severity, seed):
    """A horizon of any size has its jobs, no problem, and brings the severity's load."""
    made = generate.horizon(jobs, gpus, severity, seed)
    assert problems(made) == []
    assert (len(made.jobs), made.cluster.gpus) == (jobs, gpus)
    span_s = made.budget.energy.horizon_s
    speeds = {a.profile.name: a.samples_per_gpu_s() for a in applications.APPLICATIONS}
    gpu_s = sum(
        j.truth.work * j.gpus if j.profile == "rigid" else j.truth.work / speeds[j.profile]
        for j in made.jobs
    )
    load = generate.SEVERITIES[severity].load
    assert gpu_s / (span_s * gpus) == pytest.approx(load, rel=1e-4)
    assert made.jobs[-1].submit_s <= span_s + 0.001


structures = st.builds(
    generate.Structure,
    types=st.integers(1, 3),
    partitions=st.integers(1, 2),
    pods=st.integers(1, 2),
    racks=st.integers(1, 2),
    deadlines=st.sampled_from((0.0, 0.5, 1.0)),
    gangs=st.sampled_from((0.0, 0.2, 1.0)),
    restart_s=st.sampled_from((0.0, 600.0)),
    error=st.sampled_from((0.0, 1.0)),
)


@quick
@given(nodes=st.integers(6, 20), severity=levels, seed=seeds, structure=structures)
def test_any_structure_is_valid(nodes, severity, seed, structure):
    """Rounds and horizons have no problem, run within limits, and have what was asked for."""
    made = [
        generate.round(30, 8 * nodes, severity, seed, structure),
        generate.horizon(30, 8 * nodes, severity, seed, structure),
    ]
    assert watts(made[0]) <= made[0].watts
    for obj in made:
        assert problems(obj) == []
        topology = obj.cluster.topology
        assert obj.cluster.gpus == 8 * nodes
        assert len(topology.pools) == structure.types * structure.partitions
        assert len(topology.racks) == structure.pods * structure.racks
        assert len(obj.cluster.racks) == (
            (len(topology.racks) > 1)
            * (len(topology.racks) + structure.pods * (structure.pods > 1))
        )
        assert obj.costs.restart_s == structure.restart_s
    assert {k: made[1].made[k] for k in structure.changed} == structure.changed


def whole_pool(job, cluster):
    """Tell whether a job is a gang: one number of GPUs, half a pool or more."""
    pools = [p.gpus for p in cluster.topology.pools if p.partition == job.partition]
    return job.gpus >= min(pools) // 2 // 8 * 8 and job.min_gpus in (None, job.gpus)


def test_structure_is_orthogonal():
    """Each parameter changes what it is about, and nothing else about the jobs."""
    plain = generate.horizon(400)
    due = generate.horizon(400, structure=generate.Structure(deadlines=0.5))
    assert np.mean([j.deadline_s is not None for j in due.jobs]) == pytest.approx(0.5, abs=0.1)
    for job in due.jobs:
        if job.deadline_s is not None:
            assert job.deadline_s > job.submit_s
    assert tuple(structs.replace(j, deadline_s=None) for j in due.jobs) == plain.jobs
    known = generate.horizon(400, structure=generate.Structure(error=0.0))
    assert [j.truth for j in known.jobs] == [j.truth for j in plain.jobs]
    assert all(j.estimate.work == j.truth.work and j.estimate.sd == 0 for j in known.jobs)
    gangs = generate.horizon(400, structure=generate.Structure(gangs=0.2))
    wide = [j for j in gangs.jobs if whole_pool(j, gangs.cluster)]
    assert len(wide) / 400 == pytest.approx(0.2, abs=0.06)
    assert {j.gpus for j in wide} == {32, 48, 64}
    assert all(j.min_gpus == j.max_gpus for j in wide)
    pairs = zip(gangs.jobs, plain.jobs, strict=True)
    assert all(a.truth == b.truth for a, b in pairs if a not in wide)


def test_deadlines_are_slack_times_the_length_alone():
    """1.5 to 4 times the work over the speed at the requested GPUs, from submission on."""
    made = generate.horizon(200, structure=generate.Structure(deadlines=1.0))
    slack = []
    for job in made.jobs:
        profile, n = made.profiles[job.profile], job.gpus
        rate = work_rate(profile, "A100", n, -(-n // 8), profile.base_batch)
        slack.append((job.deadline_s - job.submit_s) * rate / job.truth.work)
    assert 1.5 <= min(slack) < 2 < 3.5 < max(slack) <= 4.01


def test_gpu_types_differ_in_speed_and_watts():
    """The same application computes half as fast on a V100, for three quarters of the watts."""
    made = generate.horizon(60, structure=generate.Structure(types=3))
    assert [t.name for t in made.cluster.gpu_types] == ["A100", "V100", "T4"]
    profile = made.profiles["vgg16"]
    assert work_rate(profile, "A100", 1, 1, 128.0) == pytest.approx(
        2 * work_rate(profile, "V100", 1, 1, 128.0)
    )
    assert gpu_power_w(profile.power["V100"]) == pytest.approx(
        0.75 * gpu_power_w(profile.power["A100"])
    )
    types = [j.gpu_types for j in made.jobs]
    assert set(types) == {(), ("A100",), ("V100",), ("T4",)}
    assert all(bool(j.gpu_types) == (j.profile == "rigid") for j in made.jobs)


@pytest.mark.parametrize(
    ("structure", "word"),
    [
        ({"types": 4}, "types: found 4; expected 1 to 3"),
        ({"racks": 0}, "racks: found 0"),
        ({"gangs": 1.5}, "gangs: found 1.5; expected 0 to 1"),
        ({"error": -1}, "error: found -1"),
    ],
)
def test_structure_out_of_range_is_refused(structure, word):
    """The parameter is named, with what would do."""
    with pytest.raises(InputError, match=word):
        generate.Structure(**structure)


@pytest.mark.parametrize("make", [generate.round, generate.horizon])
def test_structure_that_nodes_cannot_have_is_refused(make):
    """Every pool and every rack has a node."""
    with pytest.raises(InputError, match="gpus: found 24, 3 nodes of 8"):
        make(5, 24, structure=generate.Structure(pods=2, racks=2))


@settings(max_examples=60, deadline=None)
@given(seed=seeds)
def test_tiny_rounds_are_valid_and_tiny(seed):
    """A tiny round has 2 to 5 jobs, 1 to 3 pools, and few enough combinations for brute force."""
    made = generate.tiny_round(seed)
    assert problems(made) == []
    assert 2 <= len(made.jobs) <= 5
    assert 1 <= len(made.cluster.topology.pools) <= 3
    combinations = 1
    for state in made.jobs:
        combinations *= 1 + options_at_most(state.job, made.cluster, made.profiles)
    assert combinations <= COMBINATIONS
    if made.watts is not None:
        assert watts(made) <= made.watts


def test_tiny_rounds_cover_all_features():
    """Two hundred of them hold every combination of limits, pools, and jobs that must go on."""
    made = [generate.tiny_round(seed) for seed in range(200)]
    assert {(r.power_cap_w is None, r.energy_j is None) for r in made} == {
        (a, b) for a in (True, False) for b in (True, False)
    }
    assert {len(r.cluster.topology.pools) for r in made} == {1, 2, 3}
    assert {len(r.jobs) for r in made} == {2, 3, 4, 5}
    assert {any(not s.job.preemptible for s in r.running) for r in made} == {True, False}
    assert {s.job.profile for r in made for s in r.jobs} == {"e", "f", "rigid"}
    assert {len(t.clocks) for r in made for t in r.cluster.gpu_types} == {1, 2}


@pytest.mark.parametrize(
    "make",
    [
        lambda seed: generate.round(50, seed=seed),
        lambda seed: generate.horizon(50, seed=seed),
        generate.tiny_round,
    ],
    ids=["round", "horizon", "tiny_round"],
)
def test_same_seed_same_bytes(make):
    """The seed decides everything, and the global random state nothing."""
    np.random.seed(1)
    one = canonical.encode(make(7))
    np.random.seed(2)
    assert canonical.encode(make(7)) == one
    assert canonical.encode(make(8)) != one


@pytest.mark.parametrize("seed", range(5))
def test_severity_orders_rounds(seed):
    """The tighter, the fewer GPUs for the same jobs, and the fewer watts for a GPU."""
    made = [generate.round(200, severity=level, seed=seed) for level in LEVELS]
    assert len({tuple((s.job.id, s.job.gpus) for s in sorted_jobs(r)) for r in made}) == 1
    asked = sum(s.job.gpus for s in made[0].jobs)
    demand = [asked / r.cluster.gpus for r in made]
    assert demand == sorted(demand)
    assert demand[0] < 1 < demand[1] < 2 < demand[2]
    per_gpu = [(r.watts - r.cluster.topology.idle_w) / r.cluster.gpus for r in made]
    assert per_gpu[0] > 1.3 * per_gpu[1] > 1.3 * 1.3 * per_gpu[2]


@pytest.mark.parametrize("seed", range(5))
def test_severity_decides_what_can_run(seed):
    """In order of submission, at the request and full clock: all, some, few jobs fit."""
    share = []
    for level in LEVELS:
        made = generate.round(200, severity=level, seed=seed)
        free, left_w = made.cluster.gpus, made.watts - made.cluster.topology.idle_w
        fit = 0
        for state in sorted_jobs(made):
            n = state.job.gpus
            extra = n * (gpu_power_w(made.profiles[state.job.profile].power["A100"]) - 50.0)
            if n <= free and extra <= left_w:
                free, left_w, fit = free - n, left_w - extra, fit + 1
        share.append(fit / 200)
    assert share[0] == 1.0
    assert share[0] > share[1] + 0.1
    assert share[1] > share[2] + 0.1


def sorted_jobs(round):
    """Return the live jobs in order of submission."""
    return sorted(round.jobs, key=lambda state: state.job.id)


def test_severity_orders_horizons():
    """The tighter, the sooner the same jobs arrive, on less power and energy."""
    made = [generate.horizon(100, severity=level) for level in LEVELS]
    assert len({tuple(j.truth.work for j in m.jobs) for m in made}) == 1
    for soft, hard in pairwise(made):
        assert soft.jobs[-1].submit_s > hard.jobs[-1].submit_s
        assert soft.budget.power_cap_w.values[0] > hard.budget.power_cap_w.values[0]
        assert soft.budget.energy.sustained_w > hard.budget.energy.sustained_w


def test_estimates_are_unbiased_and_say_how_wrong_they_are():
    """Over many jobs estimate / truth has mean 1, and its spread is what `sd` claims (about)."""
    jobs = generate.horizon(5_000).jobs
    ratio = np.array([j.estimate.work / j.truth.work for j in jobs])
    claimed = np.array([j.estimate.sd / j.estimate.work for j in jobs])
    # Lognormal with sigma 0.4: mean 1, standard deviation sqrt(exp(0.16) - 1) = 0.417.
    assert ratio.mean() == pytest.approx(1.0, abs=4 * 0.417 / 5_000**0.5)
    assert ratio.std() == pytest.approx(0.417, rel=0.05)
    assert np.allclose(claimed, 0.4, rtol=1e-3)


def test_seven_in_ten_jobs_of_a_horizon_are_elastic():
    """Rigid jobs keep their size; elastic ones may shrink to one GPU and grow eightfold."""
    jobs = generate.horizon(5000).jobs
    rigid = [j for j in jobs if j.profile == "rigid"]
    assert len(rigid) / 5000 == pytest.approx(0.3, abs=0.03)
    assert all(j.min_gpus is None and j.max_gpus is None for j in rigid)
    elastic = [j for j in jobs if j.profile != "rigid"]
    assert all((j.min_gpus, j.max_gpus) == (1, min(8 * j.gpus, 64)) for j in elastic)


@pytest.mark.parametrize("seed", range(8))
def test_rates_and_power_of_running_jobs_are_those_of_the_models(seed):
    """The speed in one pass at full clock is that of the general formula."""
    spread = generate.Structure(types=2, pods=2, racks=2, gangs=0.2)
    rounds = generate.round(40, seed=seed), generate.round(40, 96, "loose", seed, spread)
    for made in (*rounds, generate.tiny_round(seed)):
        pools, node_rack = made.cluster.topology.pools, made.cluster.topology.node_rack
        for state in made.running:
            profile, option = made.profiles[state.job.profile], state.allocation.option
            gpu_type = pools[option.pool].gpu_type
            place = option.gpus, len(state.allocation.placement), option.batch, option.clock
            racks = len({int(node_rack[node]) for node, _ in state.allocation.placement})
            rate = work_rate(profile, gpu_type, *place, state.noise, racks)
            assert option.rate == pytest.approx(rate, rel=1e-12)
            power_w = job_power_w(profile, gpu_type, Configuration(*place))
            assert option.power_w == pytest.approx(power_w, rel=1e-12)


@pytest.mark.parametrize("application", applications.APPLICATIONS, ids=lambda a: a.profile.name)
def test_applications_are_worth_scheduling(application):
    """A second GPU helps, 64 do not help 64 times; slower clocks save energy; busy is not idle."""
    profile = application.profile
    base = profile.base_batch
    one, two, many = (work_rate(profile, "A100", n, 1 + (n > 8), base) for n in (1, 2, 64))
    assert one < two < 2 * one
    assert many < 32 * one
    assert application.samples_per_gpu_s() == pytest.approx(one)
    joules = [
        job_power_w(profile, applications.GPU, Configuration(1, 1, base, clock))
        / work_rate(profile, "A100", 1, 1, base, clock)
        for clock in applications.GPU.clocks
    ]
    assert min(joules) < 0.95 * joules[-1]
    assert min(gpu_power_w(profile.power["A100"]), 400.0) > 2 * applications.GPU.idle_w
    early, late = application.noise
    assert efficiency(early, 4 * base, base) < efficiency(late, 4 * base, base)


def test_noise_curves_grow():
    """The later, the larger the batch that pays; the first stage ends after half a GPU-hour."""
    for application in applications.APPLICATIONS:
        curve = application.curve()
        scales = [row[0] for row in curve.scale]
        assert scales == sorted(scales)
        assert (scales[0], scales[-1]) == application.noise
        assert curve.until[0] == pytest.approx(1800.0 * application.samples_per_gpu_s())


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"jobs": 0}, "jobs: found 0"),
        ({"gpus": 0}, "gpus: found 0"),
        ({"seed": -1}, "seed: found -1"),
        ({"severity": "mild"}, 'severity: found "mild"; expected one of "loose"'),
    ],
)
@pytest.mark.parametrize("make", [generate.round, generate.horizon])
def test_arguments_out_of_range_are_refused(make, arguments, word):
    """A wrong argument is named, with what would do."""
    with pytest.raises(InputError, match=word):
        make(**arguments)


@pytest.mark.parametrize("severity", [0.0, 0.5, 1.0])
def test_classes_and_disruption_are_put_on_rounds_and_instances(severity):
    """They are valid; at the severity 0 classes weigh nothing, and the budget binds nobody."""
    for subject in (generate.round(jobs=20, severity="tight", seed=3), generate.horizon(jobs=20)):
        made = with_disruption(with_classes(subject, severity=severity), severity=severity)
        assert problems(made) == []
        assert made == with_disruption(with_classes(subject, severity=severity), severity=severity)
        worth = {c.name: c.worth for c in made.site.classes}
        more = 1 + 2 * severity
        assert worth == {"batch": 1.0, "team": more, "production": more**2}
        assert [c.strict for c in made.site.classes] == [False, False, severity >= 0.75]
        gpus = sum(made.cluster.topology.node_gpus.tolist())
        assert made.site.disruption.gpus == int((1 - severity) * gpus)
