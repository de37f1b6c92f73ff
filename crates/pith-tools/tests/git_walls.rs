//! What a session leaves behind is no way out through git: whatever it did, git run by the user outside runs nothing
//! that it did not run before. Real git decides, after attempts that are known and after random sequences.
//!
//! `PITH_GIT_SEQUENCES` says how many sequences are tried, `PITH_GIT_SEED` which come first.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may fail anywhere, and prints what it does")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};

use common::{Bench, enforced_with, run, supervisor, text};
use pith_sandbox::Support;
use pith_testkit::has;
use pith_tools::Denied;
use pith_tools::process::probe_namespaces;
use pith_tools::sandbox::Sandbox;
use serde_json::json;

/// Holds a command that leaves a trace.
const PAYLOAD: &str = "touch $ROOT/PWNED;false";

/// Returns whether attempts can be made; says so if not.
fn is_ready() -> bool {
    let git = Command::new("git").arg("--version").output();
    has(git.map(drop).map_err(|error| format!("no git: {error}"))) && has(Support::check_this_kernel())
}

/// With and without namespaces, as far as there are any.
fn tiers() -> Vec<bool> {
    let namespaces = has(probe_namespaces(&supervisor()));
    if namespaces { vec![true, false] } else { vec![false] }
}

/// A repository with a commit, a submodule and a linked worktree, in which nothing runs a program.
const GROUND: &str = "git init -q -b main . && echo a > a && mkdir sub && echo b > sub/b && git add . && git commit -qm one && \
    echo c >> a && git commit -qam two && git init -q -b main ../lib && git -C ../lib commit -q --allow-empty -m lib && \
    git -c protocol.file.allow=always submodule --quiet add ../lib mod && git commit -qm three && \
    git worktree add -q tree -b other && echo tree >> .git/info/exclude";

/// What the user does outside, in one directory.
const USER: &str = "git rev-parse || exit; git status; git add -A; git commit -qm user; \
    GIT_EDITOR=true git rebase --continue; git push -q origin HEAD:refs/heads/new; git checkout -q -b user";

fn root(bench: &Bench) -> PathBuf {
    bench.dir.path().canonicalize().unwrap()
}

/// Runs a script outside as the user, in whose home nothing is set.
fn outside(root: &Path, directory: &Path, script: &str) {
    let mut command = Command::new("bash");
    command.args(["-c", script]).current_dir(directory);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.env("HOME", root.join("home")).env("ROOT", root).env("GIT_CONFIG_NOSYSTEM", "1");
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "a").env(format!("GIT_{who}_EMAIL"), "a@b");
    }
    command.status().unwrap();
}

/// The ground, made once.
fn template() -> &'static Path {
    static MADE: OnceLock<tempfile::TempDir> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        for name in ["home", "agent", "tmp", "work"] {
            fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        fs::write(dir.path().join("home/.gitconfig"), "[user]\nname=a\nemail=a@b\n").unwrap();
        outside(dir.path(), &dir.path().join("work"), GROUND);
        dir
    });
    made.path()
}

/// A bench with the ground, confined if there is a tier.
fn ground(tier: Option<bool>, before: &str) -> Bench {
    Bench::with(|options| {
        let root = options.temp.canonicalize().unwrap();
        let copy = format!("cp -a {}/. $ROOT", template().display());
        outside(&root, &root, &copy);
        // Worktrees are linked by whole paths.
        for (file, text) in
            [("work/tree/.git", "gitdir: $/.git/worktrees/tree"), ("work/.git/worktrees/tree/gitdir", "$/tree/.git")]
        {
            fs::write(root.join(file), format!("{}\n", text.replace('$', &root.join("work").display().to_string())))
                .unwrap();
        }
        outside(&root, &root.join("work"), before);
        let settings = json!({"profile": "workspace-write"});
        let enforce = |namespaces| Arc::new(Sandbox::Enforced(enforced_with(&root, &settings, namespaces)));
        options.sandbox = tier.map(enforce);
    })
}

/// One step of a session.
#[derive(Clone, Debug)]
enum Step {
    Bash(String),
    /// Path and contents.
    Write(String, String),
}

