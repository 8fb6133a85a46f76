"""HFTA: similar small models share a GPU (Wang, Yang, Zheng, Li, Pekhimenko, MLSys 2021).

An array trains k models as one process with fused operators. HFHT is the tuner that splits trials
into arrays. For PointNet on an A100 the poster shows a speed-up of 11.50 against one model after
another, 4.72 against concurrent processes (MPS) and 4.88 against slices (MIG) (published;
digitised).

=================  ===========================================================================
`hfht`             HFHT's rule: full arrays start in order and run to their end (read in the code)
`fused`            BASE+fused: an optimising policy decides which jobs share GPUs (ours)
`jointly`          a fusion class as one elastic job, split into arrays of even widths (ours)
`fit`              time and memory of k models on a GPU, fitted to measurements (inferred)
`repetitive`       the search for repetitive jobs in a trace by the paper's rule (published)
=================  ===========================================================================

HFHT's arrays and the rule for which models may be fused follow the source faithfully. The rest is
rebuilt: the law of a step's time, max(floor, α + β k), which is within 0.2 to 2.7 % of the poster's
curves; arrays that run alongside other jobs and that members leave and join; and the power draw of
an array, for which no measurements exist.

The core has what every policy needs: the speed and the size limits of an array (`sharing` in
`ronda.instances.models`), an array as one job for policies that do not fuse
(`ronda.solvers.as_one`) and fusion classes (`ronda.solvers.greedy.groups`). HFHT's waves are in
lab/fusion. See docs/systems/hfta.md and docs/fusion.md.
"""

POLICIES = {
    "hfht": "ronda.systems.hfta.hfht:Hfht",
    "prices+fused": "ronda.systems.hfta.fused:prices",
    "milp+fused": "ronda.systems.hfta.fused:milp",
    "evolve+fused": "ronda.systems.hfta.fused:evolve",
}
COMMANDS = {
    "profile fit-fusion": (
        "ronda.cli.commands.profile.fit_fusion:command",
        "Fit time and memory of models that share a GPU.",
    ),
    "instances detect-sweeps": (
        "ronda.cli.commands.instances.detect_sweeps:command",
        "Find repetitive jobs in a trace.",
    ),
}
