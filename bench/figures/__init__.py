"""Tables and pictures of runs, in one style; what one kind of study says with them is in its room.

Other modules than `table` load matplotlib and are imported by their path.
"""
