// Writes to the file KINDS what pith has of pi's packages: `works`, `headless stub` or `refuses` per name.
import { writeFileSync } from "node:fs";
import * as oauth from "@earendil-works/pi-ai/oauth";
import * as ai from "@earendil-works/pi-ai";
import * as core from "@earendil-works/pi-agent-core";
import * as agent from "@earendil-works/pi-coding-agent";
import * as tui from "@earendil-works/pi-tui";

const KIND = Symbol.for("pith.export");
const kinds = (names) => Object.fromEntries(Object.keys(names).map((name) => [name, names[name]?.[KIND] ?? "works"]));

export default function () {
  const all = { "pi-coding-agent": agent, "pi-agent-core": core, "pi-ai": ai, "pi-ai/oauth": oauth, "pi-tui": tui };
  writeFileSync(process.env.KINDS, JSON.stringify(Object.fromEntries(Object.entries(all).map(([name, names]) => [name, kinds(names)]))));
}
