// Skills, prompt templates and instructions as files, for extensions that put a prompt of their own together.

const state = require("internal/state");

const fs = () => require("fs");
const path = () => require("path");

const readText = (file) => {
  try {
    return fs().readFileSync(file, "utf8");
  } catch {
    return null;
  }
};

const info = (file, source, baseDir) => {
  const isScope = source === "user" || source === "project";
  return { path: file, source: isScope || source === "path" ? "local" : source, scope: isScope ? source : "temporary", origin: "top-level", baseDir };
};

function readSkill(file, source) {
  const isDeclared = path().basename(file) === "SKILL.md";
  const text = readText(file);
  if (text === null) return { diagnostics: [{ type: "warning", message: "the file cannot be read", path: file }] };
  const { frontmatter } = require("pi-coding-agent").parseFrontmatter(text);
  const description = typeof frontmatter.description === "string" ? frontmatter.description.trim() : "";
  if (!description && !isDeclared) return { diagnostics: [] };
  const baseDir = path().dirname(file);
  const name = typeof frontmatter.name === "string" && frontmatter.name ? frontmatter.name : path().basename(baseDir);
  const diagnostics = problems(name, description).map((message) => ({ type: "warning", message, path: file }));
  if (!description) return { diagnostics };
  return { diagnostics, skill: { name, description, filePath: file, baseDir, sourceInfo: info(file, source, baseDir), disableModelInvocation: frontmatter["disable-model-invocation"] === true } };
}

const problems = (name, description) => [
  ...(description ? [] : ["description is required"]),
  ...(description.length > 1024 ? [`description exceeds 1024 characters (${description.length})`] : []),
  ...(name.length > 64 ? [`name exceeds 64 characters (${name.length})`] : []),
  ...(/^[a-z0-9]+(-[a-z0-9]+)*$/.test(name) ? [] : ["name must consist of lowercase letters and digits, with single hyphens between them"]),
];

// A directory with SKILL.md is one skill; others are searched. Plain .md files count in the first directory only.
function loadSkillsFromDir({ dir, source = "path" }, isFirst = true) {
  const found = { skills: [], diagnostics: [] };
  if (!fs().existsSync(dir)) return found;
  const take = ({ skill, diagnostics }) => {
    if (skill) found.skills.push(skill);
    found.diagnostics.push(...diagnostics);
  };
  const declared = path().join(dir, "SKILL.md");
  if (fs().existsSync(declared)) {
    take(readSkill(declared, source));
    return found;
  }
  for (const name of fs().readdirSync(dir).sort()) {
    const file = path().join(dir, name);
    if (name.startsWith(".") || name === "node_modules" || !fs().existsSync(file)) continue;
    if (fs().statSync(file).isDirectory()) {
      const inner = loadSkillsFromDir({ dir: file, source }, false);
      found.skills.push(...inner.skills);
      found.diagnostics.push(...inner.diagnostics);
    } else if (isFirst && name.endsWith(".md")) take(readSkill(file, source));
  }
  return found;
}

// The skills of the user, the project and further paths; the first of a name is kept.
function loadSkills({ cwd = state.config.cwd, agentDir = state.config.agentDir, skillPaths = [], includeDefaults = true } = {}) {
  const { join, resolve } = path();
  const places = includeDefaults ? [["user", join(agentDir, "skills")], ["project", join(cwd, state.config.configDirName, "skills")]] : [];
  for (const given of skillPaths) places.push(["path", resolve(cwd, String(given).replace(/^~(?=\/|$)/, require("os").homedir()))]);
  const byName = new Map();
  const diagnostics = [];
  for (const [source, place] of places) {
    const isFile = fs().existsSync(place) && fs().statSync(place).isFile();
    const one = isFile ? readSkill(place, source) : null;
    const found = one ? { skills: one.skill ? [one.skill] : [], diagnostics: one.diagnostics } : loadSkillsFromDir({ dir: place, source });
    diagnostics.push(...found.diagnostics);
    for (const skill of found.skills) {
      const known = byName.get(skill.name);
      if (known) diagnostics.push({ type: "collision", message: `name "${skill.name}" collision`, path: skill.filePath, collision: { resourceType: "skill", name: skill.name, winnerPath: known.filePath, loserPath: skill.filePath } });
      else byName.set(skill.name, skill);
    }
  }
  return { skills: [...byName.values()], diagnostics };
}

const escapeXml = (text) => String(text).replace(/[&<>"']/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;" })[c]);

function formatSkillsForPrompt(skills, fileReadTool = "read") {
  const visible = skills.filter((skill) => !skill.disableModelInvocation);
  if (!visible.length) return "";
  const how = fileReadTool === "bash" ? "print its file with bash" : "read its file";
  const items = visible.flatMap(({ name, description, filePath }) => ["  <skill>", `    <name>${escapeXml(name)}</name>`, `    <description>${escapeXml(description)}</description>`, `    <location>${escapeXml(filePath)}</location>`, "  </skill>"]);
  return ["", "", `Skills are instructions for particular tasks. When a task matches a description, ${how} before you begin; paths in it are relative to its directory.`, "", "<available_skills>", ...items, "</available_skills>"].join("\n");
}

const CONTEXT_FILES = ["AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD"];

// Instructions of the user, then those of the directories from the root down to `cwd`.
function loadProjectContextFiles({ cwd = state.config.cwd, agentDir = state.config.agentDir } = {}) {
  const directories = [];
  for (let at = path().resolve(cwd); ; at = path().dirname(at)) {
    directories.unshift(at);
    if (path().dirname(at) === at) break;
  }
  const found = new Map();
  for (const directory of [agentDir, ...directories]) {
    const file = CONTEXT_FILES.map((name) => path().join(directory, name)).find((name) => fs().existsSync(name));
    const content = file && !found.has(file) ? readText(file) : null;
    if (content !== null) found.set(file, content);
  }
  return [...found].map(([file, content]) => ({ path: file, content }));
}

