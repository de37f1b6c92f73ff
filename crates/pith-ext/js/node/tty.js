// node:tty. There is no terminal.

const { Readable, Writable } = require("stream");

module.exports = { isatty: () => false, ReadStream: class ReadStream extends Readable {}, WriteStream: class WriteStream extends Writable {} };
