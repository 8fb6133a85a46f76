"""Policies that solve each round for an objective: milp, prices, genetic, evolve."""
