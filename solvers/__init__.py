"""How a round is solved: the contract, exact and genetic solvers, policies, the horizon driver."""
