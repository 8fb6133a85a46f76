"""Beliefs of progress, the network that predicts them, and what is refused."""

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import beta

from ronda.instances.errors import InputError
from ronda.instances.learning import TrainingLog
from ronda.systems.ones import progress as module
from ronda.systems.ones.learn import finished_rows, history
from ronda.systems.ones.progress import BetaProgress, ProgressPredictor, features, loss
from tests.helpers.moved import plain_elsewhere

JOB = [features(20_000, 2.0, 4, 0.5, 0.7)]


def logs(initial_loss, losses, accuracies):
    """Return the logs after each epoch."""
    return [
        TrainingLog(epochs=e, initial_loss=initial_loss, loss=loss, accuracy=accuracy)
        for e, (loss, accuracy) in enumerate(zip(losses, accuracies, strict=True), 1)
    ]


@pytest.fixture(scope="module")
def finished():
    """Return rows and progress of jobs whose loss falls to a tenth over 5 to 40 epochs."""
    rng = np.random.default_rng(0)
    rows, progress = [], []
    for epochs in rng.integers(5, 41, 30).tolist():
        share = np.arange(1, epochs + 1) / epochs
        more, done = finished_rows(20_000, logs(2.0, 2.0 * 0.1**share, 0.1 + 0.7 * share))
        rows += more
        progress += done
    return np.array(rows), np.array(progress)


def test_the_mean_by_hand():
    """Beta(2, 2) has the mean 1/2, Beta(3, 1) has 3/4."""
    assert BetaProgress(np.array([2.0, 3.0]), np.array([2.0, 1.0])).mean().tolist() == [0.5, 0.75]


def test_draws_of_work_left_follow_the_distribution_and_the_seed():
    """For a = 6 and b = 10 E[1/rho - 1] = b / (a - 1) = 2, with a finite variance."""
    belief = BetaProgress(np.full(20_000, 6.0), np.full(20_000, 10.0))
    drawn = belief.work_left(np.random.default_rng(1))
    assert drawn.mean() == pytest.approx(2.0, rel=0.05)
    assert (belief.work_left(np.random.default_rng(1)) == drawn).all()
    assert (belief.work_left(np.random.default_rng(2)) != drawn).any()


def test_draws_stay_off_the_ends():
    """Where rho is nearly 0, or 1, for sure."""
    belief = BetaProgress(np.repeat([1e-3, 1.0], 100), np.repeat([1.0, 1e-3], 100))
    drawn = belief.work_left(np.random.default_rng(0))
    assert np.isfinite(drawn).all()
    assert (drawn > 0).all()


def test_features_by_hand():
    """Features by hand."""
    # log 20000; loss 2; 4 epochs; 1 - 0.5/2 = 0.75; accuracy 0.7.
    assert JOB[0] == pytest.approx([np.log(20_000), 2.0, 4.0, 0.75, 0.7])
    # A first loss of 1e6 counts as 100; 70 % logged as 70 counts as 1; an exploding loss is finite.
    assert features(10, 1e6, 1, 50.0, 70.0)[1:] == [100.0, 1, 0.5, 1.0]
    assert features(10, 1.0, 1, np.inf, 0.5)[3] == -1e6


def test_a_finished_log_gives_a_row_an_epoch_but_the_last():
    """A finished log gives a row an epoch but the last."""
    rows, progress = finished_rows(100, logs(2.0, [1.0, 0.5, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]))
    assert progress == [0.25, 0.5, 0.75]
    assert [row[2:] for row in rows] == [[1, 0.5, 0.1], [2, 0.75, 0.2], [3, 0.9, 0.3]]


@pytest.mark.parametrize("opening", [5.0, -5.0])
def test_the_loss_and_its_gradient_are_those_of_the_likelihood(opening, finished):
    """Each b is scored with its own a; the ReLU is open, or not."""
    rows, progress = (column[:12] for column in finished)
    a = rows[:, 2]
    rng = np.random.default_rng(3)
    weights = 0.3 * rng.standard_normal(7 * 4 + 1)
    weights[-1] = opening
    x = (rows - rows.mean(axis=0)) / (rows.std(axis=0) + 1e-9)

    def expected(vector):
        inner, outer = vector[:20].reshape(5, 4), vector[24:28]
        b = 1 + np.maximum(np.tanh(x @ inner + vector[20:24]) @ outer + vector[28], 0)
        density = beta.logpdf(progress, a, b)
        # What does not depend on b is left out; half of the weight decay of 0.01 is added.
        constant = ((a - 1) * np.log(progress)).mean()
        return constant - density.mean() + 0.005 * np.square(vector).sum()

    value, gradient = loss(weights, x, progress, a)
    assert value == pytest.approx(expected(weights))
    assert gradient == pytest.approx(approx_fprime(weights, expected, 1e-6), abs=1e-4)


