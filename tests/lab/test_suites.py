"""The suites of the repository: all can be read and run, and their own code does what it says."""

import re
import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from msgspec.structs import replace

from ronda.bench.runs.single import measure
from ronda.bench.suites.cells import expand
from ronda.bench.suites.suite import PACKAGED, locate, read
from ronda.bench.suites.tables import arrange
from ronda.formulations.options.build import build
from ronda.horizon.driver import run
from ronda.instances import generate
from ronda.instances.files.json import write
from ronda.instances.files.packaged import load
from ronda.instances.instance import Instance
from ronda.instances.job import JobState
from ronda.instances.profile import NoiseScale
from ronda.instances.round import Round
from ronda.instances.rules.validate import validate
from ronda.solvers.registry import policy

SUITES = Path(__file__).parents[2] / "lab" / "suites"
PATHS = {path.stem: path for folder in (SUITES, PACKAGED) for path in folder.glob("*.toml")}
NAMES = sorted(PATHS)
DATA = {"qssf-philly", "qssf-crowded", "qssf-venus", "sleep-queues", "calibration"}
"""Of traces that must be converted first."""


@pytest.mark.parametrize("name", sorted({*NAMES} - DATA))
def test_a_suite_runs_as_it_is_written(name, tmp_path):
    """On its first seed: every instance, policy, axis and column is there."""
    path = PATHS[name]
    suite = read(path)
    first = {"seeds": "1"} if name.startswith("fault") else {"seeds": "0"}
    expanded = expand(suite.asked(**first), tmp_path, str(path), path.parent)
    assert expanded.cells
    arrange(suite, expanded, str(path))
    assert suite.about


@pytest.mark.parametrize("name", sorted(DATA))
def test_a_suite_of_traces_runs_on_what_stands_for_them(name, tmp_path, monkeypatch):
    """Policies, axes and columns, on another instance and with other histories."""
    monkeypatch.chdir(tmp_path)
    for nodes in (94, 75):
        write(generate.demand(2, nodes, 0), tmp_path / f"needed-{nodes}.json")
    suite = read(SUITES / f"{name}.toml")
    given = {"instances": ("venus-vcvly",), "predictor": "", "knowledge": (), "recorded": ()}
    expanded = expand(suite.asked(**given), tmp_path)
    arrange(suite, expanded)
    for each in suite.parts():
        assert all(name.endswith(".json.zst") for name in (*each.instances, *each.recorded))


def test_every_suite_is_shown_in_the_docs():
    """By the command that runs it."""
    pages = "".join(p.read_text() for p in (SUITES.parents[1] / "docs").rglob("*.md"))
    words = {name: path.name if path.parent == PACKAGED else path for name, path in PATHS.items()}
    words = {
        n: f"ronda compare {str(w).removeprefix(f'{SUITES.parents[1]}/')}" for n, w in words.items()
    }
    assert [name for name, command in words.items() if command not in pages] == []


def test_a_packaged_suite_is_found_by_its_name(tmp_path, monkeypatch):
    """A file of that name that is there goes first; a path is only a path."""
    monkeypatch.chdir(tmp_path)
    assert locate("helios.toml") == PACKAGED / "helios.toml"
    assert locate("./helios.toml") == Path("helios.toml")
    assert locate("none.toml") == Path("none.toml")
    (tmp_path / "helios.toml").touch()
    assert locate("helios.toml") == Path("helios.toml")


def test_the_suite_of_the_docs_can_be_read(tmp_path):
    """It has 4 instances, 3 costs and 3 policies, as the page says."""
    page = (SUITES.parents[1] / "docs" / "suites.md").read_text()
    (text,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "s.toml").write_text(text.replace("mine.json.zst", "pollux-2"))
    suite = read(tmp_path / "s.toml")
    axes = expand(suite.asked(seeds="0"), tmp_path).axes
    assert [len(axes[axis]) for axis in ("instance", "gpus", "restart_s", "policy")] == [3, 2, 3, 3]


@pytest.mark.parametrize("name", ["milp-energy", "prices", "powerflow", "evolve"])
@pytest.mark.parametrize("probe", ["probe-cap", "probe-cap-falls", "probe-wake", "probe-window"])
def test_policies_that_see_power_find_the_best_schedule(probe, name):
    """To the second and to the joule, and no rule is broken."""
    instance = load(probe)
    found = measure(instance, run(instance, name), wall_s=0.0).metrics
    assert found["above_optimum"] == pytest.approx(0.0, abs=1e-9)
    assert found["energy_above_optimum"] == pytest.approx(0.0, abs=1e-9)
    assert found["violations"] == 0


