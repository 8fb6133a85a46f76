"""The child's end of a process: it makes a function that answers, and serves questions with it.

The command is ``python -m ronda.solvers.process.child SOCKET LIFELINE MODULE:FUNCTION``. The module
imports little before the function.
"""

import os
import pickle
import signal
import sys
from importlib import import_module
from multiprocessing.connection import Connection

ANSWER, TOLD = b"a", b"t"
"""The first byte of an answer, and of a message before the answer."""


def main() -> None:
    """Serve the host on the socket that the command line names."""
    socket, lifeline, maker = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pipe = Connection(int(socket))
    _end_with_host(int(lifeline), pipe)
    try:
        _serve(pipe, *maker.split(":"))
    except (EOFError, OSError):
        return


def _end_with_host(lifeline: int, pipe: Connection) -> None:
    """Fork a watcher that waits for the host to exit and then kills the whole process group.

    A thread could not do this: native code that holds Python's lock would block it. The signal that
    Linux sends at a parent's death could not do it either. It comes as soon as the starting thread
    ends, and does not reach processes that a solver started.
    """
    if os.fork():
        os.close(lifeline)
        return
    pipe.close()
    os.read(lifeline, 1)  # returns when no process holds the other end
    os.killpg(0, signal.SIGKILL)


def _serve(pipe: Connection, module: str, function: str) -> None:
    """Make the answering function, report success or an error, and answer until the host ends."""
    sys.path[:], asked = pickle.loads(pipe.recv_bytes())
    try:
        make = getattr(import_module(module), function)
        answer = make(asked, lambda data: pipe.send_bytes(TOLD + data))
    except Exception as error:
        from ronda.instances.errors import RondaError

        said = str(error) if isinstance(error, RondaError) else f"{type(error).__name__}: {error}"
        pipe.send_bytes(ANSWER + said.encode())
        return
    pipe.send_bytes(ANSWER)
    while True:
        said = answer(pipe.recv_bytes())
        sys.stdout.flush()  # the host may kill this process as soon as it has the answer
        pipe.send_bytes(ANSWER + said)


if __name__ == "__main__":
    main()
