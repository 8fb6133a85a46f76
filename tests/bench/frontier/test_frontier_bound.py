"""The clairvoyant frontier: below every run, falling, kept on disk."""

import json

import pytest
from msgspec.structs import replace

from ronda.bench.frontier.bound import bound_steps, kept_steps
from ronda.bench.runs.variant import Variant
from ronda.horizon.driver import run
from ronda.instances import generate
from ronda.instances.errors import InputError
from ronda.instances.outcome.metrics import summarise


def test_energy_below_which_nothing_can_be_done_by_hand(two_nodes):
    """Rigid jobs: asleep both nodes draw 10 W, and the last job ends no earlier than at 100.

    Awake a node draws 140 W, 135 W more than asleep: at least 33.75 W for each GPU held. 50 W
    more for each busy one: 83.75 W x (200 + 400 + 10) GPU-seconds. The area bound of the end:
    610 GPU-seconds on 8 GPUs take 76.25 s, less than job a alone.
    """
    steps = bound_steps(Variant(sustained_w=680.0).apply(two_nodes), count=2)
    assert steps[0][0] == pytest.approx(10 * 100 + 83.75 * 610, rel=0.02)
    assert all(jct >= (100 + 50 + 10) / 3 - 1e-9 for _, jct in steps)


def test_no_run_is_below_and_energy_matters():
    """A schedule's mean JCT is no less than the step of its energy; with less energy that rises."""
    instance = generate.horizon(5, 8, "balanced", 1)
    steps = bound_steps(instance, count=3)
    assert [e for e, _ in steps] == sorted(e for e, _ in steps)
    assert [s for _, s in steps] == sorted((s for _, s in steps), reverse=True)
    assert steps[0][1] > 1.01 * steps[-1][1]
    for policy in ("srtf", "prices"):
        found = summarise(instance, run(instance, policy))
        assert found["energy_j"] >= steps[0][0]
        above = [jct for energy, jct in steps if energy >= found["energy_j"]]
        assert found["mean_jct_s"] >= max(above, default=steps[-1][1]) * (1 - 1e-9)


def test_steps_are_kept(two_nodes, tmp_path):
    """A second time they come from the file; another instance is added to it."""
    path, news = tmp_path / "bounds.json", []
    short = replace(two_nodes, jobs=two_nodes.jobs[:1])
    first = kept_steps(short, path, news.append)
    assert news
    assert kept_steps(short, path, lambda share: pytest.fail("not kept")) == first
    kept_steps(Variant(nodes=1).apply(short), path)
    assert len(json.loads(path.read_bytes())) == 2 + 1  # and the checksum


def test_bounds_that_were_cut_or_changed_are_refused(two_nodes, tmp_path):
    """One line says what to do; a changed bound would make every gap wrong."""
    path = tmp_path / "bounds.json"
    short = replace(two_nodes, jobs=two_nodes.jobs[:1])
    kept_steps(short, path)
    kept = path.read_bytes()
    for spoilt in (kept[:9], kept.replace(b"1", b"2")):
        path.write_bytes(spoilt)
        with pytest.raises(InputError, match=r"bounds.json: found .*delete it"):
            kept_steps(short, path)


def test_a_budget_that_nothing_keeps_has_no_frontier(two_nodes):
    """Asleep the nodes draw 10 W already."""
    assert bound_steps(Variant(sustained_w=5.0).apply(two_nodes)) == ()
