#!/usr/bin/env python3
"""Published packages under pi and under pith, held against each other.

    compare.py --pith PITH --cache DIRECTORY --table FILE [NAME...]

Installs what packages.txt lists, and pi, with npm into the cache; what pi does is kept there too. Names narrow the run
down. Verdicts: `same`; `close` (other words, the same effect); `pi fails` (pi ends, or reports an error of the
extension, where pith does neither, and nothing else differs); `differs`. expected.json has the reasons of the last two,
which are in the table; one without a reason makes the run fail.
"""

import argparse
import concurrent.futures
import difflib
import hashlib
import json
import pathlib
import re
import subprocess
import sys

import observe

HERE = pathlib.Path(__file__).parent
PI = "@earendil-works/pi-coding-agent@0.87.1"
NODE = "node@22.23.3"
# What pi brings itself: an extension with a command, and a tool that extensions turn on if they turn on every tool.
OWN = {"commands": {"llama"}, "tools": {"powershell"}}
# Where two texts are this much alike, they say the same.
ALIKE = 0.6


def install(directory, *packages, scripts=False):
    mark = directory / "whole"
    if mark.exists():
        return True
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "package.json").write_text("{}")
    options = ["--silent", "--no-audit", "--no-fund", "--legacy-peer-deps"] + ([] if scripts else ["--ignore-scripts"])
    done = subprocess.run(["npm", "install", *options, *packages], cwd=directory, capture_output=True)
    if done.returncode == 0:
        mark.touch()
    return done.returncode == 0


def peer(cache):
    """The command that runs pi. It wants a newer Node than most systems have."""
    # The package fetches its program when it is installed.
    if not install(cache / "node", NODE, scripts=True) or not install(cache / "pi", PI):
        sys.exit(f"{NODE} or {PI} cannot be installed")
    node = cache / "node/node_modules/node/bin/node"
    return [str(node), str(cache / "pi/node_modules/@earendil-works/pi-coding-agent/dist/cli.js")]


def remembered(path, version, look):
    """What pi does with a package does not change, so it is looked at once."""
    if path.exists():
        known = json.loads(path.read_text())
        if known["version"] == version:
            return known["seen"]
    seen = look()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"version": version, "seen": seen}, indent=1))
    return seen


def compare(pi, pith):
    """Every difference as (weight, where, what pi does, what pith does); weight is `close` or `differs`."""
    if pi["load"] != "loads" or pith["load"] != "loads":
        if pi["load"] == "loads" or pith["load"] == "loads":
            yield "differs", "load", pi["load"], pith["load"]
        return
    for kind in ("tools", "commands"):
        ours = set(pith[kind])
        theirs = set(pi[kind]) - (OWN[kind] - ours)
        if ours != theirs:
            yield "differs", kind, sorted(theirs - ours), sorted(ours - theirs)
        # Built-in tools have descriptions of their own.
        for name in (ours & theirs) - observe.BUILTIN:
            if placeless(pi[kind][name]) != placeless(pith[kind][name]):
                yield "differs", f"{kind} {name}", pi[kind][name], pith[kind][name]
    steps = [("start", pi["start"], pith["start"])]
    for kind in ("calls", "runs"):
        for name in [name for name in pi[kind] if name in pith[kind]]:
            steps.append((f"{kind[:-1]} {name}", pi[kind][name], pith[kind][name]))
            # What goes on for ever, such as a menu that is opened again and again, runs into what follows.
            if pi[kind][name]["outcome"] == "open":
                break
    for step in steps:
        yield from compare_step(*step)
    yield from compare_requests(steps)


def placeless(description):
    """A description without the directory of the run, which descriptions of tools may name."""
    return re.sub(r"/tmp/ext-compare-[\w-]+", "<dir>", json.dumps(description, sort_keys=True))


def compare_step(where, pi, pith):
    if pi["outcome"] != pith["outcome"]:
        yield "differs", f"{where}: outcome", pi["outcome"], pith["outcome"]
        return
    if pi["outcome"] == "open":
        if pi["ui"][:2] != pith["ui"][:2]:
            yield "differs", f"{where}: dialogs", pi["ui"], pith["ui"]
        return
    tools = lambda step: [tool[:2] for tool in step["tools"]]
    if tools(pi) != tools(pith):
        yield "differs", f"{where}: tool results", pi["tools"], pith["tools"]
    elif pi["tools"] != pith["tools"]:
        # Two errors are the same refusal in other words.
        is_refusal = all(tool[1] for pair in zip(pi["tools"], pith["tools"]) for tool in pair if pair[0] != pair[1])
        yield "close" if is_refusal else weigh(str(pi["tools"]), str(pith["tools"])), f"{where}: text", pi["tools"], pith["tools"]
    methods = lambda step: [request[0] for request in step["ui"]]
    if methods(pi) != methods(pith):
        yield "differs", f"{where}: dialogs", pi["ui"], pith["ui"]
    elif pi["ui"] != pith["ui"]:
        yield weigh(str(pi["ui"]), str(pith["ui"])), f"{where}: dialogs", pi["ui"], pith["ui"]
    if pi["shown"] != pith["shown"]:
        yield "close", f"{where}: displays", pi["shown"], pith["shown"]
    if [error[0] for error in pi["errors"]] != [error[0] for error in pith["errors"]]:
        yield "differs", f"{where}: errors", pi["errors"], pith["errors"]
    elif pi["errors"] != pith["errors"]:
        yield "close", f"{where}: errors", pi["errors"], pith["errors"]


