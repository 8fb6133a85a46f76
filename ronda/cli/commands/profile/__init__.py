"""``ronda profile``: list, show, fit."""
