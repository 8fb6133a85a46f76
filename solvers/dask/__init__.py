"""Processes on other machines: reaching a Dask cluster, or starting a local one."""
