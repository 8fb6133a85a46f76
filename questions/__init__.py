"""Questions about a round: why a job got its option, what if, other plans, moves, less power."""

COMMANDS = {
    name: (f"ronda.cli.commands.{place}{name}:command", about)
    for place, name, about in (
        ("clusters.", "why", "Say why a job waits, and when it can start."),
        ("clusters.", "curtail", "Say what each kilowatt less costs, and who bears it."),
        ("", "whatif", "Say what other machines or jobs would change."),
        ("clusters.", "fits", "Say whether a job would run, at which size, and when."),
        ("clusters.", "room", "Say what to move or stop so that a waiting job starts now."),
        ("", "consolidate", "Move running jobs so that nodes become empty."),
        ("clusters.", "judge", "Say what the schedule in a log cost, by cause, with a bound."),
        ("", "verify", "Prove how far a plan is from the best, without any solver."),
        ("clusters.", "queues", "Say who holds, borrows and waits for GPUs."),
    )
}
ANSWERS = {
    "explain": "ronda.questions.explained:explanation_told",
    "certificate": "ronda.questions.certificates.certify:certified",
    "breakdown": "ronda.questions.breakdown:broken_down",
    "not": "ronda.questions.not_there:not_there_told",
    "fix": "ronda.questions.fixed:fixed",
    "alternatives": "ronda.questions.alternatives:alternatives_told",
}
