"""The profile of an application: speed, power, statistical efficiency, memory, GPU sharing.

A profile is the scheduler's knowledge about all jobs of an application. The future (the true work
of a job, the development of its gradient noise) is in `ronda.instances.job`.

An *array* is k models of one class that run on one GPU together, each one step at a time. The
models behind all numbers are in `ronda.instances.models`.
"""

from typing import Annotated, Literal

import msgspec

from ronda.instances.base import Count, Name, NonNegative, Positive, Record, Share


class Rigid(Record, frozen=True, kw_only=True, tag_field="kind", tag="rigid"):
    """The model of a plain trace: a second of work per second on the requested GPUs only."""


class Parametric(Record, frozen=True, kw_only=True, tag_field="kind", tag="parametric"):
    """The throughput model of Pollux (OSDI'21) with a clock term; fitted constants.

    With n GPUs, local batch b = B/n and relative clock s::

        T_grad = (alpha_c + beta_c b) (phi/s + 1 - phi)
        T_sync = 0 (n = 1) | alpha_r + beta_r (n - 2) (one node) | alpha_n + beta_n (n - 2)
                 | alpha_x + beta_x (n - 2) (several racks)
        T_iter = (T_grad^gamma + T_sync^gamma)^(1/gamma)

    Times in seconds. The last case, for nodes in several racks, is ours; Pollux has none.

    Attributes
    ----------
    alpha_c_s
        Seconds of a gradient computation whatever the local batch.
    beta_c_s
        Seconds of it for each sample of the local batch.
    alpha_r_s
        Seconds of synchronisation within a node, two GPUs.
    beta_r_s
        Seconds of it for each further GPU.
    alpha_n_s
        Seconds of synchronisation across nodes, two GPUs.
    beta_n_s
        Seconds of it for each further GPU.
    alpha_x_s
        Seconds of synchronisation across racks, two GPUs; by default as across nodes.
    beta_x_s
        Seconds of it for each further GPU; by default as across nodes.
    gamma
        Overlap of both: none at 1, more the larger it is.
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
    """Measured step times as parallel columns, with one row a measurement.

    Attributes
    ----------
    gpus
        Number of GPUs.
    nodes
        Number of nodes that they were spread over.
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
    """Rates that another scheduler hands over, as parallel columns, with one row a configuration.

    A configuration without a row cannot run, and nothing is interpolated. Such jobs have any number
    of GPUs that has a row. Only rounds have this model, as the truth behind it is unknown.

    Attributes
    ----------
    gpus
        Number of GPUs.
    nodes
        Number of nodes that they are spread over.
    batch
        Global batch size, one of the profile.
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
    """Power of one busy GPU against relative speed s (a form that fits Zeus' public traces).

    ``P(s) = a + b min(s, s0) + c max(s^3 - s0^3, 0)`` in watts.

    Attributes
    ----------
    a_w
        Power that does not depend on the speed.
    b_w
        Rise with the speed up to `s0`, where the voltage is at its floor.
    c_w
        Rise with the cube of the speed above `s0`.
    s0
        Relative speed at which the voltage leaves its floor, at most 10.
    sync_w
        Power while gradients synchronise; None if it does not differ.
    """

    a_w: NonNegative
    b_w: NonNegative = 0.0
    c_w: NonNegative = 0.0
    s0: Annotated[Positive, msgspec.Meta(le=10)] = 1.0
    sync_w: NonNegative | None = None


class Memory(Record, frozen=True, kw_only=True):
    """Memory of one GPU, GiB: ``base + k (model + sample b)``, k fused models, local batch b.

    Attributes
    ----------
    base_gib
        Need of the framework.
    model_gib
        Need of one model (weights, gradients, optimiser).
    sample_gib
        Need of one sample of the local batch.
    """

    base_gib: NonNegative = 0.0
    model_gib: NonNegative = 0.0
    sample_gib: NonNegative = 0.0


class NoiseScale(Record, frozen=True, kw_only=True, gc=False):
    """The gradient noise scale now, by global batch size (linear between, constant outside).

    Statistical efficiency of a sample in a batch B is ``(scale + B0) / (scale + B)`` with the
    base batch B0 (Pollux, OSDI'21, section 3.1; McCandlish et al. 2018).

    Attributes
    ----------
    batches
        Global batch sizes that were measured, ascending.
    scale
        Noise scale at each of them.
    """

    batches: tuple[Positive, ...]
    scale: tuple[NonNegative, ...]


class NoiseCurve(Record, frozen=True, kw_only=True):
    """The development of a job's gradient noise scale, with one row per stage of its progress.

    Attributes
    ----------
    until
        (S,) work at which each stage ends, ascending; the last stage has no end.
    batches
        (B,) global batch sizes that were measured.
    scale
        (S, B) noise scale.
    """

    until: tuple[Positive, ...]
    batches: tuple[Positive, ...]
    scale: tuple[tuple[NonNegative, ...], ...]


Mode = Literal["exclusive", "turns", "packed", "slices", "fused"]
"""One model alone, time-sharing, processes side by side (MPS), MIG slices, or one fused process."""


class AffineTime(Record, frozen=True, kw_only=True, tag_field="kind", tag="affine"):
    """Seconds in which all k models take a step: ``T(k) = max(floor, alpha + beta k)``.

    Attributes
    ----------
    alpha_s
        Seconds that do not depend on k, which the models share.
    beta_s
        Seconds of each model.
    floor_s
        Least seconds, of few models, which leave the device idle.
    """

    alpha_s: NonNegative
    beta_s: NonNegative
    floor_s: NonNegative = 0.0


class MeasuredTime(Record, frozen=True, kw_only=True, tag_field="kind", tag="measured"):
    """Measured seconds in which all k models take a step; linear between, nothing outside.

    Attributes
    ----------
    models
        Numbers of models that were measured, ascending.
    step_s
        Seconds at each of them.
    """

    models: tuple[Count, ...]
    step_s: tuple[Positive, ...]


class Sharing(Record, frozen=True, kw_only=True):
    """The time of a step of k models in one mode on one type of GPU.

    Attributes
    ----------
    mode
        The way in which the models share the GPU.
    time
        Seconds by k, or any other unit of time.
    """

    mode: Mode
    time: AffineTime | MeasuredTime


class Profile(Record, frozen=True, kw_only=True):
    """The knowledge about an application.

    Attributes
    ----------
    name
        Key by which jobs refer to it.
    throughput
        Speed by name of GPU type; other types cannot run the job.
    power
        Power by name of GPU type; busy GPUs of other types draw their idle power.
    base_batch
        Global batch size B0 at which a unit of work is one sample (efficiency 1).
    batches
        Global batch sizes that a scheduler may choose; empty for the job's own only.
    min_local_batch
        Smallest local batch (samples per GPU and step) that may be chosen.
    max_local_batch
        Largest local batch that fits, or None.
    memory
        Memory need, checked against the GPU type when given.
    sharing
        Times of jobs of one fusion class that share a GPU, by name of GPU type: a curve for each
        mode, with "exclusive" among them. Only their ratios count: a job in an array of k runs at
        ``T(1) / T(k)`` of its speed alone, with T(1) that of "exclusive".
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


def rigid_profile(gpu_type: str) -> Profile:
    """Return the profile ``rigid`` that trace readers give to jobs of a plain trace."""
    return Profile(name="rigid", throughput={gpu_type: Rigid()})
