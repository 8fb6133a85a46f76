"""Demand series from CSV files."""

import pytest

from ronda.instances.errors import InputError
from ronda.systems.helios.trace import read_demand

LATER = "".join(f"2020-09-01 00:{minute}:00,4,5\n" for minute in (30, 40, 50))
GOOD = "time,running,total\n2020-09-01 00:00:00,3,5\n2020-09-01 00:10:00,4,5\n"


def test_a_series_is_read(tmp_path):
    """The artifact's headers, no published columns; the step is the rows' distance."""
    (tmp_path / "hour.csv").write_text(GOOD)
    made = read_demand(tmp_path / "hour.csv")
    assert (made.name, made.step_s, made.start) == ("hour", 600.0, "2020-09-01T00:00:00")
    assert (made.needed, made.total, made.forecast) == ((3, 4), (5, 5), ())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GOOD.replace("running", "jobs"), "a column 'needed' or 'running'"),
        (GOOD.replace(",4,", ",4.5,"), "row 3, running: found '4.5'; expected whole nodes"),
        (GOOD.replace("00:10", "noon"), "row 3, time"),
        (GOOD + "2020-09-01 00:25:00,4,5\n", "row 4, time: .*expected steps of 600 s"),
        (GOOD.replace("2020-09-01 00:00:00", "01/02/2020"), "row 2, time"),
        (GOOD + "2020-09-01 00:21:00,4,5\n" + LATER, "row 4, time"),
        (GOOD.replace("00:10", "00:11") + "2020-09-01 00:20:00,4,5\n" + LATER, "row 3, time"),
        (GOOD.replace("4,5", "6,5"), "row 3, running: found '6'; expected at most the total"),
        (GOOD.replace("4,5", "4,1e300"), "row 3, total: found '1e300'; expected at most"),
        ("\n".join(GOOD.splitlines()[:2]), "1 row; expected at least two"),
    ],
)
def test_what_is_no_series_is_refused(text, said, tmp_path):
    """File and row are named."""
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(InputError, match=said):
        read_demand(tmp_path / "x.csv")