def compare_requests(steps):
    """A run that a timer of the extension begins falls into one step or into the next: then only the sum is the same."""
    finished = [(where, pi["requests"], pith["requests"]) for where, pi, pith in steps if pi["outcome"] == pith["outcome"] != "open"]
    is_shifted = sum(pi for _, pi, _ in finished) == sum(pith for _, _, pith in finished)
    for where, pi, pith in finished:
        if pi != pith:
            yield "close" if is_shifted else "differs", f"{where}: requests to the model", pi, pith


def weigh(one, other):
    return "close" if difflib.SequenceMatcher(None, one, other, autojunk=False).ratio() >= ALIKE else "differs"


def judge(differences):
    """The verdict about a package."""
    grave = [difference for difference in differences if difference[0] == "differs"]
    if not grave:
        return "close" if differences else "same"
    return "pi fails" if all(is_failure_of_pi(*difference[1:]) for difference in grave) else "differs"


def is_failure_of_pi(where, pi, pith):
    """Whether pi ended or reported an error of the extension where pith did not."""
    return where.endswith(": outcome") and (pi, pith) == ("ended", "done") or where.endswith(": errors") and not pith


def one(package, command, pith, cache, version, is_verbose):
    name = package.rsplit("@", 1)[0]
    directory = cache / "third" / name.replace("/", "+")
    if not install(directory, package):
        return package, "not to be had", [], None, None
    root = directory / "node_modules" / name
    kept = cache / "seen" / f"{package.replace('/', '+')}.json"
    expected = remembered(kept, version, lambda: observe.observe(command, root))
    found = observe.observe([str(pith)], root)
    differences = list(compare(expected, found))
    if is_verbose:
        for difference in differences:
            print(package, *(json.dumps(part)[:1200] for part in difference), sep="\n    ", flush=True)
    verdict = judge(differences)
    if expected["load"] != "loads" and found["load"] != "loads":
        verdict = "same"
    print(f"{package}: {verdict}", flush=True)
    return package, verdict, differences, expected, found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pith", required=True, type=pathlib.Path)
    parser.add_argument("--cache", required=True, type=pathlib.Path)
    parser.add_argument("--table", required=True, type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    lines = (HERE / "packages.txt").read_text().splitlines()
    packages = [line for line in lines if line and not line.startswith("#")]
    if options.names:
        packages = [package for package in packages if any(name in package for name in options.names)]
    explained = json.loads((HERE / "expected.json").read_text())
    command = peer(options.cache)
    version = hashlib.sha256(b"".join((HERE / name).read_bytes() for name in ("agent.py", "observe.py"))).hexdigest()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        look = lambda package: one(package, command, options.pith.resolve(), options.cache, version, options.verbose)
        results = list(pool.map(look, packages))
    report(results, explained, options.table)
    bad = [package for package, verdict, *_ in results if verdict in ("differs", "pi fails") and package not in explained]
    if bad:
        sys.exit(f"not as pi does, and not explained: {', '.join(bad)}")


def beside(pi, pith, key, divisor, unit):
    """A figure of both agents, if both have it."""
    if not pi or key not in pi or key not in pith:
        return ""
    return f"{pi[key] / divisor:.0f} / {pith[key] / divisor:.0f} {unit}"


def report(results, explained, table):
    rows = ["| package | tools | commands | answers after, pi / pith | memory, pi / pith | verdict | differences |", "|---|---|---|---|---|---|---|"]
    for package, verdict, differences, expected, found in results:
        counts = (len(expected["tools"]), len(expected["commands"])) if expected else ("", "")
        places = sorted({difference[1] for difference in differences if verdict in ("same", "close") or difference[0] == "differs"})
        said = explained.get(package) or "; ".join(places[:6])
        figures = " | ".join(beside(expected, found, *figure) for figure in (("loadMs", 1, "ms"), ("memoryKb", 1024, "MB")))
        rows.append(f"| {package} | {counts[0]} | {counts[1]} | {figures} | {verdict} | {said} |".replace("\n", " "))
    judged = [verdict for _, verdict, *_ in results if verdict != "not to be had"]
    good = sum(verdict in ("same", "close") for verdict in judged)
    rows.append("")
    share = lambda count: f"{100 * count / max(1, len(judged)):.1f} %"
    n_failures = judged.count("pi fails")
    rows.append(f"{len(judged)} packages: {judged.count('same')} the same, {judged.count('close')} close, {n_failures} fail under pi and not here, {judged.count('differs')} differ ({share(good)} same or close, {share(good + n_failures)} with what fails under pi only).")
    for what, key, unit in (("until it answers", "loadMs", "ms"), ("memory after the first prompt", "memoryKb", "kB")):
        both = [(seen, other) for _, _, _, seen, other in results if seen and key in seen and key in other]
        pi, pith = (observe.median([pair[side][key] for pair in both]) for side in (0, 1))
        rows.append(f"Median {what}: pi {pi} {unit}, pith {pith} {unit}.")
    table.parent.mkdir(parents=True, exist_ok=True)
    table.write_text("\n".join(rows) + "\n")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
