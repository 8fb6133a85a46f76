"""Hydro's study with its models made 8 times narrower, and what is then trained at full width."""

from msgspec.structs import replace

from ronda.instances.files.packaged import load
from ronda.instances.generate.mixtures import Swept, swept_profile
from ronda.instances.instance import Instance

NARROW = Swept("hydro-resnet18-8-RTX3090-24GB-", 256 / 50_000, 256.0, 0.8)


def narrow() -> Instance:
    """Return the 50 trials of narrow models."""
    full = load("sweep-hydro")
    assert isinstance(full, Instance)
    (name,) = full.profiles
    profile = swept_profile(name, NARROW, full.cluster.gpu_types[0].name)
    return replace(full, profiles={name: profile})


def targets() -> Instance:
    """Return the two models that are trained at full width afterwards."""
    full = load("sweep-hydro")
    assert isinstance(full, Instance)
    return replace(full, jobs=full.jobs[:2])
