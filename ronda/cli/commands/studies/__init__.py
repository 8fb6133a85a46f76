"""Studies: laid in a folder, shown as a page, and held against what was published."""
