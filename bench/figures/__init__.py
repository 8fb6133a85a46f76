"""Pictures of runs, each described once; pictures of one kind of study are in the study's package.

`chart` has the records of a description. `draw` turns a description into files and loads
matplotlib, as does `topology`. The report page makes its charts from the same descriptions.
"""
