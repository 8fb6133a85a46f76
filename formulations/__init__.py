"""The formulation of a round: options, objectives, models, placement, bounds and predictions."""
