"""Questions about a round: why a job got its option, what if, other plans, moves, less power."""

COMMANDS = {
    "why": (
        "ronda.cli.commands.clusters.why:command",
        "Say why a job waits, and when it can start.",
    ),
    "curtail": (
        "ronda.cli.commands.clusters.curtail:command",
        "Say what each kilowatt less costs, and who bears it.",
    ),
    "whatif": (
        "ronda.cli.commands.whatif:command",
        "Say what other machines or jobs would change.",
    ),
    "fits": (
        "ronda.cli.commands.clusters.fits:command",
        "Say whether a job would run, at which size, and when.",
    ),
    "room": (
        "ronda.cli.commands.clusters.room:command",
        "Say what to move or stop so that a waiting job starts now.",
    ),
    "consolidate": (
        "ronda.cli.commands.consolidate:command",
        "Move running jobs so that nodes become empty.",
    ),
    "judge": (
        "ronda.cli.commands.clusters.judge:command",
        "Say what the schedule in a log cost, by cause, with a bound.",
    ),
    "verify": (
        "ronda.cli.commands.verify:command",
        "Prove how far a plan is from the best, without any solver.",
    ),
    "queues": (
        "ronda.cli.commands.clusters.queues:command",
        "Say who holds, borrows and waits for GPUs.",
    ),
}
ANSWERS = {
    "explain": "ronda.questions.explained:Explainer",
    "certificate": "ronda.questions.certificates.certify:certified",
    "breakdown": "ronda.questions.breakdown:broken_down",
    "not": "ronda.questions.not_there:not_there_told",
    "fix": "ronda.questions.fixed:fixed",
    "alternatives": "ronda.questions.alternatives:alternatives_told",
}