/// Runs the steps, and returns what was put back or refused.
async fn session(bench: &Bench, steps: &[Step]) -> Vec<Denied> {
    let root = root(bench);
    let variables = ["PATH"].map(|name| (name.to_owned(), std::env::var(name).unwrap_or_default()));
    let own = variables.into_iter().chain([("HOME".to_owned(), root.join("home").display().to_string())]);
    bench.workbench.update_call_options(|options| options.env.inherited = Some(own.collect()));
    let mut denied = Vec::new();
    for step in steps {
        let fill = |text: &str| text.replace("$ROOT", &root.display().to_string());
        let output = match step {
            Step::Bash(script) => bench.call("bash", json!({ "command": fill(script) })).await,
            Step::Write(path, content) => bench.call("write", json!({ "path": path, "content": fill(content) })).await,
        };
        if std::env::var_os("PITH_GIT_SHOW").is_some() {
            println!("{step:?}\n{}", text(&output));
        }
        denied.extend(Denied::of(&output));
    }
    denied
}

/// Whether a program runs when the user works outside, at the top and in every directory that leads git somewhere.
fn user_is_misled(bench: &Bench) -> bool {
    let root = root(bench);
    let work = root.join("work");
    let mut all = vec![work.clone(), work.join("sub")];
    let mut next = vec![work];
    while let Some(directory) = next.pop() {
        let has = |name: &str| directory.join(name).symlink_metadata().is_ok();
        if has(".git") || has("HEAD") && (has("objects") || has("commondir")) {
            all.push(directory.clone());
        }
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let is_of_git = ["objects", "refs", "logs", "hooks"].iter().any(|name| entry.file_name() == *name);
            if !is_of_git && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                next.push(entry.path());
            }
        }
    }
    for directory in all.into_iter().filter(|directory| directory.is_dir()) {
        outside(&root, &directory, USER);
        if root.join("PWNED").exists() {
            println!("misled in {}", directory.display());
            return true;
        }
    }
    false
}

