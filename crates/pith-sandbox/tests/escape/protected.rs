//! Paths inside the project that others run or trust: what was changed is as it was when the command is over.

use serde_json::json;

use crate::ground::{Attempt, Expected, attempt, call, make, write};

const PROTECTED: &[Attempt] = &[
    attempt("a new hook", "echo x > .git/hooks/pre-commit", "test -e .git/hooks/pre-commit"),
    attempt("a changed hook", "echo x > .git/hooks/sample", "grep -q x .git/hooks/sample"),
    attempt("a hook that can be run", "chmod 755 .git/hooks/sample", "test -x .git/hooks/sample"),
    attempt("a hook that is a link", "ln -sf /bin/true .git/hooks/sample", "test -L .git/hooks/sample"),
    attempt("hooks that are a link", "mv .git/hooks .git/h; ln -s h .git/hooks", "test -L .git/hooks"),
    attempt("hooks in another .git", "mv .git x; cp -r x .git; echo x > .git/hooks/new", "test -e .git/hooks/new"),
    attempt("hooks elsewhere, by configuration", "echo hooksPath >> .git/config", "grep -q hooksPath .git/config"),
    attempt("no hooks at all", "rm -r .git/hooks", "test ! -e .git/hooks/sample"),
    attempt("settings of the project", "mkdir .pi; echo {} > .pi/settings.json", "test -e .pi/settings.json"),
    attempt("servers of the project", "echo {} > .mcp.json", "test -e .mcp.json"),
    attempt("instructions of another agent", "mkdir .claude; echo x > .claude/settings.json", "test -e .claude"),
    attempt("tasks of an editor", "mkdir .vscode; echo {} > .vscode/tasks.json", "test -e .vscode"),
    attempt("variables of a shell", "echo x > .envrc", "test -e .envrc"),
    attempt(
        "a hook by a process that stays",
        "(sleep 0.1; echo x > .git/hooks/late) & wait",
        "test -e .git/hooks/late",
    ),
];

#[test]
fn protected_paths_are_as_they_were() {
    make(&write(), Expected::Closed, PROTECTED);
    let listed = json!({"profile": "workspace-write", "filesystem": {"denyWrite": ["a"], "allowGitConfig": true}});
    make(&listed, Expected::Closed, &[attempt("a file that settings protect", "echo x > a", "grep -q x a")]);
    make(
        &listed,
        Expected::Allowed,
        &[attempt("work: allowed configuration", "echo x > .git/config", "grep -q x .git/config")],
    );
    let home = json!({"profile": "workspace-write", "filesystem": {"allowWrite": ["~"]}});
    let attempts = [
        attempt("the start of a shell", "echo x > $ROOT/home/.bashrc", "test -e $ROOT/home/.bashrc"),
        attempt("programs of the user", "mkdir -p $ROOT/home/.local/bin", "test -e $ROOT/home/.local/bin"),
        attempt("configuration of git", "echo x > $ROOT/home/.gitconfig", "test -e $ROOT/home/.gitconfig"),
        attempt("keys that cannot be read", "mv $ROOT/home/.ssh $ROOT/home/s", "test ! -e $ROOT/home/.ssh/id"),
    ];
    make(&home, Expected::Closed, &attempts);
    make(&home, Expected::Allowed, &[call("work: elsewhere in the home", "echo x > $ROOT/home/notes")]);
}
