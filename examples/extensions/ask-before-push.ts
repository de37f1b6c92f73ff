// A gate: shell commands that publish something need a yes.
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";

const PUBLISHES = /\b(git\s+push|npm\s+publish|cargo\s+publish|gh\s+release)\b/;

export default function (pi: ExtensionAPI) {
  pi.on("tool_call", async (event, ctx) => {
    if (event.toolName !== "bash") return;
    const command = String(event.input.command ?? "");
    if (!PUBLISHES.test(command)) return;
    if (!ctx.hasUI) return { block: true, reason: "Nobody is there to allow this" };
    const allowed = await ctx.ui.confirm("Publish?", command, { timeout: 60_000 });
    if (!allowed) return { block: true, reason: "The user did not allow it" };
  });
}
