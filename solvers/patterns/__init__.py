"""Node patterns: plans for a million tasks on a hundred thousand nodes, with a bound.

Columns are numbers of slots that fill a node together. A linear program chooses how many nodes get
which pattern, prices of slots bound every plan, and a plan is rounded from the program. Time grows
with kinds of nodes and slots; with numbers of nodes and jobs only sums do.

(Column generation for cutting stock: Gilmore and Gomory, Oper. Res. 9, 1961.)
"""
