"""The solvers of a round: their contract, exact and genetic solvers, prices and policies."""
