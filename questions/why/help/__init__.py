"""What would help a waiting job: changes of its request, and what an operator could do.

Each is the earliest start asked again, of an edited job or without what holds it back. Why it waits
is told in the room around.
"""
