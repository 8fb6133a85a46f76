"""``ronda bench``: diff, registry, versions."""