def test_fifo_on_a_probe_by_hand():
    """It lets the long job in first: 145 s on average instead of 80."""
    instance = load("probe-racks")
    found = measure(instance, run(instance, "fifo"), wall_s=0.0).metrics
    assert found["above_optimum"] == pytest.approx(145 / 80 - 1)


def test_hydro_by_hand():
    """One trial a GPU: 13 of 50 epochs, 6.0978 s each, on the GPUs that have most."""
    code = runpy.run_path(str(SUITES / "hydro.py"))
    assert run(load("sweep-hydro"), "fifo").end_s == pytest.approx(13 * 50 * 6.0978)
    assert run(code["targets"](), "fifo").end_s == pytest.approx(50 * 6.0978)
    assert run(code["narrow"](), "hfht").end_s < run(load("sweep-hydro"), "hfht").end_s / 2


def test_hypersched_s_search_scales_as_published():
    """Instances are valid; a search ends at its deadline, and 8 to 24 trials began by then."""
    given = validate(runpy.run_path(str(SUITES / "hypersched.py"))["search"](150.0, 0))
    assert isinstance(given, Instance)
    table = given.profiles["resnet50"].throughput["V100"]
    assert table.step_s[0] / table.step_s[3] == pytest.approx(5.6)
    found = measure(given, run(given, "hypersched"), wall_s=0.0).metrics
    assert 8 <= found["begun_jobs"] <= 24
    assert 0.1 < found["mean_least_loss"] < 0.7


def test_racks_hold_one_job_of_two_nodes():
    """Made instances are valid; 18 nodes of 8 GPUs in 6 racks."""
    given = validate(runpy.run_path(str(SUITES / "racks.py"))["racks"](12, 0))
    assert len(given.cluster.racks) == 6
    assert given.cluster.gpus == 18 * 8


def test_one_batch_is_left_for_each_way_to_run():
    """Of all rows with the same GPUs, clock and place the fastest stays, whatever it draws."""
    only_fastest = runpy.run_path(str(SUITES / "batches.py"))["only_fastest"]
    instance = load("pollux-1")
    noise = NoiseScale(batches=(1.0,), scale=(1e4,))
    waiting = tuple(JobState(job=job, since_s=0.0, noise=noise) for job in instance.jobs[:6])
    round_ = Round(cluster=instance.cluster, profiles=instance.profiles, waiting=waiting)
    table = build(round_, prune=False, mind_power=True)
    left = only_fastest(table)

    def best(of):
        ways = zip(of.job, of.pool, of.gpus, of.span, of.clock, strict=True)
        frame = pd.DataFrame({"way": [tuple(w) for w in ways], "rate": of.rate})
        return frame.groupby("way").rate.agg(["max", "count"])

    assert (best(left)["count"] == 1).all()
    assert (best(left)["max"] == best(table)["max"]).all()
    assert len(left) < len(table)
    assert (np.diff(left.start) == np.bincount(left.job, minlength=6)).all()


def test_a_policy_with_the_fastest_batches_alone_breaks_no_rule():
    """On a small instance with an energy budget."""
    instance = load("energy-hand")
    fastest = policy(f"{SUITES / 'batches.py'}:Fastest(of=prices)")
    assert measure(instance, run(instance, fastest), wall_s=0.0).metrics["violations"] == 0


def test_a_search_that_missed_is_charged_all_its_trials():
    """FIFO stops at nothing and finds the best; one that gives up at once is charged 4 x 240 s."""
    given = generate.sweep(4, 2, 0, generate.Trials(reports=4, noise=0.0))
    schedule = run(given, "fifo")
    found = measure(given, schedule, wall_s=0.0).metrics
    assert found["mean_charged_gpu_s"] == found["mean_best_gpu_s"]
    gone = tuple(replace(job, segments=(), discarded=True) for job in schedule.jobs)
    missed = measure(given, replace(schedule, jobs=gone), wall_s=0.0).metrics
    assert (missed["missed_sweeps"], missed["mean_charged_gpu_s"]) == (1, 4 * 240.0)
