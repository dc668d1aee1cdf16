"""What is measured: a module each, with `measure`, which does one bounded round from a seed.

A round gets a server, an empty folder, a source of chance and its number, and returns figures.
`ZERO` names those that ought to be 0, `ABOUT` says in a line what is done, `WANTS` what it needs.
"""
