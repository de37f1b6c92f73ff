// node:stream/consumers: everything that a stream has, in one form.

async function buffer(stream) {
  const { Buffer } = require("buffer");
  const parts = [];
  for await (const part of stream) parts.push(typeof part === "string" ? Buffer.from(part) : part);
  return Buffer.concat(parts);
}

// Strings are taken as they are; a character may be split between two pieces of bytes.
async function text(stream) {
  const decoder = new TextDecoder();
  let result = "";
  for await (const part of stream) result += typeof part === "string" ? part : decoder.decode(part, { stream: true });
  return result + decoder.decode();
}

const bytes = async (stream) => new Uint8Array(await buffer(stream));

module.exports = {
  buffer,
  bytes,
  text,
  arrayBuffer: async (stream) => (await bytes(stream)).buffer,
  blob: async (stream) => new Blob([await buffer(stream)]),
  json: async (stream) => JSON.parse(await text(stream)),
};