def test_training_learns_what_the_loss_tells(finished):
    """Training learns what the loss tells."""
    rows, progress = finished
    fitted = ProgressPredictor.fit(rows, progress, seed=0).predict(rows)
    same = BetaProgress(rows[:, 2], np.full(len(rows), np.mean(rows[:, 2] * (1 / progress - 1))))
    assert (fitted.a == rows[:, 2]).all()
    assert (fitted.b >= 1).all()
    # The loss decrease says exactly how far a job is: errors are less than half as large.
    error = np.abs(fitted.mean() - progress).mean()
    assert error < 0.5 * np.abs(same.mean() - progress).mean()


def test_the_seed_decides_all(finished):
    """The seed decides all."""
    first, again, other = (ProgressPredictor.fit(*finished, seed=s) for s in (1, 1, 2))
    assert (first.weights == again.weights).all()
    assert (first.weights != other.weights).any()


@plain_elsewhere
def test_another_process_with_more_threads_trains_the_same_weights():
    """To the last bit."""
    program = (
        "from ronda.systems.ones.learn import history\n"
        "from ronda.systems.ones.progress import ProgressPredictor\n"
        "print(ProgressPredictor.fit(*history(), seed=0).weights.tolist())"
    )
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "2")
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | threads,
        capture_output=True,
        text=True,
        check=True,
    )
    here = ProgressPredictor.fit(*history(), seed=0).weights.tolist()
    assert done.stdout.strip() == str(here)


def test_it_predicts_jobs_that_it_has_not_seen():
    """Trained on fourteen jobs of the history, it is nearer the truth of the other six.

    Their mean number of epochs to come for all is what it is compared with.
    """
    rows, progress = history()
    job = np.cumsum(np.diff(rows[:, 2], prepend=0) < 0)
    seen, new = job < 14, job >= 14
    to_come = np.mean(rows[seen, 2] * (1 / progress[seen] - 1))
    same = BetaProgress(rows[new, 2], np.full(new.sum(), to_come))
    fitted = ProgressPredictor.fit(rows[seen], progress[seen], seed=0).predict(rows[new])
    error, of_same = (np.abs(b.mean() - progress[new]).mean() for b in (fitted, same))
    assert error < 0.8 * of_same


def test_no_more_rows_than_allowed_are_read(finished, monkeypatch):
    """No more rows than allowed are read."""
    rows, progress = finished
    monkeypatch.setattr(module, "MAX_ROWS", 10)
    fitted = ProgressPredictor.fit(rows, progress, seed=0)
    # Features are standardised by the mean of the rows that were taken: it is not that of all.
    assert (fitted.shift != rows.mean(axis=0)).any()


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        (0, np.inf, "features[1]: log dataset size: found inf; expected a finite number"),
        (2, 0.0, "features[1]: epochs done: found 0; expected a finite number above 0"),
        (3, np.nan, "features[1]: loss decrease: found nan"),
        (4, 1.5, "features[1]: accuracy: found 1.5; expected a share between 0 and 1"),
    ],
)
def test_impossible_logs_are_refused(column, value, words, finished):
    """The second job's."""
    rows = finished[0][:3].copy()
    rows[1, column] = value
    with pytest.raises(InputError) as caught:
        ProgressPredictor.fit(*finished, seed=0).predict(rows)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("rows", "progress", "words"),
    [
        (np.empty((0, 5)), [], "one a row"),
        (np.zeros((1, 4)), [0.5], "features: found shape (1, 4)"),
        (JOB, [0.5, 0.6], "shape (2,)"),
        (JOB, [1.0], "progress[0]: found 1"),
    ],
)
def test_impossible_training_data_are_refused(rows, progress, words):
    """Impossible training data are refused."""
    with pytest.raises(InputError) as caught:
        ProgressPredictor.fit(rows, progress, seed=0)
    assert words in str(caught.value)
