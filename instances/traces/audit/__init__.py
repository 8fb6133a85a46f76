"""What a log says about itself before anyone simulates it.

`answer` puts it together: `pools` has demand, use and capacity over time with a bound of what is
behind, `coverage` the holes and cut ends, `jobs` users, shapes, limits and waits, and `sample` the
reason for which a log cannot be judged.
"""
