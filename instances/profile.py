"""The profile of an application: speed, power, statistical efficiency, memory and GPU sharing.

A profile holds what the scheduler knows about all jobs of an application. Their future (true work
and gradient noise over time) is in `ronda.instances.job`.

An *array* is a group of k models of one class that run together on one GPU in lock-step. The models
behind all numbers are in `ronda.instances.models`.
"""

from typing import Annotated, Literal

import msgspec

from ronda.instances.base import Count, Name, NonNegative, Positive, Record, Share


class Rigid(Record, frozen=True, kw_only=True, tag_field="kind", tag="rigid"):
    """The throughput of a plain trace: one second of work per second on the requested GPUs."""


class Parametric(Record, frozen=True, kw_only=True, tag_field="kind", tag="parametric"):
    """The throughput model of Pollux (OSDI'21) with an additional clock term and fitted constants.

    With n GPUs, local batch b = B/n and relative clock s::

        T_grad = (alpha_c + beta_c b) (phi/s + 1 - phi)
        T_sync = 0 (n = 1) | alpha_r + beta_r (n - 2) (one node) | alpha_n + beta_n (n - 2)
                 | alpha_x + beta_x (n - 2) (several racks)
        T_iter = (T_grad^gamma + T_sync^gamma)^(1/gamma)

    Times are in seconds. The last case, for nodes in several racks, is ours and not in Pollux.

    Attributes
    ----------
    alpha_c_s
        Seconds of a gradient computation that do not depend on the local batch.
    beta_c_s
        Seconds of a gradient computation per sample of the local batch.
    alpha_r_s
        Seconds of synchronisation of two GPUs within a node.
    beta_r_s
        Additional seconds per further GPU within a node.
    alpha_n_s
        Seconds of synchronisation of two GPUs on different nodes.
    beta_n_s
        Additional seconds per further GPU across nodes.
    alpha_x_s
        Seconds of synchronisation of two GPUs in different racks; by default `alpha_n_s`.
    beta_x_s
        Additional seconds per further GPU across racks; by default `beta_n_s`.
    gamma
        Overlap of computation and synchronisation: none at 1, more for larger values.
    phi
        Share of T_grad that is bound by the GPU clock.
    """

    alpha_c_s: NonNegative
    beta_c_s: NonNegative
    alpha_r_s: NonNegative = 0.0
    beta_r_s: NonNegative = 0.0
    alpha_n_s: NonNegative = 0.0
    beta_n_s: NonNegative = 0.0
    alpha_x_s: NonNegative | None = None
    beta_x_s: NonNegative | None = None
    gamma: Positive = 1.0
    phi: NonNegative = 1.0

    @property
    def minds_racks(self) -> bool:
        """Whether the speed depends on the number of racks."""
        return self.alpha_x_s is not None or self.beta_x_s is not None


class Tabular(Record, frozen=True, kw_only=True, tag_field="kind", tag="tabular"):
    """Measured step times as parallel columns, with one row per measurement.

    Attributes
    ----------
    gpus
        Number of GPUs.
    nodes
        Number of nodes that the GPUs were spread over.
    local_batch
        Samples per GPU and step.
    step_s
        Seconds of a whole step. A step with k gradient accumulations takes
        ``step_s + k (step_s - sync_s)``. Between two measured local batches of the same (gpus,
        nodes) the times are interpolated linearly; nothing is extrapolated.
    sync_s
        Seconds of `step_s` that synchronise gradients.
    phi
        Share of ``step_s - sync_s`` that is bound by the GPU clock.
    """

    gpus: tuple[Count, ...]
    nodes: tuple[Count, ...]
    local_batch: tuple[Positive, ...]
    step_s: tuple[Positive, ...]
    sync_s: tuple[NonNegative, ...]
    phi: NonNegative = 1.0


class Rated(Record, frozen=True, kw_only=True, tag_field="kind", tag="rated"):
    """Rates given by another scheduler, as parallel columns with one row per configuration.

    A configuration without a row cannot run, and nothing is interpolated. A job may have any number
    of GPUs that has a row. Only rounds have this model, as the truth behind it is unknown.

    Attributes
    ----------
    gpus
        Number of GPUs.
    nodes
        Number of nodes that the GPUs are spread over.
    batch
        Global batch size, which must be one of the profile's.
    clock
        Clock as a fraction of the maximum.
    rate
        Work per second, statistical efficiency included.
    power_w
        Power in watts of all the GPUs together; empty for their idle power.
    """

    gpus: tuple[Count, ...]
    nodes: tuple[Count, ...]
    batch: tuple[Positive, ...]
    clock: tuple[Share, ...]
    rate: tuple[Positive, ...]
    power_w: tuple[NonNegative, ...] = ()


Throughput = Rigid | Parametric | Tabular | Rated


