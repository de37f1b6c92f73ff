// A tool with parameters, progress and a failure the model can read.
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { Type } from "typebox";

export default function (pi: ExtensionAPI) {
  pi.registerTool({
    name: "word_count",
    label: "Word count",
    description: "Count the words of text files",
    promptSnippet: "Count words in files",
    parameters: Type.Object({
      paths: Type.Array(Type.String(), { description: "Files to count", minItems: 1 }),
    }),
    async execute(_id, params, signal, onUpdate, ctx) {
      const counts: Record<string, number> = {};
      for (const path of params.paths) {
        if (signal?.aborted) throw new Error("Operation aborted");
        const text = await readFile(resolve(ctx.cwd, path), "utf8");
        counts[path] = text.split(/\s+/).filter(Boolean).length;
        onUpdate?.({ content: [{ type: "text", text: `${Object.keys(counts).length} of ${params.paths.length}` }], details: counts });
      }
      const lines = Object.entries(counts).map(([path, count]) => `${count} ${path}`);
      return { content: [{ type: "text", text: lines.join("\n") }], details: counts };
    },
  });
}
