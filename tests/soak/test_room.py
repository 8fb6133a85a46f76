"""Room for a waiting job against trying everything, on as many tiny clusters as are asked for."""

import pytest

from every_room import crowded, least_by_trying
from ronda.questions.makeroom.answer import least_harm

pytestmark = pytest.mark.soak


@pytest.mark.seeds(200)
def test_harm_is_least(seed):
    """The harm is that of trying everything, and proved; if there is none, trying finds none."""
    snapshot, terms = crowded(seed)
    found, least = least_harm(snapshot, "J", terms), least_by_trying(snapshot, terms)
    assert found.proved
    assert found.possible == (least is not None)
    if least is not None:
        assert tuple(found.least.values()) == pytest.approx(least)
