"""Pictures of runs, each described once; what one kind of study shows with them is in its room.

`chart` has the records of a description: panels, axes and marks. `draw` makes files of one and
loads matplotlib, as does `topology`; the page's charts are made of the same descriptions.
"""
