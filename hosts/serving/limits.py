"""What a server lets in, and for how long."""

import ipaddress

import msgspec

from ronda.instances.errors import InputError
from ronda.solvers.registry import as_policy


class ServerLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How a server is set up.

    Attributes
    ----------
    host, port
        Where it listens.
    token
        What requests must show as ``Authorization: Bearer TOKEN``; None: nothing, which only a
        loopback address may.
    policy
        Who decides if a request names nobody: any policy; requests may name those of
        `ronda.hosts.serving.allowed`.
    workers
        Processes that decide, one round each at a time.
    time_limit_s
        Seconds for a decision, its wait included, if a request does not ask for less.
    body_mib
        Size of a round.
    header_s, body_s
        Seconds for a request's header, and for its body.
    queue
        Requests that may wait for a process.
    hosts
        Hosts that may be followed.
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
        """Refuse an open door."""
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
