"""How much a soak does: ``SOAK=5000 SOAK_FIRST=7000 pytest -m soak tests/soak`` (`CONTRIBUTING`).

Each seed is a test, so that a failure names the smallest input; plugins do the rest: ``-n 2``,
``--lf``, ``-x``. Seeds give the same cases on any machine.
"""

import os

VOLUME, FIRST = int(os.environ.get("SOAK", 0)), int(os.environ.get("SOAK_FIRST", 0))
"""Cases of each kind, 0: as few as stand beside the test; and the first seed."""


def pytest_generate_tests(metafunc):
    """Give a test that takes a `seed` as many as are asked for."""
    marker = metafunc.definition.get_closest_marker("seeds")
    if marker is not None:
        (few,) = marker.args
        metafunc.parametrize("seed", range(FIRST, FIRST + (VOLUME or few)))
