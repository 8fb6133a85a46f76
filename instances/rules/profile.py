"""Rules for profiles and noise curves."""

from collections.abc import Iterator, Mapping, Sequence

from ronda.instances.cluster import Cluster, GpuType
from ronda.instances.models.power import least_power_w
from ronda.instances.models.sharing import step_s
from ronda.instances.profile import (
    AffineTime,
    MeasuredTime,
    NoiseCurve,
    NoiseScale,
    Parametric,
    Profile,
    Rated,
    Rigid,
    Sharing,
    Tabular,
)
from ronda.instances.rules.cluster import strictly_ascending
from ronda.instances.rules.problem import Problem, join, one_of, show

LEAST_BATCH, MOST_BATCH = 1e-6, 1e12
"""The range of global batches outside of which rates would underflow or overflow."""

MOST_PASSES = 2**16
"""The most passes into which measured local batches may divide a step."""

_COLUMNS = ("gpus", "nodes", "local_batch", "step_s", "sync_s")


def profile_problems(profiles: Mapping[str, Profile], cluster: Cluster) -> Iterator[Problem]:
    """Yield the inconsistencies in the profiles of an instance or a round."""
    known = {t.name: t for t in cluster.gpu_types}
    types = list(known)
    for key, profile in profiles.items():
        place = join("profiles", key)
        if profile.name != key:
            yield Problem(f"{place}.name", show(profile.name), f"its key {show(key)}")
        if not profile.throughput:
            yield Problem(f"{place}.throughput", "no GPU type", "one that can run it")
        for field in ("throughput", "power", "sharing"):
            for name in getattr(profile, field):
                if name not in types:
                    yield Problem(f"{place}.{field}", f"GPU type {show(name)}", one_of(types))
        least, most = profile.min_local_batch, profile.max_local_batch
        if most is not None and least > most:
            found = f"{least:g} above max_local_batch {most:g}"
            yield Problem(f"{place}.min_local_batch", found, "at most that")
        yield from batch_problems(profile, profile.base_batch, f"{place}.base_batch")
        for k, batch in enumerate(profile.batches):
            yield from batch_problems(profile, batch, f"{place}.batches[{k}]")
        for name, model in profile.throughput.items():
            at = join(f"{place}.throughput", name)
            if isinstance(model, Tabular):
                yield from _table(model, at)
            elif isinstance(model, Rated):
                yield from _rated(model, profile, known.get(name), at)
            elif isinstance(model, Parametric) and model.alpha_c_s + model.beta_c_s == 0:
                found = "alpha_c_s and beta_c_s both 0: steps that take no time"
                yield Problem(at, found, "one of them above 0")
            if isinstance(model, Parametric):
                yield from _across_racks(model, at)
        yield from _busy_below_idle(profile, cluster, place)
        for name, sharings in profile.sharing.items():
            rigid = isinstance(profile.throughput.get(name), Rigid | Rated)
            yield from _sharing(sharings, join(f"{place}.sharing", name), rigid=rigid)


def _sharing(sharings: Sequence[Sharing], place: str, *, rigid: bool) -> Iterator[Problem]:
    """Check that modes are distinct with "exclusive" among them, and no array beats one job."""
    modes = [sharing.mode for sharing in sharings]
    if rigid:
        yield Problem(place, "a rigid profile", "one with iterations: rigid jobs run alone")
    if len(set(modes)) < len(modes) or "exclusive" not in modes:
        yield Problem(place, f"modes {show(modes)}", 'each once, "exclusive" among them')
        return
    broken = [k for k, s in enumerate(sharings) if not _is_measured(s)]
    for k in broken:
        expected = "ascending numbers of models from 1 or 2 on, each with its seconds"
        yield Problem(f"{place}[{k}].time", "columns that do not fit each other", expected)
    if broken:
        return
    alone = sharings[modes.index("exclusive")].time
    known = isinstance(alone, AffineTime) or alone.models[0] == 1
    alone_s = step_s(alone, 1) if known else 0.0
    if not alone_s:
        yield Problem(place, "no time of one exclusive model", "one above 0")
        return
    for k, sharing in enumerate(sharings):
        least_s = _least_s(sharing)
        if least_s < alone_s * (1 - 1e-9):
            expected = f"at least {alone_s:g} s, which one model takes alone"
            yield Problem(f"{place}[{k}].time", f"{least_s:g} s", expected)


def _is_measured(sharing: Sharing) -> bool:
    time = sharing.time
    if isinstance(time, AffineTime):
        return True
    columns = len(time.models) == len(time.step_s) and strictly_ascending(time.models)
    return columns and time.models[0] <= 2


def _least_s(sharing: Sharing) -> float:
    time = sharing.time
    return min(time.step_s) if isinstance(time, MeasuredTime) else step_s(time, 1)


def batch_problems(profile: Profile, batch: float, place: str) -> Iterator[Problem]:
    """Check that a global batch has a possible size and can be divided into passes."""
    if not LEAST_BATCH <= batch <= MOST_BATCH:
        yield Problem(place, f"{batch:g}", f"{LEAST_BATCH:g} to {MOST_BATCH:g} samples")
        return
    least = profile.min_local_batch
    for name, model in profile.throughput.items():
        if isinstance(model, Tabular):
            steps = zip(model.gpus, model.local_batch, strict=False)
            smallest = min((gpus * max(local, least) for gpus, local in steps), default=batch)
            if batch / smallest > MOST_PASSES:
                found = f"{batch:g}, up to {batch / smallest:.3g} passes of those measured"
                expected = f"at most {MOST_PASSES} passes; min_local_batch rules out small ones"
                yield Problem(place, f"{found} on {show(name)}", expected)


