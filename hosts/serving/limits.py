"""The limits of a server on requests and their times."""

import ipaddress

import msgspec

from ronda.instances.errors import InputError
from ronda.solvers.registry import as_policy


class ServerLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a server.

    Attributes
    ----------
    host, port
        Address at which the server listens.
    token
        Token that requests must send as ``Authorization: Bearer TOKEN``. Only a loopback address
        may go without a token (None).
    policy
        Policy for requests that name none; it may be any policy. Requests may name the policies in
        `ronda.hosts.serving.allowed`.
    workers
        Number of processes, each of which decides one round at a time.
    time_limit_s
        Seconds for a decision, including its wait, unless a request asks for less.
    body_mib
        Largest size of a request's body, in MiB.
    header_s, body_s
        Seconds in which a request's header, and its body, must arrive.
    queue
        Largest number of requests that wait for a process.
    hosts
        Largest number of followed hosts.
    """

    host: str = "127.0.0.1"
    port: int = 8383
    token: str | None = None
    policy: str = "prices"
    workers: int = 1
    time_limit_s: float = 10.0
    body_mib: float = 32.0
    header_s: float = 10.0
    body_s: float = 10.0
    queue: int = 64
    hosts: int = 16

    def __post_init__(self) -> None:
        """Raise InputError for a short token, or for a public address without a token."""
        if self.token is None and not _is_loopback(self.host):
            expected = "a token (--token-file), or a loopback address"
            raise InputError("ronda serve", f"address {self.host} without a token", expected)
        if self.token is not None and len(self.token) < 16:
            raise InputError("token", f"{len(self.token)} characters", "at least 16")
        as_policy(self.policy)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
