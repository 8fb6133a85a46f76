"""Commands about a cluster as it is now.

They read the files of its tools, or a round, and answer questions of operators and users.
"""
