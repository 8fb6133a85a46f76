"""The server, which runs until it is told to stop, and its connections (uvicorn, HTTP/1.1 by h11).

Invalid and late requests are answered by connections, before the application hears of them.
"""

import asyncio
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import ceil
from typing import Any, cast

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ronda.hosts.serving.app import App, reason
from ronda.hosts.serving.lanes import Lanes
from ronda.hosts.serving.limits import ServerLimits
from ronda.instances.errors import InputError


async def serve(
    limits: ServerLimits,
    *,
    ready: Callable[[], None] | None = None,
    stop: asyncio.Event | None = None,
) -> None:
    """Serve until `stop` is set or a signal asks for the end; call `ready` once it listens.

    InputError is raised if the address is taken.
    """
    from uvicorn import Config

    from ronda.hosts.serving.app import App

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


HEADER_BYTES = 65_536
"""The largest size of a request's header in bytes."""


class Server(uvicorn.Server):
    """A server that leaves the handling of signals to its caller."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture no signals."""
        yield


class Connection(H11Protocol):
    """The connection of one client to an `App`."""

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__(*args, **given)
        self._server = cast("App", self.config.app)
        self._late: asyncio.TimerHandle | None = None
        self._refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time limit for a header."""
        super().connection_made(transport)
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the time limit."""
        super().connection_lost(exc)
        if self._late is not None:
            self._late.cancel()

    def data_received(self, data: bytes) -> None:
        """Take data; a header has limited time from its first byte or from the connection."""
        if not self._refused:
            super().data_received(data)
            self._expect()

    def send_400_response(self, msg: str) -> None:
        """Refuse invalid or too long HTTP with the reason given by h11, which uvicorn drops."""
        error = sys.exception()
        status = error.error_status_hint if isinstance(error, h11.RemoteProtocolError) else 400
        why = f"a header of more than {HEADER_BYTES} bytes" if status == 431 else f"{error or msg}"
        self._refuse(status, why)

    def _expect(self) -> None:
        if self.conn.their_state is h11.IDLE and self._late is None:
            self._late = self.loop.call_later(self._server.limits.header_s, self._time_out)
        elif self.conn.their_state is not h11.IDLE and self._late is not None:
            self._late.cancel()
            self._late = None

    def _time_out(self) -> None:
        limit_s = self._server.limits.header_s
        self._refuse(408, f"the header took more than {limit_s:g} s")

    def _refuse(self, status: int, why: str) -> None:
        """Answer if no answer was sent, end the task of the request, and close the connection.

        The connection closes with a delay, because a client that is still sending would not see the
        answer (RFC 9112, section 9.6).
        """
        self._refused = True
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._server.count("other", status)
            body = reason(why)
            headers = {"content-type": "application/json", "content-length": f"{len(body)}"}
            answer = h11.Response(
                status_code=status, headers=[*headers.items(), ("connection", "close")]
            )
            for event in (answer, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
            self.transport.write_eof()
        self.loop.call_later(self._server.limits.header_s, self.transport.close)
