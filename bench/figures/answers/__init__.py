"""Pictures of answers to questions about a round or a cluster.

They show what `ronda.questions` found; pictures of runs and comparisons are one room up.
"""
