"""What makes an instance or a round consistent.

One file an object that can be wrong, and what is said of it: where, what was found, what was
expected. Nothing here reads files or looks at answers.
"""
