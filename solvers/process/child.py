"""The other end: the process makes what answers, and answers question after question.

It runs as ``python -m ronda.solvers.process.child SOCKET LIFELINE MODULE:FUNCTION`` and imports
little before the function.
"""

import os
import pickle
import signal
import sys
from importlib import import_module
from multiprocessing.connection import Connection

ANSWER, TOLD = b"a", b"t"
"""First byte of an answer, and of what is told before one."""


def main() -> None:
    """Serve the host on the socket that it names."""
    socket, lifeline, maker = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pipe = Connection(int(socket))
    _end_with_host(int(lifeline), pipe)
    try:
        _serve(pipe, *maker.split(":"))
    except (EOFError, OSError):
        return


def _end_with_host(lifeline: int, pipe: Connection) -> None:
    """Let another process wait for the host's end, and kill the whole group then.

    No thread could: native code that holds Python's lock would outlive the host. Nor could the
    signal that Linux sends at a parent's death, which comes with the end of a mere thread, and not
    to what a solver started.
    """
    if os.fork():
        os.close(lifeline)
        return
    pipe.close()
    os.read(lifeline, 1)  # until nobody holds the other end
    os.killpg(0, signal.SIGKILL)


def _serve(pipe: Connection, module: str, function: str) -> None:
    """Make what answers, say whether it is there, and answer until the host is gone."""
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
