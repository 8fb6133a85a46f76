"""How models of one class share a GPU, and how long they take when they do.

An *array* is k models that run on one GPU together, each one step at a time. What the numbers
follow from is in `ronda.formulations.fusion`.
"""

from typing import Literal

from ronda.instances.base import Count, NonNegative, Positive, Record

Mode = Literal["exclusive", "turns", "packed", "slices", "fused"]
"""One model alone; time-sharing; processes side by side (MPS); MIG slices; one fused process."""


class AffineTime(Record, frozen=True, kw_only=True, tag_field="kind", tag="affine"):
    """Seconds in which all k models take a step: ``T(k) = max(floor, alpha + beta k)``.

    Attributes
    ----------
    alpha_s
        Seconds that do not depend on k: what the models share.
    beta_s
        Seconds of each model.
    floor_s
        Seconds that even few models take, as they leave the device idle.
    """

    alpha_s: NonNegative
    beta_s: NonNegative
    floor_s: NonNegative = 0.0


class MeasuredTime(Record, frozen=True, kw_only=True, tag_field="kind", tag="measured"):
    """Measured seconds in which all k models take a step; linear between, nothing outside.

    Attributes
    ----------
    models
        Ascending: the numbers of models that were measured.
    step_s
        Seconds at each of them.
    """

    models: tuple[Count, ...]
    step_s: tuple[Positive, ...]


class Sharing(Record, frozen=True, kw_only=True):
    """How long a step of k models takes in one mode on one type of GPU.

    Attributes
    ----------
    mode
        How the models share the GPU.
    time
        Seconds, or whatever unit the measurements had, by k.
    """

    mode: Mode
    time: AffineTime | MeasuredTime
