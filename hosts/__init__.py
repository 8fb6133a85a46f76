"""Where ronda decides for other programs: the façade, adapters to simulators, a server."""

COMMANDS = {"serve": ("ronda.cli.commands.serve:command", "Decide rounds over HTTP.")}
