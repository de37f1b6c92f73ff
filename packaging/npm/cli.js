#!/usr/bin/env node
// Starts the pith of this platform in place of this script. Hosts that run `node cli.js` talk to pith itself: it
// inherits stdin, stdout and stderr, and nothing stands in between.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { constants } from "node:os";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";

const platform = `${process.platform}-${process.arch}`;
const name = process.platform === "win32" ? "pith.exe" : "pith";
const binary = process.env.PITH_BINARY || fileURLToPath(new URL(`bin/${platform}/${name}`, import.meta.url));
if (!existsSync(binary)) {
  console.error(`pith: this package has no binary for ${platform}. Build pith and name it in PITH_BINARY.`);
  process.exit(1);
}

// The name it is called by chooses the dialect.
const argv0 = basename(process.argv[1] ?? "pith").replace(/\.[cm]?js$/, "");
const child = spawn(binary, process.argv.slice(2), { stdio: "inherit", argv0: argv0 === "cli" ? "pith" : argv0 });

child.on("error", (error) => {
  console.error(`pith: ${binary} cannot be started: ${error.message}`);
  process.exit(1);
});
for (const signal of ["SIGTERM", "SIGHUP", "SIGINT"]) {
  process.on(signal, () => {
    // A terminal sends Ctrl-C to both of us, and a second one would mean more than the first.
    if (signal !== "SIGINT" || !process.stdin.isTTY) child.kill(signal);
  });
}
child.on("exit", (code, signal) => process.exit(code ?? 128 + (constants.signals[signal] ?? 0)));
