"""Where policies have the sizes of jobs from."""

import pytest
from msgspec.structs import replace

from ronda.bench.runs.single import knowledge
from ronda.instances.files.packaged import load
from ronda.instances.job import Estimate


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ("fifo", "none"),
        ("tiresias+zeus", "none"),
        ("pollux-like+zeus", "none"),
        ("srtf", "oracle"),
        ("elasticflow-like+zeus", "oracle"),
        ("race-to-idle", "oracle"),
        ("milp-energy", "oracle"),
        ("powerflow", "oracle"),
        ("ones", "history"),
    ],
)
def test_exact_estimates_make_an_oracle_of_who_looks_at_them(policy, told):
    """In the packaged instance estimates are the truth."""
    assert knowledge(load("one-gpu"), policy) == told


def test_estimates_that_are_wrong_are_declared():
    """One that is off is enough; without any there is nothing to know."""
    instance = load("one-gpu")
    first, *others = instance.jobs
    wrong = replace(instance, jobs=(replace(first, estimate=Estimate(work=99.0)), *others))
    assert knowledge(wrong, "srtf") == "declared"
    blind = replace(instance, jobs=tuple(replace(j, estimate=None) for j in instance.jobs))
    assert knowledge(blind, "srtf") == "none"
