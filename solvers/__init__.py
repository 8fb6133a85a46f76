"""The solvers of a round: the contract, exact and genetic solvers, prices, policies."""
