"""How a round is cast: performance models, options, objectives, Pyomo models, placement, bounds."""
