// A flag: `pith --read-only` lets the agent look and not touch.
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";

const LOOKS = ["read", "grep", "find", "ls"];

export default function (pi: ExtensionAPI) {
  pi.registerFlag("read-only", { type: "boolean", description: "only tools that change nothing" });

  pi.on("session_start", async (_event, ctx) => {
    if (!pi.getFlag("read-only")) return;
    pi.setActiveTools(LOOKS);
    ctx.ui.setStatus("read-only", "read only");
  });
}
