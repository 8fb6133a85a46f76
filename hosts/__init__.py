"""Where ronda decides for other programs: the façade, adapters to simulators, a server."""
