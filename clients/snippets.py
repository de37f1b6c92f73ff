#!/usr/bin/env python3
"""Runs the examples of docs/embedding.md, each in a home of its own, with pith on the PATH.

    clients/snippets.py path/to/pith
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
RUNNERS = {"bash": ["bash", "-eu"], "python": [sys.executable]}


def typescript(path, home):
    """Compiles a snippet beside the client and runs it."""
    client = ROOT / "clients" / "typescript"
    (home / "node_modules").mkdir()
    (home / "node_modules" / "pith-client").symlink_to(client)
    source = path.rename(path.with_suffix(".mts"))
    options = "--module nodenext --target es2022 --strict --skipLibCheck --types node --typeRoots".split()
    subprocess.run(["npx", "--silent", "tsc", *options, client / "node_modules" / "@types", source], cwd=client, check=True)
    return ["node", source.with_suffix(".mjs")]


def rust(path, home):
    """Compiles a snippet as a program that depends on the client, with the versions of the workspace."""
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).absolute()
    (home / "src").mkdir()
    path.rename(home / "src" / "main.rs")
    (home / "Cargo.lock").write_bytes((ROOT / "Cargo.lock").read_bytes())
    (home / "Cargo.toml").write_text(
        f"""[package]
name = "snippet"
edition = "2024"
[dependencies]
pith-client = {{ path = "{ROOT / "crates" / "pith-client"}" }}
tokio = {{ version = "1", features = ["rt", "macros"] }}
"""
    )
    subprocess.run(["cargo", "build", "--quiet", "--target-dir", target], cwd=home, check=True)
    return [target / "debug" / "snippet"]


COMPILERS = {"typescript": typescript, "rust": rust}


def run(number, language, text, pith):
    with tempfile.TemporaryDirectory() as name:
        home = pathlib.Path(name)
        (home / "bin").mkdir()
        (home / "bin" / "pith").symlink_to(pith)
        path = home / f"snippet-{number}.txt"
        path.write_text(text)
        compiler = COMPILERS.get(language)
        command = compiler(path, home) if compiler else [*RUNNERS[language], path]
        environment = {**os.environ, "HOME": name, "PITH_AGENT_DIR": f"{name}/agent"}
        environment["PATH"] = f"{home / 'bin'}:{os.environ['PATH']}"
        environment["PYTHONPATH"] = str(ROOT / "clients" / "python" / "src")
        result = subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, timeout=120)
        if result.returncode != 0 or not result.stdout.strip():
            sys.exit(f"snippet {number} ({language}): exit {result.returncode}\n{result.stdout}\n{result.stderr}")
        print(f"snippet {number} ({language}): ok, {len(result.stdout)} characters")


def main():
    text = (ROOT / "docs" / "embedding.md").read_text()
    snippets = re.findall(r"```(bash|python|typescript|rust)\n(.*?)```", text, re.S)
    for number, (language, snippet) in enumerate(snippets, 1):
        run(number, language, snippet, pathlib.Path(sys.argv[1]).resolve())


if __name__ == "__main__":
    main()
