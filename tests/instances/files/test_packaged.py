"""The packaged instances: complete, valid, as documented, and solved on paper where they say so."""

import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from ronda.instances.demand import Demand
from ronda.instances.errors import InputError
from ronda.instances.files import json as files
from ronda.instances.files import packaged
from ronda.instances.instance import Instance
from ronda.instances.plan import Plan
from ronda.instances.profile import Rigid
from ronda.instances.round import Round
from ronda.instances.rules.validate import problems
from tools.recipes.item import Item

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "instances" / "data"

# name: (kind, jobs, nodes, GPUs), as the README and the issue document them.
DOCUMENTED = {
    "clock-or-gpus": ("round", 1, 1, 2),
    "cluster-mixed": ("instance", 147, 2, 16),
    "earth-2020-05": ("demand", 0, 77, 0),
    "earth-2020-09": ("demand", 0, 154, 0),
    "energy-hand": ("instance", 2, 2, 4),
    "event-london": ("instance", 24, 12, 96),
    "event-phoenix": ("instance", 6, 32, 256),
    "gangs": ("instance", 60, 8, 64),
    "one-gpu": ("instance", 3, 1, 1),
    "ones-50": ("instance", 50, 16, 64),
    "ones-history": ("instance", 20, 16, 64),
    "ones-trace": ("instance", 400, 16, 64),
    "philly-batches": ("instance", 122, 8, 64),
    "philly-energy": ("instance", 2355, 16, 128),
    "philly-energy-small": ("instance", 122, 8, 64),
    "philly-faults": ("instance", 122, 8, 64),
    "philly-tenants": ("instance", 3814, 24, 192),
    "pods-mixed": ("instance", 80, 16, 128),
    "pollux-1": ("instance", 160, 16, 64),
    "pollux-2": ("instance", 160, 16, 64),
    "pollux-3": ("instance", 160, 16, 64),
    "pollux-4": ("instance", 160, 16, 64),
    "probe-cap": ("instance", 2, 1, 2),
    "probe-cap-falls": ("instance", 2, 1, 2),
    "probe-cap-rises": ("instance", 2, 1, 2),
    "probe-racks": ("instance", 2, 2, 2),
    "probe-restart": ("instance", 2, 1, 2),
    "probe-wake": ("instance", 2, 2, 2),
    "probe-window": ("instance", 2, 1, 1),
    "round-arrays": ("round", 84, 2, 16),
    "round-balanced-1024": ("round", 1024, 280, 2240),
    "round-batches": ("round", 86, 8, 64),
    "round-gangs": ("round", 13, 8, 64),
    "round-pods": ("round", 41, 16, 128),
    "round-pollux": ("round", 18, 16, 64),
    "round-pools-512": ("round", 512, 54, 432),
    "round-power": ("round", 86, 8, 64),
    "round-racks-256": ("round", 256, 73, 584),
    "round-racks-capped": ("round", 102, 56, 448),
    "round-tenants": ("round", 32, 8, 64),
    "round-tight-4096": ("round", 4096, 444, 3552),
    "round-tight-64": ("round", 64, 7, 56),
    "round-unequal-nodes": ("round", 134, 32, 192),
    "round-venus": ("round", 223, 20, 160),
    "sweep-hydro": ("instance", 50, 1, 4),
    "sweep-taskset": ("instance", 400, 2, 8),
    "sweep-titan": ("instance", 168, 2, 8),
    "two-jobs": ("instance", 2, 1, 4),
    "two-tenants": ("instance", 80, 8, 64),
    "venus-vcvgl": ("instance", 1452, 20, 160),
    "venus-vcvly": ("instance", 415, 2, 16),
}
NAMES = tuple(DOCUMENTED)
POLLUX = tuple(name for name in NAMES if name.startswith("pollux"))


@pytest.fixture(scope="module")
def objects():
    """Return every packaged object by name."""
    return {name: packaged.document(name) for name in NAMES}


def test_the_catalogue_holds_what_is_documented():
    """Names, kinds and sizes."""
    found = {e.name: (e.kind, e.jobs, e.nodes, e.gpus) for e in packaged.entries()}
    assert found == DOCUMENTED
    assert list(found) == sorted(found)


