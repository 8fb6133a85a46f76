"""Studies: created in a folder, shown as a page, and compared with published results."""
