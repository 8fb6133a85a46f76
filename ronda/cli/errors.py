"""Ends of a command that are no result."""

from ronda.instances.errors import RondaError


class InterruptedRunError(RondaError):
    """The user stopped a command that can go on later."""

    exit_code = 130  # as shells have it: 128 + SIGINT

    def __init__(self, how: str) -> None:
        super().__init__(f"interrupted; {how}")
