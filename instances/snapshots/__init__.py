"""A cluster as its own tools show it, and the rounds that are made of it."""
