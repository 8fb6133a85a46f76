"""Texts that are shown hide nothing and do not end lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronda.instances.errors import printable, short


@given(st.text())
def test_everything_is_seen(text):
    """Whatever the text, the result is one printable line; printable text stays."""
    shown = printable(text)
    assert shown.isprintable()
    assert (shown == text) == text.isprintable()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[2J", r"a\x1b[2J"),
        ("a\nb", r"a\nb"),
        ("\u202ecod", r"\u202ecod"),
        ("\x00\x9b\x7f", r"\x00\x9b\x7f"),
        ("\U000e0001é漢", r"\U000e0001é漢"),
    ],
)
def test_what_cannot_be_seen_is_named(text, shown):
    """As Python writes it; letters of all scripts stay."""
    assert printable(text) == shown


@given(st.text(max_size=60), st.integers(2, 50))
def test_a_short_text_is_short(text, limit):
    """It has at most that many characters, and is left alone if it has."""
    found = short(text, limit)
    assert len(found) <= limit
    assert found == text or len(text) > limit
