"""The yardstick: the same three tools on the same SDK, doing nothing."""

from __future__ import annotations

from mcp.server import MCPServer

mcp = MCPServer("bare")


@mcp.tool()
def remember(agent: str, user: str, topics: list[str], content: str) -> dict[str, str]:
    """Store nothing."""
    del agent, user, topics, content
    return {"memory_id": "", "message": ""}


@mcp.tool()
def think(keywords: list[str]) -> list[dict[str, str]]:
    """Find nothing."""
    del keywords
    return []


@mcp.tool()
def recall(memory_ids: list[str]) -> list[dict[str, str]]:
    """Return nothing."""
    del memory_ids
    return []


if __name__ == "__main__":
    mcp.run()
