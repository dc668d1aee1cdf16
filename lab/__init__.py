"""A laboratory for memory servers: what they acknowledge and lose, what they cost, what they find.

It starts any server that speaks MCP over stdio through a small adapter, and knows nothing else of
it. `python -m lab run --quick` is where to begin; README.md tells the rest.
"""
