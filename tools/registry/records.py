"""The records of the registry, and their files."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, Self

import msgspec

from ronda.instances.base import Count, Index, Name, NonNegative, Positive, Record
from ronda.instances.files import canonical, storage
from ronda.instances.files import json as files
from ronda.instances.plan import gap_between
from ronda.solvers.versions import versions

DATA = Path(__file__).parents[1] / "data"
"""The folder of this project's records."""

FILE = "registry.json"


class By(Record, frozen=True, kw_only=True):
    """The finder of a result: a policy with its parameters and versions; `date` in UTC."""

    policy: str
    seed: Index = 0
    versions: dict[str, str]
    date: str

    @classmethod
    def now(cls, policy: str, seed: int, packages: dict[str, str]) -> Self:
        """Return the finder of a result of today, with packages besides ronda."""
        used = {"ronda": versions()["ronda"]} | packages
        return cls(policy=policy, seed=seed, versions=used, date=f"{datetime.now(UTC):%Y-%m-%d}")


class BestPlan(Record, frozen=True, kw_only=True):
    """The best plan known, which is the file ``NAME.plan.json.zst``, and its worth."""

    objective: float
    by: By


class Bound(Record, frozen=True, kw_only=True):
    """An upper bound on the worth of plans.

    `of` says for which it was proven: all plans on ``nodes``, or all choices of options whose
    ``counts`` of GPUs fit, which bounds plans on nodes as well.
    """

    value: float
    of: Literal["nodes", "counts"]
    by: By


class Model(Record, frozen=True, kw_only=True):
    """The round's model of counts in MPS, ``NAME.mps.gz`` in the folder if it is small.

    `content` is the sum of ln(1 + |a|) over all its finite numbers a, which is the same to 1e-9 on
    all processors. `optimum` is the largest objective, which HiGHS proved from above to a gap of
    1e-6; None where the model is large.
    """

    content: float
    columns: Count
    rows: Count
    optimum: float | None = None


class RoundEntry(Record, frozen=True, kw_only=True):
    """The best results of a round; `tried` has the seconds that each policy was given."""

    fingerprint: str
    best: BestPlan | None = None
    bound: Bound | None = None
    model: Model | None = None
    tried: dict[str, Positive] = {}

    @property
    def gap(self) -> float | None:
        """Relative gap between bound and plan; None without both."""
        if self.best is None or self.bound is None:
            return None
        return gap_between(self.bound.value, self.best.objective)


class BestRun(Record, frozen=True, kw_only=True):
    """The least mean JCT known at a level of knowledge."""

    mean_jct_s: Positive
    by: By


class InstanceEntry(Record, frozen=True, kw_only=True):
    """The best results of an instance: the clairvoyant bound, and runs by level of knowledge."""

    fingerprint: str
    bound_mean_jct_s: NonNegative
    best: dict[str, BestRun] = {}
    tried: dict[str, Positive] = {}


class Registry(Record, frozen=True, kw_only=True):
    """The best results known, by name of the packaged round or instance."""

    format: Literal["ronda/registry/1"] = "ronda/registry/1"
    rounds: dict[Name, RoundEntry] = {}
    instances: dict[Name, InstanceEntry] = {}


def load(folder: Path) -> Registry:
    """Return the registry of a folder."""
    path = folder / FILE
    return files.parse(storage.read_bytes(path), storage.label(path), Registry)


def store(registry: Registry, folder: Path) -> None:
    """Write the registry of a folder, ordered by name."""
    ordered = msgspec.structs.replace(
        registry,
        rounds=dict(sorted(registry.rounds.items())),
        instances=dict(sorted(registry.instances.items())),
    )
    text = msgspec.json.format(canonical.encode(ordered), indent=1)
    storage.write_bytes(folder / FILE, text + b"\n")


def plan_file(folder: Path, name: str) -> Path:
    """Return where the best plan of a round is."""
    return folder / f"{name}.plan.json.zst"
