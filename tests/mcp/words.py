"""An MCP server over streamable HTTP, with the Python SDK."""

import os

from mcp.server import MCPServer

server = MCPServer("words")


@server.tool()
def count_words(text: str) -> int:
    """Counts the words of a text."""
    return len(text.split())


server.run(transport="streamable-http", host="127.0.0.1", port=int(os.environ["PORT"]))
