"""Ways to let ronda decide for other programs: a façade, adapters to simulators, and a server."""

COMMANDS = {
    "serve": ("ronda.cli.commands.serve:command", "Decide rounds over HTTP."),
    "slurm": ("ronda.cli.commands.clusters.slurm:command", "Drive a real Slurm; dry run first."),
    "snapshot": ("ronda.cli.commands.clusters.snapshot:command", "Read a cluster as it is now."),
    "boosts": (
        "ronda.cli.commands.clusters.boosts:command",
        "Print the boosts that give a Kueue queue a policy's order.",
    ),
    "mcp": (
        "ronda.cli.commands.clusters.mcp:command",
        "Answer assistants' questions about a cluster.",
    ),
}
