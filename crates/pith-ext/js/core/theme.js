// The theme object. Hosts style text themselves, so it stays plain unless colour was requested.

const state = require("internal/state");

const styles = { bold: [1, 22], dim: [2, 22], italic: [3, 23], underline: [4, 24], inverse: [7, 27], strikethrough: [9, 29] };

const colors = {
  accent: 36, border: 90, borderAccent: 36, borderMuted: 90, success: 32, error: 31, warning: 33, muted: 90, dim: 90, text: 39,
  thinkingText: 90, userMessageText: 39, customMessageText: 39, customMessageLabel: 35, toolTitle: 39, toolOutput: 37,
  mdHeading: 33, mdLink: 34, mdLinkUrl: 90, mdCode: 36, mdCodeBlock: 32, mdCodeBlockBorder: 90, mdQuote: 90, mdQuoteBorder: 90,
  mdHr: 90, mdListBullet: 36, toolDiffAdded: 32, toolDiffRemoved: 31, toolDiffContext: 90, syntaxComment: 90, syntaxKeyword: 35,
  syntaxFunction: 34, syntaxVariable: 36, syntaxString: 32, syntaxNumber: 33, syntaxType: 36, syntaxOperator: 39, syntaxPunctuation: 39,
  thinkingOff: 90, thinkingMinimal: 90, thinkingLow: 34, thinkingMedium: 36, thinkingHigh: 35, thinkingXhigh: 31, bashMode: 33,
};

const wrap = (open, close, text) => (state.config.color ? `\u001b[${open}m${text}\u001b[${close}m` : String(text));
const ansi = (open) => (state.config.color ? `\u001b[${open}m` : "");

class Theme {
  constructor(name = "default") {
    this.name = name;
    this.sourcePath = undefined;
  }
  fg(color, text) {
    return wrap(colors[color] ?? 39, 39, text);
  }
  bg(color, text) {
    return wrap(49, 49, text);
  }
  bold(text) {
    return wrap(...styles.bold, text);
  }
  dim(text) {
    return wrap(...styles.dim, text);
  }
  italic(text) {
    return wrap(...styles.italic, text);
  }
  underline(text) {
    return wrap(...styles.underline, text);
  }
  inverse(text) {
    return wrap(...styles.inverse, text);
  }
  strikethrough(text) {
    return wrap(...styles.strikethrough, text);
  }
  getFgAnsi(color) {
    return ansi(colors[color] ?? 39);
  }
  getBgAnsi() {
    return ansi(49);
  }
  getColorMode() {
    return state.config.color ? "256color" : "none";
  }
  getThinkingBorderColor() {
    return (text) => this.fg("border", text);
  }
  getBashModeBorderColor() {
    return (text) => this.fg("bashMode", text);
  }
}

exports.Theme = Theme;
exports.theme = new Theme();
