"""Populations of plans as arrays: the genes of a round, their values, limits and moves.

The search is in `ronda.solvers.genetic`; the genome of ONES, in `ronda.formulations.ones`.
"""

from ronda.formulations.genes.building import genes, genes_of
from ronda.formulations.genes.genome import Genes, Population, favourites, within
from ronda.formulations.genes.moving import PoolMoves
from ronda.formulations.genes.neighbourhood import move_losses, settle

__all__ = [
    "Genes",
    "PoolMoves",
    "Population",
    "favourites",
    "genes",
    "genes_of",
    "move_losses",
    "settle",
    "within",
]
