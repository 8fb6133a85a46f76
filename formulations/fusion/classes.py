"""Which jobs may be fused: a graph of compatible configurations, whose components are classes.

A configuration is a mapping of names to values: hyper-parameters, and what else tells one training
program from another (operators and shapes, batch size, optimiser, precision, data, epochs).
"""

from collections.abc import Collection, Hashable, Mapping, Sequence

import networkx as nx

Config = Mapping[str, Hashable]

FUSIBLE = frozenset(
    {
        *("lr", "beta1", "beta2", "eps", "weight_decay", "rho"),  # Adam, Adadelta
        *("gamma", "step_size"),  # StepLR
        *("seed", "initialisation"),
    }
)
"""What may differ in one array of HFTA; everything else must be equal."""

HYDRO_FUSIBLE = FUSIBLE | {"momentum"}
"""The same in Hydro's fork, which fuses SGD as well."""


def key(config: Config, fusible: Collection[str] = FUSIBLE) -> tuple[tuple[str, Hashable], ...]:
    """Return the names and values that all members of an array must share, ordered by name."""
    return tuple(sorted((n, v) for n, v in config.items() if n not in fusible))


def graph(configs: Sequence[Config], fusible: Collection[str] = FUSIBLE) -> "nx.Graph[int]":
    """Return the configurations by index, each joined to the first one that it may be fused with.

    Compatibility is an equivalence, so that components of this forest are those of all pairs.
    """
    found: nx.Graph[int] = nx.Graph()
    first: dict[tuple[tuple[str, Hashable], ...], int] = {}
    for index, config in enumerate(configs):
        found.add_node(index)
        found.add_edge(index, first.setdefault(key(config, fusible), index))
    found.remove_edges_from(list(nx.selfloop_edges(found)))
    return found


def classes(
    configs: Sequence[Config], fusible: Collection[str] = FUSIBLE
) -> tuple[tuple[int, ...], ...]:
    """Return the fusion classes as indices, in order of their first members."""
    parts = nx.connected_components(graph(configs, fusible))
    return tuple(sorted(tuple(sorted(part)) for part in parts))
