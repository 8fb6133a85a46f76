"""Lines as rows of cells, and cells as numbers and times."""

from zoneinfo import ZoneInfo

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronda.instances.errors import InputError
from ronda.instances.traces.text import CSV, Dialect, cells, dates, numbers, passed

BLANKS = Dialect(separator=None, quotes=False, header=False, comment=";")


def rows(data, dialect=CSV):
    """Return the rows by their lines."""
    found = cells(data, "x", dialect)
    return dict(zip(found.index, found.to_numpy().tolist(), strict=True))


@pytest.mark.parametrize(
    "data",
    [
        b"# c\n\na,b\n1,2\n\n3,4\n",
        b"\xef\xbb\xbf# c\r\n\r\na,b\r\n1,2\r\n   \r\n3,4",
        b'# c\r\r"a",b\r1,"2"\r\r3,4\r',
    ],
    ids=["lines", "windows", "old mac, quotes"],
)
def test_comments_blank_lines_and_ends_of_lines_say_nothing(data):
    """Rows keep the numbers of their lines; a mark of the encoding is no part of a name."""
    assert rows(data) == {4: ["1", "2"], 6: ["3", "4"]}
    assert list(cells(data, "x").columns) == ["a", "b"]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"a,b\n1,2\n1,2,3\n", "x, row 3: found 3 cells; expected 2, as in the header"),
        (b"a,b\n1,2,\n", "row 2: found 3 cells, the last one empty; expected 2"),
        (b"a,b\n1\n", "row 2: found 1 cells; expected 2"),
        (b'a,b\n1,"2\n3",4\n', "row 2: found a quote that does not end a cell"),
        (b'a,b\n1,"2"3\n', "row 2: found a quote that does not end a cell"),
        (b"a,b\n1,2\n3,\xe9\n", "row 3: found the byte 0xe9, which is no UTF-8"),
        ("a,b\n1,2\n".encode("utf-16"), "row 1: found the byte 0xff"),
        (b"\n# only\n", "found an empty file; expected a CSV file with a header"),
    ],
)
def test_what_is_no_row_is_refused_with_its_line(data, said):
    """A quoted cell ends on its line, or a forgotten quote would swallow rows."""
    with pytest.raises(InputError) as caught:
        cells(data, "x")
    assert said in str(caught.value)


def test_a_quoted_cell_may_hold_the_separator():
    """As RFC 4180 has it; a quote within a cell is a quote."""
    assert rows(b'a,b\n"1,5","say ""x"""\n5" disk,2\n') == {
        2: ["1,5", 'say "x"'],
        3: ['5" disk', "2"],
    }


def test_blanks_separate_columns_without_names():
    """Comments may stand anywhere; all rows are as wide as the first."""
    assert rows(b"; c\n 1  2\n; d\n3\t4\n", BLANKS) == {2: ["1", "2"], 4: ["3", "4"]}
    with pytest.raises(InputError, match="row 2: found 3 cells; expected 2, as in the first row"):
        cells(b"1 2\n3 4 5\n", "x", BLANKS)


@given(
    st.lists(
        st.tuples(*[st.text(st.characters(exclude_categories=["C", "Zl", "Zp", "Zs"]))] * 2),
        min_size=1,
    )
)
def test_what_is_written_is_read(written):
    """Whatever stands in cells, as long as it is on one line and some of it is seen."""
    frame = pd.DataFrame([("x" + a, b) for a, b in written], columns=["a", "b"], dtype=str)
    found = cells(frame.to_csv(index=False).encode(), "x")
    assert found.to_numpy().tolist() == frame.to_numpy().tolist()


def test_numbers_are_finite_and_written_in_digits():
    """What Python and C take besides, such as ``1_0``, ``0x1`` and ``inf``, is none."""
    text = pd.Series(["1", " 1e5 ", "-.5", "1,5", "inf", "nan", "1e999", "0x1", "1_0", "٣", ""])
    assert numbers(text.astype(str)).fillna(-9).tolist() == [1, 1e5, -0.5, *[-9] * 8]


def test_clocks_are_days_hours_minutes_and_seconds():
    """2 h 3 min 4 s are 7,384 s, with a day 93,784 s; minutes alone could be hours."""
    text = pd.Series(["02:03:04", "1-02:03:04", "100:00:00", "02:03", "2:99:00", "x"])
    assert passed(text.astype(str)).fillna(-1).tolist() == [7384, 93784, 360000, -1, -1, -1]


def test_clocks_of_slurm_may_be_short():
    """Minutes and seconds, days and hours; minutes alone are a number."""
    text = pd.Series(["30:00", "90:00", "2-12", "2-12:30", "1-02:03:04", "60"], dtype=str)
    found = passed(text, slurm=True).fillna(-1).tolist()
    assert found == [1800, 5400, 216000, 217800, 93784, -1]


def test_each_date_has_its_own_zone():
    """In Berlin clocks went from 2:00 to 3:00 on 31 March and from 3:00 to 2:00 on 27 October."""
    text = [
        "1970-01-01T01:00:00",  # one hour ahead of Greenwich
        "1970-01-01T00:00:00Z",
        "1970-01-01 02:00+02:00",
        "1969-12-31T19:00:00.5-0500",
        "2024-03-31T02:30:00",  # never came
        "2024-10-27T02:30:00",  # came twice: the first is two hours ahead
        "2024-10-27T00:30:00Z",
        "01/02/2024",
        "2024-02-30",
        "20240501",
    ]
    found = dates(pd.Series(text, dtype=str), ZoneInfo("Europe/Berlin")).fillna(-1).tolist()
    assert found[:5] == [0, 0, 0, 0.5, -1]
    assert found[5] == found[6] > 0
    assert found[7:] == [-1, -1, -1]
