"""Repetitive jobs in a trace."""

from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronda.systems.hfta import repetitive as sweeps
from ronda.systems.hfta.repetitive import Burst, alike, read_repetitive, repetitive, shares

VENUS = Path(__file__).resolve().parents[2] / "data" / "helios" / "helios_venus_2vc_sept.csv"
COLUMNS = ["submit_s", "user", "vc", "num_gpus", "name"]


def jobs(*rows):
    """Return jobs of an hour each."""
    return pd.DataFrame(rows, columns=COLUMNS).assign(duration_s=3600.0)


def sweep(start, count, user="a", vc="v", gpus=1, name="resnet_lr0.{}", every=30):
    """Return jobs that a user submits one after another."""
    return [(start + every * k, user, vc, gpus, name.format(k)) for k in range(count)]


def test_bursts_are_groups():
    """Six in a burst, two bursts of a user half an hour apart, and what is too short or alone."""
    found = repetitive(
        jobs(*sweep(0, 6), *sweep(2000, 3), *sweep(9000, 2), (20000.0, "a", "v", 1, "resnet_lr0.1"))
    )
    assert found.tolist() == [0] * 6 + [1] * 3 + [-1] * 3


@pytest.mark.parametrize(
    "other",
    [{"user": "b"}, {"vc": "w"}, {"gpus": 2}, {"name": "bert_finetune_{}"}, {"start": 500}],
    ids=str,
)
def test_what_tells_groups_apart(other):
    """User, virtual cluster, GPUs, program and time: any of them makes two groups of four."""
    words = {"start": 5, "count": 4} | other
    found = repetitive(jobs(*sweep(0, 4), *sweep(**words)))
    assert found.tolist() == [0] * 4 + [1] * 4


def test_two_programs_of_a_user_side_by_side():
    """Submissions in turn are told apart by their names; without names they are one group."""
    mixed = jobs(*sweep(0, 4), *sweep(15, 4, name="gan_run{}"))
    assert repetitive(mixed).tolist() == [0] * 4 + [1] * 4
    assert repetitive(mixed.assign(name="")).nunique() == 1


def test_a_burst_of_different_programs_is_compared_with_the_last_ones_only(monkeypatch):
    """A thousand names that are unlike each other take no comparison with all before."""
    compared = []
    monkeypatch.setattr(sweeps, "alike", lambda *names: compared.append(names))
    assert (repetitive(jobs(*sweep(0, 1000, name="x{}", every=0))) == -1).all()
    assert len(compared) <= 1000 * sweeps.LOOK_BACK


def test_names_as_people_write_them():
    """A changed number is the same program; another program is not."""
    assert alike("train_pointnet_bs32_lr0.001", "train_pointnet_bs32_lr0.0005", 0.8)
    assert alike("run1", "run23", 1.0)
    assert not alike("run1", "gan1", 0.8)
    assert not alike("train_pointnet_bs32", "bert-squad-finetune", 0.8)
    assert alike("", "anything", 0.8)


@given(
    st.lists(
        st.tuples(
            st.floats(0, 1000), st.sampled_from("ab"), st.just("v"), st.integers(1, 2), st.just("")
        ),
        min_size=1,
        max_size=15,
    ),
    st.randoms(use_true_random=False),
)
def test_groups_do_not_depend_on_the_order_of_rows(rows, random):
    """Members of a group are one user's and size's; a larger gap or fewer jobs finds no less."""
    table = jobs(*rows)
    found = repetitive(table)
    assert all(
        len(own[["user", "num_gpus"]].drop_duplicates()) == 1
        for group, own in table.groupby(found)
        if group >= 0
    )
    order = list(table.index)
    random.shuffle(order)
    again = repetitive(table.loc[order])
    assert ((found >= 0) == (again.sort_index() >= 0)).all()
    for wider in (Burst(gap_s=120.0), Burst(least=2)):
        assert (repetitive(table, wider)[found >= 0] >= 0).all()


def test_shares_by_hand():
    """Four single-GPU jobs of 10 GPU-hours, three of two GPUs (6 in all, repetitive)."""
    table = jobs(*sweep(0, 3), (900.0, "a", "v", 1, "x"), *sweep(0, 3, gpus=2))
    table["group"] = repetitive(table)
    assert shares(table) == pytest.approx(
        {
            ("repetitive", "single"): 0.3,
            ("repetitive", "multi"): 0.6,
            ("isolated", "single"): 0.1,
            ("isolated", "multi"): 0.0,
        }
    )


def test_a_real_trace():
    """Venus, two virtual clusters: many repetitive jobs, but little of the GPU-hours."""
    found = read_repetitive(VENUS)
    assert len(found) == 1867
    assert int((found.group >= 0).sum()) == 483
    assert sum(shares(found).values()) == pytest.approx(1.0)
    assert shares(found)["repetitive", "multi"] < 0.02
