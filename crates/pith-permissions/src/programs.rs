//! Options of well-known programs. What is not in these tables counts for a rule against something.

/// A program with subcommands, and the options before them.
struct Program {
    name: &'static str,
    flags: &'static [&'static str],
    /// Options whose value is the next word, or follows at once.
    valued: &'static [&'static str],
    /// Words that only say which kind of subcommand follows.
    groups: &'static [&'static str],
}

const CONTAINERS: Program = Program {
    name: "docker",
    flags: &["-D", "--debug", "--tls", "--tlsverify"],
    valued: &[
        "-c",
        "--context",
        "-H",
        "--host",
        "-l",
        "--log-level",
        "--config",
        "--tlscacert",
        "--tlscert",
        "--tlskey",
        "--connection",
        "--url",
        "--root",
        "--runroot",
        "--log-opt",
    ],
    groups: &["container", "image", "volume", "network", "system", "builder", "buildx", "compose", "pod", "manifest"],
};

const PACKAGES: Program = Program {
    name: "npm",
    flags: &[
        "--silent",
        "-s",
        "--quiet",
        "-q",
        "--verbose",
        "-g",
        "--global",
        "--yes",
        "-y",
        "--offline",
        "--frozen-lockfile",
        "-r",
        "--recursive",
        "-w",
    ],
    valued: &["--prefix", "--userconfig", "--cache", "--dir", "--cwd", "--filter", "-F", "-C"],
    groups: &["workspace", "workspaces"],
};

const PROGRAMS: &[Program] = &[
    Program {
        name: "git",
        flags: &[
            "-p",
            "--paginate",
            "-P",
            "--no-pager",
            "--no-replace-objects",
            "--no-lazy-fetch",
            "--no-optional-locks",
            "--no-advice",
            "--bare",
            "--literal-pathspecs",
            "--glob-pathspecs",
            "--noglob-pathspecs",
            "--icase-pathspecs",
        ],
        valued: &[
            "-C",
            "-c",
            "--git-dir",
            "--work-tree",
            "--namespace",
            "--config-env",
            "--super-prefix",
            "--attr-source",
        ],
        groups: &[],
    },
    Program {
        name: "kubectl",
        flags: &["--insecure-skip-tls-verify", "--match-server-version", "--warnings-as-errors"],
        valued: &[
            "-n",
            "--namespace",
            "--context",
            "--cluster",
            "--user",
            "--kubeconfig",
            "-s",
            "--server",
            "--token",
            "--as",
            "--as-group",
            "-v",
            "--v",
            "--request-timeout",
            "--cache-dir",
        ],
        groups: &[],
    },
    CONTAINERS,
    Program { name: "podman", ..CONTAINERS },
    Program { name: "nerdctl", ..CONTAINERS },
    PACKAGES,
    Program { name: "pnpm", ..PACKAGES },
    Program { name: "yarn", ..PACKAGES },
    Program { name: "bun", ..PACKAGES },
    Program {
        name: "cargo",
        flags: &["-q", "--quiet", "-v", "-vv", "--verbose", "--locked", "--offline", "--frozen"],
        valued: &["--color", "-C", "-Z", "--config"],
        groups: &[],
    },
    Program {
        name: "systemctl",
        flags: &["--user", "--system", "--now", "-q", "--quiet", "--no-pager", "--no-block", "-f", "--force"],
        valued: &[
            "-H",
            "--host",
            "-M",
            "--machine",
            "-t",
            "--type",
            "-p",
            "--property",
            "-n",
            "--lines",
            "-s",
            "--signal",
        ],
        groups: &[],
    },
    Program {
        name: "make",
        flags: &["-s", "--silent", "-k", "-B", "-n", "-i", "-e", "-r", "-w"],
        valued: &["-C", "--directory", "-f", "--file", "-I", "-o", "-W"],
        groups: &[],
    },
    Program {
        name: "helm",
        flags: &["--debug"],
        valued: &["-n", "--namespace", "--kube-context", "--kubeconfig"],
        groups: &[],
    },
    Program { name: "gh", flags: &[], valued: &["-R", "--repo"], groups: &[] },
];

/// Letters and the long names that mean the same.
const SAME: &[(&str, &[(&str, &str)])] = &[
    (
        "rm",
        &[("r", "recursive"), ("R", "recursive"), ("f", "force"), ("i", "interactive"), ("d", "dir"), ("v", "verbose")],
    ),
    ("git", &[("f", "force"), ("d", "delete"), ("D", "delete")]),
    ("cp", &[("r", "recursive"), ("R", "recursive"), ("f", "force"), ("a", "archive")]),
    ("chmod", &[("R", "recursive")]),
    ("chown", &[("R", "recursive")]),
    ("chgrp", &[("R", "recursive")]),
    ("docker", &[("f", "force"), ("v", "volume"), ("a", "all")]),
    ("podman", &[("f", "force"), ("v", "volume"), ("a", "all")]),
    (
        "curl",
        &[("X", "request"), ("d", "data"), ("F", "form"), ("T", "upload-file"), ("o", "output"), ("O", "remote-name")],
    ),
    ("kubectl", &[("A", "all-namespaces"), ("n", "namespace"), ("f", "filename")]),
];

/// Returns the one name of an option that has two.
pub(crate) fn flag_name<'a>(program: &str, name: &'a str) -> &'a str {
    let pairs = SAME.iter().find(|(known, _)| *known == program).map_or(&[][..], |(_, pairs)| pairs);
    pairs.iter().find(|(letter, _)| *letter == name).map_or(name, |(_, long)| long)
}

/// Whether the next word is the option's value for certain.
pub(crate) fn takes_value(program: &str, option: &str) -> bool {
    known(program).is_some_and(|program| program.valued.contains(&option))
}

/// Whether the option has no value after it for certain.
pub(crate) fn is_plain_flag(program: &str, option: &str) -> bool {
    known(program).is_some_and(|program| {
        let is_attached = |valued: &str| !valued.starts_with("--") && option.len() > 2 && option.starts_with(valued);
        program.flags.contains(&option)
            || !option.starts_with("--") && program.valued.iter().any(|valued| is_attached(valued))
    })
}

/// Whether the word only says which kind of subcommand follows.
pub(crate) fn is_group(program: &str, word: &str) -> bool {
    known(program).is_some_and(|program| program.groups.contains(&word))
}

fn known(name: &str) -> Option<&'static Program> {
    PROGRAMS.iter().find(|program| program.name == name)
}
