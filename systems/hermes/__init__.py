"""Policies for searches for hyper-parameters: which trial runs next, and which is given up.

Hermes, round-robin and SLAQ order trials; ASHA, Hyperband and HyperSched stop them early; `sweep`
is ronda's own. The rule of each stands in its file, as functions of reported losses; `trials` is
what all of them look at, `order` the plan that they make. Jobs of no sweep come first in all of
them, in order of submission.
"""

POLICIES = {
    "hermes": "ronda.systems.hermes.hermes:Hermes",
    "round-robin": "ronda.systems.hermes.round_robin:RoundRobin",
    "slaq": "ronda.systems.hermes.slaq:Slaq",
    "asha": "ronda.systems.hermes.asha:Asha",
    "hyperband": "ronda.systems.hermes.hyperband:Hyperband",
    "hypersched": "ronda.systems.hermes.hypersched:HyperSched",
    "sweep": "ronda.systems.hermes.sweep:SweepPolicy",
}
