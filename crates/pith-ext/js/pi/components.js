// Components that can be rendered as lines of text. They get no input: there is no terminal.

const { visibleWidth, truncateToWidth, wrapTextWithAnsi, fuzzyFilter, padTo } = require("internal/text");
const { getKeybindings, matchesKey } = require("internal/keys");

const blank = (count) => Array.from({ length: Math.max(0, count) }, () => "");

class Text {
  constructor(text = "", paddingX = 1, paddingY = 1, customBgFn) {
    Object.assign(this, { text, paddingX, paddingY, customBgFn });
  }
  setText(text) {
    this.text = text;
  }
  setCustomBgFn(fn) {
    this.customBgFn = fn;
  }
  invalidate() {}
  render(width) {
    if (!this.text || String(this.text).trim() === "") return [];
    const room = Math.max(1, width - this.paddingX * 2);
    const side = " ".repeat(this.paddingX);
    const lines = wrapTextWithAnsi(String(this.text).replace(/\t/g, "   "), room).map((line) => side + line + side);
    return [...blank(this.paddingY), ...lines, ...blank(this.paddingY)].map((line) => (this.customBgFn ? this.customBgFn(padTo(line, width)) : padTo(line, width)));
  }
}

class TruncatedText {
  constructor(text, paddingX = 0, paddingY = 0) {
    Object.assign(this, { text, paddingX, paddingY });
  }
  setText(text) {
    this.text = text;
  }
  invalidate() {}
  render(width) {
    const side = " ".repeat(this.paddingX);
    const line = side + truncateToWidth(String(this.text).split("\n")[0], Math.max(1, width - this.paddingX * 2)) + side;
    return [...blank(this.paddingY), line, ...blank(this.paddingY)].map((shown) => padTo(shown, width));
  }
}

class Container {
  constructor() {
    this.children = [];
  }
  addChild(component) {
    this.children.push(component);
  }
  removeChild(component) {
    this.children = this.children.filter((child) => child !== component);
  }
  clear() {
    this.children = [];
  }
  invalidate() {
    for (const child of this.children) child.invalidate?.();
  }
  render(width) {
    return this.children.flatMap((child) => child.render(width));
  }
}

class Box extends Container {
  constructor(paddingX = 1, paddingY = 1, bgFn) {
    super();
    Object.assign(this, { paddingX, paddingY, bgFn });
  }
  setBgFn(fn) {
    this.bgFn = fn;
  }
  render(width) {
    if (this.children.length === 0) return [];
    const side = " ".repeat(this.paddingX);
    const inner = super.render(Math.max(1, width - this.paddingX * 2)).map((line) => side + line);
    if (inner.length === 0) return [];
    return [...blank(this.paddingY), ...inner, ...blank(this.paddingY)].map((line) => (this.bgFn ? this.bgFn(padTo(line, width)) : padTo(line, width)));
  }
}

class Spacer {
  constructor(lines = 1) {
    this.lines = lines;
  }
  setLines(lines) {
    this.lines = lines;
  }
  invalidate() {}
  render() {
    return blank(this.lines);
  }
}

class VStack extends Container {}

class HStack extends Container {
  render(width) {
    const share = Math.max(1, Math.floor(width / Math.max(1, this.children.length)));
    const columns = this.children.map((child) => child.render(share));
    const height = Math.max(0, ...columns.map((lines) => lines.length));
    return Array.from({ length: height }, (_, row) => columns.map((lines) => padTo(lines[row] ?? "", share)).join(""));
  }
}

class SelectList {
  constructor(items, maxVisible = 10, theme = {}, layout = {}) {
    Object.assign(this, { items, filteredItems: items, maxVisible, theme, layout, selectedIndex: 0 });
  }
  setFilter(filter) {
    this.filteredItems = this.items.filter((item) => item.value.toLowerCase().startsWith(String(filter).toLowerCase()));
    this.selectedIndex = 0;
  }
  setSelectedIndex(index) {
    this.selectedIndex = Math.max(0, Math.min(index, this.filteredItems.length - 1));
  }
  getSelectedItem() {
    return this.filteredItems[this.selectedIndex] ?? null;
  }
  invalidate() {}
  render(width) {
    const style = (name, text) => this.theme[name]?.(text) ?? text;
    if (this.filteredItems.length === 0) return [style("noMatch", "  No matching commands")];
    const start = Math.max(0, Math.min(this.selectedIndex - Math.floor(this.maxVisible / 2), this.filteredItems.length - this.maxVisible));
    const lines = this.filteredItems.slice(start, start + this.maxVisible).map((item, at) => {
      const isSelected = start + at === this.selectedIndex;
      const label = item.label || item.value;
      const line = `${isSelected ? "→ " : "  "}${label}${item.description ? `  ${item.description}` : ""}`;
      return isSelected ? style("selectedText", truncateToWidth(line, width)) : truncateToWidth(line, width);
    });
    if (this.filteredItems.length > this.maxVisible) lines.push(style("scrollInfo", `  (${this.selectedIndex + 1}/${this.filteredItems.length})`));
    return lines;
  }
  handleInput(data) {
    const keys = getKeybindings();
    const count = this.filteredItems.length;
    const move = (step) => {
      if (count === 0) return;
      this.selectedIndex = (this.selectedIndex + step + count) % count;
      this.onSelectionChange?.(this.getSelectedItem());
    };
    if (keys.matches(data, "tui.select.up")) move(-1);
    else if (keys.matches(data, "tui.select.down")) move(1);
    else if (keys.matches(data, "tui.select.confirm")) this.getSelectedItem() && this.onSelect?.(this.getSelectedItem());
    else if (keys.matches(data, "tui.select.cancel")) this.onCancel?.();
  }
}

