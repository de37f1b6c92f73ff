// @earendil-works/pi-tui.

const keys = require("internal/keys");
const text = require("internal/text");
const components = require("internal/components");
const { fill, headless } = require("internal/stubs");

const { DynamicBorder, BorderedLoader, ...drawn } = components;

Object.assign(exports, drawn, keys);
for (const name of ["visibleWidth", "truncateToWidth", "wrapTextWithAnsi", "sliceByColumn", "stripTerminalSequences", "fuzzyMatch", "fuzzyFilter", "hyperlink"]) exports[name] = text[name];
Object.defineProperty(exports, "Markdown", { get: () => require("internal/markdown").Markdown, enumerable: true });

exports.CURSOR_MARKER = "\u001b_pi:c\u0007";
headless(exports, {
  isViewportTUI: () => false,
  getCapabilities: () => ({ images: null, trueColor: false, hyperlinks: false }),
  detectCapabilities: () => ({ images: null, trueColor: false, hyperlinks: false }),
  resetCapabilitiesCache: () => {},
  setCapabilities: () => {},
  setCapabilityOverrides: () => {},
  getCellDimensions: () => ({ widthPx: 9, heightPx: 18 }),
  setCellDimensions: () => {},
  renderImage: () => null,
  renderLatex: (source) => source,
  getOsc8LinkAtColumn: () => undefined,
  getNativeClipboard: () => undefined,
});
Object.assign(exports, {
  isFocusable: (component) => component !== null && typeof component === "object" && "focused" in component,
  imageFallback: (mimeType, dimensions, filename) => `[Image: ${[filename, mimeType, dimensions && `${dimensions.widthPx}x${dimensions.heightPx}`].filter(Boolean).join(" ")}]`,
});

fill(
  exports,
  ["TUI", "TuiMainScreen", "TuiAltScreen", "ProcessTerminal", "StdinBuffer", "ScrollView", "MouseRegion", "Marked", "CombinedAutocompleteProvider", "allocateImageId", "calculateImageRows", "compositeTuiLine", "deleteAllKittyImages", "deleteKittyImage", "encodeITerm2", "encodeKitty", "getGifDimensions", "getImageDimensions", "getJpegDimensions", "getPngDimensions", "getWebpDimensions", "parseOsc11BackgroundColor", "parseTerminalColorSchemeReport"],
  "needs a terminal",
);