/// Holds attempts against both: a program runs without a sandbox, and none in any tier. Before each the user has run
/// the script in the middle.
fn closed(attempts: &[(&str, &str, &[Step])]) {
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from);
    let failures: Vec<String> = std::thread::scope(|scope| {
        let threads = attempts.chunks(attempts.len().div_ceil(n_threads));
        let threads: Vec<_> =
            threads.map(|some| scope.spawn(|| some.iter().flat_map(open_ways).collect::<Vec<_>>())).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(failures.is_empty(), "{failures:#?}");
}

/// What is wrong with an attempt: that it is open in a tier, or that it proves nothing.
fn open_ways((name, before, steps): &(&str, &str, &[Step])) -> Vec<String> {
    let mut failures = Vec::new();
    run(async {
        let free = ground(None, before);
        session(&free, steps).await;
        if !user_is_misled(&free) {
            failures.push(format!("{name}: has no effect without the sandbox, so it proves nothing"));
        }
        for tier in tiers() {
            let bench = ground(Some(tier), before);
            let denied = session(&bench, steps).await;
            let is_open = user_is_misled(&bench);
            println!("{name:<60} namespaces {tier:<6} {}", if is_open { "open" } else { "closed" });
            if is_open {
                failures.push(format!("{name}, namespaces {tier}: open; {denied:?}"));
            }
        }
    });
    failures
}

fn bash(script: &str) -> Step {
    Step::Bash(script.replace("$E", "core.fsmonitor \"$PAYLOAD\"").replace("$PAYLOAD", PAYLOAD))
}

fn write(path: &str, content: &str) -> Step {
    Step::Write(path.to_owned(), content.replace("$PAYLOAD", PAYLOAD))
}

const EVIL: &str = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsmonitor = \"$PAYLOAD\"\n";

#[test]
fn no_known_way_leads_out_through_git() {
    if !is_ready() {
        return;
    }
    let copy = "cp -r .git g3; git config -f g3/config $E; ";
    let bare = "cp -r .git/objects .git/refs .git/HEAD .; cp .git/config config; git config -f config $E; git config -f config core.worktree $PWD; ";
    let nested = "git init -q n; git -C n commit -q --allow-empty -m n; ";
    let hook = |path: &str| format!("printf '#!/bin/sh\\ntouch $ROOT/PWNED\\n' > {path}; chmod +x {path}");
    closed(&[
        ("commondir", "", &[bash(&format!("{copy}echo ../g3 > .git/commondir"))]),
        ("commondir by write", "", &[bash(copy), write(".git/commondir", "../g3\n")]),
        ("no HEAD, and bare above", "", &[bash(&format!("{bare} rm .git/HEAD"))]),
        ("no refs, and bare above", "", &[bash(&format!("{bare} mv .git/refs r"))]),
        ("no objects, and bare above", "", &[bash(&format!("{bare} mv .git/objects o"))]),
        (
            "a bare repository below",
            "",
            &[bash(
                "git init -q --bare sub/x; cd sub/x; git config core.bare false; git config core.worktree $PWD; git config $E",
            )],
        ),
        ("a directory becomes bare", "", &[bash(&format!("cd sub; {}", bare.replace(".git/", "../.git/")))]),
        (
            "a directory becomes bare by write",
            "",
            &[
                bash("mkdir sub/objects sub/refs"),
                write("sub/config", &format!("{EVIL}\tworktree = $ROOT/work/sub\n")),
                write("sub/HEAD", "ref: refs/heads/main\n"),
            ],
        ),
        (
            "a gitlink",
            "",
            &[bash(&format!(
                "{nested}git -C n config $E; git update-index --add --cacheinfo 160000,$(git -C n rev-parse HEAD),n"
            ))],
        ),
        ("a nested repository", "", &[bash(&format!("{nested}git -C n config $E"))]),
        ("a nested repository in two calls", "", &[bash(nested), bash("git -C n config $E")]),
        ("a nested hook", "", &[bash(&format!("{nested}{}", hook("n/.git/hooks/pre-commit")))]),
        (
            "a hook by its mode",
            "",
            &[
                bash(nested),
                bash(&hook("n/h")),
                bash("cp n/h n/.git/hooks/pre-commit; chmod -x n/.git/hooks/*; chmod +x n/.git/hooks/pre-commit"),
            ],
        ),
        (
            "config.worktree",
            "git config extensions.worktreeConfig true",
            &[bash("git config -f .git/config.worktree $E")],
        ),
        (
            "config.worktree of a linked worktree",
            "git config extensions.worktreeConfig true",
            &[bash("git config -f .git/worktrees/tree/config.worktree $E")],
        ),
        ("configuration of a submodule", "", &[bash("git config -f .git/modules/mod/config $E")]),
        (
            "commondir of a submodule",
            "",
            &[bash(
                "cp -r .git/modules/mod g; git config -f g/config $E; echo ../../../g > .git/modules/mod/commondir",
            )],
        ),
        ("commondir of a worktree", "", &[bash(&format!("{copy}echo $ROOT/work/g3 > .git/worktrees/tree/commondir"))]),
        ("the file .git of a worktree", "", &[bash(&format!("{copy}echo gitdir: ../g3 > tree/.git"))]),
        ("the file .git of a submodule by write", "", &[bash(copy), write("mod/.git", "gitdir: ../g3\n")]),
        ("a link .git", "", &[bash(&format!("{copy}rm tree/.git; ln -s ../g3 tree/.git"))]),
        ("a link to a directory with .git", "", &[bash(&format!("{nested}git -C n config $E; mv n .n; ln -s .n n"))]),
        ("an included file", "echo '[user]' > inc; git config include.path ../inc", &[bash("git config -f inc $E")]),
        ("an included file by write", "echo '[user]' > inc; git config include.path ../inc", &[write("inc", EVIL)]),
        ("a file that is included if", "git config includeIf.gitdir:**.path ../inc", &[bash("git config -f inc $E")]),
        ("hooks in the project", "mkdir hk; git config core.hooksPath hk", &[bash(&hook("hk/pre-commit"))]),
        (
            "hooks in the project by a link",
            "mkdir hk; ln -s hk hl; git config core.hooksPath hl",
            &[bash(&hook("hk/pre-commit"))],
        ),
        (
            "hooks that the user's own configuration names",
            "git config --global core.hooksPath hk",
            &[bash(&format!("mkdir hk; {}", hook("hk/pre-commit")))],
        ),
        (
            "a driver in the project",
            "echo cat > drv; chmod +x drv; git config filter.x.clean ./drv; echo 'a filter=x' > .gitattributes",
            &[bash("echo 'touch $ROOT/PWNED; cat' > drv; echo x >> a")],
        ),
        (
            "a todo of the session's rebase",
            "",
            &[bash(
                "GIT_SEQUENCE_EDITOR=true git rebase -i -x 'false' HEAD~1; sed -i 's/^.*$/exec touch $ROOT\\/PWNED/; $a exec touch $ROOT/PWNED' .git/rebase-merge/git-rebase-todo; echo 'exec touch $ROOT/PWNED' >> .git/rebase-merge/git-rebase-todo",
            )],
        ),
        (
            "a todo of the user's rebase",
            "GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git rebase -i HEAD~1",
            &[bash("echo 'exec touch $ROOT/PWNED' >> .git/rebase-merge/git-rebase-todo")],
        ),
        (
            "a remote's old file",
            "",
            &[bash(&format!(
                "git init -q --bare r; mkdir .git/remotes; echo 'URL: ./r' > .git/remotes/origin; {}",
                hook("r/hooks/pre-receive")
            ))],
        ),
        (
            "a directory that nobody can list",
            "",
            &[bash("mkdir d; chmod 300 d; git init -q d/n; git -C d/n config $E")],
        ),
        (
            "in an ignored directory",
            "",
            &[bash("mkdir -p node_modules/x; git init -q node_modules/x; git -C node_modules/x config $E")],
        ),
        ("a directory that moves", "", &[bash("mkdir -p p/q; git init -q p/q/n; mv p r; git -C r/q/n config $E")]),
        (
            "a repository put together elsewhere",
            "",
            &[bash("git init -q $TMPDIR/n; git -C $TMPDIR/n config $E; cp -r $TMPDIR/n n")],
        ),
        (
            "by a process that stays",
            "",
            &[bash("(sleep 0.3; git init -q n; git -C n config $E) > /dev/null 2>&1 & true"), bash("sleep 1")],
        ),
    ]);
}

#[test]
fn work_with_git_goes_on() {
    if !is_ready() {
        return;
    }
    let before = "printf '#!/bin/sh\\nexit 0\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; \
        git config alias.st status; git config filter.x.clean cat";
    let works = [
        "echo d >> a; git commit -qam four",
        "git worktree add -q second; git -C second commit -q --allow-empty -m w; git worktree remove second",
        "echo e >> a; git stash -q; git stash pop -q; git checkout -q a",
        "GIT_SEQUENCE_EDITOR=true git rebase -q -i -x true HEAD~1",
        "git init -q new; git -C new commit -q --allow-empty -m n; git -C new config user.name x; git -C new remote add o ../x",
        "git clone -q new cloned; git -C cloned checkout -q -b side",
        "git init -q --bare bare; git push -q ./bare HEAD:refs/heads/main",
        "git -C mod commit -q --allow-empty -m m; git commit -qam bump",
        "git checkout -q -b side; git merge -q --no-edit main; git tag t; git gc -q; git status",
        "mkdir x; git mv sub/b x/b; mv new newer; git commit -qam moved",
        "GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git rebase -q -i -x true HEAD~1",
        "git rebase --continue",
        "printf '%s\\n' all: > Makefile; mkdir -p .github/workflows; echo {} > package.json; echo x > .github/workflows/ci.yml",
    ];
    for tier in tiers() {
        run(async {
            let bench = ground(Some(tier), before);
            for script in works {
                let output = bench.call("bash", json!({ "command": format!("set -e; {script}") })).await;
                assert!(!output.is_error, "namespaces {tier}: {script}: {}", text(&output));
                let denied = Denied::of(&output);
                // A rebase that stopped keeps its place, but not what it would have run.
                let is_rebase = script.contains("1ibreak");
                assert_eq!(denied.len(), usize::from(is_rebase), "namespaces {tier}: {script}: {denied:?}");
            }
        });
    }
}

/// Random numbers that are the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % n
    }

    fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }

    /// Fills every word that stands for something with one of its kind.
    fn fill(&mut self, operation: &str) -> String {
        const KINDS: [(&str, &[&str]); 5] = [
            ("DIR", &[".", "sub", "n", "m", "sub/x", "tree", "mod", "node_modules/y"]),
            (
                "GIT",
                &[
                    ".git",
                    "n/.git",
                    "m/.git",
                    "sub/x/.git",
                    "n",
                    "m",
                    ".git/modules/mod",
                    ".git/worktrees/tree",
                    "g",
                    "tree/.git",
                    "mod/.git",
                    ".",
                ],
            ),
            (
                "CONFIG",
                &[
                    ".git/config",
                    ".git/config.worktree",
                    "n/.git/config",
                    "config",
                    "inc",
                    "g/config",
                    "m/config",
                    ".git/modules/mod/config",
                    ".git/worktrees/tree/config.worktree",
                    "n/.git/config.worktree",
                ],
            ),
            (
                "KEY",
                &[
                    "core.fsmonitor \"$PAYLOAD\"",
                    "core.fsmonitor \"$PAYLOAD\"",
                    "core.fsmonitor ./run",
                    "core.hooksPath ../hk",
                    "core.hooksPath hk",
                    "include.path ../inc",
                    "filter.x.clean \"$PAYLOAD\"",
                    "core.worktree $PWD",
                    "core.bare false",
                    "extensions.worktreeConfig true",
                ],
            ),
            (
                "HOOK",
                &[
                    "pre-commit",
                    "post-checkout",
                    "post-commit",
                    "pre-push",
                    "reference-transaction",
                    "post-index-change",
                ],
            ),
        ];
        let mut filled = operation.to_owned();
        for (kind, all) in KINDS {
            while let Some(at) = filled.find(kind) {
                filled.replace_range(at..at + kind.len(), self.one_of(all));
            }
        }
        filled
    }
}

