// Keys as terminals send them.

const names = {
  escape: "\u001b", enter: "\r", tab: "\t", space: " ", backspace: "\u007f", delete: "\u001b[3~", insert: "\u001b[2~", home: "\u001b[H", end: "\u001b[F",
  pageUp: "\u001b[5~", pageDown: "\u001b[6~", up: "\u001b[A", down: "\u001b[B", right: "\u001b[C", left: "\u001b[D", clear: "\u001b[E",
  f1: "\u001bOP", f2: "\u001bOQ", f3: "\u001bOR", f4: "\u001bOS", f5: "\u001b[15~", f6: "\u001b[17~", f7: "\u001b[18~", f8: "\u001b[19~", f9: "\u001b[20~", f10: "\u001b[21~", f11: "\u001b[23~", f12: "\u001b[24~",
};
const aliases = { esc: "escape", return: "enter" };
const symbols = { backtick: "`", hyphen: "-", equals: "=", leftbracket: "[", rightbracket: "]", backslash: "\\", semicolon: ";", quote: "'", comma: ",", period: ".", slash: "/", exclamation: "!", at: "@", hash: "#", dollar: "$", percent: "%", caret: "^", ampersand: "&", asterisk: "*", leftparen: "(", rightparen: ")", underscore: "_", plus: "+", pipe: "|", tilde: "~", leftbrace: "{", rightbrace: "}", colon: ":", lessthan: "<", greaterthan: ">", question: "?" };
const MODIFIERS = ["ctrl", "shift", "alt", "super"];

const Key = { ...symbols };
for (const name of [...Object.keys(names), ...Object.keys(aliases)]) Key[name] = name;
for (const first of MODIFIERS) {
  Key[first] = (key) => `${first}+${key}`;
  for (const second of MODIFIERS.filter((other) => other !== first)) {
    const joined = first + second[0].toUpperCase() + second.slice(1);
    Key[joined] = (key) => `${first}+${second}+${key}`;
    for (const third of MODIFIERS.filter((other) => other !== first && other !== second)) {
      Key[joined + third[0].toUpperCase() + third.slice(1)] = (key) => `${first}+${second}+${third}+${key}`;
    }
  }
}

const normalize = (id) => {
  const text = String(id).toLowerCase();
  const parts = text === "+" ? ["+"] : text.endsWith("++") ? [...text.slice(0, -2).split("+"), "+"] : text.split("+");
  const key = parts.pop();
  const base = aliases[key] ?? Object.keys(names).find((name) => name.toLowerCase() === key) ?? key;
  return [...MODIFIERS.filter((modifier) => parts.includes(modifier)), base].join("+");
};

const codes = { 27: "escape", 13: "enter", 9: "tab", 32: "space", 127: "backspace", 57414: "enter" };
const tildes = { 2: "insert", 3: "delete", 5: "pageUp", 6: "pageDown", 7: "home", 8: "end", 15: "f5", 17: "f6", 18: "f7", 19: "f8", 20: "f9", 21: "f10", 23: "f11", 24: "f12" };
const letters = { A: "up", B: "down", C: "right", D: "left", H: "home", F: "end", E: "clear", P: "f1", Q: "f2", R: "f3", S: "f4" };

const withModifiers = (bits, key) => [...["shift", "alt", "ctrl", "super"].filter((_, at) => (bits >> at) & 1).sort((a, b) => MODIFIERS.indexOf(a) - MODIFIERS.indexOf(b)), key].join("+");

