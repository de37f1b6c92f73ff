//! Keys in a home: no place of them can be read or listed in a sandbox, known or not, there before the session or not,
//! while tools find what they need. Each attempt is made without a sandbox too, where it must succeed.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may fail anywhere, and prints a table")]

mod common;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::{Bench, enforced_at, enforced_with, run, supervisor, text};
use pith_sandbox::Support;
use pith_sandbox::policy::Places;
use pith_testkit::{Dice, has};
use pith_tools::hosts::SessionHosts;
use pith_tools::process::probe_namespaces;
use pith_tools::sandbox::Sandbox;
use pith_tools::{Workbench, WorkbenchOptions};
use serde_json::{Value, json};

/// Where programs keep keys, below a home.
const KEYS: &[&str] = &[
    ".ssh/id_ed25519",
    ".ssh/config",
    ".gnupg/private-keys-v1.d/k.key",
    ".aws/credentials",
    ".aws/sso/cache/a.json",
    ".azure/msal_token_cache.json",
    ".kube/config",
    ".docker/config.json",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".git-credentials",
    ".config/git/credentials",
    ".config/gh/hosts.yml",
    ".config/hub",
    ".config/glab-cli/config.yml",
    ".config/gcloud/application_default_credentials.json",
    ".config/gcloud/credentials.db",
    ".config/rclone/rclone.conf",
    ".config/op/config",
    ".config/Bitwarden CLI/data.json",
    ".config/doctl/config.yaml",
    ".config/hcloud/cli.toml",
    ".config/configstore/firebase-tools.json",
    ".config/heroku/credentials",
    ".config/netlify/config.json",
    ".config/containers/auth.json",
    ".config/helm/registry/config.json",
    ".config/pip/pip.conf",
    ".config/uv/uv.toml",
    ".config/pnpm/rc",
    ".config/pypoetry/auth.toml",
    ".config/composer/auth.json",
    ".config/NuGet/NuGet.Config",
    ".config/go/env",
    ".config/opencode/opencode.json",
    ".config/github-copilot/apps.json",
    ".config/google-chrome/Default/Login Data",
    ".mozilla/firefox/p/logins.json",
    ".cargo/credentials.toml",
    ".cargo/credentials",
    ".gem/credentials",
    ".bundle/config",
    ".composer/auth.json",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".gradle/gradle.properties",
    ".gradle/init.gradle",
    ".sbt/1.0/credentials.sbt",
    ".ivy2/.credentials",
    ".nuget/NuGet/NuGet.Config",
    ".hex/hex.config",
    ".cabal/config",
    ".pip/pip.conf",
    ".condarc",
    ".yarnrc.yml",
    ".terraformrc",
    ".terraform.d/credentials.tfrc.json",
    ".vault-token",
    ".oci/config",
    ".fly/config.yml",
    ".databrickscfg",
    ".snowflake/connections.toml",
    ".boto",
    ".s3cfg",
    ".kaggle/kaggle.json",
    ".cache/huggingface/token",
    ".huggingface/token",
    ".wandb/key",
    ".openai/auth.json",
    ".codex/auth.json",
    ".claude.json",
    ".claude/.credentials.json",
    ".gemini/oauth_creds.json",
    ".pi/agent/auth.json",
    ".pi/agent/models.json",
    ".pi/agent/settings.json",
    ".xcsh/agent/auth.json",
    ".local/share/keyrings/login.keyring",
    ".local/share/uv/credentials/credentials.toml",
    ".local/share/opencode/auth.json",
    ".local/share/pass/x.gpg",
    ".local/state/app/token",
    ".password-store/x.gpg",
    ".rye/credentials",
    ".bashrc",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".psql_history",
    ".env",
    ".envrc",
    ".secrets",
];

/// What tools read in a home.
const WORK: &[&str] = &[
    "notes",
    "project/.env.example",
    "project/.config/x",
    "go/pkg/mod/a",
    ".agents/skills/one/SKILL.md",
    ".cache/pip/http/a",
    ".cache/uv/wheels/a",
    ".cache/go-build/00/a",
    ".cache/ccache/a",
    ".cargo/bin/tool",
    ".cargo/config.toml",
    ".cargo/env",
    ".cargo/git/db/a",
    ".cargo/registry/index/a",
    ".config/git/config",
    ".config/git/ignore",
    ".gitconfig",
    ".gradle/caches/a",
    ".local/bin/tool",
    ".local/lib/python3/site-packages/a.py",
    ".local/share/pnpm/store/a",
    ".local/share/uv/python/a",
    ".m2/repository/a/a.jar",
    ".m2/toolchains.xml",
    ".npm/_cacache/index-v5/a",
    ".nvm/versions/node/a",
    ".pi/agent/skills/one/SKILL.md",
    ".pyenv/versions/3/a",
    ".rustup/toolchains/stable/a",
    ".sdkman/candidates/java/a",
];

