"""The study of batches chosen together with GPUs and clocks."""

import numpy as np
import pandas as pd

from ronda.bench.study.joint_batches import measure, only_fastest, table_of
from ronda.formulations.options.build import build
from ronda.instances.files.catalogue import load
from ronda.instances.job import JobState
from ronda.instances.profile import NoiseScale
from ronda.instances.round import Round


def test_one_batch_is_left_for_each_way_to_run():
    """Of all rows with the same GPUs, clock and place the fastest stays, whatever it draws."""
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


def test_a_run_is_held_against_the_bound():
    """On a small instance: nothing is worth more than the bound, no plan breaks a rule."""
    found = measure("energy-hand", 1.0, "prices", "fastest", 1)
    assert found["violations"] == 0
    assert found["shortfall"] >= -1e-4
    line = {"instance": "energy-hand", "factor": 1.0, "policy": "prices", "batches": "fastest"}
    assert len(table_of(pd.DataFrame([line | found])).splitlines()) == 3
