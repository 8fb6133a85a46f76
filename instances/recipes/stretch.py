"""Power curves for a GPU that nobody measured: those of a measured one, stretched.

What a stretched curve says is *made*: that watts scale with the power limits of two GPUs, and that
a synchronising GPU draws what it draws at half speed, are assumptions.
"""

from ronda.instances.profile import PowerCurve

ZEUS_CITATION = (
    "You, Chung, Chowdhury: Zeus: Understanding and Optimizing GPU Energy Consumption of DNN "
    "Training, NSDI 2023"
)


def stretch(curve: PowerCurve, ratio: float) -> PowerCurve:
    """Return a curve with all watts times `ratio`, and at half speed while gradients synchronise.

    `ratio` is the power limit over that of the measured GPU, whose `s0` is at least 0.5.
    """
    a_w, b_w, c_w = (round(watts * ratio, 6) for watts in (curve.a_w, curve.b_w, curve.c_w))
    sync_w = round(a_w + 0.5 * b_w, 6)
    return PowerCurve(a_w=a_w, b_w=b_w, c_w=c_w, s0=curve.s0, sync_w=sync_w)