class SettingsList {
  constructor(items, maxVisible, theme, onChange, onCancel, options = {}) {
    Object.assign(this, { items, maxVisible, theme, onChange, onCancel, options, selectedIndex: 0 });
  }
  updateValue(id, value) {
    const item = this.items.find((known) => known.id === id);
    if (item) item.currentValue = value;
  }
  selectItem(id) {
    this.selectedIndex = Math.max(0, this.items.findIndex((item) => item.id === id));
  }
  invalidate() {}
  render(width) {
    return this.items.map((item, at) => {
      const isSelected = at === this.selectedIndex;
      const label = this.theme?.label?.(item.label, isSelected) ?? item.label;
      const value = this.theme?.value?.(item.currentValue, isSelected) ?? item.currentValue;
      return truncateToWidth(`${isSelected ? (this.theme?.cursor ?? "→ ") : "  "}${label}  ${value}`, width);
    });
  }
  handleInput(data) {
    const keys = getKeybindings();
    const count = Math.max(1, this.items.length);
    if (keys.matches(data, "tui.select.up")) this.selectedIndex = (this.selectedIndex + count - 1) % count;
    else if (keys.matches(data, "tui.select.down")) this.selectedIndex = (this.selectedIndex + 1) % count;
    else if (keys.matches(data, "tui.select.cancel")) this.onCancel?.();
    else if (keys.matches(data, "tui.select.confirm") || matchesKey(data, "space")) {
      const item = this.items[this.selectedIndex];
      if (!item?.values?.length) return;
      item.currentValue = item.values[(item.values.indexOf(item.currentValue) + 1) % item.values.length];
      this.onChange?.(item.id, item.currentValue);
    }
  }
}

class Input {
  constructor(options = {}) {
    this.options = options;
    this.value = "";
    this.focused = false;
  }
  getValue() {
    return this.value;
  }
  setValue(value) {
    this.value = String(value);
  }
  invalidate() {}
  render(width) {
    return [truncateToWidth(`${this.options.prompt ?? "> "}${this.value || (this.options.placeholder ?? "")}`, width)];
  }
  handleInput(data) {
    const keys = getKeybindings();
    if (keys.matches(data, "tui.select.cancel")) this.onEscape?.();
    else if (keys.matches(data, "tui.input.submit")) this.onSubmit?.(this.value);
    else if (keys.matches(data, "tui.editor.deleteCharBackward")) this.value = [...this.value].slice(0, -1).join("");
    else if (!/[\u0000-\u001f\u007f]/.test(data)) this.value += data;
  }
}

class Editor extends Input {
  constructor(tui, theme, options = {}) {
    super(options);
    Object.assign(this, { tui, theme, disableSubmit: false, borderColor: (text) => text });
  }
  getText() {
    return this.value;
  }
  setText(text) {
    this.value = String(text);
    this.onChange?.(this.value);
  }
  insertTextAtCursor(text) {
    this.setText(this.value + text);
  }
  getLines() {
    return this.value.split("\n");
  }
  getCursor() {
    return { line: this.getLines().length - 1, col: this.getLines().at(-1).length };
  }
  addToHistory() {}
  setAutocompleteProvider() {}
  isShowingAutocomplete() {
    return false;
  }
  getPaddingX() {
    return 0;
  }
  setPaddingX() {}
  render(width) {
    const rule = this.borderColor("─".repeat(Math.max(0, width)));
    return [rule, ...wrapTextWithAnsi(this.value, width), rule];
  }
}

class Loader extends Text {
  constructor(ui, spinnerColorFn = (text) => text, messageColorFn = (text) => text, message = "Loading...", indicator) {
    super("", 1, 0);
    Object.assign(this, { ui, spinnerColorFn, messageColorFn, indicator });
    this.setMessage(message);
  }
  start() {}
  stop() {}
  setIndicator(indicator) {
    this.indicator = indicator;
  }
  setMessage(message) {
    this.message = message;
    this.setText(`${this.spinnerColorFn("…")} ${this.messageColorFn(message)}`);
  }
}

class CancellableLoader extends Loader {
  controller = new AbortController();
  get signal() {
    return this.controller.signal;
  }
  get aborted() {
    return this.controller.signal.aborted;
  }
  handleInput(data) {
    if (!matchesKey(data, "escape")) return;
    this.controller.abort();
    this.onAbort?.();
  }
  dispose() {
    this.stop();
  }
}

class Image {
  constructor(data, mimeType, theme, options = {}) {
    Object.assign(this, { data, mimeType, theme, options });
  }
  invalidate() {}
  render(width) {
    return [truncateToWidth(`[Image: ${this.mimeType}]`, width)];
  }
}

class DynamicBorder {
  constructor(color = (text) => text) {
    this.color = color;
  }
  invalidate() {}
  render(width) {
    return [this.color("─".repeat(Math.max(1, width)))];
  }
}

class BorderedLoader extends Container {
  constructor(tui, theme, message, options = {}) {
    super();
    this.loader = new CancellableLoader(tui, undefined, undefined, message);
    for (const child of [new DynamicBorder(), this.loader, new DynamicBorder()]) this.addChild(child);
    this.options = options;
  }
  get signal() {
    return this.loader.signal;
  }
  set onAbort(fn) {
    this.loader.onAbort = fn;
  }
  handleInput(data) {
    this.loader.handleInput(data);
  }
  dispose() {
    this.loader.dispose();
  }
}

module.exports = { Text, TruncatedText, Container, Box, Spacer, VStack, HStack, SelectList, SettingsList, Input, Editor, Loader, CancellableLoader, Image, DynamicBorder, BorderedLoader, visibleWidth, fuzzyFilter };
