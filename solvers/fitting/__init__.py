"""Models of speed and power from measurements.

Here a table of measurements becomes a profile with its errors. What the models mean is in
`ronda.formulations.models`.
"""