def test_index_and_files_agree(objects):
    """No file without entry, no entry without file, and every line says what its file says."""
    on_disk = {path.name for path in FOLDER.glob("*.json.*")}
    assert on_disk == {entry.file for entry in packaged.entries()}
    for entry in packaged.entries():
        obj = objects[entry.name]
        fields = ("description", "source", "licence", "citation", "reference")
        words = {f: getattr(entry, f) for f in fields}
        assert Item(obj=obj, **words).entry == entry  # an instance's own words win


def test_the_package_is_small():
    """Well below 5 MiB, licence texts included."""
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 3 << 19


@pytest.mark.parametrize("name", NAMES)
def test_packaged_objects_are_valid(objects, name):
    """The validator finds nothing, and estimates are there for policies that need sizes."""
    obj = objects[name]
    assert list(problems(obj)) == []
    if isinstance(obj, Demand):
        return
    jobs = obj.jobs if isinstance(obj, Instance) else [state.job for state in obj.jobs]
    assert all(job.estimate is not None for job in jobs)


@pytest.mark.parametrize("name", NAMES)
def test_packaged_objects_say_where_they_come_from(objects, name):
    """Source, licence, citation of published data, and how they were made."""
    obj = objects[name]
    assert obj.source
    if isinstance(obj, Round):
        return
    assert obj.licence
    assert len(obj.description.splitlines()) >= 2
    by_hand = obj.source.startswith("made for ronda")
    assert bool(obj.citation) != by_hand
    assert bool(obj.made) != by_hand


def test_licence_texts_are_packaged():
    """Every licence that an entry of published data names has its text in the folder."""
    texts = [p.name for p in FOLDER.glob("LICENSE.*")]
    assert all((FOLDER / text).stat().st_size > 1_000 for text in texts)
    named = " ".join(e.licence for e in packaged.entries())
    for licence in set(re.findall(r"CC-BY-[\d.]+|Apache-[\d.]+|MIT", named)):
        assert any(licence.rstrip(".") in text for text in texts), licence


def test_listing_opens_no_instance_and_loads_nothing_heavy():
    """`entries` reads the index alone: pandas is not imported."""
    code = (
        "import json, sys; from ronda.instances.files import packaged; packaged.entries(); "
        "print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT.parent, capture_output=True, text=True, check=True
    )
    loaded = set(json.loads(done.stdout))
    assert not loaded & {"pandas", "scipy", "pyomo"}


def test_unknown_names_are_answered_with_near_ones():
    """One line with what was probably meant and where the list is."""
    with pytest.raises(
        InputError, match=r"such as venus-vcvgl or .*ronda instances list"
    ) as caught:
        packaged.load("venus-vcvg1")
    assert caught.value.exit_code == 2
    with pytest.raises(InputError, match="a name \\(`ronda instances list`"):
        packaged.load("zzzzzzzz")


def test_files_are_loaded_by_path(tmp_path, monkeypatch):
    """A path works; a packaged name wins over a file that is called the same."""
    one = structs.replace(packaged.load("one-gpu"), name="mine")
    files.write(one, tmp_path / "one.json")
    assert packaged.load(tmp_path / "one.json") == one
    assert packaged.load(str(tmp_path / "one.json")) == one
    monkeypatch.chdir(tmp_path)
    os.rename("one.json", "one-gpu")
    assert packaged.load("one-gpu").name == "one-gpu"
    assert packaged.load("./one-gpu").name == "mine"


def test_plans_are_refused(tmp_path):
    """A plan is no instance."""
    files.write(Plan(policy="fifo"), tmp_path / "plan.json")
    with pytest.raises(InputError, match="a plan; expected an instance or a round"):
        packaged.load(tmp_path / "plan.json")


def test_a_demand_series_is_no_question_of_jobs(tmp_path):
    """Each loader refuses what the other takes, and says what takes it."""
    with pytest.raises(InputError, match="has no jobs; expected an instance or a round"):
        packaged.load("earth-2020-09")
    with pytest.raises(InputError, match="instance; expected a demand series"):
        packaged.load_demand("one-gpu")
    earth = packaged.load_demand("earth-2020-09")
    files.write(earth, tmp_path / "mine.json.gz")
    assert packaged.load_demand(tmp_path / "mine.json.gz") == earth


