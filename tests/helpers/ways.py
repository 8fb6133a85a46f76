"""Rates as columns, from what a test writes by hand."""


def ways(rates):
    """Return columns of rates by GPUs, or GPUs, nodes and clock; a rate may come with watts."""
    keys = [key if isinstance(key, tuple) else (key,) for key in rates]
    told = [value if isinstance(value, tuple) else (value,) for value in rates.values()]
    found = {"gpus": [key[0] for key in keys], "rate": [value[0] for value in told]}
    for name, place in (("nodes", 1), ("clock", 2)):
        if len(keys[0]) > place:
            found[name] = [key[place] for key in keys]
    if len(told[0]) > 1:
        found["watts"] = [value[1] for value in told]
    return found
