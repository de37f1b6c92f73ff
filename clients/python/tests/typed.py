"""Read by mypy alone: what is known of an event once its type was compared."""

from pith_client import Pith


def texts(pith: Pith) -> list[str]:
    found = []
    for event in pith.run("hello"):
        if event["type"] == "message_update" and event["assistantMessageEvent"]["type"] == "text_delta":
            found.append(event["assistantMessageEvent"]["delta"])
        if event["type"] == "agent_settled":
            event["delta"]  # type: ignore[typeddict-item]
    return found
