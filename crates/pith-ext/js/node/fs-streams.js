// Streams over files.

const fs = require("fs");
const { Readable, Writable } = require("stream");
const { Buffer } = require("buffer");

class ReadStream extends Readable {
  constructor(path, options) {
    super({ highWaterMark: 65536, ...options });
    this.path = path;
    this.bytesRead = 0;
    this.fd = options.fd ?? null;
    this.isOwn = this.fd === null;
    this.position = options.start ?? null;
    this.left = options.end === undefined ? Infinity : options.end - (options.start ?? 0) + 1;
    if (this.isOwn) this.opening = fs.promises.open(path, options.flags ?? "r", options.mode).then((handle) => this.opened(handle.fd), (error) => this.destroy(error));
  }
  opened(fd) {
    this.fd = fd;
    this.emit("open", fd);
    this.emit("ready");
  }
  async _read(size) {
    await this.opening;
    if (this.destroyed) return;
    const buffer = Buffer.alloc(Math.min(size, this.left));
    try {
      const { promisify } = require("util");
      const { bytesRead } = buffer.length ? await promisify(fs.read)(this.fd, buffer, 0, buffer.length, this.position) : { bytesRead: 0 };
      if (this.position !== null) this.position += bytesRead;
      this.left -= bytesRead;
      this.bytesRead += bytesRead;
      this.push(bytesRead ? buffer.subarray(0, bytesRead) : null);
    } catch (error) {
      this.destroy(error);
    }
  }
  _destroy(error, done) {
    if (this.isOwn && this.fd !== null) fs.close(this.fd, () => done(error));
    else done(error);
  }
  close(callback) {
    if (callback) this.once("close", callback);
    this.destroy();
  }
}

class WriteStream extends Writable {
  constructor(path, options) {
    super(options);
    this.path = path;
    this.bytesWritten = 0;
    this.fd = options.fd ?? null;
    this.isOwn = this.fd === null;
    this.position = options.start ?? null;
    if (this.isOwn) this.opening = fs.promises.open(path, options.flags ?? "w", options.mode).then((handle) => this.opened(handle.fd), (error) => this.destroy(error));
  }
  opened(fd) {
    this.fd = fd;
    this.emit("open", fd);
    this.emit("ready");
  }
  async _write(chunk, encoding, done) {
    await this.opening;
    if (this.destroyed) return done(this.errored ?? new Error("stream destroyed"));
    fs.write(this.fd, chunk, 0, chunk.length, this.position, (error, written) => {
      if (error) return done(error);
      if (this.position !== null) this.position += written;
      this.bytesWritten += written;
      done();
    });
  }
  async _final(done) {
    await this.opening;
    done();
  }
  _destroy(error, done) {
    if (this.isOwn && this.fd !== null) fs.close(this.fd, () => done(error));
    else done(error);
  }
  close(callback) {
    if (callback) this.once("close", callback);
    this.end();
  }
}

module.exports = { ReadStream, WriteStream, createReadStream: (path, options) => new ReadStream(path, options), createWriteStream: (path, options) => new WriteStream(path, options) };
