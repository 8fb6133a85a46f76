"""``ronda profile``: fitted models, and fits of new ones."""
