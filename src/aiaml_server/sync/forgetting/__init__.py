"""Forgetting everywhere: in no history, of no machine.

rewrite  a history without what is forgotten (pure)
erasure  what that is, as this machine knows it; histories rewritten
telling  told to other machines, and heard of them
purge    removing what only the old histories had
plan     what it will take, for a person to see before, and what is left after
"""
