"""``ronda bench``: diff."""
