import { Type } from "typebox";
export default (pi) => pi.registerTool({
    name: "hello", label: "Hello", description: "Greets", parameters: Type.Object({ name: Type.String({ description: "whom" }) }),
    execute: async (id, params) => ({ content: [{ type: "text", text: `Hello ${params.name}` }], details: {} }),
});