class PowerCurve(Record, frozen=True, kw_only=True):
    """The power of one busy GPU at relative speed s, in a form that fits Zeus's public traces.

    It is ``P(s) = a + b min(s, s0) + c max(s^3 - s0^3, 0)`` in watts.

    Attributes
    ----------
    a_w
        Power that does not depend on the speed.
    b_w
        Increase with the speed up to `s0`, where the voltage is at its floor.
    c_w
        Increase with the cube of the speed above `s0`.
    s0
        Relative speed at which the voltage leaves its floor, at most 10.
    sync_w
        Power while gradients synchronise; None if it is the same.
    """

    a_w: NonNegative
    b_w: NonNegative = 0.0
    c_w: NonNegative = 0.0
    s0: Annotated[Positive, msgspec.Meta(le=10)] = 1.0
    sync_w: NonNegative | None = None


class Memory(Record, frozen=True, kw_only=True):
    """The GiB of GPU memory of k fused models at local batch b: ``base + k (model + sample b)``.

    Attributes
    ----------
    base_gib
        Memory of the framework.
    model_gib
        Memory of one model (weights, gradients, optimiser).
    sample_gib
        Memory of one sample of the local batch.
    """

    base_gib: NonNegative = 0.0
    model_gib: NonNegative = 0.0
    sample_gib: NonNegative = 0.0


class NoiseScale(Record, frozen=True, kw_only=True, gc=False):
    """The present gradient noise scale by global batch size, linear between and constant outside.

    The statistical efficiency of a sample in a batch B is ``(scale + B0) / (scale + B)`` with the
    base batch B0 (Pollux, OSDI'21, section 3.1; McCandlish et al. 2018).

    Attributes
    ----------
    batches
        Measured global batch sizes, ascending.
    scale
        Noise scale at each batch size.
    """

    batches: tuple[Positive, ...]
    scale: tuple[NonNegative, ...]


class NoiseCurve(Record, frozen=True, kw_only=True):
    """The gradient noise scale of a job over its progress, with one row per stage.

    Attributes
    ----------
    until
        Work at which each stage ends, ascending, shape (S,); the last stage has no end.
    batches
        Measured global batch sizes, shape (B,).
    scale
        Noise scale, shape (S, B).
    """

    until: tuple[Positive, ...]
    batches: tuple[Positive, ...]
    scale: tuple[tuple[NonNegative, ...], ...]


Mode = Literal["exclusive", "turns", "packed", "slices", "fused"]
"""How models share a GPU: not at all, in turns, side by side (MPS), in MIG slices, or fused."""


class AffineTime(Record, frozen=True, kw_only=True, tag_field="kind", tag="affine"):
    """The seconds in which all k models take a step: ``T(k) = max(floor, alpha + beta k)``.

    Attributes
    ----------
    alpha_s
        Seconds that the models share, which do not depend on k.
    beta_s
        Seconds per model.
    floor_s
        Minimum seconds, for few models that do not keep the GPU busy.
    """

    alpha_s: NonNegative
    beta_s: NonNegative
    floor_s: NonNegative = 0.0


class MeasuredTime(Record, frozen=True, kw_only=True, tag_field="kind", tag="measured"):
    """The measured seconds in which all k models take a step, linear between measurements only.

    Attributes
    ----------
    models
        Measured numbers of models, ascending.
    step_s
        Seconds at each number of models.
    """

    models: tuple[Count, ...]
    step_s: tuple[Positive, ...]


class Sharing(Record, frozen=True, kw_only=True):
    """The time of a step of k models in one mode on one type of GPU.

    Attributes
    ----------
    mode
        How the models share the GPU.
    time
        Time as a function of k, in seconds or any other unit.
    """

    mode: Mode
    time: AffineTime | MeasuredTime


class Profile(Record, frozen=True, kw_only=True):
    """The profile of an application: what is known about its jobs.

    Attributes
    ----------
    name
        The name that jobs refer to.
    throughput
        Throughput model by name of GPU type. Other types cannot run the job.
    power
        Power curve by name of GPU type. Busy GPUs of other types draw their idle power.
    base_batch
        Global batch size B0 at which a unit of work is one sample (efficiency 1).
    batches
        Global batch sizes that a scheduler may choose; empty for only the job's own.
    min_local_batch
        Smallest local batch (samples per GPU and step) that may be chosen.
    max_local_batch
        Largest local batch that may be chosen; None for no limit.
    memory
        Memory use, which is checked against the GPU type; None for no check.
    sharing
        Step times of jobs of one fusion class that share a GPU, by name of GPU type. There is a
        curve for each mode, including "exclusive". Only ratios count: a job in an array of k runs
        at ``T(1) / T(k)`` of its speed alone, with T(1) taken from "exclusive".
    source
        Source of the numbers.
    """

    name: Name
    throughput: dict[str, Throughput]
    power: dict[str, PowerCurve] = {}
    base_batch: Positive = 1.0
    batches: tuple[Positive, ...] = ()
    min_local_batch: NonNegative = 0.0
    max_local_batch: Positive | None = None
    memory: Memory | None = None
    sharing: dict[str, tuple[Sharing, ...]] = {}
    source: str = ""


def rigid_profile(*gpu_types: str) -> Profile:
    """Return the profile ``rigid`` that trace readers give to jobs of a plain trace."""
    return Profile(name="rigid", throughput={name: Rigid() for name in gpu_types})
