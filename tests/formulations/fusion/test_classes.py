"""Which jobs may be fused."""

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from ronda.formulations.fusion.classes import FUSIBLE, HYDRO_FUSIBLE, classes, graph, key

BASE = {"model": "pointnet", "optimiser": "adam", "batch_size": 32, "lr": 0.1, "seed": 0}


def test_what_may_differ_and_what_must_not():
    """Learning rate and seed may; batch size, optimiser and model may not."""
    configs = [
        BASE,
        BASE | {"lr": 0.2, "seed": 5},
        BASE | {"batch_size": 16},
        BASE | {"optimiser": "adadelta"},
        BASE | {"batch_size": 16, "weight_decay": 0.1},
        BASE | {"model": "mobilenet"},
    ]
    assert classes(configs) == ((0, 1), (2, 4), (3,), (5,))


def test_momentum_may_differ_in_hydro_only():
    """HFTA fuses Adam and Adadelta, Hydro SGD as well."""
    configs = [{"model": "resnet18", "momentum": m} for m in (0.5, 0.9)]
    assert classes(configs) == ((0,), (1,))
    assert classes(configs, HYDRO_FUSIBLE) == ((0, 1),)


configurations = st.lists(
    st.fixed_dictionaries(
        {
            "batch_size": st.sampled_from((8, 16, 32)),
            "transform": st.booleans(),
            "lr": st.floats(0, 1),
        }
    ),
    max_size=30,
)


@given(configurations)
def test_classes_are_the_components_of_all_compatible_pairs(configs):
    """Each configuration is in one class; a class has one key, and no two classes the same."""
    pairs = nx.Graph()
    pairs.add_nodes_from(range(len(configs)))
    for a in range(len(configs)):
        pairs.add_edges_from((a, b) for b in range(a) if key(configs[a]) == key(configs[b]))
    found = classes(configs)
    assert {frozenset(c) for c in found} == {frozenset(c) for c in nx.connected_components(pairs)}
    assert sorted(i for c in found for i in c) == list(range(len(configs)))
    assert graph(configs).number_of_edges() == len(configs) - len(found)
    assert "lr" in FUSIBLE
