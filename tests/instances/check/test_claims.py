"""What running jobs leave out of their options is completed, what they claim is checked."""

import copy

import msgspec
import pytest

from ronda.instances.check.checker import check
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.instances.rules.validate import validate

# One job of batch 64 on 2 GPUs: a step of (0.1 + 0.01 x 32) s, so 64/0.42 samples/s at full clock,
# and 2 x (60 + 100) W. At a noise scale of 64 and B0 = 32 its efficiency is 96/128 = 0.75; over all
# scales it lies between 32/64 = 0.5 and 1.
ROUND = {
    "cluster": {
        "gpu_types": [{"name": "A", "memory_gib": 40, "idle_w": 50}],
        "node_groups": [{"name": "g", "count": 2, "gpus_per_node": 2, "gpu_type": "A"}],
    },
    "profiles": {
        "net": {
            "name": "net",
            "throughput": {"A": {"kind": "parametric", "alpha_c_s": 0.1, "beta_c_s": 0.01}},
            "power": {"A": {"a_w": 60, "b_w": 100}},
            "base_batch": 32,
        }
    },
    "running": [
        {
            "job": {
                "id": "a",
                "submit_s": 0,
                "profile": "net",
                "gpus": 2,
                "batch": 64,
                "preemptible": False,
            },
            "since_s": 0,
            "started": True,
            "noise": {"batches": [64], "scale": [64]},
            "allocation": {"option": {"pool": 0, "gpus": 2}, "placement": [[0, 2]]},
        }
    ],
}
PACE = 64 / 0.42


def round_(**option):
    """Return the round, its job's option with these fields as well."""
    document = copy.deepcopy(ROUND)
    document["running"][0]["allocation"]["option"] |= option
    return msgspec.convert(document, Round)


def held(found):
    """Return the option of the one job that runs."""
    return found.running[0].allocation.option


def test_what_is_left_out_is_computed():
    """Batch, rate and watts follow from job, profile and noise scale, by hand."""
    option = held(validate(round_()))
    assert option.batch == 64
    assert option.rate == pytest.approx(0.75 * PACE)
    assert option.power_w == pytest.approx(320)


def test_what_is_given_stays():
    """A rate that was right at another noise scale is left alone, the rest is completed."""
    option = held(validate(round_(rate=0.6 * PACE)))
    assert option.rate == 0.6 * PACE
    assert option.power_w == pytest.approx(320)
    complete = round_(rate=0.6 * PACE, power_w=320, batch=64)
    assert validate(complete) is complete


@pytest.mark.parametrize("rate", [0.49 * PACE, 1.01 * PACE])
def test_a_rate_from_before_the_profile_was_fitted_anew_stays(rate):
    """What a running job measured is no error of the file, whatever the profile says by now."""
    found = validate(round_(rate=rate))
    assert held(found).rate == rate
    assert check(found, Plan(allocations=found.held)) == []


def test_a_plan_is_held_against_the_completed_round():
    """Keeping what runs is in order, though the round left its rate and watts out."""
    given = round_()
    plan = Plan(allocations=validate(given).held)
    assert check(given, plan) == []
