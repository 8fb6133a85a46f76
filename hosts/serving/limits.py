"""The limits of a server on requests and their times."""

import ipaddress

import msgspec

from ronda.instances.errors import InputError
from ronda.solvers.registry import as_policy


class ServerLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a server, which listens at `host` and `port`.

    Requests must send the `token` as ``Authorization: Bearer TOKEN``; only a loopback address may
    go without one (None). They may name the policies in `ronda.hosts.serving.allowed`; `policy`,
    which may be any, is that of those that name none. Each of the `workers` is a process that
    decides one round at a time, in `time_limit_s` with its wait unless a request asks for less. At
    most `queue` requests wait for a process, and at most `hosts` hosts are followed. A header must
    arrive within `header_s`, and a body of at most `body_mib` MiB within `body_s`.
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