// The name of the key that a sequence stands for.
function parseKey(data) {
  const text = String(data);
  const kitty = /^\u001b\[(\d+)(?::\d*)*(?:;(\d+)(?::(\d))?)?(?:;[\d:]*)?u$/.exec(text);
  if (kitty) return withModifiers((Number(kitty[2] ?? 1) - 1) & 15, codes[kitty[1]] ?? String.fromCodePoint(Number(kitty[1])).toLowerCase());
  const arrow = /^\u001b\[1;(\d+)(?::\d)?([A-HP-S])$/.exec(text);
  if (arrow) return withModifiers((Number(arrow[1]) - 1) & 15, letters[arrow[2]]);
  const tilde = /^\u001b\[(\d+)(?:;(\d+)(?::\d)?)?~$/.exec(text);
  if (tilde && tildes[tilde[1]]) return withModifiers((Number(tilde[2] ?? 1) - 1) & 15, tildes[tilde[1]]);
  const plain = /^\u001b[[O]([A-HP-S])$/.exec(text);
  if (plain) return letters[plain[1]];
  if (text === "\u001b[Z") return "shift+tab";
  const named = Object.keys(names).find((name) => names[name] === text);
  if (named) return named;
  if (text === "\n") return "enter";
  if (text === "\b") return "backspace";
  if (text === "\u0000") return "ctrl+space";
  if (/^[\u0001-\u001a]$/.test(text)) return `ctrl+${String.fromCharCode(text.charCodeAt(0) + 96)}`;
  if (/^\u001b[^\u001b]$/.test(text)) return normalize(`alt+${parseKey(text[1]) ?? text[1]}`);
  if (/^[A-Z]$/.test(text)) return `shift+${text.toLowerCase()}`;
  return [...text].length === 1 ? text : undefined;
}

const matchesKey = (data, id) => {
  const key = parseKey(data);
  return key !== undefined && (normalize(key) === normalize(id) || data === id);
};

const isKeyRelease = (data) => /^\u001b\[[\d:;]*:3[u~A-HP-S]$/.test(String(data));
const isKeyRepeat = (data) => /^\u001b\[[\d:;]*:2[u~A-HP-S]$/.test(String(data));
const decodeKittyPrintable = (data) => {
  const match = /^\u001b\[(\d+)(?::\d*)*(?:;[12])?u$/.exec(String(data));
  const code = match ? Number(match[1]) : 0;
  return code >= 32 && code !== 127 && code < 57344 ? String.fromCodePoint(code) : undefined;
};

// The key bindings of lists and dialogs.
const TUI_KEYBINDINGS = Object.fromEntries(
  Object.entries({
    "tui.select.up": ["up"], "tui.select.down": ["down"], "tui.select.pageUp": ["pageUp"], "tui.select.pageDown": ["pageDown"], "tui.select.confirm": ["enter"], "tui.select.cancel": ["escape", "ctrl+c"],
    "tui.editor.cursorUp": ["up"], "tui.editor.cursorDown": ["down"], "tui.editor.cursorLeft": ["left", "ctrl+b"], "tui.editor.cursorRight": ["right", "ctrl+f"], "tui.editor.cursorLineStart": ["home", "ctrl+a"], "tui.editor.cursorLineEnd": ["end", "ctrl+e"],
    "tui.editor.deleteCharBackward": ["backspace"], "tui.editor.deleteCharForward": ["delete", "ctrl+d"], "tui.editor.deleteWordBackward": ["ctrl+w", "alt+backspace"], "tui.editor.deleteToLineStart": ["ctrl+u"], "tui.editor.deleteToLineEnd": ["ctrl+k"],
    "tui.input.newLine": ["shift+enter"], "tui.input.submit": ["enter"], "tui.input.tab": ["tab"], "tui.input.copy": ["ctrl+c"],
  }).map(([name, defaultKeys]) => [name, { defaultKeys, description: name }]),
);

class KeybindingsManager {
  constructor(definitions = TUI_KEYBINDINGS, config = {}) {
    this.definitions = definitions;
    this.config = config;
  }
  getKeys(name) {
    return [this.config[name] ?? this.definitions[name]?.defaultKeys ?? TUI_KEYBINDINGS[name]?.defaultKeys ?? []].flat();
  }
  matches(data, name) {
    return this.getKeys(name).some((key) => matchesKey(data, key));
  }
  getDefinition(name) {
    return this.definitions[name];
  }
  getConflicts() {
    return [];
  }
  getUserBindings() {
    return this.config;
  }
  setUserBindings(config) {
    this.config = config;
  }
  getResolvedBindings() {
    return Object.fromEntries(Object.keys(this.definitions).map((name) => [name, this.getKeys(name)]));
  }
}

let bindings = new KeybindingsManager();
module.exports = {
  Key, parseKey, matchesKey, isKeyRelease, isKeyRepeat, decodeKittyPrintable, TUI_KEYBINDINGS, KeybindingsManager,
  getKeybindings: () => bindings,
  setKeybindings: (next) => void (bindings = next),
  // The name in older releases, which many extensions still import.
  getEditorKeybindings: () => bindings,
  isKittyProtocolActive: () => false,
  setKittyProtocolActive: () => {},
};
