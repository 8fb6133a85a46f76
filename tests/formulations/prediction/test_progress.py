"""Beliefs of progress, the network that predicts them, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.stats import beta

from ronda.formulations.prediction import training
from ronda.formulations.prediction.progress import (
    BetaProgress,
    ProgressPredictor,
    features,
    finished_rows,
)
from ronda.formulations.prediction.training import Network, _gradient, forward
from ronda.instances.errors import InputError

JOB = features(20_000, 2.0, 4, 0.5, 0.7)


@pytest.fixture
def quick(monkeypatch):
    """Train a small network for two passes only."""
    monkeypatch.setattr(training, "HIDDEN", 8)
    monkeypatch.setattr(training, "PASSES", 2)


@pytest.fixture(scope="module")
def finished():
    """Return rows and progress of jobs whose loss falls to a tenth over 5 to 40 epochs."""
    rng = np.random.default_rng(0)
    parts = []
    for epochs in rng.integers(5, 41, 30):
        share = np.arange(1, epochs + 1) / epochs
        parts.append(finished_rows(20_000, 2.0, 2.0 * 0.1**share, 0.1 + 0.7 * share))
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


def test_mean_quantiles_and_expected_work_left_by_hand():
    """Mean quantiles and expected work left by hand."""
    # Beta(2, 2): mean 1/2, symmetric; E[1/rho - 1] = 2/1 = 2.
    # Beta(3, 1): distribution x^3, so the 1/8 quantile is 1/2; mean 3/4; E = 1/2.
    belief = BetaProgress(np.array([2.0, 3.0]), np.array([2.0, 1.0]))
    assert belief.mean().tolist() == [0.5, 0.75]
    assert belief.quantile(0.5)[0] == pytest.approx(0.5)
    assert belief.quantile(1 / 8)[1] == pytest.approx(0.5)
    assert belief.quantile([0.1, 0.5, 0.9]).shape == (3, 2)
    assert belief.expected_work_left().tolist() == [2.0, 0.5]
    assert len(belief) == 2


def test_work_to_come_has_no_mean_before_the_second_epoch():
    """Work to come has no mean before the second epoch."""
    belief = BetaProgress(np.array([1.0, 0.5]), np.array([2.0, 2.0]))
    assert belief.expected_work_left().tolist() == [np.inf, np.inf]


@settings(max_examples=20, deadline=None)
@given(st.floats(0.1, 50), st.floats(0.1, 50), st.floats(0.01, 0.99))
def test_quantiles_undo_the_distribution(a, b, q):
    """Quantiles undo the distribution."""
    belief = BetaProgress(np.array([a]), np.array([b]))
    assert beta.cdf(belief.quantile(q)[0], a, b) == pytest.approx(q, abs=1e-6)


def test_samples_follow_the_distribution_and_the_seed():
    """Samples follow the distribution and the seed."""
    belief = BetaProgress(np.array([4.0, 2.0]), np.array([2.0, 8.0]))
    drawn = belief.sample(np.random.default_rng(1), 20_000)
    assert drawn.shape == (20_000, 2)
    # Standard error of the mean is below 0.2 / sqrt(20000) = 0.0014.
    assert drawn.mean(axis=0) == pytest.approx(belief.mean(), abs=0.007)
    assert belief.sample(np.random.default_rng(1)).shape == (2,)
    again = belief.sample(np.random.default_rng(1), 20_000)
    assert (again == drawn).all()
    assert ((drawn > 0) & (drawn < 1)).all()


def test_the_sample_average_of_work_left_nears_its_expectation():
    """The sample average of work left nears its expectation."""
    # a = 6: E[1/rho - 1] = 10/5 = 2, with a finite variance.
    belief = BetaProgress(np.array([6.0]), np.array([10.0]))
    once = belief.work_left(np.random.default_rng(0))
    drawn = belief.sample(np.random.default_rng(0), 1)
    assert once[0] == pytest.approx(1 / drawn[0, 0] - 1)
    assert belief.work_left(np.random.default_rng(0), 20_000)[0] == pytest.approx(2.0, rel=0.05)


def test_samples_stay_off_the_ends():
    """Samples stay off the ends."""
    belief = BetaProgress(np.array([1e-3, 1.0]), np.array([1.0, 1e-3]))
    drawn = belief.sample(np.random.default_rng(0), 100)
    assert ((drawn > 0) & (drawn < 1)).all()
    assert np.isfinite(belief.work_left(np.random.default_rng(0), 100)).all()


def test_features_by_hand():
    """Features by hand."""
    # log 20000; loss 2; 4 epochs; 1 - 0.5/2 = 0.75; accuracy 0.7. A loss of 1e6 counts as 100.
    assert JOB[0] == pytest.approx([np.log(20_000), 2.0, 4.0, 0.75, 0.7])
    assert features(10, 1e6, 1, 50.0, 0.5)[0, 1:4].tolist() == [100.0, 1.0, 0.5]


def test_a_finished_log_gives_a_row_an_epoch_but_the_last():
    """A finished log gives a row an epoch but the last."""
    rows, progress = finished_rows(100, 2.0, [1.0, 0.5, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4])
    assert progress.tolist() == [0.25, 0.5, 0.75]
    assert rows[:, 2].tolist() == [1, 2, 3]
    assert rows[:, 3].tolist() == [0.5, 0.75, 0.9]
    assert rows[:, 4].tolist() == [0.1, 0.2, 0.3]


@pytest.mark.parametrize("artifact", [False, True])
def test_the_gradient_is_that_of_the_likelihood(artifact, finished):
    """The gradient is that of the likelihood."""
    rows, progress = (column[:12] for column in finished)
    a = rows[:, 2]
    rng = np.random.default_rng(3)
    weights = 0.3 * rng.standard_normal(7 * 4 + 1)
    weights[-1] = 5.0  # the ReLU is open
    x = (rows - rows.mean(axis=0)) / (rows.std(axis=0) + 1e-9)

    def loss(vector):
        b = forward(Network(vector, np.zeros(5), np.ones(5)), x)
        if artifact:
            return -beta.logpdf(progress[:, None], a[None, :], b[:, None]).mean()
        return -beta.logpdf(progress, a, b).mean()

    network = Network(weights, np.zeros(5), np.ones(5))
    found = Network(np.empty_like(weights), np.zeros(5), np.ones(5))
    _gradient(network, x, -np.log1p(-progress), a, found, artifact)
    assert found.weights == pytest.approx(approx_fprime(weights, loss, 1e-6), abs=1e-4)


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


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("artifact", [False, True])
def test_the_seed_decides_all(artifact, finished):
    """The seed decides all."""
    first, again, other = (
        ProgressPredictor.fit(*finished, seed=s, artifact=artifact) for s in (1, 1, 2)
    )
    assert (first.network.weights == again.network.weights).all()
    assert (first.network.weights != other.network.weights).any()


@pytest.mark.usefixtures("quick")
def test_no_more_rows_than_allowed_are_read(finished, monkeypatch):
    """No more rows than allowed are read."""
    rows, progress = finished
    monkeypatch.setattr(training, "MAX_ROWS", 10)
    fitted = ProgressPredictor.fit(rows, progress, seed=0)
    # Features are standardised by the mean of the rows that were taken: it is not that of all.
    assert (fitted.network.shift != rows.mean(axis=0)).any()


@pytest.mark.usefixtures("quick")
def test_the_artifact_predicts_from_the_raw_dataset_size(finished):
    """The artifact predicts from the raw dataset size."""
    fitted = ProgressPredictor.fit(*finished, seed=0, artifact=True)
    raw = JOB.copy()
    raw[:, 0] = 20_000
    assert fitted.predict(JOB).b == pytest.approx(forward(fitted.network, raw))


@pytest.mark.usefixtures("quick")
def test_a_predictor_can_be_written_down(finished):
    """A predictor can be written down."""
    fitted = ProgressPredictor.fit(*finished, seed=0)
    kept = [part.tolist() for part in (fitted.network.weights, fitted.network.shift)]
    kept.append(fitted.network.scale.tolist())
    again = ProgressPredictor(Network(*(np.array(part) for part in kept)))
    assert (again.predict(JOB).b == fitted.predict(JOB).b).all()
    with pytest.raises(InputError, match="9 weights"):
        Network(np.zeros(9), np.zeros(5), np.ones(5))


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        ([0.0], [1.0], "progress: a[0]: found 0"),
        ([1.0], [np.nan], "progress: b[0]: found nan"),
        ([1.0, 2.0], [1.0], "2 a and 1 b"),
        ([[1.0]], [1.0], "shape (1, 1)"),
    ],
)
def test_impossible_beliefs_are_refused(a, b, words):
    """Impossible beliefs are refused."""
    with pytest.raises(InputError) as caught:
        BetaProgress(np.array(a), np.array(b))
    assert words in str(caught.value)


def test_impossible_questions_are_refused():
    """Impossible questions are refused."""
    belief = BetaProgress(np.array([1.0]), np.array([1.0]))
    with pytest.raises(InputError, match="quantile: found 1"):
        belief.quantile(1.5)
    with pytest.raises(InputError, match="samples: found 0"):
        belief.sample(np.random.default_rng(0), 0)


@pytest.mark.parametrize(
    ("given_", "words"),
    [
        ((0, 2.0, 1, 1.0, 0.5), "dataset size[0]: found 0"),
        ((10, 0.0, 1, 1.0, 0.5), "initial loss[0]: found 0"),
        ((10, 2.0, 0, 1.0, 0.5), "epochs done[0]: found 0"),
        ((10, 2.0, 1, np.nan, 0.5), "features[0]: loss decrease: found nan"),
        ((10, 2.0, 1, 1.0, 1.5), "features[0]: accuracy: found 1.5"),
    ],
)
def test_impossible_logs_are_refused(given_, words):
    """Impossible logs are refused."""
    with pytest.raises(InputError) as caught:
        features(*given_)
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
