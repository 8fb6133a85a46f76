"""A power cap: what a round is worth with fewer and fewer watts."""

from msgspec.structs import replace

import ronda
from ronda.instances import generate

round_ = generate.round(12, 32, "loose", seed=1)
for cap_w in (20_000.0, 12_000.0, 8_000.0):
    capped = replace(round_, power_cap_w=cap_w, energy_j=None)
    plan = ronda.solve(capped, "prices")
    assert ronda.check(capped, plan) == []
    watt = plan.prices.get("power_cap", 0.0)
    print(f"{cap_w:8,.0f} W: {len(plan.allocations)} jobs, worth {plan.objective}; a watt: {watt}")
