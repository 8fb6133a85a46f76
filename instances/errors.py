"""Errors that a user can act on, and texts from data as they are shown: one line, not too long."""


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


class RondaError(Exception):
    """Base of every error that ronda raises on purpose.

    The command line prints ``str(error)`` as one line and exits with ``exit_code``.
    """

    exit_code = 1


class InputError(RondaError):
    """Something that the user gave (a file, an option, a value) cannot be used.

    Long parts are cut in the middle.

    Parameters
    ----------
    place
        Where: a file, and inside it a JSON path, a row, or the name of an option.
    found
        What stands there.
    expected
        What should stand there instead, or what to do about it.
    """

    exit_code = 2

    def __init__(self, place: str, found: str, expected: str) -> None:
        self.place, self.found = short(place, 500), short(found, 2000)
        self.expected = short(expected, 500)
        super().__init__(f"{self.place}: found {self.found}; expected {self.expected}")


class InterruptedRunError(RondaError):
    """The user stopped a command; the message says how it goes on, if it can."""

    exit_code = 130  # as shells have it: 128 + SIGINT
