// `names DIRECTORY`: what the packages of pi installed there export, as JSON.
// `table DIRECTORY`: the names of both versions beside what pith has, as Markdown. Fails if pith lacks one.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [, , task, directory] = process.argv;

// With pi, extensions get the older superset of pi-ai under its plain name.
const PACKAGES = { "pi-coding-agent": ["."], "pi-agent-core": ["."], "pi-ai": [".", "./compat"], "pi-ai/oauth": ["./oauth"], "pi-tui": ["."] };

async function names() {
  const found = {};
  for (const [name, entries] of Object.entries(PACKAGES)) {
    const root = join(directory, "node_modules/@earendil-works", name.split("/")[0]);
    const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    const all = new Set();
    for (const entry of entries) {
      const file = manifest.exports ? manifest.exports[entry]?.import : manifest.main;
      if (file) for (const key of Object.keys(await import(pathToFileURL(join(root, file)).href))) all.add(key);
    }
    found[name] = [...all].sort();
  }
  console.log(JSON.stringify(found));
  process.exit(0);
}

function table() {
  const read = (name) => JSON.parse(readFileSync(join(directory, `${name}.json`), "utf8"));
  const [older, newer, pith] = [read("0.74.2"), read("0.87.1"), read("pith")];
  const missing = [];
  for (const name of Object.keys(PACKAGES)) {
    const all = [...new Set([...older[name], ...newer[name]])].sort((a, b) => (a < b ? -1 : 1));
    missing.push(...all.filter((key) => !(key in pith[name])).map((key) => `${name}: ${key}`));
    console.log(`\n## ${name}\n\n${older[name].length} names in 0.74.2, ${newer[name].length} in 0.87.1.\n`);
    console.log("| in pith | names |\n|---|---|");
    for (const kind of ["works", "headless stub", "refuses"]) {
      const of = all.filter((key) => pith[name][key] === kind);
      if (of.length) console.log(`| ${kind} (${of.length}) | ${of.map((key) => `\`${key}\``).join(" ")} |`);
    }
  }
  if (missing.length) {
    console.error(`missing in pith:\n${missing.join("\n")}`);
    process.exit(1);
  }
}

await { names, table }[task]();
