// Small helpers around pictures and differences between texts.

const MAGIC = [
  ["image/png", [0x89, 0x50, 0x4e, 0x47]],
  ["image/jpeg", [0xff, 0xd8, 0xff]],
  ["image/gif", [0x47, 0x49, 0x46, 0x38]],
];

async function detectSupportedImageMimeTypeFromFile(path) {
  const file = await require("fs").promises.readFile(path);
  const found = MAGIC.find(([, bytes]) => bytes.every((byte, at) => file[at] === byte));
  if (found) return found[0];
  const text = (from, to) => file.subarray(from, to).toString("latin1");
  return text(0, 4) === "RIFF" && text(8, 12) === "WEBP" ? "image/webp" : null;
}

const formatDimensionNote = ({ wasResized, originalWidth, originalHeight, width, height }) =>
  wasResized ? `[Image: original ${originalWidth}x${originalHeight}, displayed at ${width}x${height}. Multiply coordinates by ${(originalWidth / width).toFixed(2)} to map to original image.]` : undefined;

// Lines that two texts share, by the longest common subsequence; the equal beginning and end cost nothing.
function changes(before, after) {
  // The newline at the end of both is no line of its own.
  const isEnded = before.endsWith("\n") && after.endsWith("\n");
  const [a, b] = [before, after].map((text) => (isEnded ? text.slice(0, -1) : text).split("\n"));
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const [left, right] = [a.slice(start, a.length - end), b.slice(start, b.length - end)];
  const same = (lines) => lines.map((text) => ({ sign: " ", text }));
  return [...same(a.slice(0, start)), ...middle(left, right), ...same(end ? a.slice(-end) : [])];
}

// More than this many cells are not compared: everything counts as replaced.
const MAX_CELLS = 4e6;

function middle(left, right) {
  const whole = [...left.map((text) => ({ sign: "-", text })), ...right.map((text) => ({ sign: "+", text }))];
  if (!left.length || !right.length || left.length * right.length > MAX_CELLS) return whole;
  const width = right.length + 1;
  const length = new Uint32Array((left.length + 1) * width);
  for (let i = left.length - 1; i >= 0; i--) {
    for (let j = right.length - 1; j >= 0; j--) length[i * width + j] = left[i] === right[j] ? length[(i + 1) * width + j + 1] + 1 : Math.max(length[(i + 1) * width + j], length[i * width + j + 1]);
  }
  const result = [];
  let [i, j] = [0, 0];
  while (i < left.length || j < right.length) {
    if (i < left.length && j < right.length && left[i] === right[j]) {
      result.push({ sign: " ", text: left[i++] });
      j++;
    } else if (i < left.length && (j >= right.length || length[(i + 1) * width + j] >= length[i * width + j + 1])) result.push({ sign: "-", text: left[i++] });
    else result.push({ sign: "+", text: right[j++] });
  }
  return result;
}

// Lines with their numbers, and which of them are near a change.
function numbered(before, after, context) {
  let [old, now] = [1, 1];
  const lines = changes(before, after).map(({ sign, text }) => ({ sign, text, old: sign === "+" ? old : old++, now: sign === "-" ? now : now++ }));
  const near = new Set();
  for (const [at, { sign }] of lines.entries()) if (sign !== " ") for (let i = Math.max(0, at - context); i <= Math.min(lines.length - 1, at + context); i++) near.add(i);
  return { lines, near };
}

function generateDiffString(before, after, context = 4) {
  const { lines, near } = numbered(before, after, context);
  const width = String(Math.max(before.split("\n").length, after.split("\n").length)).length;
  const shown = [];
  let isGap = false;
  for (const [at, { sign, text, old, now }] of lines.entries()) {
    if (!near.has(at)) {
      if (!isGap && shown.length) shown.push(` ${" ".repeat(width)} ...`);
      isGap = true;
      continue;
    }
    isGap = false;
    shown.push(`${sign}${String(sign === "+" ? now : old).padStart(width)} ${text}`);
  }
  if (isGap) shown.pop();
  return { diff: shown.join("\n"), firstChangedLine: lines.find(({ sign }) => sign !== " ")?.now };
}

function generateUnifiedPatch(path, before, after, context = 4) {
  const { lines, near } = numbered(before, after, context);
  const hunks = [];
  for (const [at, line] of lines.entries()) {
    if (!near.has(at)) continue;
    if (!near.has(at - 1)) hunks.push([]);
    hunks.at(-1).push(line);
  }
  const header = (hunk) => {
    const count = (sign) => hunk.filter((line) => line.sign !== sign).length;
    return `@@ -${hunk[0].old},${count("+")} +${hunk[0].now},${count("-")} @@`;
  };
  return [`--- ${path}`, `+++ ${path}`, ...hunks.flatMap((hunk) => [header(hunk), ...hunk.map(({ sign, text }) => sign + text)]), ""].join("\n");
}

module.exports = { detectSupportedImageMimeTypeFromFile, formatDimensionNote, generateDiffString, generateUnifiedPatch };
