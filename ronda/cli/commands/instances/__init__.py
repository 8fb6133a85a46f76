"""``ronda instances``: list, show, check, convert, generate."""