/// What somebody would do who wants git to run something, each with words to fill.
const HOSTILE: [&str; 34] = [
    "git init -q DIR; git -C DIR commit -q --allow-empty -m x",
    "git init -q n; git -C n commit -q --allow-empty -m x; git add -A",
    "git init -q --bare DIR; git -C DIR config core.bare false; git -C DIR config core.worktree $PWD/DIR",
    "git -C DIR config KEY",
    "git -C DIR config KEY",
    "git config -f CONFIG KEY",
    "git config -f CONFIG KEY",
    "git config -f GIT/config core.fsmonitor \"$PAYLOAD\"",
    "git config -f GIT/config core.fsmonitor \"$PAYLOAD\"",
    "git config -f GIT/config core.worktree $PWD/DIR",
    "git config -f CONFIG core.fsmonitor \"$PAYLOAD\"",
    "git config -f CONFIG core.fsmonitor \"$PAYLOAD\"",
    "git -C DIR config core.fsmonitor \"$PAYLOAD\"",
    "git -C DIR config core.fsmonitor \"$PAYLOAD\"",
    "mkdir -p GIT/hooks; printf '#!/bin/sh\\ntouch $ROOT/PWNED\\n' > GIT/hooks/HOOK; chmod +x GIT/hooks/*",
    "mkdir -p GIT/hooks; printf '#!/bin/sh\\ntouch $ROOT/PWNED\\n' > GIT/hooks/HOOK; chmod +x GIT/hooks/*",
    "mkdir -p hk; printf '#!/bin/sh\\ntouch $ROOT/PWNED\\n' > hk/HOOK; chmod +x hk/HOOK",
    "printf '#!/bin/sh\\ntouch $ROOT/PWNED\\n' > run; chmod +x run",
    "echo '* filter=x' > DIR/.gitattributes",
    "git -C DIR commit -q --allow-empty -m x; git update-index --add --cacheinfo 160000,$(git -C DIR rev-parse HEAD),DIR",
    "ln -sfn $PWD/GIT DIR/.git",
    "ln -sfn $PWD/CONFIG CONFIG",
    "ln -f CONFIG DIR/linked; git config -f DIR/linked KEY",
    "mv DIR DIR",
    "mv GIT GIT",
    "cp -r GIT GIT",
    "cp -r .git g; git config -f g/config KEY",
    "cp -r .git/objects .git/refs .git/HEAD .git/config DIR; git config -f DIR/config core.worktree $PWD",
    "echo gitdir: $PWD/GIT > DIR/.git",
    "echo $PWD/GIT > GIT/commondir",
    "rm -rf GIT/HEAD",
    "rm -rf GIT",
    "git worktree add -q DIR/w",
    "git -c sequence.editor=true rebase -q -i -x false HEAD~1; echo 'exec touch $ROOT/PWNED' >> .git/rebase-merge/git-rebase-todo",
];

