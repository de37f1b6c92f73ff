// Asks before commands of the model, and on demand; for the clients of tests/acp.
export default (pi) => {
  pi.on("tool_call", async (event, ctx) => {
    if (event.toolName !== "bash") return;
    if (!(await ctx.ui.confirm("Run it?", ""))) return { block: true, reason: "The user said no" };
  });
  pi.registerCommand("color", {
    handler: async (_args, ctx) => ctx.ui.notify("chosen: " + (await ctx.ui.select("Color", ["red", "blue"]))),
  });
};
