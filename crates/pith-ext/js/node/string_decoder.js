// node:string_decoder: decodes bytes to text without splitting a character.

class StringDecoder {
  #decoder = null;
  #rest = null;
  constructor(encoding = "utf8") {
    this.encoding = String(encoding).toLowerCase().replace("utf-8", "utf8");
    if (["utf8", "utf16le", "ucs2", "utf-16le"].includes(this.encoding)) this.#decoder = new TextDecoder(this.encoding === "utf8" ? "utf-8" : "utf-16le", { ignoreBOM: true });
  }
  write(chunk) {
    const { Buffer } = require("buffer");
    if (typeof chunk === "string") return chunk;
    if (this.#decoder) return this.#decoder.decode(chunk, { stream: true });
    let bytes = Buffer.from(chunk);
    if (this.encoding === "base64" || this.encoding === "base64url") {
      if (this.#rest) bytes = Buffer.concat([this.#rest, bytes]);
      const whole = bytes.length - (bytes.length % 3);
      this.#rest = whole < bytes.length ? bytes.subarray(whole) : null;
      bytes = bytes.subarray(0, whole);
    }
    return bytes.toString(this.encoding);
  }
  text(chunk, offset) {
    this.end();
    return this.write(chunk.subarray(offset));
  }
  end(chunk) {
    let result = chunk === undefined ? "" : this.write(chunk);
    if (this.#decoder) result += this.#decoder.decode();
    else if (this.#rest) result += this.#rest.toString(this.encoding);
    this.#rest = null;
    return result;
  }
}

exports.StringDecoder = StringDecoder;