/// When the keys are put into the home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Made {
    BeforeTheSession,
    AfterACommand,
}

/// The tiers that this machine has; says so if there are none.
fn tiers() -> Vec<bool> {
    let needed = Support::check_this_kernel();
    let namespaces = probe_namespaces(&supervisor());
    let is_required = std::env::var_os("PITH_TEST_SANDBOX").is_some_and(|value| value == "require");
    assert!(!is_required || needed.is_ok() && namespaces.is_ok(), "PITH_TEST_SANDBOX=require: {namespaces:?}");
    let mut tiers = Vec::new();
    if has(needed) {
        tiers.push(false);
        if has(namespaces) {
            tiers.push(true);
        }
    }
    tiers
}

/// A project, and a home beside it; confined unless `namespaces` is `None`.
fn ground(namespaces: Option<bool>, settings: &Value, fill: impl FnOnce(&Path)) -> Bench {
    Bench::with(|options| {
        let root = options.temp.canonicalize().unwrap();
        for name in ["home", "tmp"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        // The agent directory is where it usually is.
        fs::create_dir_all(root.join("home/.pi/agent")).unwrap();
        symlink("home/.pi/agent", root.join("agent")).unwrap();
        fill(&root.join("home"));
        options.sandbox =
            namespaces.map(|namespaces| Arc::new(Sandbox::Enforced(enforced_with(&root, settings, namespaces))));
    })
}

fn home(bench: &Bench) -> PathBuf {
    bench.dir.path().canonicalize().unwrap().join("home")
}

fn put(home: &Path, name: &str, text: &str) {
    let path = home.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Names that no list can have: in the home, and where other programs keep what is theirs.
fn random_names(seed: u64) -> Vec<String> {
    let mut dice = Dice::new(seed);
    let mut word = move || (0..8).map(|_| char::from(b'a' + dice.below(26) as u8)).collect::<String>();
    let above =
        ["", ".", ".config/", ".local/share/", ".local/state/", ".cache/", ".cargo/", ".m2/", ".npm/", ".pi/agent/"];
    let names = above.iter().flat_map(|above| {
        let dot = if above.is_empty() { "." } else { "" };
        [format!("{above}{dot}{}", word()), format!("{above}{dot}{}/{}", word(), word())]
    });
    names.collect()
}

/// What was got of keys, one line each, by commands and by tools.
async fn got(bench: &Bench, names: &[String]) -> Vec<String> {
    let home = home(bench);
    let mut got = Vec::new();
    fs::write(bench.path("names"), names.join("\n") + "\n").unwrap();
    let script = r#"find "$HOMES" > found 2> /dev/null
while read -r f; do
  grep -q KEY < "$HOMES/$f" && echo "$f: cat"
  ls -a "$(dirname "$HOMES/$f")" | grep -qxF "$(basename "$f")" && echo "$f: ls"
  grep -qxF "$HOMES/$f" found && echo "$f: find of bash"
done < names 2> /dev/null; true"#;
    let script = script.replace("$HOMES", &home.display().to_string());
    let output = bench.ok("bash", json!({"command": script, "timeout": 100})).await;
    got.extend(output.lines().filter(|line| line.contains(": ")).map(str::to_owned));
    let found = text(&bench.call("find", json!({"pattern": "*", "path": home, "limit": 10_000})).await);
    let matched = text(&bench.call("grep", json!({"pattern": "KEY", "path": home, "limit": 10_000})).await);
    for name in names {
        let path = home.join(name);
        let read = bench.call("read", json!({"path": path})).await;
        let parent = json!({"path": path.parent().unwrap(), "limit": 10_000});
        let listed = text(&bench.call("ls", parent).await);
        let base = path.file_name().unwrap().to_str().unwrap();
        let in_grep = text(&bench.call("grep", json!({"pattern": "KEY", "path": path})).await);
        for (tool, is_got) in [
            ("read", text(&read).contains("KEY")),
            ("ls", listed.lines().any(|line| line == base)),
            ("find", found.lines().any(|line| line == name)),
            ("grep", matched.lines().any(|line| line.starts_with(&format!("{name}:")))),
            ("grep of it", in_grep.contains(":1: KEY") || in_grep.contains("KEY of")),
        ] {
            if is_got {
                got.push(format!("{name}: {tool}"));
            }
        }
        if read.is_error && path.exists() && bench.workbench.sandbox.is_some() {
            let why = text(&read);
            assert!(why.contains("sandbox.filesystem.allowRead"), "{name}: {why}");
        }
    }
    got
}

#[test]
fn keys_of_a_home_are_neither_read_nor_listed() {
    let seed = std::env::var("PITH_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(31);
    println!("PITH_SEED={seed}");
    let names: Vec<String> = KEYS.iter().map(|name| (*name).to_owned()).chain(random_names(seed)).collect();
    let fill = |home: &Path| names.iter().for_each(|name| put(home, name, &format!("KEY of {name}\n")));
    run(async {
        let free = ground(None, &json!({}), fill);
        let without = got(&free, &names).await;
        let n_ways = 8;
        assert_eq!(without.len(), n_ways * names.len(), "{without:#?}");
        for namespaces in tiers() {
            for made in [Made::BeforeTheSession, Made::AfterACommand] {
                let before = |home: &Path| {
                    if made == Made::BeforeTheSession {
                        fill(home);
                    }
                };
                let bench = ground(Some(namespaces), &json!({"profile": "workspace-write"}), before);
                if made == Made::AfterACommand {
                    bench.ok("bash", json!({"command": "true"})).await;
                    fill(&home(&bench));
                }
                let with = got(&bench, &names).await;
                println!("{made:?}, namespaces {namespaces}: {} of {} ways", with.len(), without.len());
                assert!(with.is_empty(), "{made:?}, namespaces {namespaces}: {with:#?}");
            }
        }
    });
}

#[test]
fn tools_find_what_they_need_in_a_home() {
    run(async {
        for namespaces in tiers() {
            for made in [Made::BeforeTheSession, Made::AfterACommand] {
                let fill = |home: &Path| WORK.iter().for_each(|name| put(home, name, &format!("text of {name}\n")));
                let before = |home: &Path| {
                    if made == Made::BeforeTheSession {
                        fill(home);
                    }
                };
                let bench = ground(Some(namespaces), &json!({"profile": "workspace-write"}), before);
                let home = home(&bench);
                if made == Made::AfterACommand {
                    bench.ok("bash", json!({"command": "true"})).await;
                    fill(&home);
                    bench.ok("bash", json!({"command": "true"})).await;
                }
                for name in WORK {
                    let path = home.join(name);
                    let command = format!(
                        "cat {0} && ls {0} && ls $(dirname {0} | sed 's|/agent.*|/agent/skills|')",
                        path.display()
                    );
                    let is_top = path.parent() == Some(&*home);
                    let command = if is_top || name.matches('/').count() < 2 {
                        format!("cat {}", path.display())
                    } else {
                        command
                    };
                    let output = bench.call("bash", json!({"command": command})).await;
                    assert!(
                        text(&output).contains(&format!("text of {name}")),
                        "{made:?} {namespaces} {name}: {output:?}"
                    );
                    let read = bench.ok("read", json!({"path": path})).await;
                    assert!(read.contains(&format!("text of {name}")), "{made:?} {namespaces} {name}");
                }
                let listed = bench.ok("ls", json!({"path": home})).await;
                assert!(listed.contains("project/") && listed.contains(".cargo/"), "{listed}");
                let listed = bench.ok("ls", json!({"path": "/"})).await;
                assert!(listed.contains("usr/"), "{listed}");
                if namespaces {
                    let listed =
                        bench.ok("bash", json!({"command": format!("ls -A {} && ls /", home.display())})).await;
                    assert!(
                        listed.contains("project") && listed.contains(".cargo") && listed.contains("usr"),
                        "{listed}"
                    );
                    assert!(!listed.contains(".ssh"), "{listed}");
                }
            }
        }
    });
}

#[test]
fn the_user_opens_and_closes_places_of_a_home() {
    let fill = |home: &Path| {
        for name in [".aws/config", ".aws/credentials", ".cargo/config.toml", "private/a", ".foo"] {
            put(home, name, "text");
        }
    };
    let settings = json!({"profile": "workspace-write", "filesystem": {
        "allowRead": ["~/.aws", "~/.later"], "denyRead": ["~/.aws/credentials", "~/.cargo", "~/private"],
    }});
    run(async {
        for namespaces in tiers() {
            let bench = ground(Some(namespaces), &settings, fill);
            let home = home(&bench);
            put(&home, ".later/a", "text");
            for (name, is_open) in [
                (".aws/config", true),
                (".later/a", true),
                (".aws/credentials", false),
                (".cargo/config.toml", false),
                ("private/a", false),
                (".foo", false),
            ] {
                let path = home.join(name);
                let command = bench.call("bash", json!({"command": format!("cat {}", path.display())})).await;
                assert_eq!(!command.is_error, is_open, "{namespaces} {name}: {command:?}");
                let read = bench.call("read", json!({"path": path})).await;
                assert_eq!(!read.is_error, is_open, "{namespaces} {name}: {read:?}");
            }
            let text = bench.fails("bash", json!({"command": format!("cat {}/.foo", home.display())})).await;
            assert!(text.contains("sandbox.filesystem.allowRead"), "{text}");
        }
    });
}

#[test]
fn links_do_not_lead_to_keys_and_programs_behind_links_work() {
    run(async {
        for namespaces in tiers() {
            let fill = |home: &Path| {
                let data = home.parent().unwrap().join("data");
                for (name, text) in [("ssh/id", "KEY"), ("cargo/registry/a", "package"), ("cargo/credentials", "KEY")] {
                    put(&data, name, text);
                }
                put(home, "dotfiles/gitconfig", "settings");
                put(home, "dotfiles/npmrc", "KEY");
                for (link, target) in [(".ssh", "../data/ssh"), (".cargo", "../data/cargo")] {
                    symlink(target, home.join(link)).unwrap();
                }
                symlink("dotfiles/gitconfig", home.join(".gitconfig")).unwrap();
                symlink("dotfiles/npmrc", home.join(".npmrc")).unwrap();
            };
            let bench = ground(Some(namespaces), &json!({"profile": "workspace-write"}), fill);
            let home = home(&bench);
            for (path, is_open) in [
                (".ssh/id", false),
                ("../data/ssh/id", false),
                (".npmrc", false),
                ("dotfiles/npmrc", false),
                (".cargo/credentials", false),
                ("../data/cargo/credentials", false),
                (".cargo/registry/a", true),
                (".gitconfig", true),
            ] {
                let path = home.join(path);
                let command = bench.call("bash", json!({"command": format!("cat {}", path.display())})).await;
                assert_eq!(!command.is_error, is_open, "{namespaces} {path:?}: {command:?}");
                let read = bench.call("read", json!({"path": path})).await;
                assert_eq!(!read.is_error, is_open, "{namespaces} {path:?}: {read:?}");
            }
        }
    });
}

#[test]
fn a_session_below_a_closed_name_works_in_its_directory() {
    for namespaces in tiers() {
        for at in [".local/share/app/project", ".pi/work", ".worktrees/one", "plain", ""] {
            if at.is_empty() && !namespaces {
                continue;
            }
            run(async {
                let dir = tempfile::tempdir().unwrap();
                let home = dir.path().canonicalize().unwrap().join("home");
                let (cwd, temp) = (home.join(at), home.join(".tmp"));
                for name in [&cwd, &temp] {
                    fs::create_dir_all(name).unwrap();
                }
                put(&home, ".ssh/id", "KEY");
                put(&home, ".local/share/app/other", "KEY");
                put(&cwd, "file", "text");
                let places =
                    Places { cwd: cwd.clone(), home: Some(home.clone()), agent_dir: home.join(".pi/agent"), temp };
                let settings = json!({"profile": "workspace-write"});
                let sandbox = enforced_at(places, &settings, namespaces, SessionHosts::default());
                let options = WorkbenchOptions {
                    supervisor: Some(supervisor()),
                    home: Some(home.clone()),
                    temp: dir.path().to_owned(),
                    sandbox: Some(Arc::new(Sandbox::Enforced(sandbox))),
                    ..WorkbenchOptions::default()
                };
                let workbench = Workbench::new(cwd.clone(), options);
                let bench = Bench { dir, workbench, cancel: Default::default(), updates: Arc::default() };
                let output = bench.ok("bash", json!({"command": "cat file && echo new > new && ls ."})).await;
                assert!(output.starts_with("text"), "{at} {namespaces}: {output}");
                // Beside dot names of a home, what is new is open from the next command on.
                let command = "cat new && mkdir -p a/b && echo x > $TMPDIR/x && cat $TMPDIR/x";
                bench.ok("bash", json!({"command": command})).await;
                bench.ok("read", json!({"path": "file"})).await;
                bench.ok("write", json!({"path": "more", "content": "x"})).await;
                assert!(bench.ok("ls", json!({})).await.contains("more"));
                for key in [".ssh/id", ".local/share/app/other"] {
                    let path = home.join(key);
                    let command = format!("cat {}", path.display());
                    bench.fails("bash", json!({"command": command})).await;
                    bench.fails("read", json!({"path": path})).await;
                    let listed = text(
                        &bench
                            .call("bash", json!({"command": format!("ls -A {}", path.parent().unwrap().display())}))
                            .await,
                    );
                    assert!(
                        !listed.contains("id") || at.is_empty() && !listed.lines().any(|line| line == "id"),
                        "{at}: {listed}"
                    );
                }
            });
        }
    }
}
