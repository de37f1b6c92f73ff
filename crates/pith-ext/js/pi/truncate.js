// Cuts output to what a model should see.

const DEFAULT_MAX_LINES = 2000;
const DEFAULT_MAX_BYTES = 50 * 1024;
const GREP_MAX_LINE_LENGTH = 500;

const bytes = (text) => require("buffer").Buffer.byteLength(text, "utf8");

function formatSize(size) {
  if (size < 1024) return `${size}B`;
  return size < 1024 * 1024 ? `${(size / 1024).toFixed(1)}KB` : `${(size / (1024 * 1024)).toFixed(1)}MB`;
}

// A final newline does not open another line.
const linesOf = (content) => {
  const lines = content.split("\n");
  if (lines.length > 1 && lines.at(-1) === "") lines.pop();
  return lines;
};

function result(content, lines, kept, by, limits, flags = {}) {
  return {
    content: kept.join("\n"),
    truncated: by !== null,
    truncatedBy: by,
    totalLines: lines.length,
    totalBytes: bytes(content),
    outputLines: kept.length,
    outputBytes: bytes(kept.join("\n")),
    lastLinePartial: false,
    firstLineExceedsLimit: false,
    ...limits,
    ...flags,
  };
}

const limitsOf = ({ maxLines = DEFAULT_MAX_LINES, maxBytes = DEFAULT_MAX_BYTES } = {}) => ({ maxLines, maxBytes });

const whole = (content, lines, limits) => ({ ...result(content, lines, lines, null, limits), content, outputBytes: bytes(content) });

// The lines that fit, taken from one end.
function fitting(lines, { maxLines, maxBytes }) {
  const kept = [];
  let size = 0;
  for (const line of lines) {
    if (kept.length >= maxLines) return { kept, by: "lines" };
    const more = bytes(line) + (kept.length ? 1 : 0);
    if (size + more > maxBytes) return { kept, by: "bytes" };
    kept.push(line);
    size += more;
  }
  return { kept, by: "lines" };
}

function truncateHead(content, options) {
  const limits = limitsOf(options);
  const lines = linesOf(content);
  if (lines.length <= limits.maxLines && bytes(content) <= limits.maxBytes) return whole(content, lines, limits);
  if (bytes(lines[0]) > limits.maxBytes) return result(content, lines, [], "bytes", limits, { firstLineExceedsLimit: true });
  const { kept, by } = fitting(lines, limits);
  return result(content, lines, kept, by, limits);
}

function truncateTail(content, options) {
  const limits = limitsOf(options);
  const lines = linesOf(content);
  if (lines.length <= limits.maxLines && bytes(content) <= limits.maxBytes) return whole(content, lines, limits);
  const { kept, by } = fitting([...lines].reverse(), limits);
  if (kept.length) return result(content, lines, kept.reverse(), by, limits);
  // Not even the last line fits: keep its end, on a character boundary.
  const { Buffer } = require("buffer");
  const last = Buffer.from(lines.at(-1));
  let start = last.length - limits.maxBytes;
  while (start < last.length && (last[start] & 0xc0) === 0x80) start++;
  return result(content, lines, [last.subarray(start).toString()], "bytes", limits, { lastLinePartial: true });
}

function truncateLine(line, maxChars = GREP_MAX_LINE_LENGTH) {
  return line.length <= maxChars ? { text: line, wasTruncated: false } : { text: `${line.slice(0, maxChars)}... [truncated]`, wasTruncated: true };
}

module.exports = { DEFAULT_MAX_LINES, DEFAULT_MAX_BYTES, GREP_MAX_LINE_LENGTH, formatSize, truncateHead, truncateTail, truncateLine, utf8ByteLength: bytes };
