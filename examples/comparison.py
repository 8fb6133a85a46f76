"""Three policies on one day, side by side."""

import ronda
from ronda.instances import generate

day = generate.horizon(12, 16, "balanced", seed=2)
for policy in ("fifo", "srtf", "prices"):
    found = ronda.summarise(day, ronda.run(day, policy))
    print(f"{policy:8}{found['mean_jct_s']:10,.0f} s mean completion time")
