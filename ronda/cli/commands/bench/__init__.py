"""``ronda bench``: comparisons with earlier results."""