# --- hand-made instances -------------------------------------------------------------------------


def test_one_gpu_by_all_orders(objects):
    """FIFO and SJF as described, SRTF by stepping through the seconds; no order beats SRTF."""
    one = objects["one-gpu"]
    jobs = [(j.submit_s, j.truth.work) for j in one.jobs]

    def mean_jct(order):
        now = total = 0.0
        for k in order:
            now = max(now, jobs[k][0]) + jobs[k][1]
            total += now - jobs[k][0]
        return total / 3

    assert mean_jct((0, 1, 2)) == pytest.approx(one.reference["fifo"]["mean_jct_s"])
    assert mean_jct((0, 2, 1)) == pytest.approx(one.reference["sjf"]["mean_jct_s"])

    def least(left, now):  # over all assignments of whole seconds, which suffice here
        live = [k for k in range(3) if left[k] > 0 and jobs[k][0] <= now]
        if not any(left):
            return 0
        waiting = sum(left[k] > 0 and jobs[k][0] <= now for k in range(3))
        choices = [tuple(x - (i == k) for i, x in enumerate(left)) for k in live] or [left]
        return waiting + min(least(choice, now + 1) for choice in choices)

    best = least(tuple(int(work) for _, work in jobs), 0) / 3
    assert best == pytest.approx(one.reference["optimum"]["mean_jct_s"])
    assert best == pytest.approx(one.reference["srtf(setup_s=0)"]["mean_jct_s"])


def test_two_jobs_by_all_choices(objects):
    """All (GPUs of A, GPUs of B) until the first ends, then 4 GPUs: the least sum is 320 s.

    The description proves that mixing choices before the first end gains nothing.
    """
    two = objects["two-jobs"]
    table = two.profiles["app"].throughput["GPU"]
    rate = {0: 0.0, **{n: 8.0 / s for n, s in zip(table.gpus, table.step_s, strict=True)}}
    assert rate == {0: 0, 1: 1, 2: 1.6, 4: 2}
    a, b = (job.truth.work for job in two.jobs)
    sums = {}
    for x, y in itertools.product(rate, rate):
        if 0 < x + y <= 4:
            ends = [a / rate[x] if x else np.inf, b / rate[y] if y else np.inf]
            first = min(ends)
            rest = max(a - rate[x] * first, b - rate[y] * first)
            sums[x, y] = 2 * first + rest / rate[4]
    assert min(sums, key=sums.__getitem__) == (2, 2)
    assert sums[2, 2] / 2 == pytest.approx(two.reference["optimum"]["mean_jct_s"]) == 160
    assert sums[4, 0] / 2 == pytest.approx(two.reference["fifo"]["mean_jct_s"]) == 180


def test_clock_or_gpus_by_all_options(objects):
    """Under 400 W: 1 GPU at full clock 400 W, 1 sample/s; 2 at 0.7: 387.2 W, 1.4 samples/s."""
    round = objects["clock-or-gpus"]
    (gpu,), (group,) = round.cluster.gpu_types, round.cluster.node_groups
    curve = round.profiles["app"].power["GPU"]
    found = {}
    for gpus, clock in itertools.product((1, 2), gpu.clocks):
        busy_w = curve.a_w + curve.b_w * min(clock, curve.s0)
        busy_w += curve.c_w * max(clock**3 - curve.s0**3, 0)
        found[gpus, clock] = group.host_idle_w + (2 - gpus) * gpu.idle_w + gpus * busy_w
    assert found[1, 1.0] == 400
    assert found[2, 0.7] == pytest.approx(387.2)
    allowed = {k: k[0] * k[1] for k, watts in found.items() if watts <= round.power_cap_w}
    assert max(allowed, key=allowed.__getitem__) == (2, 0.7)
    entry = next(e for e in packaged.entries() if e.name == "clock-or-gpus")
    best = {"rate": 1.4, "gpus": 2, "clock": 0.7, "power_w": 387.2}
    assert entry.reference["optimum"] == pytest.approx(best)


