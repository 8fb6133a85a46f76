"""``ronda bench``: diff, registry."""
