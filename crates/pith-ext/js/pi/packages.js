// `DefaultPackageManager` and `ProjectTrustStore`: packages and trust as the settings of the user have them.
//
// Installing is the work of `pith install` and its companions, which say what they run.

const owners = require("internal/owners");
const state = require("internal/state");

const path = () => require("path");
const fs = () => require("fs");

// The name of an npm package without version, a repository without ref, or an absolute path.
function identify(source, base) {
  if (source.startsWith("npm:")) return { type: "npm", name: /^(@?[^@]+)/.exec(source.slice(4))[1] };
  const git = /^(?:git:|https?:\/\/|ssh:\/\/|git@)/.test(source);
  if (!git) return { type: "local", name: path().resolve(base, source.replace(/^~(?=\/|$)/, require("os").homedir())) };
  const plain = source.replace(/^git:/, "").replace(/^[a-z+]+:\/\//, "").replace(/^[^@/]+@/, "").replace(/^([^/:]+):/, "$1/");
  return { type: "git", name: plain.replace(/@[^/@]*$/, "").replace(/\.git$/, "").replace(/\/$/, "") };
}

const sourceOf = (entry) => (typeof entry === "string" ? entry : entry?.source);

// `.agents/skills` of a directory and those above it, up to its repository.
function sharedSkills(cwd) {
  const found = [];
  for (let at = path().resolve(cwd); ; at = path().dirname(at)) {
    found.push(path().join(at, ".agents", "skills"));
    if (fs().existsSync(path().join(at, ".git")) || path().dirname(at) === at) return found;
  }
}

class DefaultPackageManager {
  constructor({ cwd = state.config.cwd, agentDir = state.config.agentDir, settingsManager } = {}) {
    this.cwd = cwd;
    this.agentDir = agentDir;
    this.settings = settingsManager ?? require("internal/settings-manager").SettingsManager.create(cwd, agentDir);
    this.progress = undefined;
  }

  setProgressCallback(callback) {
    this.progress = callback;
  }
  #base(scope) {
    return scope === "project" ? path().join(this.cwd, state.config.configDirName) : this.agentDir;
  }
  #entries(scope) {
    const settings = scope === "project" ? this.settings.getProjectSettings() : this.settings.getGlobalSettings();
    return Array.isArray(settings.packages) ? settings.packages : [];
  }
  #save(scope, packages) {
    this.settings.change(scope === "project" ? "project" : "global", ["packages"], packages);
  }

  getInstalledPath(source, scope) {
    const { type, name } = identify(source, this.#base(scope));
    const place = type === "local" ? name : path().join(this.#base(scope), ...(type === "npm" ? ["npm", "node_modules", name] : ["git", name]));
    return fs().existsSync(place) ? place : undefined;
  }
  listConfiguredPackages() {
    return ["user", "project"].flatMap((scope) =>
      this.#entries(scope).filter(sourceOf).map((entry) => ({ source: sourceOf(entry), scope, filtered: typeof entry === "object", installedPath: this.getInstalledPath(sourceOf(entry), scope) })),
    );
  }
  addSourceToSettings(source, { local = false } = {}) {
    const scope = local ? "project" : "user";
    const same = (entry) => identify(sourceOf(entry), this.#base(scope)).name === identify(source, this.#base(scope)).name;
    const entries = this.#entries(scope);
    if (entries.some((entry) => sourceOf(entry) === source)) return false;
    this.#save(scope, [...entries.filter((entry) => !same(entry)), source]);
    return true;
  }
  removeSourceFromSettings(source, { local = false } = {}) {
    const scope = local ? "project" : "user";
    const entries = this.#entries(scope);
    const kept = entries.filter((entry) => identify(sourceOf(entry), this.#base(scope)).name !== identify(source, this.#base(scope)).name);
    if (kept.length !== entries.length) this.#save(scope, kept);
    return kept.length !== entries.length;
  }

  async #run(action, source, local) {
    this.progress?.({ type: "start", action, source: source ?? "" });
    const args = [action, ...(source ? [source] : []), ...(local ? ["-l"] : []), ...(action === "install" ? ["--yes"] : [])];
    const { code, stderr } = await require("internal/exec").exec(owners.now(), process.execPath, args, { cwd: this.cwd });
    this.progress?.({ type: code === 0 ? "complete" : "error", action, source: source ?? "", message: code === 0 ? undefined : stderr.trim() });
    if (code !== 0) throw new Error(stderr.trim() || `pith ${action} failed`);
    await this.settings.reload();
  }
  async install() {
    throw owners.unavailable("DefaultPackageManager.install", "is not available in pith without changing the settings: use installAndPersist");
  }
  async remove() {
    throw owners.unavailable("DefaultPackageManager.remove", "is not available in pith without changing the settings: use removeAndPersist");
  }
  installAndPersist(source, { local = false } = {}) {
    return this.#run("install", source, local);
  }
  async removeAndPersist(source, { local = false } = {}) {
    const known = this.listConfiguredPackages().some((entry) => entry.scope === (local ? "project" : "user") && identify(entry.source, this.#base(entry.scope)).name === identify(source, this.#base(entry.scope)).name);
    if (known) await this.#run("remove", source, local);
    return known;
  }
  update(source) {
    return this.#run("update", source, false);
  }
  async checkForAvailableUpdates() {
    throw owners.unavailable("DefaultPackageManager.checkForAvailableUpdates");
  }
  // What is installed. A package that is not is left out, unless `onMissing` wants it: starting a program needs a word.
  async resolve(onMissing) {
    const { Resources } = require("internal/installed");
    const resources = new Resources();
    const seen = new Set();
    for (const scope of ["project", "user"]) {
      for (const entry of this.#entries(scope).filter(sourceOf)) {
        const { name } = identify(sourceOf(entry), this.#base(scope));
        if (seen.has(name)) continue;
        seen.add(name);
        await this.#addPackage(resources, entry, scope, onMissing);
      }
    }
    const absolute = (entry, base) => identify(entry, base).name;
    const shared = path().join(require("os").homedir(), ".agents", "skills");
    if (this.settings.isProjectTrusted()) {
      const above = sharedSkills(this.cwd).filter((place) => place !== shared);
      resources.addDirectory(this.#base("project"), "project", this.settings.getProjectSettings(), absolute, above);
    }
    resources.addDirectory(this.#base("user"), "user", this.settings.getGlobalSettings(), absolute, [shared]);
    return resources.all();
  }
  async resolveExtensionSources(sources, { local = false, temporary = false } = {}) {
    const { Resources } = require("internal/installed");
    const resources = new Resources();
    const scope = temporary ? "temporary" : local ? "project" : "user";
    for (const source of sources) await this.#addPackage(resources, source, scope);
    return resources.all();
  }
  async #addPackage(resources, entry, scope, onMissing) {
    const source = sourceOf(entry);
    const metadata = { source, scope, origin: "package" };
    const place = scope === "temporary" ? this.#temporary(source) : this.getInstalledPath(source, scope);
    if (place) return resources.addLocal(place, metadata, typeof entry === "object" ? entry : undefined);
    const action = await onMissing?.(source);
    if (action === "error") throw new Error(`Missing source: ${source}`);
    if (action !== "install") return;
    await this.installAndPersist(source, { local: scope === "project" });
    return this.#addPackage(resources, entry, scope);
  }
  // What `-e` names is a path from the working directory, or an installed package.
  #temporary(source) {
    const { type, name } = identify(source, this.cwd);
    return type === "local" ? name : (this.getInstalledPath(source, "user") ?? this.getInstalledPath(source, "project"));
  }
}

// What a project can bring that needs trust.
const RESOURCES = ["settings.json", "extensions", "skills", "prompts", "themes", "SYSTEM.md", "APPEND_SYSTEM.md"];
function hasTrustRequiringProjectResources(cwd) {
  const own = path().join(cwd, state.config.configDirName);
  if (path().resolve(own) !== path().resolve(state.config.agentDir) && RESOURCES.some((name) => fs().existsSync(path().join(own, name)))) return true;
  const home = path().join(require("os").homedir(), ".agents", "skills");
  for (let at = path().resolve(cwd); ; at = path().dirname(at)) {
    const skills = path().join(at, ".agents", "skills");
    if (skills !== home && fs().existsSync(skills)) return true;
    if (path().dirname(at) === at) return false;
  }
}

// Decisions in `trust.json`; a directory has the decision of the nearest one above it.
class ProjectTrustStore {
  constructor(agentDir = state.config.agentDir) {
    this.file = path().join(agentDir, "trust.json");
  }
  #read() {
    return fs().existsSync(this.file) ? JSON.parse(fs().readFileSync(this.file, "utf8")) : {};
  }
  getEntry(cwd) {
    const known = this.#read();
    for (let at = host.realpath(path().resolve(cwd)); ; at = path().dirname(at)) {
      if (typeof known[at] === "boolean") return { path: at, decision: known[at] };
      if (path().dirname(at) === at) return null;
    }
  }
  get(cwd) {
    return this.getEntry(cwd)?.decision ?? null;
  }
  set(cwd, decision) {
    this.setMany([{ path: cwd, decision }]);
  }
  setMany(updates) {
    const known = this.#read();
    for (const { path: cwd, decision } of updates) {
      const directory = host.realpath(path().resolve(cwd));
      if (decision === null) delete known[directory];
      else known[directory] = decision;
    }
    const next = `${this.file}.${process.pid}.tmp`;
    fs().mkdirSync(path().dirname(this.file), { recursive: true });
    fs().writeFileSync(next, `${JSON.stringify(known, null, 2)}\n`);
    fs().renameSync(next, this.file);
  }
}

module.exports = { DefaultPackageManager, ProjectTrustStore, hasTrustRequiringProjectResources };