def test_energy_hand_by_addition(objects):
    """36,000 busy + 800 starting + 14,000 idle + 52,000 hosts = 102,800 J; asleep 33,800 less."""
    hand = objects["energy-hand"]
    (group,), (gpu,) = hand.cluster.node_groups, hand.cluster.gpu_types
    curve = hand.profiles["rigid"].power["GPU"]
    start_s, busy_w = hand.costs.start_s, curve.a_w + curve.b_w
    ends = [j.submit_s + start_s + j.truth.work for j in hand.jobs]
    end = max(ends)
    busy = sum(2 * busy_w * j.truth.work for j in hand.jobs)
    starting = 2 * 2 * gpu.idle_w * start_s
    held = sum(2 * (start_s + j.truth.work) for j in hand.jobs)
    idle = (4 * end - held) * gpu.idle_w
    hosts = 2 * group.host_idle_w * end
    assert (busy, starting, idle, hosts) == (36_000, 800, 14_000, 52_000)
    reference = hand.reference
    assert busy + starting + idle + hosts == reference["fifo"]["energy_j"]
    saved = (group.host_idle_w + 2 * gpu.idle_w - group.sleep_w) * end
    asleep = reference["second node asleep"]["energy_j"]
    assert reference["fifo"]["energy_j"] - asleep == saved == 33_800
    jct = [e - j.submit_s for e, j in zip(ends, hand.jobs, strict=True)]
    assert np.mean(jct) == reference["fifo"]["mean_jct_s"]


# --- real instances ------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "load"), [("venus-vcvgl", 1.09), ("venus-vcvly", None)])
def test_venus(objects, name, load):
    """Rigid jobs, oracle sizes, the artifact's costs and golden results, events only."""
    venus = objects[name]
    assert all(isinstance(t, Rigid) for t in venus.profiles["rigid"].throughput.values())
    assert all(j.estimate.work == j.truth.work for j in venus.jobs)
    assert [venus.costs.restart(n) for n in (1, 8, 9)] == [7, 30, 60]
    assert (venus.cadence.period_s, venus.cadence.on_event) == (None, True)
    assert all(j.user for j in venus.jobs)
    if load is not None:  # offered GPU time over 26 days: facts give 1.09
        gpu_s = sum(j.gpus * j.truth.work for j in venus.jobs)
        assert gpu_s / (venus.cluster.gpus * 26 * 86_400) == pytest.approx(load, abs=0.005)
        assert venus.reference["fifo"] == {
            "mean_jct_s": 18497.011,
            "mean_queue_s": 13891.121,
            "queued_jobs": 933,
        }
        assert venus.reference["srtf"]["preemptions"] == 424
    else:
        assert venus.reference["fifo"]["mean_jct_s"] == 9667.019


