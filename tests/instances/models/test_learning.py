"""What a training logs after its epochs."""

import pytest

from ronda.instances.learning import LearningCurve
from ronda.instances.models.learning import epochs_over, next_end, to_come, training_log

CURVE = LearningCurve(
    initial_loss=2.0, final_loss=0.5, final_accuracy=0.8, steepness=4.0, noise=0.0
)


def test_curve_by_hand():
    """S = 4: g(1/4) = (1/2 - 1/5) / (1 - 1/5) = 3/8; loss 0.5 + 1.5 x 3/8, accuracy 0.8 x 5/8."""
    assert to_come(CURVE, 0.0) == 1.0
    assert to_come(CURVE, 1.0) == 0.0
    log = training_log(CURVE, 3, 0.25)
    assert (log.epochs, log.initial_loss) == (3, 2.0)
    assert log.loss == pytest.approx(1.0625)
    assert log.accuracy == pytest.approx(0.5)


def test_noise_follows_from_seed_and_epoch():
    """The same epoch logs the same; another epoch or seed does not."""
    noisy = LearningCurve(
        initial_loss=2.0, final_loss=0.5, final_accuracy=0.8, steepness=4.0, noise=0.1, seed=7
    )
    assert training_log(noisy, 3, 0.25) == training_log(noisy, 3, 0.25)
    assert training_log(noisy, 4, 0.25).loss != training_log(noisy, 3, 0.25).loss


def test_epochs():
    """Rounding of a billionth of an epoch is forgiven."""
    assert [epochs_over(d, 10.0) for d in (0.0, 9.9, 10.0, 29.9999999999)] == [0, 0, 1, 3]
    assert next_end(10.0, 10.0) == 20.0
