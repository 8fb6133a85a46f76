"""Plans as genomes: a row of the round's separable problem for each job, and what moves cost.

The search is in `ronda.solvers.genetic`; the genome of ONES, in `ronda.solvers.ones`.
"""

from ronda.formulations.genes.genome import Genes, genes, genes_of, genome_of, table_rows
from ronda.formulations.genes.moving import PoolMoves
from ronda.formulations.genes.neighbourhood import move_losses, settle

__all__ = [
    "Genes",
    "PoolMoves",
    "genes",
    "genes_of",
    "genome_of",
    "move_losses",
    "settle",
    "table_rows",
]
