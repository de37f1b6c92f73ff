// What packages, settings and directories bring: the files of extensions, skills, prompts and themes, and whether the
// settings turn each of them on.

const fs = () => require("fs");
const path = () => require("path");

const TYPES = ["extensions", "skills", "prompts", "themes"];
const ENDINGS = { extensions: /\.[cm]?[jt]s$/, skills: /\.md$/, prompts: /\.md$/, themes: /\.json$/ };

const isOverride = (entry) => /^[!+-]/.test(entry);
const isGlob = (entry) => /[*?]/.test(entry);
const isDirectory = (place) => fs().statSync(place, { throwIfNoEntry: false })?.isDirectory() === true;
const names = (directory) => fs().readdirSync(directory).filter((name) => !name.startsWith(".") && name !== "node_modules").sort();

// The `pi` part of a package.json, if there is one.
function manifestOf(root) {
  try {
    const { pi } = JSON.parse(fs().readFileSync(path().join(root, "package.json"), "utf8"));
    return typeof pi === "object" && pi !== null ? pi : undefined;
  } catch {
    return undefined;
  }
}

const listOf = (value) => (Array.isArray(value) ? value.filter((entry) => typeof entry === "string") : undefined);

// The entry points of a directory that is one extension.
function entryPoints(directory) {
  const listed = listOf(manifestOf(directory)?.extensions)?.map((entry) => path().resolve(directory, entry)).filter((file) => fs().existsSync(file));
  if (listed?.length) return listed;
  const index = ["index.ts", "index.js"].map((name) => path().join(directory, name)).find((file) => fs().existsSync(file));
  return index ? [index] : [];
}

function extensionFiles(directory) {
  const own = entryPoints(directory);
  if (own.length) return own;
  return names(directory).flatMap((name) => {
    const place = path().join(directory, name);
    if (isDirectory(place)) return entryPoints(place);
    return /\.[jt]s$/.test(name) && !name.endsWith(".d.ts") ? [place] : [];
  });
}

// A directory with SKILL.md is one skill; others are searched. Plain .md files count in the first directory only.
function skillFiles(directory, isFirst = true) {
  const declared = path().join(directory, "SKILL.md");
  if (fs().existsSync(declared)) return [declared];
  return names(directory).flatMap((name) => {
    const place = path().join(directory, name);
    if (isDirectory(place)) return skillFiles(place, false);
    return isFirst && name.endsWith(".md") ? [place] : [];
  });
}

// The files of a type at a place, which may be one of them or a directory.
function filesAt(place, type) {
  if (!fs().existsSync(place)) return [];
  if (!isDirectory(place)) return ENDINGS[type].test(place) ? [place] : [];
  if (type === "extensions") return extensionFiles(place);
  if (type === "skills") return skillFiles(place);
  return names(place).filter((name) => ENDINGS[type].test(name)).map((name) => path().join(place, name));
}

// The texts under which an entry may mean a file; a SKILL.md is also meant by its directory.
function meanings(file, base) {
  const places = path().basename(file) === "SKILL.md" ? [file, path().dirname(file)] : [file];
  return places.flatMap((place) => [path().relative(base, place), place]);
}

const plain = (pattern) => pattern.replace(/^\.\//, "").replace(/\/$/, "");
const isNamed = (file, base, patterns) => meanings(file, base).some((name) => patterns.some((pattern) => plain(pattern) === name));
const isMatched = (file, base, patterns) =>
  meanings(file, base).some((name) => [name, path().basename(name)].some((text) => patterns.some((pattern) => path().matchesGlob(text, plain(pattern)))));

// Whether a list turns a file on: entries without a mark choose, `!` excludes, `+` and `-` decide about one path.
function isChosen(file, base, patterns) {
  const marked = (mark) => patterns.filter((pattern) => pattern.startsWith(mark)).map((pattern) => pattern.slice(1));
  const wanted = patterns.filter((pattern) => !isOverride(pattern));
  const isIn = (wanted.length === 0 || isMatched(file, base, wanted)) && !isMatched(file, base, marked("!"));
  return (isIn || isNamed(file, base, marked("+"))) && !isNamed(file, base, marked("-"));
}

class Resources {
  #found = Object.fromEntries(TYPES.map((type) => [type, new Map()]));

  // The first one to name a file decides about it.
  #add(type, file, enabled, metadata) {
    if (!this.#found[type].has(file)) this.#found[type].set(file, { path: file, enabled, metadata });
  }

  // `chosen` is the settings' selection from a package: absent for all of a type, empty for none.
  addPackage(root, metadata, chosen) {
    const manifest = manifestOf(root);
    const whole = { ...metadata, baseDir: root };
    for (const type of TYPES) {
      const listed = listOf(manifest?.[type]);
      if (!listed && manifest && !chosen) continue;
      const places = listed ? listed.filter((entry) => !isOverride(entry)).flatMap((entry) => (isGlob(entry) ? fs().globSync(plain(entry), { cwd: root }) : [entry])) : [type];
      const overrides = (listed ?? []).filter(isOverride);
      const files = places.flatMap((place) => filesAt(path().resolve(root, place), type)).filter((file) => isChosen(file, root, overrides));
      const patterns = listOf(chosen?.[type]);
      for (const file of files) this.#add(type, file, !patterns || (patterns.length > 0 && isChosen(file, root, patterns)), whole);
    }
  }

  // A file or directory that settings or a command line name.
  addLocal(place, metadata, chosen) {
    if (isDirectory(place)) return this.addPackage(place, metadata, chosen);
    if (fs().existsSync(place)) this.#add("extensions", place, true, { ...metadata, baseDir: path().dirname(place) });
  }

  // What a list of the settings adds, and what lies in the directory of its type; skills also lie elsewhere.
  addDirectory(base, scope, settings, resolve, skillDirectories) {
    for (const type of TYPES) {
      const entries = listOf(settings[type]) ?? [];
      const patterns = entries.filter((entry) => isOverride(entry) || isGlob(entry));
      const added = entries.filter((entry) => !patterns.includes(entry)).flatMap((entry) => filesAt(resolve(entry, base), type));
      for (const file of added) this.#add(type, file, isChosen(file, base, patterns), { source: "local", scope, origin: "top-level" });
      const overrides = entries.filter(isOverride);
      const places = [path().join(base, type), ...(type === "skills" ? skillDirectories : [])];
      for (const file of places.flatMap((place) => filesAt(place, type))) this.#add(type, file, isChosen(file, base, overrides), { source: "auto", scope, origin: "top-level", baseDir: base });
    }
  }

  all() {
    return Object.fromEntries(TYPES.map((type) => [type, [...this.#found[type].values()]]));
  }
}

module.exports = { Resources };
