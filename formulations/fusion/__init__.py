"""Models that share a GPU: how long arrays take, and how many fit.

HFTA (Wang et al., MLSys 2021) trains k models of one shape as one process. Here stand its memory
and time, next to those of packing, slices and turns, and what members of an array share.
"""