/// What is part of ordinary work.
const HARMLESS: [&str; 18] = [
    "git init -q DIR",
    "git init -q --bare b$RANDOM",
    "git -C n config user.name x",
    "git -C n remote add o$RANDOM ../m",
    "echo x >> DIR/file; git add -A; git commit -qm x",
    "git stash -q; git stash pop -q",
    "git worktree add -q w$RANDOM",
    "git -C DIR commit -q --allow-empty -m x",
    "git -C n commit -q --allow-empty -m x; git update-index --add --cacheinfo 160000,$(git -C n rev-parse HEAD),n",
    "git clone -q . c$RANDOM",
    "git clone -q --bare . c$RANDOM",
    "cp -r n m$RANDOM",
    "mv n n$RANDOM",
    "rm -rf n",
    "ln -sfn $PWD/sub l$RANDOM",
    "git checkout -q -b b$RANDOM",
    "git rebase -q -x true HEAD~1",
    "git gc -q",
];

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
}

/// One to six steps, in as many calls as comes.
fn sequence(dice: &mut Dice, operations: &[&str]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for _ in 0..=dice.below(6) {
        let operation = dice.one_of(operations);
        let script = dice.fill(operation);
        match steps.last_mut() {
            Some(Step::Bash(last)) if dice.below(2) == 0 => *last = format!("{last}\n{script}"),
            _ => steps.push(bash(&script)),
        }
    }
    steps
}

