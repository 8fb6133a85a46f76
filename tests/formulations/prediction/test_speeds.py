"""Speeds fitted to what was measured, and corrected where it was."""

import numpy as np
import pytest
from msgspec.structs import replace

from ronda.formulations.prediction.speeds import believed_model, carried, fit
from ronda.instances.models.measured import Measured, Way, way_of
from ronda.instances.models.throughput import phases
from ronda.instances.profile import Parametric, Tabular

TRUE = Parametric(
    alpha_c_s=0.02,
    beta_c_s=0.001,
    alpha_r_s=0.01,
    beta_r_s=0.002,
    alpha_n_s=0.03,
    beta_n_s=0.004,
)


def measured(*ways: tuple[int, int, float], model: Parametric | Tabular = TRUE) -> Measured:
    """Return what the ways to run take under a model."""
    found = Measured()
    for gpus, nodes, batch in ways:
        compute, sync = phases(model, gpus, nodes, batch)
        found.add(Way(gpus, nodes, batch), float(compute), float(sync))
    return found


def test_a_linear_model_is_found_again() -> None:
    """A linear model is found again."""
    ways = [(1, 1, 8.0), (1, 1, 64.0), (2, 1, 32.0), (4, 1, 32.0), (8, 2, 16.0), (16, 4, 16.0)]
    found = fit(measured(*ways))
    for name in ("alpha_c_s", "beta_c_s", "alpha_r_s", "beta_r_s", "alpha_n_s", "beta_n_s"):
        assert getattr(found, name) == pytest.approx(getattr(TRUE, name), rel=1e-6), name


def test_nodes_that_were_never_crossed_are_like_gpus_of_one() -> None:
    """Nodes that were never crossed are like gpus of one."""
    found = fit(measured((1, 1, 8.0), (1, 1, 64.0), (2, 1, 32.0), (4, 1, 32.0)))
    assert (found.alpha_n_s, found.beta_n_s) == (found.alpha_r_s, found.beta_r_s)


def test_racks_are_told_apart_once_they_were_crossed() -> None:
    """Steps across racks say nothing of those across nodes of one, and the other way round."""
    ways = [(1, 1, 8.0), (1, 1, 64.0), (8, 2, 16.0), (16, 4, 16.0)]
    near = measured(*ways)
    assert not fit(near).minds_racks
    real = replace(TRUE, alpha_x_s=0.09, beta_x_s=0.008)
    for gpus in (8, 16):
        compute, sync = phases(real, gpus, 2, 16.0, racks=2)
        near.add(Way(gpus, 2, 16.0, racks=2), float(compute), float(sync))
    found = fit(near)
    for name in ("alpha_n_s", "beta_n_s", "alpha_x_s", "beta_x_s"):
        assert getattr(found, name) == pytest.approx(getattr(real, name), rel=1e-6), name


def test_only_models_that_can_tell_racks_are_told_them() -> None:
    """Measured tables have no racks: steps across them count as those of one."""
    assert way_of(TRUE, 8, 2, 16.0, 2).racks == 2
    assert way_of(table(1.0), 8, 2, 16.0, 2).racks == 1


def test_one_batch_is_taken_in_proportion() -> None:
    """One batch is taken in proportion."""
    found = fit(measured((1, 1, 32.0)))
    assert found.beta_c_s * 32.0 == pytest.approx(0.02 + 0.032, rel=1e-6)
    assert phases(found, 8, 2, 32.0)[1] == 0.0


def table(factor: float) -> Tabular:
    """A grid of the true model, but 8 GPUs on 2 nodes take `factor` times as long."""
    ways = [(n, -(-n // 4), b) for n in (1, 2, 4, 8, 16) for b in (8.0, 16.0, 32.0)]
    gpus, nodes, batch = (np.array(column) for column in zip(*ways, strict=True))
    compute, sync = phases(TRUE, gpus, nodes, batch)
    by = np.where(gpus == 8, factor, 1.0)
    return Tabular(
        gpus=tuple(gpus.tolist()),
        nodes=tuple(nodes.tolist()),
        local_batch=tuple(batch.tolist()),
        step_s=tuple((by * (compute + sync)).tolist()),
        sync_s=tuple((by * sync).tolist()),
    )


def test_what_was_measured_is_met_where_scaling_is_not_concave() -> None:
    """What was measured is met where scaling is not concave."""
    real = table(2.0)
    seen = measured(
        (1, 1, 8.0), (1, 1, 32.0), (4, 1, 16.0), (8, 2, 16.0), (16, 4, 16.0), model=real
    )
    known = believed_model(real, seen)
    assert isinstance(known, Tabular)
    where = [way in seen.ways for way in zip(real.gpus, real.nodes, real.local_batch, strict=True)]
    steps = np.array(known.step_s)[where], np.array(real.step_s)[where]
    assert np.log(steps[0] / steps[1]) == pytest.approx(0.0, abs=0.02)
    eight = np.array(real.gpus) == 8
    assert np.array(known.step_s)[eight] == pytest.approx(np.array(real.step_s)[eight], rel=0.2)


def test_before_any_measurement_gpus_scale_perfectly() -> None:
    """Before any measurement gpus scale perfectly."""
    known = believed_model(table(2.0), Measured())
    assert isinstance(known, Tabular)
    assert np.array(known.step_s) == pytest.approx(np.array(known.local_batch))
    assert set(known.sync_s) == {0.0}


def test_measurements_of_one_way_are_averaged() -> None:
    """Measurements of one way are averaged."""
    seen = Measured()
    seen.add(Way(1, 1, 8.0), 1.0, 0.0)
    seen.add(Way(1, 1, 8.0), 3.0, 0.0)
    assert fit(seen).beta_c_s * 8.0 == pytest.approx(2.0)
    assert len(seen.ways) == 1


def slower(factor: float) -> Parametric:
    """The true model where computing takes `factor` times as long."""
    return replace(TRUE, alpha_c_s=factor * TRUE.alpha_c_s, beta_c_s=factor * TRUE.beta_c_s)


HERE, THERE = (1, 1, 8.0), (4, 1, 16.0)


def test_what_was_measured_on_a_gpu_type_comes_before_what_is_carried_over() -> None:
    """An application's own ratio of both types scales the rest."""
    known = {
        ("bert", "a100"): measured(HERE, THERE),
        ("bert", "v100"): measured(HERE, model=slower(3.0)),
        ("ncf", "a100"): measured(HERE),
        ("ncf", "v100"): measured(HERE, model=slower(5.0)),
    }
    found = carried(known, "bert", "v100")
    assert found.ways[Way(*HERE)] == known["bert", "v100"].ways[Way(*HERE)]
    assert found.ways[Way(*THERE)] == pytest.approx(
        measured(THERE, model=slower(3.0)).ways[Way(*THERE)]
    )


def test_gpu_types_are_as_fast_to_an_application_as_to_others() -> None:
    """The geometric mean of others; synchronising takes as long, and all are as fast at first."""
    known = {("bert", "a100"): measured(HERE, THERE)}
    assert carried(known, "bert", "v100") == known["bert", "a100"]
    for name, factor in (("ncf", 2.0), ("vgg16", 8.0)):
        known[name, "a100"] = measured(HERE)
        known[name, "v100"] = measured(HERE, model=slower(factor))
    expected = measured(HERE, THERE, model=slower(4.0)).ways
    found = carried(known, "bert", "v100").ways
    assert found.keys() == expected.keys()
    for way, sums in found.items():
        assert sums == pytest.approx(expected[way])
    assert carried(known, "bert", "a100") == known["bert", "a100"]
    assert not carried(known, "gpt", "v100").ways
