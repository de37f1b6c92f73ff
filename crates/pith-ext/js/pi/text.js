// Text as a terminal shows it: columns, escape sequences, wrapping.

const native = host.ops("text");

// CSI, OSC (to BEL or ST) and other escapes.
const ESCAPES = /\u001b\[[0-?]*[ -/]*[@-~]|\u001b[\]_P^X][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b[@-Z\\-_]/g;
const ESCAPE_AT = new RegExp(ESCAPES.source, "y");
const TAB = "   ";

const stripTerminalSequences = (text) => String(text).replace(ESCAPES, "");

function visibleWidth(text) {
  text = String(text);
  if (/^[\x20-\x7e]*$/.test(text)) return text.length;
  const plain = stripTerminalSequences(text).replace(/\t/g, TAB);
  return /^[\x20-\x7e]*$/.test(plain) ? plain.length : native.width(plain);
}

// Splits a text into escape sequences, which take no room, and characters with their width.
function* pieces(text) {
  let at = 0;
  while (at < text.length) {
    ESCAPE_AT.lastIndex = at;
    const escape = ESCAPE_AT.exec(text);
    if (escape) {
      yield { text: escape[0], width: 0, isEscape: true };
      at += escape[0].length;
      continue;
    }
    let end = text.indexOf("\u001b", at + 1);
    if (end < 0) end = text.length;
    const run = text.slice(at, end);
    if (/^[\x20-\x7e]*$/.test(run)) for (const character of run) yield { text: character, width: 1, isEscape: false };
    else for (const { segment } of new Intl.Segmenter().segment(run)) yield { text: segment, width: segment === "\t" ? TAB.length : native.width(segment), isEscape: false };
    at = end;
  }
}

const RESET = "\u001b[0m";

function truncateToWidth(text, maxWidth, ellipsis = "...", pad = false) {
  text = String(text);
  const width = visibleWidth(text);
  if (width <= maxWidth) return pad ? text + " ".repeat(maxWidth - width) : text;
  const mark = visibleWidth(ellipsis) > maxWidth ? "" : ellipsis;
  const room = Math.max(maxWidth - visibleWidth(mark), 0);
  let kept = "";
  let used = 0;
  let isStyled = false;
  for (const piece of pieces(text)) {
    if (piece.isEscape) {
      kept += piece.text;
      isStyled = true;
      continue;
    }
    if (used + piece.width > room) break;
    kept += piece.text;
    used += piece.width;
  }
  const shown = kept + (isStyled ? RESET : "") + mark;
  return pad ? shown + " ".repeat(Math.max(maxWidth - used - visibleWidth(mark), 0)) : shown;
}

function sliceByColumn(line, start, length, isStrict = false) {
  let column = 0;
  let result = "";
  for (const piece of pieces(String(line))) {
    if (piece.isEscape) {
      if (column < start + length) result += piece.text;
      continue;
    }
    const end = column + piece.width;
    const isIn = column >= start && (isStrict ? end <= start + length : column < start + length);
    if (isIn) result += piece.text;
    column = end;
  }
  return result;
}

// The styles that are on, so that a wrapped line can begin with them.
class Styles {
  #active = [];
  take(escape) {
    if (!/^\u001b\[[\d;]*m$/.test(escape)) return;
    if (/^\u001b\[0?m$/.test(escape)) this.#active = [];
    else this.#active.push(escape);
  }
  get open() {
    return this.#active.join("");
  }
  get close() {
    return this.#active.length ? RESET : "";
  }
}

function wrapLine(line, width, styles) {
  const lines = [];
  let current = styles.open;
  let used = 0;
  let word = [];
  let wordWidth = 0;
  const breakLine = () => {
    lines.push(current.replace(/ +$/, "") + styles.close);
    current = styles.open;
    used = 0;
  };
  const add = (piece) => {
    if (piece.isEscape) styles.take(piece.text);
    current += piece.text;
    used += piece.width;
  };
  const flush = () => {
    if (used > 0 && used + wordWidth > width) breakLine();
    for (const piece of word) {
      if (!piece.isEscape && used > 0 && used + piece.width > width) breakLine();
      add(piece);
    }
    word = [];
    wordWidth = 0;
  };
  for (const piece of pieces(line)) {
    if (piece.text === " ") {
      flush();
      if (used + 1 > width) breakLine();
      else add(piece);
    } else {
      word.push(piece);
      wordWidth += piece.width;
    }
  }
  flush();
  lines.push(current + styles.close);
  return lines;
}

function wrapTextWithAnsi(text, width) {
  const styles = new Styles();
  const room = Math.max(1, Math.floor(width));
  return String(text)
    .split("\n")
    .flatMap((line) => (visibleWidth(line) <= room && !line.includes("\u001b") ? [styles.open + line + styles.close] : wrapLine(line, room, styles)));
}

const padTo = (line, width) => line + " ".repeat(Math.max(width - visibleWidth(line), 0));

// Lower scores are better matches.
function fuzzyMatch(query, text) {
  const wanted = String(query).toLowerCase();
  const given = String(text).toLowerCase();
  if (wanted === "") return { matches: true, score: 0 };
  let score = 0;
  let at = 0;
  let last = -1;
  for (const character of wanted) {
    const found = given.indexOf(character, at);
    if (found < 0) return { matches: false, score: 0 };
    const isStart = found === 0 || /[\s\-_./:]/.test(given[found - 1]);
    if (last >= 0) score += found === last + 1 ? -5 : (found - last) * 2;
    if (isStart) score -= 10;
    score += found * 0.1;
    last = found;
    at = found + 1;
  }
  return { matches: true, score };
}

function fuzzyFilter(items, query, getText = String) {
  const words = String(query).trim().split(/\s+/).filter(Boolean);
  if (words.length === 0) return items;
  const scored = [];
  for (const item of items) {
    const text = getText(item);
    const results = words.map((word) => fuzzyMatch(word, text));
    if (results.every((result) => result.matches)) scored.push({ item, score: results.reduce((sum, result) => sum + result.score, 0) });
  }
  return scored.sort((a, b) => a.score - b.score).map(({ item }) => item);
}

const hyperlink = (text, url) => `\u001b]8;;${url}\u001b\\${text}\u001b]8;;\u001b\\`;

module.exports = { visibleWidth, truncateToWidth, wrapTextWithAnsi, sliceByColumn, stripTerminalSequences, fuzzyMatch, fuzzyFilter, hyperlink, padTo };