def run_time(instance, job):
    """Return the seconds of a job on its requested GPUs, packed, at its requested batch."""
    profile, curve = instance.profiles[job.profile], instance.curves[job.profile]
    table = profile.throughput["T4"]
    nodes = -(-job.gpus // 4)
    rows = [
        (b, step, sync)
        for g, n, b, step, sync in zip(
            table.gpus, table.nodes, table.local_batch, table.step_s, table.sync_s, strict=True
        )
        if (g, n) == (job.gpus, nodes)
    ]
    local, steps, syncs = np.array(rows).T
    passes = int(np.ceil(job.batch / job.gpus / profile.max_local_batch - 1e-9))
    batch = job.batch / job.gpus / passes
    assert local[0] <= batch <= local[-1]  # nothing may be extrapolated
    step, sync = np.interp(batch, local, steps), np.interp(batch, local, syncs)
    seconds = step + (passes - 1) * (step - sync)
    base, scale = profile.base_batch, [np.interp(job.batch, curve.batches, s) for s in curve.scale]
    efficiency = (np.array(scale) + base) / (np.array(scale) + job.batch)
    work = np.diff([0.0, *curve.until])
    assert curve.until[-1] == job.truth.work == job.estimate.work
    return float((work * seconds / (job.batch * efficiency)).sum())


@pytest.mark.parametrize("name", POLLUX)
def test_pollux_profiles_cover_what_schedulers_ask_for(objects, name):
    """Powers of two up to 64 GPUs and the requested sizes, on any number of nodes they can span."""
    instance = objects[name]
    for job in instance.jobs:
        assert job.max_gpus == (1 if job.profile == "ncf" else 64)
    for profile in instance.profiles.values():
        table = profile.throughput["T4"]
        shapes = set(zip(table.gpus, table.nodes, strict=True))
        for gpus in (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64):
            assert {(gpus, n) for n in range(-(-gpus // 4), min(gpus, 16) + 1)} <= shapes
        assert all(sync < step for sync, step in zip(table.sync_s, table.step_s, strict=True))


@pytest.mark.parametrize(("name", "within"), [("pollux-1", 0.003), ("pollux-4", 0.003)])
def test_pollux_tiresias_meets_the_published_mean_jct(objects, name, within):
    """A clone of the artifact's Tiresias (60-s ticks, two queues at 16 GPU-h) on the packaged data.

    It ignores where GPUs lie, so only workloads without a long backlog come this close.
    """
    instance = objects[name]
    jobs = instance.jobs
    left = np.array([run_time(instance, job) for job in jobs])
    gpus = np.array([job.gpus for job in jobs])
    submit = np.array([job.submit_s for job in jobs])
    service, delay = np.zeros(len(jobs)), np.zeros(len(jobs))
    running, end, now = np.zeros(len(jobs), bool), np.full(len(jobs), np.nan), 0.0
    while np.isnan(end).any():
        paused = np.where(running, np.minimum(delay, 60.0), 0.0)
        worked = np.where(running, np.minimum(60.0 - paused, left), 0.0)
        done = running & (worked == left)
        end[done] = (now + paused + worked)[done]
        left, delay = left - worked, delay - paused
        service += running * gpus * 60.0
        running &= ~done
        now += 60.0
        live = np.flatnonzero(np.isnan(end) & (submit <= now))
        free, before = 64, running.copy()
        for k in live[np.lexsort((submit[live], service[live] > 16 * 3600))]:
            running[k] = gpus[k] <= free
            free -= gpus[k] if running[k] else 0
        delay[running & ~before] = 30.0
    published = instance.reference["tiresias (its own simulator)"]["mean_jct_s"]
    assert np.mean(end - submit) == pytest.approx(published, rel=within)


@pytest.mark.parametrize("name", ["philly-energy", "philly-energy-small"])
def test_philly_energy(objects, name):
    """Load, sizes, run times and limits are as documented."""
    instance = objects[name]
    energy, cap = instance.budget.energy, instance.budget.power_cap_w.values[0]
    gpu_s = 0.0
    for job in instance.jobs:
        table = instance.profiles[job.profile].throughput["A100"]
        batch = instance.profiles[job.profile].base_batch
        rate = {n: batch / s for n, s in zip(table.gpus, table.step_s, strict=True)}
        assert job.max_gpus == max(rate, key=rate.__getitem__) >= job.gpus
        seconds = job.truth.work / rate[job.gpus]
        assert seconds == pytest.approx(round(seconds), rel=1e-7)  # Philly has whole seconds
        assert 60 <= round(seconds) <= 4 * 86_400
        gpu_s += seconds * job.gpus
        assert job.submit_s < energy.horizon_s
    assert gpu_s / (instance.cluster.gpus * energy.horizon_s) == pytest.approx(0.85, abs=0.01)
    idle_w = instance.cluster.topology.idle_w
    assert idle_w < energy.sustained_w < cap
    # The budget binds: 85 % of the draw with all GPUs busy, of which the cap allows 95 %.
    assert energy.sustained_w / cap == pytest.approx(0.85 / 0.95, rel=0.001)


def test_philly_energy_tables_split_steps_by_the_fits(objects):
    """ResNet-50, batch 256, 8 GPUs: 1 / 10.3787 s a step, 7.41 + 2.133 x 32 ms of it computing."""
    table = objects["philly-energy"].profiles["resnet50-256"].throughput["A100"]
    k = table.gpus.index(8)
    assert table.step_s[k] == pytest.approx(1 / 10.378702644353233, rel=1e-5)
    assert table.sync_s[k] == pytest.approx(1 / 10.378702644353233 - 0.075666, rel=1e-4)
    assert table.sync_s[0] == 0
    curve = objects["philly-energy"].profiles["resnet50-256"].power["A100"]
    # 26 and 140 W of a 250-W V100, stretched to 400 W: 41.6 and 224; at half speed 153.6 W.
    assert (curve.a_w, curve.b_w, curve.s0, curve.sync_w) == (41.6, 224, 0.88, 153.6)


# --- instances with structure --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "pools", "racks", "due", "restart_s"),
    [
        ("gangs", 1, 2, 0.0, 300),
        ("pods-mixed", 2, 4, 0.5, 120),
        ("two-tenants", 2, 1, 1.0, 600),
        ("philly-batches", 1, 1, 0.0, 120),
    ],
)
def test_structure(objects, name, pools, racks, due, restart_s):
    """Pools, racks, deadlines, restarts and errors of estimates are as described."""
    instance = objects[name]
    topology = instance.cluster.topology
    assert (len(topology.pools), len(topology.racks)) == (pools, racks)
    assert np.mean([j.deadline_s is not None for j in instance.jobs]) == pytest.approx(due, abs=0.1)
    assert instance.costs.restart_s == restart_s
    off = np.log([j.estimate.work / j.truth.work for j in instance.jobs])
    error = instance.made["error"]
    assert off.std() == pytest.approx(error, rel=0.2)
    assert all(abs(j.estimate.sd - error * j.estimate.work) < 0.001 for j in instance.jobs)


def test_gangs(objects):
    """Nine jobs want half the cluster or more, just as many GPUs as they say."""
    wide = [j for j in objects["gangs"].jobs if j.gpus >= 32]
    assert (len(wide), {j.gpus for j in wide}) == (9, {32, 48, 64})
    assert all(j.min_gpus == j.max_gpus for j in wide)


def test_philly_batches_are_those_that_were_measured(objects):
    """The jobs are those of the half day; each step time is that of one of its fixed batches."""
    free, fixed = objects["philly-batches"], objects["philly-energy-small"]
    key = [(j.id, j.submit_s, j.gpus) for j in free.jobs]
    assert key == [(j.id, j.submit_s, j.gpus) for j in fixed.jobs]
    assert all(len(p.batches) > 1 for p in free.profiles.values())
    for mine, theirs in zip(free.jobs, fixed.jobs, strict=True):
        profile, old = free.profiles[mine.profile], fixed.profiles[theirs.profile]
        assert mine.batch == old.base_batch
        assert mine.batch in profile.batches
        table, known = profile.throughput["A100"], old.throughput["A100"]
        rows = set(zip(table.gpus, table.local_batch, table.step_s, table.sync_s, strict=True))
        assert rows >= set(
            zip(known.gpus, known.local_batch, known.step_s, known.sync_s, strict=True)
        )
        # Work in samples of the smallest batch: (M + B0) / (M + B) of those in its own batch.
        scale = free.curves[mine.truth.curve].scale[1][0]
        value = (scale + profile.base_batch) / (scale + mine.batch)
        assert mine.truth.work == pytest.approx(theirs.truth.work * value, rel=1e-8)


def test_probe_window_by_the_line(objects):
    """B starts at the first second at which the budget bears it until its end."""
    probe = objects["probe-window"]
    accrues_w, (a, b) = probe.budget.energy.sustained_w, probe.jobs
    busy_w = probe.profiles["rigid"].power["GPU"].a_w
    ends, used_j, free_s = [], 0.0, 0.0
    for job in (a, b):
        need_j, runs_s = busy_w * job.truth.work, job.truth.work
        start = max(job.submit_s, free_s)
        while any(used_j + busy_w * t > accrues_w * (start + t) for t in np.arange(1, runs_s + 1)):
            start += 1
        used_j, free_s = used_j + need_j, start + runs_s
        ends.append(start + runs_s)
    assert ends == [160, 240]
    jct = [end - job.submit_s for end, job in zip(ends, (a, b), strict=True)]
    assert np.mean(jct) == probe.reference["optimum"]["mean_jct_s"] == 70
    assert used_j == probe.reference["optimum"]["energy_j"]


def test_probe_restart_by_both_orders(objects):
    """B waits for A, or A is stopped for B and restarts."""
    probe = objects["probe-restart"]
    a, b = probe.jobs
    waits = (a.truth.work, a.truth.work + b.truth.work - b.submit_s)
    stopped = (a.truth.work + b.truth.work + probe.costs.restart_s, b.truth.work)
    assert (np.mean(waits), np.mean(stopped)) == (151, 202)
    assert probe.reference["optimum"]["mean_jct_s"] == 151
