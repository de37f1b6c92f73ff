import { join } from "node:path";
export default (pi) => pi.registerCommand("where", { description: "shows the place", handler: async (args, ctx) => ctx.ui.notify(join(ctx.cwd, args)) });