#[test]
fn no_random_sequence_leads_out_through_git() {
    if !is_ready() {
        return;
    }
    let (n, seed) = (number("PITH_GIT_SEQUENCES", 12), number("PITH_GIT_SEED", 1));
    let (mut n_effective, mut failures) = (0, Vec::new());
    for seed in seed..seed + n {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        dice.below(2);
        let steps = sequence(&mut dice, &HOSTILE);
        run(async {
            let free = ground(None, "");
            session(&free, &steps).await;
            if !user_is_misled(&free) {
                return;
            }
            n_effective += 1;
            for tier in tiers() {
                let bench = ground(Some(tier), "");
                let denied = session(&bench, &steps).await;
                if user_is_misled(&bench) {
                    failures.push(format!("seed {seed}, namespaces {tier}: {steps:#?} {denied:#?}"));
                }
            }
        });
    }
    println!("{n} sequences, {n_effective} make git run something without the sandbox, {} with it", failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(n_effective > 0, "no sequence has an effect without the sandbox, so they prove nothing");
}

#[test]
fn nothing_is_put_back_after_random_work() {
    if !is_ready() {
        return;
    }
    let (n, seed) = (number("PITH_GIT_SEQUENCES", 12), number("PITH_GIT_SEED", 1));
    let mut failures = Vec::new();
    for seed in seed..seed + n {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        dice.below(2);
        let steps = sequence(&mut dice, &HARMLESS);
        let tiers = tiers();
        let tier = tiers[usize::try_from(seed).unwrap() % tiers.len()];
        run(async {
            let bench = ground(Some(tier), "");
            let denied = session(&bench, &steps).await;
            if !denied.is_empty() {
                failures.push(format!("seed {seed}, namespaces {tier}: {steps:#?} {denied:#?}"));
            }
        });
    }
    println!("{n} sequences, in {} of them something was put back", failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
