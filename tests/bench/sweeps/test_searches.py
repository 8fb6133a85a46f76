"""The studies of searches, on as little as shows that they measure what they say."""

import pytest

from ronda.bench.study.__main__ import main
from ronda.bench.sweeps import curves, hermes, hypersched, probes
from ronda.instances import generate
from ronda.instances.rules.validate import validate
from ronda.solvers.horizon.driver import run


def test_the_time_of_a_search_ends_when_all_good_trials_are_near_the_least():
    """FIFO with one good trial among three: its place in the queue, less what it is near before."""
    given = generate.sweep(3, 1, 1, generate.Trials(good=0.0, reports=10, noise=0.0))
    final = [job.truth.learning[-1] for job in given.jobs]
    place = final.index(min(final))
    found = hermes.until_all_good_s(given, run(given, "fifo"))
    assert 600.0 * place < found <= 600.0 * (place + 1)


def test_hermes_study_writes_its_table_and_picture(tmp_path):
    """Two shares and three costs for each of three rivals, one seed."""
    words = ["--seeds", "0", "--trials", "2", "--good", "0,1", "--costs", "0,1"]
    assert main(["hermes", *words, "--out", str(tmp_path)]) == 0
    assert "4.04" in (tmp_path / "table.md").read_text()
    assert (tmp_path / "hermes.png").stat().st_size > 1000
    assert len((tmp_path / "hermes.csv").read_text().splitlines()) == 1 + 3 * (2 + 3)


def test_hypersched_s_search_scales_as_published():
    """Instances are valid; a search ends at its deadline."""
    given = validate(hypersched.searching(0, 150.0))
    table = given.profiles["resnet50"].throughput["V100"]
    assert table.step_s[0] / table.step_s[3] == pytest.approx(5.6)
    found = hypersched.measure("hypersched", 150.0, 0)
    assert 8 <= found["trials"] <= 24
    assert 0.3 < found["accuracy"] < 0.9


def test_a_draw_is_a_search_of_its_own_and_regret_falls():
    """The same seed gives the same draw; regret never rises, and is 0 once all is trained."""
    given, everything = curves.drawn("sweep-titan", "mrpc", 0)
    assert given == curves.drawn.__wrapped__("sweep-titan", "mrpc", 0)[0]
    assert len(given.jobs) == 28
    found = curves.measure("sweep-titan", "mrpc", "sweep", 0)
    assert found["regret"] == sorted(found["regret"], reverse=True)
    assert not found["missed"]
    assert 0 < found["best_gpu_s"] < everything


def test_fused_probes_write_a_row_for_each_policy(tmp_path, monkeypatch):
    """On eight trials; a policy that fuses nothing takes the same whatever the models."""
    monkeypatch.setattr(probes, "TRIALS", 8)
    words = ["--searches", "generated", "--curves", "resnet18,pointnet-a100", "--seeds", "0"]
    assert main(["fused-probes", *words, "--policies", "asha", "--out", str(tmp_path)]) == 0
    rows = [row.split(" | ") for row in (tmp_path / "table.md").read_text().splitlines()[2:]]
    assert [row[1:] for row in rows[:1]] == [row[1:] for row in rows[1:]]
