"""Texts that come from data and are shown to people: one line, no hidden meaning, not too long."""


def printable(text: str) -> str:
    r"""Return a text whose every character is seen: others as in Python, ``\x1b`` or ``\u202e``.

    Control characters steer a terminal and end lines; marks of direction let a text be read as
    another one.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def short(text: str, limit: int) -> str:
    """Return a text of at most `limit` characters, its middle left out if it is longer."""
    if len(text) <= limit:
        return text
    head = (limit - 1) * 2 // 3
    return f"{text[:head]}…{text[head + 1 - limit :]}"
