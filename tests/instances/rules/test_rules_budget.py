"""Rules of limits of power and energy: every slip is named."""

import pytest

from spoilt import INSTANCE, check_case, put


def late(**fields):
    """Return an energy budget of which half accrues in the last tenth."""
    values = fields.pop("values", [1, 9])
    series = {"times_s": [0, 900], "values": values}
    return {"horizon_s": 1000, "pacing": "series", "accrual": series} | fields


def priced(values):
    """Return a budget that is paced by a price."""
    return {
        "energy": {"joules": 1e6, "horizon_s": 1000, "pacing": "price"},
        "energy_price_per_j": {"times_s": [0, 500], "values": values},
    }


# name: (mutation, words of the place, of what was found, of what was expected)
INSTANCES = {
    "series lengths": (
        put("budget", "power_cap_w", "values", [3000]),
        "power_cap_w.values",
        "1 values for 2",
        "each",
    ),
    "series order": (
        put("budget", "power_cap_w", "times_s", [0, 0]),
        "power_cap_w.times_s",
        "do not ascend",
        "from 0",
    ),
    "series start": (put("budget", "power_cap_w", "times_s", [1, 2]), "times_s[0]", "1", "0"),
    "power cap": (
        put("budget", "power_cap_w", "values", [3000, 19]),
        "power_cap_w.values[1]",
        "19 W",
        "20 W",
    ),
    "energy": (
        put("budget", "energy", "joules", 19_999),
        "energy.joules",
        "19999 J",
        "at least 20000 J",
    ),
    # Half of the joules accrue in the last tenth: by 900 s 20 W x 900 s must have, so 36,000 J.
    "energy that accrues too late": (
        put("budget", "energy", late(joules=35_999)),
        "energy.joules",
        "35999 J",
        "at least 36000 J",
    ),
    "no energy at first": (
        put("budget", "energy", late(joules=1e6, values=[0, 1])),
        "budget.energy",
        "'series'",
        "credit_j",
    ),
    "pacing without its series": (
        put("budget", "energy", late(joules=1e6, accrual=None)),
        "energy.pacing",
        "'series' without budget.energy.accrual",
        "the series",
    ),
    "series without its pacing": (
        put("budget", "energy", late(joules=1e6, pacing="even")),
        "energy.accrual",
        "'even'",
        "'series'",
    ),
    "pacing by a price of nothing": (
        put("budget", priced([1, 0])),
        "energy_price_per_j.values",
        "0 with the pacing 'price'",
        "above 0",
    ),
    "pacing by an unknown rule": (
        put("budget", "energy", late(joules=1e6, pacing="odd")),
        "energy.pacing",
        "odd",
        "even",
    ),
    "price series": (
        put("budget", {"energy_price_per_j": {"times_s": [5], "values": [1]}}),
        "energy_price_per_j.times_s[0]",
        "5",
        "0",
    ),
    "carbon series": (
        put("budget", {"carbon_g_per_j": {"times_s": [0, 1], "values": [1]}}),
        "carbon_g_per_j.values",
        "1 values for 2 times",
        "each time",
    ),
    # Job "a" draws no more than idle GPUs, but needs both nodes awake: 2 x (300 - 10) W + 20 W.
    "cap below a job": (
        put("budget", "power_cap_w", {"times_s": [0, 100], "values": [599, 500]}),
        "power_cap_w.values",
        "at most 599 W",
        'at least 600 W at some time: job "a" needs 580 W',
    ),
}


@pytest.mark.parametrize("name", INSTANCES)
def test_spoilt_instance(name):
    """Each slip in a limit is named with place, what was found and what was expected."""
    check_case(INSTANCE, INSTANCES[name])
