"""The speed of an application, as a corrected model fitted to the measurements of all its jobs.

A step on n GPUs of N nodes computes for C seconds at full clock and synchronises for X seconds that
do not overlap, with local batch b (`ronda.instances.models.throughput`)::

    C = alpha_c + beta_c b        X = 0 (n = 1) | alpha_r + beta_r (n - 2) (one node)
                                      | alpha_n + beta_n (n - 2) (several)
                                      | alpha_x + beta_x (n - 2) (several racks)

C and X are measured separately, and each is linear in its parameters, so that non-negative least
squares of relative errors fit them. Without measurements, the best case is assumed: GPUs that were
never used together synchronise at no cost, nodes like the GPUs of one node, and racks like the
nodes of one rack. Real scaling is not concave. So C and X are multiplied by the *correction*, the
ratio of measured to fitted steps in similar configurations.

Measurements on one GPU type also count on other types (`carried`). Computation takes longer by the
ratio for applications that were measured on both types, and synchronisation takes the same time.
"""

from collections.abc import Mapping

import numpy as np
from msgspec.structs import replace
from scipy.optimize import nnls
from scipy.spatial.distance import cdist

from ronda.instances.base import Floats
from ronda.instances.models.measured import Measured, Way
from ronda.instances.models.throughput import phases
from ronda.instances.profile import Parametric, Tabular

UNKNOWN = Parametric(alpha_c_s=0.0, beta_c_s=1.0)
"""The model for an unknown speed, in which GPUs scale perfectly, in an arbitrary unit."""


def fit(measured: Measured) -> Parametric:
    """Return the model fitted to measurements, of which there is at least one."""
    gpus, nodes, batch, racks, compute, sync = measured.columns()
    computing = np.stack([np.ones_like(batch), batch], axis=1) / compute[:, None]
    if len(set(batch.tolist())) == 1:
        computing[:, 0] = 0.0  # one batch cannot separate both, so time is proportional to it
    alpha_c, beta_c = nnls(computing, np.ones(len(batch)))[0].tolist()
    within = _synchronising(gpus, sync, (gpus > 1) & (nodes == 1))
    across = _synchronising(gpus, sync, (nodes > 1) & (racks == 1))
    far = _synchronising(gpus, sync, racks > 1)
    return Parametric(
        alpha_c_s=max(alpha_c, 1e-9),  # at 0 work might be free
        beta_c_s=beta_c,
        alpha_r_s=(within or across or far or (0.0, 0.0))[0],
        beta_r_s=(within or (0.0, 0.0))[1],
        alpha_n_s=(across or within or far or (0.0, 0.0))[0],
        beta_n_s=(across or within or far or (0.0, 0.0))[1],
        alpha_x_s=far[0] if far else None,
        beta_x_s=far[1] if far else None,
    )


def _synchronising(gpus: Floats, sync: Floats, where: np.ndarray) -> tuple[float, float] | None:
    n, x = gpus[where], sync[where]
    if not len(n):
        return None
    if not (x > 0).any():
        return 0.0, 0.0
    scale = np.maximum(x, 0.01 * x.max())
    columns = np.stack([np.ones_like(n), n - 2.0], axis=1) / scale[:, None]
    if len(set(n.tolist())) == 1:
        columns[:, 1] = 0.0
    alpha, beta = nnls(columns, x / scale)[0].tolist()
    return alpha, beta


def correction(
    model: Parametric, measured: Measured, gpus: Floats, nodes: Floats, local_batch: Floats
) -> Floats:
    """Return the expected ratio of real to fitted steps of configurations, shape (R,).

    The logarithm of the ratio is a Gaussian process over the binary logarithms of GPUs, nodes and
    local batch with a squared-exponential kernel of length 1 (kriging: Rasmussen and Williams,
    *Gaussian Processes for Machine Learning* 2006, section 2.2). It comes close to the measured
    ratio at a measurement, and to 1 far from all measurements.
    """
    known_gpus, known_nodes, known_batch, _, compute, sync = measured.columns()
    ratio = np.log((compute + sync) / np.add(*phases(model, known_gpus, known_nodes, known_batch)))
    known = np.log2(np.stack([known_gpus, known_nodes, known_batch], axis=1))
    asked = np.log2(np.stack([gpus, nodes, local_batch], axis=1))
    # A measurement misses with a hundredth of the variance of corrections.
    within = np.exp(-0.5 * cdist(known, known, "sqeuclidean")) + 0.01 * np.eye(len(known))
    across = np.exp(-0.5 * cdist(asked, known, "sqeuclidean"))
    return np.asarray(np.exp(across @ np.linalg.solve(within, ratio)))


def carried(measured: Mapping[tuple[str, str], Measured], profile: str, on: str) -> Measured:
    """Return the measurements of an application on a GPU type, with those on other types converted.

    `measured` has a profile and a GPU type as key. If no application was measured on both of two
    types, these count as equally fast.
    """
    ways = dict[Way, tuple[float, float, int]]()
    for (name, other), known in measured.items():
        if name == profile and other != on:
            by = _slower(measured, profile, other, on)
            ways |= {way: (by * c, x, n) for way, (c, x, n) in known.ways.items()}
    own = measured.get((profile, on))
    return Measured(ways if own is None else ways | own.ways)


def _slower(
    measured: Mapping[tuple[str, str], Measured], profile: str, here: str, there: str
) -> float:
    """Return the factor by which computing takes longer `there` than `here`.

    It is the application's own ratio, else the geometric mean for other applications, else 1.
    """
    both = [name for name, gpu_type in measured if gpu_type == there and (name, here) in measured]
    found = []
    for name in [profile] if profile in both else both:
        gpus, nodes, batch, _, compute, _ = measured[name, there].columns()
        here_s, _ = phases(fit(measured[name, here]), gpus, nodes, batch)
        found.append(float(np.log(compute / here_s).mean()))
    return float(np.exp(np.mean(found))) if found else 1.0


def believed_model(known: Parametric | Tabular, measured: Measured) -> Parametric | Tabular:
    """Return the model that replaces one whose step times are unknown.

    The `known` model still says which configurations can run, and how far computation depends on
    the clock. A `Tabular` model keeps its rows with corrected seconds. A `Parametric` model cannot
    hold corrections.
    """
    model = fit(measured) if measured.ways else UNKNOWN
    if isinstance(known, Parametric):
        return replace(model, phi=known.phi)
    gpus, nodes, batch = (
        np.array(column, dtype=float) for column in (known.gpus, known.nodes, known.local_batch)
    )
    compute, sync = phases(model, gpus, nodes, batch)
    by = correction(model, measured, gpus, nodes, batch) if measured.ways else np.ones(len(gpus))
    step, sync = by * (compute + sync), by * sync
    return replace(known, step_s=tuple(step.tolist()), sync_s=tuple(sync.tolist()))
