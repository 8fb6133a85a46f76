"""The formulation of a round, by options, objectives, models, placement, bounds and predictions."""
