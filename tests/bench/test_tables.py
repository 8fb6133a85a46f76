"""The parts of pages that commands write."""

import pytest

from ronda.bench.tables import fill, fill_file
from ronda.instances.errors import InputError

PAGE = "before\n<!-- one: made by x -->\nold\n<!-- end of one -->\nafter <!-- two -->\n"


def test_what_stands_between_the_marks_is_replaced():
    """Everything else stays, and doing it again changes nothing."""
    filled = fill(PAGE, "one", "a\\1 |\n")
    assert filled == PAGE.replace("old\n", "a\\1 |\n")
    assert fill(filled, "one", "a\\1 |\n") == filled
    assert fill("<!-- b -->\n<!-- end of b -->", "b", "t\n") == "<!-- b -->\nt\n<!-- end of b -->"


@pytest.mark.parametrize(("page", "count"), [("", 0), (PAGE + PAGE, 2)])
def test_a_page_has_one_place_for_a_part(page, count):
    """None and two are told."""
    with pytest.raises(InputError, match=f"page: found {count} places for one; expected one"):
        fill(page, "one", "new")


def test_a_file_is_looked_at_before_it_is_written(tmp_path):
    """Without a text nothing changes."""
    path = tmp_path / "p.md"
    path.write_text(PAGE)
    fill_file(path, "one")
    assert path.read_text() == PAGE
    fill_file(path, "one", "new\n")
    assert path.read_text() == PAGE.replace("old", "new")
    with pytest.raises(InputError, match=r"p\.md: found 0 places for two"):
        fill_file(path, "two")
