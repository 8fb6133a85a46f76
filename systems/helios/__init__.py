"""Which nodes sleep where nodes are the question: CES, lot sizing, wake-or-wait.

`ces`, `lot_sizing` and `controllers` decide how many nodes of a demand series are awake (``ronda
sleep``), and `outcome` says what comes of it; `ces` and `wake_or_wait` hold policies,
whose jobs really wait for nodes. `forecasts` and `boosted` say what will be needed. How
long an idle node of any round stays awake is in `ronda.formulations.sleeping`.
"""

POLICIES = {
    "qssf": "ronda.systems.helios.qssf:Qssf",
    "ces-queue": "ronda.systems.helios.ces:CesQueue",
    "wake-or-wait": "ronda.systems.helios.wake_or_wait:WakeOrWait",
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
