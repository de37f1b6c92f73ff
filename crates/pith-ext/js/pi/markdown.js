// Renders Markdown as lines of styled text.

const { wrapTextWithAnsi, visibleWidth, padTo } = require("internal/text");

const plain = (text) => text;
const styleOf = (theme, name) => theme?.[name] ?? plain;

function inline(text, theme) {
  const codes = [];
  // Code spans first: nothing inside them is markup.
  let shown = text.replace(/(`+)([\s\S]*?[^`])\1(?!`)/g, (_, ticks, code) => {
    codes.push(styleOf(theme, "code")(code.trim()));
    return `\u0000${codes.length - 1}\u0000`;
  });
  shown = shown
    .replace(/!?\[([^\]]*)\]\(([^)\s]+)[^)]*\)/g, (_, label, url) => (label === url ? styleOf(theme, "link")(label) : `${styleOf(theme, "link")(label)} ${styleOf(theme, "linkUrl")(`(${url})`)}`))
    .replace(/\*\*([^*]+)\*\*|__([^_]+)__/g, (_, a, b) => styleOf(theme, "bold")(a ?? b))
    .replace(/(?<![\w*])\*([^*\s][^*]*)\*(?!\w)|(?<!\w)_([^_\s][^_]*)_(?!\w)/g, (_, a, b) => styleOf(theme, "italic")(a ?? b))
    .replace(/~~([^~]+)~~/g, (_, struck) => styleOf(theme, "strikethrough")(struck));
  return shown.replace(/\u0000(\d+)\u0000/g, (_, index) => codes[Number(index)]);
}

const cells = (line) => line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => cell.trim());

function table(rows, theme) {
  const shown = rows.map((row) => row.map((cell) => inline(cell, theme)));
  const widths = shown[0].map((_, column) => Math.max(...shown.map((row) => visibleWidth(row[column] ?? ""))));
  const line = (row) => row.map((cell, column) => padTo(cell ?? "", widths[column])).join(" │ ");
  return [line(shown[0]), widths.map((width) => "─".repeat(width)).join("─┼─"), ...shown.slice(1).map(line)];
}

function block(lines, width, theme) {
  const result = [];
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at];
    const fence = /^\s*(```+|~~~+)\s*(\S*)/.exec(line);
    if (fence) {
      const end = lines.findIndex((other, index) => index > at && other.trim().startsWith(fence[1]));
      const code = lines.slice(at + 1, end < 0 ? lines.length : end);
      const body = theme?.highlightCode ? theme.highlightCode(code.join("\n"), fence[2] || undefined) : code.map((text) => styleOf(theme, "codeBlock")(text));
      result.push(styleOf(theme, "codeBlockBorder")(line.trim()), ...body.map((text) => `${theme?.codeBlockIndent ?? "  "}${text}`), styleOf(theme, "codeBlockBorder")(fence[1]));
      at = end < 0 ? lines.length : end;
      continue;
    }
    const heading = /^(#{1,6})\s+(.*)$/.exec(line);
    const item = /^(\s*)([-*+]|\d+[.)])\s+(.*)$/.exec(line);
    if (heading) result.push(styleOf(theme, "heading")(styleOf(theme, "bold")(inline(heading[2], theme))));
    else if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) result.push(styleOf(theme, "hr")("─".repeat(Math.min(width, 80))));
    else if (/^\s*>/.test(line)) {
      const quoted = line.replace(/^\s*>\s?/, "");
      for (const text of wrapTextWithAnsi(inline(quoted, theme), Math.max(1, width - 2))) result.push(`${styleOf(theme, "quoteBorder")("│ ")}${styleOf(theme, "quote")(text)}`);
    } else if (item) {
      const bullet = `${item[1]}${/\d/.test(item[2]) ? item[2] : "-"} `;
      const lines = wrapTextWithAnsi(inline(item[3], theme), Math.max(1, width - bullet.length));
      result.push(...lines.map((text, index) => (index === 0 ? styleOf(theme, "listBullet")(bullet) : " ".repeat(bullet.length)) + text));
    } else if (line.includes("|") && /^[\s|:-]+$/.test(lines[at + 1] ?? "") && (lines[at + 1] ?? "").includes("-")) {
      const rows = [cells(line)];
      for (at += 2; at < lines.length && lines[at].includes("|"); at++) rows.push(cells(lines[at]));
      at--;
      result.push(...table(rows, theme));
    } else if (line.trim() === "") result.push("");
    else result.push(...wrapTextWithAnsi(inline(line, theme), width));
  }
  return result;
}

class Markdown {
  constructor(text, paddingX = 0, paddingY = 0, theme = {}, defaultTextStyle, options = {}) {
    Object.assign(this, { text, paddingX, paddingY, theme, defaultTextStyle, options });
  }
  setText(text) {
    this.text = text;
  }
  invalidate() {}
  render(width) {
    const text = String(this.text ?? "");
    if (text.trim() === "") return [];
    const room = Math.max(1, width - this.paddingX * 2);
    const side = " ".repeat(this.paddingX);
    const color = this.defaultTextStyle?.color ?? plain;
    const background = this.defaultTextStyle?.bgColor ?? plain;
    const lines = block(text.replace(/\t/g, "   ").split("\n"), room, this.theme).map((line) => side + color(line) + side);
    const margin = Array.from({ length: this.paddingY }, () => "");
    return [...margin, ...lines, ...margin].map((line) => background(padTo(line, width)));
  }
}

exports.Markdown = Markdown;
