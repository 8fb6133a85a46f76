"""Calibration of predicted progress on the packaged learning curves."""

import gzip

import numpy as np
import pytest

from ronda.bench.ones import calibration
from ronda.bench.ones.calibration import (
    LEVELS,
    SAME,
    SPLITS,
    believe,
    divide,
    judge,
    sampling_loss,
)
from ronda.bench.ones.learning_curves import Curve, life, logs, read
from ronda.bench.study.__main__ import main
from ronda.formulations.prediction.progress import BetaProgress
from ronda.instances.errors import InputError


def test_a_job_ends_after_five_epochs_without_a_gain_of_a_hundredth():
    """A job ends after five epochs without a gain of a hundredth."""
    # Best 0.5 after epoch 1; the gain of 0.02 in epoch 4 restarts the count; 5 more: epoch 9.
    accuracies = [0.5, 0.505, 0.5, 0.52, 0.52, 0.521, 0.522, 0.523, 0.524, 0.9]
    assert life(np.array(accuracies)) == 9
    assert life(np.array(accuracies[:8])) is None


def test_logs_hold_a_row_an_epoch_but_the_last():
    """Logs hold a row an epoch but the last."""
    made = logs([Curve("t", "0", np.full(9, 0.5)), Curve("u", "0", np.linspace(0, 1, 9))])
    # Epoch 1 gains, 2 to 6 do not: a life of 6 epochs. The second curve never ends.
    assert made.progress.tolist() == pytest.approx([1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6])
    assert made.job.tolist() == [0] * 5
    with pytest.raises(InputError, match="none that ends"):
        logs([Curve("u", "0", np.linspace(0, 1, 9))])


def test_the_packaged_curves_are_six_tasks_of_sixty_configurations():
    """The packaged curves are six tasks of sixty configurations."""
    curves = read()
    assert len(curves) == 360
    assert len({curve.task for curve in curves}) == 6
    assert {len(curve.accuracies) for curve in curves} == {52}


@pytest.mark.parametrize("split", SPLITS)
def test_no_job_is_on_both_sides(split):
    """No job is on both sides."""
    train, test = divide(logs(read()), split, seed=0)
    assert not set(train.job) & set(test.job)
    assert bool(set(train.task) & set(test.task)) == (split == SPLITS[0])
    assert test.rows[:, 2].min() >= 2


def test_a_belief_that_is_true_is_calibrated():
    """A belief that is true is calibrated."""
    rng = np.random.default_rng(0)
    belief = BetaProgress(rng.uniform(1, 9, 20_000), rng.uniform(1, 9, 20_000))
    found = judge(belief, belief.sample(rng))
    # Shares of 20,000 have a standard error of at most 0.0036.
    assert found["shares"] == pytest.approx(LEVELS.tolist(), abs=0.015)
    assert found["coverage_80"] == pytest.approx(0.8, abs=0.015)


def test_the_same_b_for_all_is_the_mean_number_of_epochs_to_come():
    """The same b for all is the mean number of epochs to come."""
    made = logs([Curve("t", "0", np.full(9, 0.5))])
    # To come after epochs 1 to 5 of 6: 5, 4, 3, 2, 1.
    assert believe("same b for all", made, made, 0).b.tolist() == pytest.approx([3.0] * 5)


def test_command_writes_picture_numbers_and_table(tmp_path, capsys, monkeypatch):
    """One predictor on both splits."""
    monkeypatch.setattr(calibration, "METHODS", (SAME,))
    assert main(["calibration", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.count(SAME) == 2
    assert (tmp_path / "calibration.png").stat().st_size > 5000
    assert (tmp_path / "lines.jsonl").read_text().count("\n") == 2
    assert len((tmp_path / "calibration.csv").read_text().splitlines()) == 1 + 2 * len(LEVELS)


def test_schedules_by_sampled_progress_score_worse_than_by_the_true_one(monkeypatch):
    """Every way to guess loses something, and a sample more than an average of 64."""
    monkeypatch.setattr(calibration, "ROUNDS", 5)
    train, test = divide(logs(read()), SPLITS[0], seed=0)
    losses = sampling_loss(believe(SAME, train, test, 0), test, 0)
    assert min(losses.values()) > 0
    assert losses["1 sample"] > losses["64 samples"]


def test_the_source_s_columns_become_curves(tmp_path):
    """The source s columns become curves."""
    text = "openml_task,config_id,epoch,time_s_cummax,val_accuracy,test_bal_acc\n"
    text += "7,0,1,1.0,50.0,0.5\n7,0,2,2.0,62.5,0.5\n7,199,1,1.0,50.0,0.5\n"
    path = tmp_path / "surrogate_curves_12tasks.csv.gz"
    path.write_bytes(gzip.compress(text.encode()))
    made = tmp_path / "made.csv.gz"
    assert main(["learning-curves", "--source", str(tmp_path), "--out", str(made)]) == 0
    (curve,) = read(made)
    assert (curve.task, curve.configuration) == ("7", "0")
    assert curve.accuracies.tolist() == [0.5, 0.625]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n", "no column 'task'"),
        ("task,configuration,accuracies\n", "no curve"),
        ("task,configuration,accuracies\n7,0,0.5 1.5\n", ":2: accuracies"),
        ("task,configuration,accuracies\n7,0,x\n", ":2: accuracies"),
    ],
)
def test_files_that_are_no_curves_are_refused(text, words, tmp_path):
    """Files that are no curves are refused."""
    path = tmp_path / "curves.csv"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read(path)
    assert words in str(caught.value)
