"""Names of files made from data stay in their folder, apart and short."""

import os

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ronda.instances.files.storage import file_name


@given(st.text(max_size=120))
@example("..")
@example("../../x")
@example("/etc/passwd")
@example("a\x00b")
@example("n" * 300)
@example("")
def test_a_name_stays_in_its_folder(name):
    """It is one short component of a path without dots, whatever the name."""
    made = file_name(name)
    assert made == os.path.basename(made)
    assert 0 < len(made) <= 80
    assert not set(made) - set("abcdefghijklmnopqrstuvwxyz0123456789_+-")


@given(st.sets(st.text("aA./ -0", max_size=6), min_size=2, max_size=30))
def test_two_names_stay_apart(names):
    """No two names share a file, not even where upper case is lower case."""
    assert len({file_name(name) for name in names}) == len(names)


@pytest.mark.parametrize("name", ["venus-vcvly", "pollux-1", "fifo+zeus", "a_b"])
def test_a_plain_name_stays(name):
    """Usual names are legible and the same from version to version."""
    assert file_name(name) == name


def test_what_was_made_of_a_name_is_not_taken_by_another():
    """A name that looks as if it had been made is made again."""
    made = file_name("a b")
    assert file_name(made) != made
