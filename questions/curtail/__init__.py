"""The supply curve of flexible power: what each kilowatt less costs over a window.

It is read from the power prices of a round, with a bound.
"""
