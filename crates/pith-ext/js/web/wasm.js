// WebAssembly: the engine has none. The object is there so that an extension is told so in words when it uses it.

const { refusal } = require("internal/owners");

const refuse = refusal("WebAssembly");
// What returns a promise rejects: callers that have another way look for that.
const reject = async () => refuse();

for (const name of ["Module", "Instance", "Memory", "Table", "Global", "Tag", "Exception"]) exports[name] = refuse;
for (const name of ["CompileError", "LinkError", "RuntimeError"]) exports[name] = { [name]: class extends Error {} }[name];
for (const name of ["compile", "instantiate", "compileStreaming", "instantiateStreaming"]) exports[name] = reject;
exports.validate = () => false;
