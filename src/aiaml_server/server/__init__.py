"""The MCP server: lines in, calls, lines out."""
