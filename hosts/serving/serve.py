"""The server, which runs until it is told to stop."""

import asyncio
import signal
import socket
from collections.abc import Callable
from math import ceil

from ronda.hosts.serving.lanes import Lanes
from ronda.hosts.serving.limits import ServerLimits
from ronda.instances.errors import InputError, need


async def serve(
    limits: ServerLimits,
    *,
    ready: Callable[[], None] | None = None,
    stop: asyncio.Event | None = None,
) -> None:
    """Serve until `stop` is set or a signal asks for the end; call `ready` once it listens.

    InputError is raised if the packages of the extra ``serve`` are missing or the address is taken.
    """
    need("ronda serve", "h11", "prometheus_client", "uvicorn")
    from uvicorn import Config

    from ronda.hosts.serving.app import App
    from ronda.hosts.serving.connection import HEADER_BYTES, Connection, Server

    listening = _listen(limits)
    lanes, ended = Lanes(limits.workers), stop or asyncio.Event()
    try:
        await lanes.start()
        server = Server(
            Config(
                App(limits, lanes),
                http=Connection,
                h11_max_incomplete_event_size=HEADER_BYTES,
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="error",
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_graceful_shutdown=ceil(limits.time_limit_s),
            )
        )
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        if stop is None:
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, ended.set)
        if ready is not None:
            ready()
        waiting = asyncio.create_task(ended.wait())
        await asyncio.wait({serving, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        server.should_exit = True
        await serving
    finally:
        listening.close()
        lanes.stop()


def _listen(limits: ServerLimits) -> socket.socket:
    """Return the listening socket, on which clients wait until the server runs."""
    family = socket.AF_INET6 if ":" in limits.host else socket.AF_INET
    try:
        listening = socket.create_server((limits.host, limits.port), family=family)
    except OSError as error:
        found = f"{limits.host}:{limits.port}: {error.strerror}"
        raise InputError("ronda serve", found, "an address that is free") from None
    # Answers are sent in two pieces; the second must not wait for receipt of the first.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening
