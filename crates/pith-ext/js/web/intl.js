// The part of Intl that extensions use, for English.

const text = host.ops("text");

const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

const localeOf = (locale) => {
  const first = Array.isArray(locale) ? locale[0] : locale;
  return typeof first === "string" && first ? first : "en-US";
};

class Formatter {
  constructor(locale) {
    this.locale = localeOf(locale);
  }
  static supportedLocalesOf(locales) {
    return [locales ?? []].flat();
  }
}

// The fields of a date in local time, UTC, or the requested zone.
function fields(date, timeZone) {
  const zone = timeZone === undefined ? null : String(timeZone);
  if (zone === null) {
    return { year: date.getFullYear(), month: date.getMonth(), day: date.getDate(), weekday: date.getDay(), hour: date.getHours(), minute: date.getMinutes(), second: date.getSeconds(), ms: date.getMilliseconds(), offset: -date.getTimezoneOffset() };
  }
  const offset = /^(UTC|GMT|Etc\/UTC)$/i.test(zone) ? 0 : text.zoneOffset(zone, date.getTime());
  if (offset === undefined || offset === null) throw new RangeError(`Invalid time zone specified: ${zone}`);
  const moved = new Date(date.getTime() + offset * 60000);
  return { year: moved.getUTCFullYear(), month: moved.getUTCMonth(), day: moved.getUTCDate(), weekday: moved.getUTCDay(), hour: moved.getUTCHours(), minute: moved.getUTCMinutes(), second: moved.getUTCSeconds(), ms: moved.getUTCMilliseconds(), offset };
}

const two = (number) => String(number).padStart(2, "0");

const STYLES = {
  date: { full: { weekday: "long", year: "numeric", month: "long", day: "numeric" }, long: { year: "numeric", month: "long", day: "numeric" }, medium: { year: "numeric", month: "short", day: "numeric" }, short: { year: "2-digit", month: "numeric", day: "numeric" } },
  time: { full: { hour: "numeric", minute: "2-digit", second: "2-digit", timeZoneName: "long" }, long: { hour: "numeric", minute: "2-digit", second: "2-digit", timeZoneName: "short" }, medium: { hour: "numeric", minute: "2-digit", second: "2-digit" }, short: { hour: "numeric", minute: "2-digit" } },
};
const DATE_KEYS = ["weekday", "year", "month", "day", "era"];
const TIME_KEYS = ["hour", "minute", "second", "dayPeriod", "fractionalSecondDigits"];

class DateTimeFormat extends Formatter {
  constructor(locale, options = {}) {
    super(locale);
    this.given = { ...options };
    const chosen = { ...options };
    if (options.dateStyle) Object.assign(chosen, STYLES.date[options.dateStyle]);
    if (options.timeStyle) Object.assign(chosen, STYLES.time[options.timeStyle]);
    if (![...DATE_KEYS, ...TIME_KEYS].some((key) => chosen[key] !== undefined)) Object.assign(chosen, { year: "numeric", month: "numeric", day: "numeric" });
    this.options = chosen;
    this.is12 = options.hour12 ?? (options.hourCycle ? options.hourCycle.startsWith("h1") && options.hourCycle !== "h23" : /^en(-(US|CA|AU|NZ|IN))?$/.test(this.locale));
    if (options.timeZone !== undefined) fields(new Date(0), options.timeZone);
    this.format = (date) => this.formatToParts(date).map(({ value }) => value).join("");
  }
  formatToParts(input) {
    const date = input === undefined ? new Date() : new Date(input);
    if (Number.isNaN(date.getTime())) throw new RangeError("Invalid time value");
    const now = fields(date, this.options.timeZone);
    const datePart = this.#date(now);
    const timePart = this.#time(now);
    if (!datePart.length || !timePart.length) return [...datePart, ...timePart];
    const glue = this.given.dateStyle === "full" || this.given.dateStyle === "long" ? " at " : ", ";
    return [...datePart, { type: "literal", value: glue }, ...timePart];
  }
  #date(now) {
    const { weekday, year, month, day } = this.options;
    const shown = {};
    if (weekday) shown.weekday = weekday === "long" ? DAYS[now.weekday] : DAYS[now.weekday].slice(0, weekday === "narrow" ? 1 : 3);
    if (year) shown.year = year === "2-digit" ? two(now.year % 100) : String(now.year);
    const isWord = month === "long" || month === "short" || month === "narrow";
    if (month) shown.month = isWord ? MONTHS[now.month].slice(0, { long: undefined, short: 3, narrow: 1 }[month]) : month === "2-digit" ? two(now.month + 1) : String(now.month + 1);
    if (day) shown.day = day === "2-digit" ? two(now.day) : String(now.day);
    return joinDate(shown, isWord, this.locale);
  }
  #time(now) {
    const { hour, minute, second, timeZoneName, fractionalSecondDigits } = this.options;
    const parts = [];
    const add = (type, value) => {
      if (parts.length) parts.push({ type: "literal", value: ":" });
      parts.push({ type, value });
    };
    if (hour) {
      const shown = this.is12 ? now.hour % 12 || 12 : now.hour;
      add("hour", hour === "2-digit" || !this.is12 ? two(shown) : String(shown));
    }
    if (minute) add("minute", hour || minute === "2-digit" ? two(now.minute) : String(now.minute));
    if (second) add("second", minute || second === "2-digit" ? two(now.second) : String(now.second));
    if (fractionalSecondDigits) parts.push({ type: "literal", value: "." }, { type: "fractionalSecond", value: String(now.ms).padStart(3, "0").slice(0, fractionalSecondDigits) });
    if (hour && this.is12) parts.push({ type: "literal", value: " " }, { type: "dayPeriod", value: now.hour < 12 ? "AM" : "PM" });
    if (timeZoneName) parts.push({ type: "literal", value: " " }, { type: "timeZoneName", value: zoneName(now.offset) });
    return parts;
  }
  formatRange(start, end) {
    return `${this.format(start)} – ${this.format(end)}`;
  }
  resolvedOptions() {
    return { locale: this.locale, calendar: "gregory", numberingSystem: "latn", timeZone: this.options.timeZone ?? text.zone(), hour12: this.is12, ...this.options };
  }
}

const zoneName = (offset) => {
  if (offset === 0) return "UTC";
  const minutes = Math.abs(offset);
  return `GMT${offset < 0 ? "-" : "+"}${Math.floor(minutes / 60)}${minutes % 60 ? `:${two(minutes % 60)}` : ""}`;
};

// "Mon, Jan 2, 2026" with names, "1/2/2026" with numbers.
function joinDate(shown, isWord, locale) {
  const order = isWord ? ["weekday", "month", "day", "year"] : /^en-(GB|AU|NZ|IN|IE|ZA)$|^(fr|es|it|pt)/.test(locale) ? ["weekday", "day", "month", "year"] : /^(sv|lt|en-CA)/.test(locale) ? ["weekday", "year", "month", "day"] : ["weekday", "month", "day", "year"];
  const dash = /^(sv|lt|en-CA)/.test(locale) && !isWord;
  const isPadded = dash || (!isWord && /^(en-(GB|IE|ZA)|fr|es|it|pt)/.test(locale));
  const parts = [];
  for (const type of order) {
    if (shown[type] === undefined) continue;
    if (parts.length) {
      const before = parts.at(-1).type;
      const glue = before === "weekday" ? ", " : isWord ? (type === "year" && before === "day" ? ", " : " ") : dash ? "-" : "/";
      parts.push({ type: "literal", value: glue });
    }
    parts.push({ type, value: isPadded && type !== "year" ? shown[type].padStart(2, "0") : shown[type] });
  }
  return parts;
}

const CURRENCIES = { USD: "$", EUR: "€", GBP: "£", JPY: "¥", INR: "₹", KRW: "₩", CNY: "CN¥" };
const UNITS = { byte: "byte", kilobyte: "kB", megabyte: "MB", gigabyte: "GB", second: "sec", minute: "min", hour: "hr", day: "day", millisecond: "ms", percent: "%", kilometer: "km", meter: "m", celsius: "°C" };

class NumberFormat extends Formatter {
  constructor(locale, options = {}) {
    super(locale);
    this.options = { style: "decimal", ...options };
    this.format = (value) => this.#format(value);
  }
  #digits(value, isCompact) {
    const { style, currency, minimumFractionDigits, maximumFractionDigits, maximumSignificantDigits, minimumIntegerDigits = 1 } = this.options;
    if (maximumSignificantDigits !== undefined) {
      return String(Number(value.toPrecision(maximumSignificantDigits)));
    }
    const usual = style === "currency" ? (currency === "JPY" || currency === "KRW" ? [0, 0] : [2, 2]) : style === "percent" ? [0, 0] : isCompact ? [0, value < 10 ? 1 : 0] : [0, 3];
    const most = maximumFractionDigits ?? Math.max(usual[1], minimumFractionDigits ?? 0);
    const least = Math.min(minimumFractionDigits ?? Math.min(usual[0], most), most);
    let [whole, fraction = ""] = value.toFixed(Math.min(most, 100)).split(".");
    while (fraction.length > least && fraction.endsWith("0")) fraction = fraction.slice(0, -1);
    return whole.padStart(minimumIntegerDigits, "0") + (fraction ? `.${fraction}` : "");
  }
  #format(input) {
    const { style, currency, currencyDisplay, notation, useGrouping, signDisplay, unit, unitDisplay, compactDisplay } = this.options;
    if (typeof input === "bigint") return grouped(String(input));
    let value = Number(input);
    if (Number.isNaN(value)) return "NaN";
    const sign = value < 0 || Object.is(value, -0) ? (value < 0 ? "-" : "") : signDisplay === "always" || (signDisplay === "exceptZero" && value !== 0) ? "+" : "";
    value = Math.abs(value);
    if (value === Infinity) return `${sign}∞`;
    if (style === "percent") value *= 100;
    let suffix = "";
    if (notation === "compact") {
      const [size, short, long] = [[1e12, "T", " trillion"], [1e9, "B", " billion"], [1e6, "M", " million"], [1e3, "K", " thousand"]].find(([limit]) => value >= limit) ?? [1, "", ""];
      value /= size;
      suffix = compactDisplay === "long" ? long : short;
    }
    let shown = this.#digits(value, notation === "compact");
    if (useGrouping !== false && notation !== "compact") shown = grouped(shown);
    shown += suffix;
    if (style === "percent") return `${sign}${shown}%`;
    if (style === "currency") return currencyDisplay === "code" ? `${sign}${currency}\u00a0${shown}` : `${sign}${CURRENCIES[currency] ?? `${currency}\u00a0`}${shown}`;
    if (style === "unit") {
      const name = unitDisplay === "long" ? `${unit}${shown === "1" ? "" : "s"}` : (UNITS[unit] ?? unit);
      return `${sign}${shown}${name === "%" ? "" : unitDisplay === "narrow" ? "" : " "}${name}`;
    }
    return sign + shown;
  }
  formatToParts(value) {
    return [{ type: "literal", value: this.format(value) }];
  }
  resolvedOptions() {
    return { locale: this.locale, numberingSystem: "latn", ...this.options };
  }
}

const grouped = (digits) => {
  const [whole, fraction] = digits.split(".");
  return whole.replace(/\B(?=(\d{3})+$)/g, ",") + (fraction === undefined ? "" : `.${fraction}`);
};

// Compares letters before case, accents after letters, numbers by value if requested.
class Collator extends Formatter {
  constructor(locale, options = {}) {
    super(locale);
    this.options = { sensitivity: "variant", numeric: false, ...options };
    this.compare = (a, b) => this.#compare(String(a), String(b));
  }
  #compare(a, b) {
    const { sensitivity, numeric } = this.options;
    const [left, right] = [decomposed(a), decomposed(b)];
    const plain = (value) => value.replace(/\p{M}/gu, "");
    const [first, second] = [plain(left), plain(right)];
    const base = (numeric ? compareNumeric : order)(first.toLowerCase(), second.toLowerCase());
    if (base || sensitivity === "base") return base;
    const accent = sensitivity === "case" ? 0 : compareMarks(left, right);
    if (accent || sensitivity === "accent") return accent;
    return -order(first, second);
  }
  resolvedOptions() {
    return { locale: this.locale, usage: "sort", ...this.options };
  }
}

// Letters followed by their accents. Letters that Unicode does not decompose sort like these.
const LETTERS = { ø: "o\u0338", ł: "l\u0335", đ: "d\u0335", ð: "d\u0361", ħ: "h\u0335", ı: "i\u0361", æ: "a\u0361e", œ: "o\u0361e", ß: "s\u0361s" };
const TAKEN_APART = /[øłđðħıæœß]/giu;
const decomposed = (value) =>
  value.normalize("NFD").replace(TAKEN_APART, (letter) => {
    const small = letter.toLowerCase();
    return small === letter ? LETTERS[small] : (LETTERS[small] ?? letter).toUpperCase();
  });

// The accents of each letter in turn; a letter without one comes first.
const compareMarks = (a, b) => {
  const marks = (value) => value.match(/\P{M}\p{M}*/gu)?.map((letter) => letter.replace(/^./u, "")) ?? [];
  const [left, right] = [marks(a), marks(b)];
  const at = left.findIndex((mark, index) => mark !== right[index]);
  return at < 0 ? 0 : left[at] < (right[at] ?? "") ? -1 : 1;
};

const rank = (c) => (/[\p{L}]/u.test(c) ? 3 : /\d/.test(c) ? 2 : /\s/.test(c) ? 0 : 1);
const order = (a, b) => {
  const [left, right] = [[...a], [...b]];
  for (let at = 0; at < Math.min(left.length, right.length); at++) {
    if (left[at] === right[at]) continue;
    const byKind = rank(left[at]) - rank(right[at]);
    return byKind ? Math.sign(byKind) : left[at] < right[at] ? -1 : 1;
  }
  return Math.sign(left.length - right.length);
};
function compareNumeric(a, b) {
  const split = (value) => value.match(/\d+|\D+/g) ?? [];
  const [left, right] = [split(a), split(b)];
  for (let at = 0; at < Math.min(left.length, right.length); at++) {
    const bothNumbers = /^\d/.test(left[at]) && /^\d/.test(right[at]);
    const result = bothNumbers ? Math.sign(Number(left[at]) - Number(right[at])) : order(left[at], right[at]);
    if (result) return result;
  }
  return Math.sign(left.length - right.length);
}

// Lower case before upper case for the same letter, as in English.
const compareAscii = (a, b) => order(a.toLowerCase(), b.toLowerCase()) || -order(a, b);

// The default collator: without a locale or options.
let usual = null;
const compareUsually = (a, b) => {
  const isAscii = /^[\x00-\x7f]*$/.test(a) && /^[\x00-\x7f]*$/.test(b);
  return isAscii ? compareAscii(a, b) : (usual ??= new Collator()).compare(a, b);
};

class RelativeTimeFormat extends Formatter {
  constructor(locale, options = {}) {
    super(locale);
    this.options = { numeric: "always", style: "long", ...options };
  }
  format(value, unit) {
    const name = String(unit).replace(/s$/, "");
    const amount = Math.abs(value);
    if (this.options.numeric === "auto") {
      const special = { day: { "-1": "yesterday", 0: "today", 1: "tomorrow" } }[name]?.[value] ?? { "-1": `last ${name}`, 0: name === "second" ? "now" : `this ${name}`, 1: `next ${name}` }[value];
      if (special && !(["second", "minute", "hour"].includes(name) && value !== 0)) return special;
    }
    const short = { second: "sec.", minute: "min.", hour: "hr.", month: "mo.", year: "yr.", week: "wk.", quarter: "qtr." };
    const shown = this.options.style === "long" ? `${name}${amount === 1 ? "" : "s"}` : (short[name] ?? `${name}${amount === 1 ? "" : "s"}`);
    const number = new NumberFormat(this.locale).format(amount);
    return value < 0 || Object.is(value, -0) ? `${number} ${shown} ago` : `in ${number} ${shown}`;
  }
  resolvedOptions() {
    return { locale: this.locale, ...this.options };
  }
}

class PluralRules extends Formatter {
  constructor(locale, options = {}) {
    super(locale);
    this.options = { type: "cardinal", ...options };
  }
  select(number) {
    if (this.options.type !== "ordinal") return number === 1 ? "one" : "other";
    const [last, lastTwo] = [number % 10, number % 100];
    if (last === 1 && lastTwo !== 11) return "one";
    if (last === 2 && lastTwo !== 12) return "two";
    return last === 3 && lastTwo !== 13 ? "few" : "other";
  }
  resolvedOptions() {
    return { locale: this.locale, ...this.options };
  }
}

class ListFormat extends Formatter {
  constructor(locale, options = {}) {
    super(locale);
    this.options = { type: "conjunction", style: "long", ...options };
  }
  format(items) {
    const list = [...items].map(String);
    const word = this.options.type === "disjunction" ? "or" : this.options.style === "narrow" ? "" : this.options.style === "short" ? "&" : "and";
    if (this.options.type === "unit" || !word) return list.join(", ");
    if (list.length < 3) return list.join(` ${word} `);
    return `${list.slice(0, -1).join(", ")}, ${word} ${list.at(-1)}`;
  }
}

class Segmenter extends Formatter {
  constructor(locale, options = {}) {
    super(locale);
    this.granularity = options.granularity ?? "grapheme";
  }
  segment(input) {
    const string = String(input);
    const ends = text.segments(string.toWellFormed(), this.granularity);
    const list = [];
    let index = 0;
    for (const [length, isWordLike] of ends) {
      const entry = { segment: string.slice(index, index + length), index, input: string };
      if (this.granularity === "word") entry.isWordLike = isWordLike === 1;
      list.push(entry);
      index += length;
    }
    return { [Symbol.iterator]: () => list[Symbol.iterator](), containing: (at = 0) => list.find((entry) => at >= entry.index && at < entry.index + entry.segment.length) };
  }
  resolvedOptions() {
    return { locale: this.locale, granularity: this.granularity };
  }
}

class DisplayNames extends Formatter {
  of(code) {
    return String(code);
  }
}

class Locale {
  constructor(tag) {
    this.baseName = String(tag);
    [this.language, this.region] = this.baseName.split("-");
  }
  toString() {
    return this.baseName;
  }
}

// The `toLocale…` methods of dates and numbers.
function localized(value, method, locale, options = {}) {
  if (value instanceof Date) {
    if (Number.isNaN(value.getTime())) return "Invalid Date";
    const chosen = { ...options };
    const has = (keys) => keys.some((key) => chosen[key] !== undefined);
    const isStyled = chosen.dateStyle !== undefined || chosen.timeStyle !== undefined;
    const wantsDate = method !== "toLocaleTimeString";
    const wantsTime = method !== "toLocaleDateString";
    if (!isStyled && !has(DATE_KEYS) && !has(TIME_KEYS)) {
      if (wantsDate) Object.assign(chosen, { year: "numeric", month: "numeric", day: "numeric" });
      if (wantsTime) Object.assign(chosen, { hour: "numeric", minute: "2-digit", second: "2-digit" });
    } else if (!isStyled && method === "toLocaleDateString" && !has(DATE_KEYS)) Object.assign(chosen, { year: "numeric", month: "numeric", day: "numeric" });
    else if (!isStyled && method === "toLocaleTimeString" && !has(TIME_KEYS)) Object.assign(chosen, { hour: "numeric", minute: "2-digit", second: "2-digit" });
    return new DateTimeFormat(locale, chosen).format(value);
  }
  return new NumberFormat(locale, options).format(value.valueOf());
}

// Three of them may be called without `new`.
const callable = (Class) => new Proxy(Class, { apply: (target, self, args) => new target(...args) });

module.exports = { DateTimeFormat: callable(DateTimeFormat), NumberFormat: callable(NumberFormat), Collator: callable(Collator), RelativeTimeFormat, PluralRules, ListFormat, Segmenter, DisplayNames, Locale, localized, compareUsually, getCanonicalLocales: (locales) => [locales ?? []].flat(), supportedValuesOf: () => [] };
