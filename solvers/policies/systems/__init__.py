"""Published systems that carry more than a rule from round to round: ONES.

The registry finds policies by name; what they are made of is in rooms of their own.
"""