def _busy_below_idle(profile: Profile, cluster: Cluster, place: str) -> Iterator[Problem]:
    """Check that a busy GPU draws at least idle power, as plans count a paused job as busy."""
    for gpu_type in cluster.gpu_types:
        curve = profile.power.get(gpu_type.name)
        if curve is None:
            continue
        least_w = least_power_w(curve, min(gpu_type.clocks, default=1.0))
        if least_w < gpu_type.idle_w:
            expected = f"at least {gpu_type.idle_w:g} W, which the GPU draws idle"
            yield Problem(join(f"{place}.power", gpu_type.name), f"{least_w:g} W", expected)


def _across_racks(model: Parametric, place: str) -> Iterator[Problem]:
    for part in ("alpha", "beta"):
        across, within = getattr(model, f"{part}_x_s"), getattr(model, f"{part}_n_s")
        if across is not None and across < within:
            found = f"{across:g} below {part}_n_s {within:g}"
            yield Problem(f"{place}.{part}_x_s", found, "at least that")


def curve_problems(curves: Mapping[str, NoiseCurve]) -> Iterator[Problem]:
    """Yield the inconsistencies in the noise curves of an instance."""
    for key, curve in curves.items():
        place = join("curves", key)
        if not strictly_ascending(curve.until):
            yield Problem(f"{place}.until", show(curve.until), "ascending work, at least one stage")
        if not strictly_ascending(curve.batches):
            yield Problem(
                f"{place}.batches", show(curve.batches), "ascending batches, at least one"
            )
        if len(curve.scale) != len(curve.until):
            found = f"{len(curve.scale)} rows for {len(curve.until)} stages in until"
            yield Problem(f"{place}.scale", found, "a row for each stage")
        for k, row in enumerate(curve.scale):
            if len(row) != len(curve.batches):
                found = f"{len(row)} values for {len(curve.batches)} batches"
                yield Problem(f"{place}.scale[{k}]", found, "a value for each batch")


def noise_problems(noise: NoiseScale, place: str) -> Iterator[Problem]:
    """Yield the inconsistencies in a measured noise scale."""
    if not strictly_ascending(noise.batches):
        found = show(noise.batches)
        yield Problem(f"{place}.batches", found, "ascending batches, at least one")
    if len(noise.scale) != len(noise.batches):
        found = f"{len(noise.scale)} values for {len(noise.batches)} batches"
        yield Problem(f"{place}.scale", found, "a value for each batch")


def _table(table: Tabular, place: str) -> Iterator[Problem]:
    """Check that columns have equal length, rows are distinct, and no part of a step exceeds it."""
    lengths = {name: len(getattr(table, name)) for name in _COLUMNS}
    if len(set(lengths.values())) > 1 or not table.gpus:
        found = "columns of " + ", ".join(f"{n} {name}" for name, n in lengths.items())
        yield Problem(place, found, "columns of equal length, at least one row")
        return
    seen: set[tuple[float, ...]] = set()
    for k in range(len(table.gpus)):
        row = table.gpus[k], table.nodes[k], table.local_batch[k]
        if row in seen:
            yield Problem(
                place, f"two rows (gpus, nodes, local_batch) {show(row)}", "distinct rows"
            )
        seen.add(row)
        if table.nodes[k] > table.gpus[k]:
            found = f"{table.nodes[k]} nodes for {table.gpus[k]} GPUs"
            yield Problem(f"{place}.nodes[{k}]", found, "at most one node for each GPU")
        if table.sync_s[k] > table.step_s[k]:
            found = f"{table.sync_s[k]:g} s of a step of {table.step_s[k]:g} s"
            yield Problem(f"{place}.sync_s[{k}]", found, "at most the whole step")


def rated_problems(profiles: Mapping[str, Profile]) -> Iterator[Problem]:
    """Yield the first profile that has only rates, which no driver could carry out."""
    places = [
        join(join("profiles", key) + ".throughput", name)
        for key, profile in profiles.items()
        for name, model in profile.throughput.items()
        if isinstance(model, Rated)
    ]
    if places:
        more = f", as in {len(places) - 1} more places" if len(places) > 1 else ""
        expected = "a model, or measured step times: only a round may have rates alone"
        yield Problem(places[0], f"rates as they are (rated){more}", expected)


def _rated(
    table: Rated, profile: Profile, gpu_type: GpuType | None, place: str
) -> Iterator[Problem]:
    """Check that columns are equally long, rows distinct and allowed, and watts not below idle."""
    ways = table.gpus, table.nodes, table.batch, table.clock
    lengths = {len(column) for column in (*ways, table.rate)} | {len(table.power_w or table.gpus)}
    if len(lengths) > 1 or not table.gpus:
        yield Problem(place, f"columns of {show(sorted(lengths))}", "equal lengths, at least 1")
        return
    if len(set(zip(*ways, strict=True))) < len(table.gpus):
        yield Problem(place, "two rows of equal (gpus, nodes, batch, clock)", "distinct rows")
    for gpus, nodes in zip(table.gpus, table.nodes, strict=True):
        if nodes > gpus:
            found = f"{nodes} nodes for {gpus} GPUs"
            yield Problem(f"{place}.nodes", found, "at most one node for each GPU")
    offered = {profile.base_batch, *profile.batches}
    for batch in sorted(set(table.batch) - offered):
        yield Problem(f"{place}.batch", f"{batch:g}", "a batch that the profile offers")
    idle_w = 0.0 if gpu_type is None else gpu_type.idle_w
    for gpus, power_w in zip(table.gpus, table.power_w, strict=False):
        if power_w < gpus * idle_w:
            expected = f"at least {gpus * idle_w:g} W, which {gpus} GPUs draw idle"
            yield Problem(f"{place}.power_w", f"{power_w:g} W", expected)
