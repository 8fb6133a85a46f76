"""Connections of uvicorn (HTTP/1.1 by h11) that answer invalid and late requests."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ronda.hosts.serving.app import App, reason

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
