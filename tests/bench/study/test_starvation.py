"""Windows of traces: their load, their gangs, and the ratios to the rival."""

import pandas as pd
import pytest

from ronda.bench.study.starvation import RIVAL, measure, ratios, table, window
from ronda.instances.files.catalogue import load


def test_a_window_has_its_load_and_gangs():
    """40 jobs in a row; every tenth is 50 to 90 % of 16 GPUs and runs as long as before."""
    trace = load("venus-vcvly")
    made = window(trace, 40, 0.9, 10, seed=3)
    ids = [job.id for job in made.jobs]
    first = [job.id for job in trace.jobs].index(ids[0])
    own = trace.jobs[first : first + 40]
    assert ids == [job.id for job in own]
    assert [job.truth for job in made.jobs] == [job.truth for job in own]
    wide = [b.gpus for a, b in zip(own, made.jobs, strict=True) if a.gpus != b.gpus]
    assert 1 <= len(wide) <= 4
    assert all(8 <= n <= 14 for n in wide)
    area = sum(job.gpus * job.truth.work for job in made.jobs)
    assert area / (16 * made.jobs[-1].submit_s) == pytest.approx(0.9, rel=1e-3)
    assert window(trace, 40, 0.9, 10, seed=3) == made != window(trace, 40, 0.9, 10, seed=4)


def test_policies_are_held_against_the_rival_on_the_same_window():
    """A schedule of a small window, and the table of its ratios."""
    case = {"trace": "venus-vcvly", "seed": 1, "load_": 1.0, "count": 30, "every": 10}
    names = (RIVAL, "prices(patience=3)")
    runs = pd.DataFrame([case | {"policy": n} | measure(policy=n, **case) for n in names])
    assert not runs.violations.any()
    found = ratios(runs)
    own = found.loc[("prices(patience=3)", "venus-vcvly", 1)]
    assert own.mean_jct_s == pytest.approx(runs.mean_jct_s[1] / runs.mean_jct_s[0])
    assert f"{own.mean_jct_s:.3f}" in table(found)
