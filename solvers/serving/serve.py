"""Run a server until it is told to stop."""

import asyncio
import signal
from collections.abc import Callable

from ronda.instances.errors import InputError
from ronda.solvers.serving.lanes import Lanes
from ronda.solvers.serving.limits import Limits

HEADER_BYTES = 65_536
"""Bytes of a request's header at most."""


async def serve(
    limits: Limits, *, ready: Callable[[], None] | None = None, stop: asyncio.Event | None = None
) -> None:
    """Serve until `stop` is set, or a signal asks for the end; `ready` is called once it listens.

    InputError without the optional packages.
    """
    try:
        from granian.constants import HTTPModes, Interfaces
        from granian.http import HTTP1Settings
        from granian.server.embed import Server

        from ronda.solvers.serving.app import App
    except ImportError as error:
        raise InputError("ronda serve", str(error), "pip install 'ronda[serve]'") from None
    lanes, ended = Lanes(limits.workers), stop or asyncio.Event()
    try:
        await lanes.start()
        server = Server(
            App(limits, lanes),
            address=limits.host,
            port=limits.port,
            interface=Interfaces.ASGI,
            http=HTTPModes.http1,
            http1_settings=HTTP1Settings(
                header_read_timeout=int(1000 * limits.header_s), max_buffer_size=HEADER_BYTES
            ),
            websockets=False,
            log_enabled=False,
        )
        serving = asyncio.create_task(server.serve())
        if stop is None:
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, ended.set)
        if ready is not None:
            ready()
        waiting = asyncio.create_task(ended.wait())
        await asyncio.wait({serving, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if not serving.done():
            server.stop()  # type: ignore[no-untyped-call]
        await serving
    finally:
        lanes.stop()
