// Builds the package where it is installed from a directory: npm links such a package and gets no compiler for it.
import { execSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";

const run = (command) => execSync(command, { cwd: dirname(fileURLToPath(import.meta.url)), stdio: "inherit" });
if (!existsSync(new URL("node_modules/typescript", import.meta.url))) {
  run("npm install --include=dev --ignore-scripts --no-audit --no-fund --no-package-lock");
}
run("npm run build");
