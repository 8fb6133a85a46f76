"""Helios: QSSF orders queues and CES lets nodes sleep (Hu, Sun, Yan, Wen, Zhang, SC 2021).

The paper claims that QSSF shortens the mean job completion time by a factor of 1.5 to 6.5 against
FIFO (published, abstract). Figure 14 shows CES on the cluster Earth in September 2020: 20.5 of 150
nodes sleep, nodes wake 1.33 times a day, and utilisation rises from 82 % to 95 % (published;
digitised).

=================  ===========================================================================
`qssf`             QSSF's rule: least expected GPU time first (read in the authors' code)
`ces`              CES's two thresholds and buffer, with the five published parameter sets (read
                   in the code); as a controller of a series, and as a policy with a queue (ours)
`forecasts`        forecasts of demand for CES: by the hour of the day, or no change (ours, causal)
`boosted`          forecasts by LightGBM: as published, which reads the future (read in the code),
                   or causal
`stepwise`         the length of their steps, and the policies beside which they let nodes sleep
`controllers`      the controllers of ``ronda sleep``, by name
`lot_sizing`       the number of awake nodes of least cost, and the bound of foresight (ours)
`wake_or_wait`     a policy that weighs sleep against the waiting of the queue (ours)
`outcome`          the savings of a controller and the waits of jobs, counted as in the artifact
`trace`            a demand series from a file, or from a schedule
=================  ===========================================================================

Both packaged traces of Venus and all 3,024 steps of CES on Earth are reproduced to the digit. Watts
and jobs that wait for waking nodes are rebuilt; the artifact counts demand and moves no job.

The core has the queue and its backfilling (`ronda.solvers.greedy.backfill`), QSSF's two estimates
and their mix (`ronda.formulations.prediction.qssf_service`), the reader of the logs
(`ronda.instances.traces`) and the choice of idle nodes that sleep in any round
(`ronda.formulations.sleeping`). See docs/systems/helios.md, docs/helios.md and docs/sleeping.md.
"""

POLICIES = {
    "qssf": "ronda.systems.helios.qssf:Qssf",
    "ces-queue": "ronda.systems.helios.ces:CesQueue",
    "prices+ces": "ronda.systems.helios.ces:prices",
    "milp+ces": "ronda.systems.helios.ces:milp",
    "wake-or-wait": "ronda.systems.helios.wake_or_wait:WakeOrWait",
    "prices+lot-sizing": "ronda.systems.helios.wake_or_wait:prices",
    "milp+lot-sizing": "ronda.systems.helios.wake_or_wait:milp",
}
COMMANDS = {
    "sleep": (
        "ronda.cli.commands.sleep:command",
        "Let the nodes sleep that a demand series does not need.",
    ),
    "instances demand": (
        "ronda.cli.commands.instances.demand:command",
        "Tell how many nodes a schedule used.",
    ),
}
TRACES = {
    "demand": (
        "ronda.systems.helios.trace:read_demand",
        "Read how many nodes were in use, in equal steps.",
    )
}
