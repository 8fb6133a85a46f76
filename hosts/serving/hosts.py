"""Followed hosts: each message reports events, and the answer gives the changes.

Between messages the server keeps an `Embedded` as bytes. A process restores it, updates it, lets it
decide and returns new bytes. A process that dies or is late loses one answer but no history.
"""

from contextlib import suppress
from typing import Any, Literal

import msgspec

from ronda.hosts.embedding.changes import Changes
from ronda.hosts.embedding.embedded import Embedded
from ronda.hosts.embedding.reader import Refusal
from ronda.hosts.embedding.records import Speeds, StepTime
from ronda.hosts.serving.allowed import served
from ronda.instances.base import Index, Positive
from ronda.instances.clock import Deadline
from ronda.instances.cluster import Cluster
from ronda.instances.files.json import parse
from ronda.instances.job import Costs
from ronda.instances.profile import NoiseScale, Profile
from ronda.instances.site import NO_SITE, Site


class HostSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of a followed host: the parameters of `Embedded`."""

    cluster: Cluster
    policy: str | None = None
    profiles: dict[str, Profile] = {}
    costs: Costs = Costs()
    length_s: Positive = 60.0
    history: bool = True
    speeds: Speeds = "given"
    node_names: list[str] | None = None
    seed: Index = 0
    site: Site = NO_SITE


class HostNews(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The news of a host: the arguments of `Embedded.update`.

    A power cap of "none" means no limit. `measured` and `noise` hold a `StepTime` or a `NoiseScale`
    as an object with its fields.
    """

    now_s: float | None = None
    added: Any = ()
    removed: Any = ()
    completed: Any = ()
    progress: Any = None
    measured: Any = None
    running: Any = None
    noise: Any = None
    blocked: Any = None
    changed: Any = ()
    profiles: dict[str, Profile | None] | None = None
    cluster: Cluster | None = None
    node_names: list[str] | None = None
    power_cap_w: float | Literal["none"] | None = None
    nodes: Any = None
    nodes_added: Any = None


class HostAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a host: refused news, and changes."""

    refused: tuple[Refusal, ...]
    changes: Changes


def begin(body: bytes, policy: str, _limit_s: float) -> tuple[bytes, bytes]:
    """Return an empty answer and the state of a new host, whose default policy is `policy`."""
    given = parse(body, "message", HostSettings)
    fields = msgspec.structs.asdict(given)
    asked = fields.pop("policy")
    chosen = policy if asked is None else served(asked)
    return b"{}", Embedded(chosen, fields.pop("cluster"), **fields).save()


def follow(state: bytes, body: bytes, limit_s: float) -> tuple[bytes, bytes]:
    """Update the state of a host with its news, and decide; return the answer and the new state."""
    deadline, host = Deadline(limit_s), Embedded.restore(state)
    given = parse(body, "message", HostNews)
    told = msgspec.structs.asdict(given)
    told["measured"] = _records(given.measured, StepTime)
    told["noise"] = _records(given.noise, NoiseScale)
    if given.power_cap_w == "none":
        told["power_cap_w"] = float("inf")
    refused = host.update(**told, errors="return")
    changes = host.decide(max(deadline.left(), 1e-3))
    return msgspec.json.encode(HostAnswer(refused=refused, changes=changes)), host.save()


def _records(given: Any, kind: type[Any]) -> Any:
    """Return a mapping of jobs in which values with the fields of `kind` become its records."""
    if not isinstance(given, dict):
        return given
    found = dict(given)
    for job, each in given.items():
        with suppress(msgspec.ValidationError):  # another kind, or refused later with its job
            found[job] = msgspec.convert(each, kind) if isinstance(each, dict) else each
    return found