function loadPromptsFromDir(dir, source) {
  if (!fs().existsSync(dir)) return [];
  const names = fs().statSync(dir).isDirectory() ? fs().readdirSync(dir).sort().map((name) => path().join(dir, name)) : [dir];
  return names.filter((file) => file.endsWith(".md")).flatMap((file) => {
    const text = readText(file);
    if (text === null) return [];
    const { frontmatter, body } = require("pi-coding-agent").parseFrontmatter(text);
    const first = body.split("\n").find((line) => line.trim()) ?? "";
    const description = typeof frontmatter.description === "string" ? frontmatter.description : first.slice(0, 60);
    return [{ name: path().basename(file, ".md"), description, argumentHint: frontmatter["argument-hint"], content: body, filePath: file, sourceInfo: info(file, source, path().dirname(file)) }];
  });
}

// What the session does not trust, a nested one does not either. While extensions are being loaded nothing is known.
const isSessionTrusting = () => {
  try {
    return require("internal/ops").query("state").isProjectTrusted === true;
  } catch {
    return false;
  }
};

// What a nested session is given. Extensions are not loaded again: the tools of a nested session are its `customTools`.
class DefaultResourceLoader {
  constructor(options = {}) {
    this.options = { ...options, cwd: options.cwd ?? state.config.cwd, agentDir: options.agentDir ?? state.config.agentDir };
    this.found = null;
    this.more = { skillPaths: [], promptPaths: [] };
  }

  #read() {
    const { cwd, agentDir, noSkills, noPromptTemplates, noContextFiles, additionalSkillPaths = [], additionalPromptTemplatePaths = [] } = this.options;
    const { join } = path();
    const own = join(cwd, state.config.configDirName);
    const isTrusted = isSessionTrusting() && (this.options.settingsManager?.isProjectTrusted?.() ?? true);
    const more = this.more.skillPaths.map(({ path: place }) => place);
    const file = (name) => [...(isTrusted ? [join(own, name)] : []), join(agentDir, name)].find((place) => fs().existsSync(place));
    const text = (given) => (given && fs().existsSync(given) && fs().statSync(given).isFile() ? readText(given) : given);
    const projectSkills = isTrusted ? [join(own, "skills")] : [];
    const skills = noSkills ? loadSkills({ cwd, agentDir, includeDefaults: false, skillPaths: additionalSkillPaths }) : loadSkills({ cwd, agentDir, includeDefaults: false, skillPaths: [join(agentDir, "skills"), ...projectSkills, ...additionalSkillPaths, ...more] });
    const promptDirs = [...(noPromptTemplates ? [] : [["user", join(agentDir, "prompts")], ...(isTrusted ? [["project", join(own, "prompts")]] : [])]), ...[...additionalPromptTemplatePaths, ...this.more.promptPaths.map(({ path: place }) => place)].map((place) => ["path", place])];
    const prompts = { prompts: promptDirs.flatMap(([source, place]) => loadPromptsFromDir(place, source)), diagnostics: [] };
    const agentsFiles = { agentsFiles: noContextFiles ? [] : loadProjectContextFiles({ cwd, agentDir }) };
    const systemFile = this.options.systemPrompt === undefined ? file("SYSTEM.md") : undefined;
    const appendFile = this.options.appendSystemPrompt === undefined ? file("APPEND_SYSTEM.md") : undefined;
    const system = text(this.options.systemPrompt) ?? (systemFile ? readText(systemFile) : undefined) ?? undefined;
    const append = appendFile ? [readText(appendFile)] : [this.options.appendSystemPrompt ?? []].flat().map(text);
    const over = (name, base) => this.options[name]?.(base) ?? base;
    this.found = {
      skills: over("skillsOverride", skills),
      prompts: over("promptsOverride", prompts),
      agentsFiles: over("agentsFilesOverride", agentsFiles),
      system: this.options.systemPromptOverride ? this.options.systemPromptOverride(system) : system,
      append: over("appendSystemPromptOverride", append),
      systemFile, appendFile,
    };
    return this.found;
  }
  get #now() {
    return this.found ?? this.#read();
  }

  async reload() {
    this.#read();
  }
  async loadProjectTrustExtensions() {
    return this.getExtensions();
  }
  getExtensions() {
    const base = { extensions: [], errors: [], runtime: {} };
    return this.options.extensionsOverride?.(base) ?? base;
  }
  getSkills() {
    return this.#now.skills;
  }
  getPrompts() {
    return this.#now.prompts;
  }
  getThemes() {
    return { themes: [], diagnostics: [] };
  }
  getAgentsFiles() {
    return this.#now.agentsFiles;
  }
  getSystemPrompt() {
    return this.#now.system;
  }
  getSystemPromptSource() {
    return this.#now.systemFile ? { path: this.#now.systemFile } : undefined;
  }
  getAppendSystemPrompt() {
    return this.#now.append;
  }
  getAppendSystemPromptSources() {
    return this.#now.appendFile ? [{ path: this.#now.appendFile }] : [];
  }
  getPathMetadata() {
    return new Map();
  }
  extendResources({ skillPaths = [], promptPaths = [] } = {}) {
    this.more.skillPaths.push(...skillPaths);
    this.more.promptPaths.push(...promptPaths);
    this.found = null;
  }
}

module.exports = { DefaultResourceLoader, formatSkillsForPrompt, loadProjectContextFiles, loadPromptsFromDir, loadSkills, loadSkillsFromDir };
