"""``ronda predict``: train, errors."""
