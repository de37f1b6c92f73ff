#!/usr/bin/env python3
"""An MCP server on stdio with the tools of a file."""

import json
import sys

with open(sys.argv[1]) as file:
    tools = json.load(file)

for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    answer = {"jsonrpc": "2.0", "id": request["id"]}
    parameters = request.get("params") or {}
    match request["method"]:
        case "initialize":
            answer["result"] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "peer", "version": "1"}}
        case "tools/list":
            answer["result"] = {"tools": [{key: value for key, value in tool.items() if key != "answer"} for tool in tools]}
        case "tools/call":
            tool = next(tool for tool in tools if tool["name"] == parameters["name"])
            shown = {"content": [{"type": "text", "text": json.dumps(parameters.get("arguments"))}]}
            answer["result"] = tool.get("answer", shown)
        case "ping":
            answer["result"] = {}
        case _:
            answer["error"] = {"code": -32601, "message": "unknown method"}
    print(json.dumps(answer), flush=True)
