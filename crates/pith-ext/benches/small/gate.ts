import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
export default function (pi: ExtensionAPI) {
    const dangerous = [/\brm\s+(-rf?|--recursive)/i, /\bsudo\b/i];
    pi.on("tool_call", async (event, ctx) => {
        if (event.toolName !== "bash") return undefined;
        if (!dangerous.some((pattern) => pattern.test(String(event.input.command)))) return undefined;
        const choice = await ctx.ui.select("Dangerous", ["Yes", "No"]);
        return choice === "Yes" ? undefined : { block: true, reason: "Blocked by user" };
    });
}
