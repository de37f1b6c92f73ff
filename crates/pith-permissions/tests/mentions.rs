//! bash is the oracle: no spelling of a denied command that bash runs is let through.
//!
//! Spellings are made of forms, one inside another, and run with stand-ins for the denied programs.
//! `PITH_SPELLINGS` says how many, `PITH_ORACLE_SEED` which ones.
#![cfg(unix)]

#[path = "spellings/make.rs"]
mod make;
#[path = "spellings/programs.rs"]
mod programs;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use make::{Dice, Spelling, TARGETS};
use pith_permissions::{Action, Bases, Mode, Origin, Policy, Reason, Rule, ToolUse, Verdict};

#[test]
fn no_spelling_of_a_denied_command_runs() {
    let number = |name: &str, default| std::env::var(name).map_or(default, |text| text.parse().expect(name));
    let (n_spellings, seed) = (number("PITH_SPELLINGS", 250), number("PITH_ORACLE_SEED", 1));
    let directory = tempfile::tempdir().expect("temp dir");
    let bin = programs::install(directory.path());
    let mut dice = Dice::new(seed as u64, &bin);
    let spellings: Vec<Spelling> = (0..n_spellings).map(|_| dice.spelling()).collect();
    let mut counts = [0; 3];
    let mut through = Vec::new();
    let ran = run(directory.path(), &bin, &spellings);
    for (spelling, ran) in spellings.iter().zip(ran) {
        if !ran {
            continue;
        }
        let verdict = policy(Mode::Allow, &[spelling.rule]).judge(&using(Action::Command(&spelling.script))).verdict;
        counts[verdict as usize] += 1;
        if verdict == Verdict::Allow {
            through.push(format!("{} [{}]", spelling.script, spelling.rule));
        }
    }
    let [allowed, asked, refused] = counts;
    println!(
        "{n_spellings} spellings, {} proven: {refused} refused, {asked} asked, {allowed} run",
        counts.iter().sum::<usize>()
    );
    assert!(
        allowed == 0,
        "{} were let through, such as\n{}",
        through.len(),
        through.iter().take(40).cloned().collect::<Vec<_>>().join("\n---\n")
    );
    assert!(counts.iter().sum::<usize>() * 2 > n_spellings, "too few spellings ran: {counts:?}");
}

#[test]
fn every_form_alone_is_stopped() {
    let directory = tempfile::tempdir().expect("temp dir");
    let bin = programs::install(directory.path());
    let mut dice = Dice::new(7, &bin);
    let spellings = dice.each_form();
    let ran = run(directory.path(), &bin, &spellings);
    let n_ran = ran.iter().filter(|ran| **ran).count();
    let silent: Vec<&str> =
        spellings.iter().zip(&ran).filter(|(_, ran)| !**ran).map(|(spelling, _)| spelling.script.as_str()).collect();
    println!("{n_ran} of {} forms run their command; not: {silent:#?}", spellings.len());
    let through: Vec<&str> = spellings
        .iter()
        .zip(&ran)
        .filter(|(spelling, ran)| {
            **ran
                && policy(Mode::Allow, &[spelling.rule]).judge(&using(Action::Command(&spelling.script))).verdict
                    == Verdict::Allow
        })
        .map(|(spelling, _)| spelling.script.as_str())
        .collect();
    assert!(through.is_empty(), "let through:\n{}", through.join("\n---\n"));
    assert!(n_ran * 10 > spellings.len() * 8, "{n_ran} of {}", spellings.len());
}

/// Runs each spelling in a directory of its own and returns which ran a denied command.
fn run(directory: &Path, bin: &Path, spellings: &[Spelling]) -> Vec<bool> {
    let work = directory.join("work");
    let record = directory.join("record");
    fs::create_dir_all(&record).expect("directory");
    let mut driver = String::new();
    for (position, spelling) in spellings.iter().enumerate() {
        let place = work.join(position.to_string());
        fs::create_dir_all(&place).expect("directory");
        let script = directory.join(format!("script{position}"));
        fs::write(&script, &spelling.script).expect("write");
        driver.push_str(&format!(
            "cd '{}' && PITH_RECORD='{}' timeout -k 1 20 bash '{}' </dev/null >/dev/null 2>&1 9>&-\n",
            place.display(),
            record.join(position.to_string()).display(),
            script.display()
        ));
    }
    fs::write(directory.join("driver"), driver).expect("write");
    let status = Command::new("/bin/bash")
        .arg(directory.join("driver"))
        .env_clear()
        .env("PATH", bin)
        .env("HOME", directory)
        .env("FUNCNEST", "20")
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::null())
        .status()
        .expect("bash");
    assert!(status.code().is_some(), "the driver was ended");
    (0..spellings.len()).map(|position| record.join(position.to_string()).exists()).collect()
}

/// How long commands are, reading them takes time that grows no faster.
#[test]
fn long_commands_have_a_clear_verdict() {
    let denying = policy(Mode::Allow, &["bash(git push:*)", "bash(rm -rf *)", "bash(curl:*)"]);
    let verdict = |script: &str| denying.judge(&using(Action::Command(script))).verdict;
    assert_eq!(verdict(&format!("echo {}", "a".repeat(1 << 20))), Verdict::Ask, "a megabyte is not read");
    assert_eq!(verdict(&format!("git push {}", "a ".repeat(1 << 19))), Verdict::Ask);
    assert_eq!(verdict(&format!("printf '%s' {}", "word ".repeat(10_000))), Verdict::Allow);
    assert_eq!(verdict(&format!("ls {}; git -C . push", "word ".repeat(10_000))), Verdict::Deny);
    assert_eq!(verdict(&format!("ionice {} git push", "word ".repeat(10_000))), Verdict::Ask);
    assert_eq!(verdict(&format!("nobody {} x", "git -C . ".repeat(5_000))), Verdict::Allow);
    assert_eq!(verdict(&format!("{} git push", "timeout 5 xargs ".repeat(500))), Verdict::Ask, "too deep to be read");
    assert_eq!(verdict(&format!("ionice {} push", "git ".repeat(12_000))), Verdict::Ask);
    assert_eq!(verdict(&"git status; ".repeat(5_000)), Verdict::Allow);
    assert_eq!(verdict(&format!("rm {} x", "-v ".repeat(10_000))), Verdict::Allow);
}

/// What developers do all day under usual rules: next to nothing of it is asked about without reason.
#[test]
fn ordinary_commands_run() {
    let denied =
        ["bash(git push:*)", "bash(rm -rf *)", "bash(npm publish:*)", "bash(kubectl delete:*)", "bash(curl:*)"];
    let denying = policy(Mode::Allow, &denied);
    let commands: Vec<String> =
        include_str!("data/ordinary_commands.txt").lines().map(|line| line.replace('⏎', "\n")).collect();
    let mut asked = Vec::new();
    for command in &commands {
        let judgement = denying.judge(&using(Action::Command(command)));
        if judgement.verdict != Verdict::Allow {
            asked.push(format!("{:?} {} <- {command}", judgement.reason, judgement.opaque.join(", ")));
        }
    }
    println!("{} ordinary commands, {} asked\n{}", commands.len(), asked.len(), asked.join("\n"));
    assert!(commands.len() >= 2000);
    assert!(asked.len() * 100 <= commands.len(), "{} of {} asked:\n{}", asked.len(), commands.len(), asked.join("\n"));
}

/// Spellings that somebody thought of, and texts that only speak of the denied command.
#[test]
fn known_spellings_have_their_verdict() {
    let denied =
        ["bash(git push:*)", "bash(rm -rf *)", "bash(kubectl delete:*)", "bash(npm publish:*)", "bash(curl:*)"];
    let denying = policy(Mode::Allow, &denied);
    for (verdict, scripts) in [
        (
            Verdict::Deny,
            &[
                "git -C . push",
                "git --git-dir .git push",
                "git --some-option push",
                "kubectl -n ns delete pod a",
                "npm --silent publish",
                "rm -r -f x",
                "rm -fr x",
                "rm x --recursive --force",
                "rm -rfv x",
                "sudo rm -r -f x",
                "\"$BIN/git\" push",
                "$BIN/git -C . push",
                "timeout 5 git -C . push",
            ][..],
        ),
        (
            Verdict::Ask,
            &[
                "ssh host git push",
                "ssh host 'git push'",
                "bash +x -c 'git push'",
                "sh /dev/stdin <<< 'git push'",
                "make --eval='$(shell git push)'",
                "PS4='$(git push)'; set -x; :",
                "cp /usr/bin/git g",
                "ln -s $(which git) g",
                "ionice git push",
                "sudo A=1 git push",
                "python3 -c \"subprocess.run(['git', 'push'])\"",
                "git -c alias.x=push x",
                "git config alias.x '!git push'",
                "GIT_EDITOR='git push' git commit",
                "echo git push | tee >(sh)",
                "echo 'git push' > .git/hooks/post-commit; git commit -m x",
                "read -r l < <(echo git push); nobody-knows $l",
                "git submodule foreach 'git push'",
                "git rebase -x 'git push' main",
                "git -c core.pager='git push' log",
                "rg --pre 'git push' x",
                "man -P 'git push' ls",
                "sed 's/x/git push/e' f",
                "mkfifo p; sh p & echo git push > p",
                "test -x /usr/bin/git && cp $_ g",
                "git-push",
                "x='git push'; $x/build.sh",
                "x=$(base64 -d f); $x/build.sh; echo $((x))",
                "{git,push}",
                "nobody {git,push}",
                "g{i,}t push",
                "nobody g{i,x}t push",
                "echo 'git push' >> ~/.bashrc; bash -ic :",
                "echo 'import os; os.system(\"git push\")' > x.py; python3 -c 'import x'",
                "printf 'git push' > s.js; node -e 'require(\"./s\")'",
                "make -f - <<< $'all:\n\t@''rm -f x -`:`r'",
                "ssh h 'a=gi; b=t; $a$b push'",
                "docker run --rm curlimages/curl x",
                "base64 -d f | sh",
                "eval \"$x\"",
                "curl_=1 xargs -I{} nobody curl {} < f",
            ],
        ),
        (
            Verdict::Allow,
            &[
                "grep -rn 'git push' docs",
                "git commit -m 'Explain git push'",
                "echo 'git push' >> notes.md",
                "git stash push",
                "git log --grep='git push'",
                "rg curl | sort | head",
                "apt-get install -y curl",
                "command -v curl",
                "cat > notes.md <<'E'\nRun git push.\nE",
                "docker push x",
                "rm -r x; rm -f y",
                "export A=1; [ -n \"$A\" ] && echo $((A + 1))",
                "find . -name curl",
                "git help push",
                "for f in *.md; do grep -n curl \"$f\"; done",
                "git commit -m \"$(cat <<'EOF'\nSay when to (git push)\nEOF\n)\"",
                "git status && docker push x",
                "\"$HOME/.cargo/bin/cargo\" test",
                "$ROOT/scripts/build.sh --all",
                "man git-push",
            ],
        ),
    ] {
        for script in scripts {
            let judgement = denying.judge(&using(Action::Command(script)));
            assert_eq!(judgement.verdict, verdict, "{script}\n{judgement:#?}");
        }
    }
}

/// Rules that allow are compared word by word, as if there were no rule against anything.
#[test]
fn rules_that_allow_are_as_strict_as_before() {
    let bases = Bases { cwd: "/work/app".into(), home: "/home/u".into(), settings: "/work/app".into() };
    let rule = |text: &str| Rule::parse(text, Origin::Host, &bases).expect("a rule");
    for deny in [&[][..], &["bash(kubectl delete:*)"][..]] {
        let policy =
            Policy { allow: vec![rule("bash(git push:*)"), rule("bash(rm -rf *)")], ..policy(Mode::Ask, deny) };
        let verdict = |script: &str| policy.judge(&using(Action::Command(script))).verdict;
        assert_eq!(verdict("git push origin"), Verdict::Allow);
        for script in [
            "git -C . push",
            "rm -r -f x",
            "rm -fr x",
            "ssh host git push",
            "export A=1; git push",
            "eval 'git push'",
            "trap 'git push' EXIT",
        ] {
            assert_eq!(verdict(script), Verdict::Ask, "{script}");
        }
    }
}

#[test]
fn a_mention_says_what_it_names() {
    let denying = policy(Mode::Allow, &["bash(git push:*)"]);
    let judgement = denying.judge(&using(Action::Command("ls; ionice git push")));
    let mentioned = Some("git push".to_owned());
    assert_eq!(judgement.reason, Reason::Possible { rule: "bash(git push:*)".to_owned(), mentioned });
    assert_eq!(judgement.parts.len(), 2);
    assert_eq!(judgement.parts[1].verdict, Verdict::Ask);
}

fn policy(mode: Mode, deny: &[&str]) -> Policy {
    let bases = Bases { cwd: "/work/app".into(), home: "/home/u".into(), settings: "/work/app".into() };
    let deny = deny.iter().map(|text| Rule::parse(text, Origin::Host, &bases).expect("a rule")).collect();
    Policy { mode, deny, ..Policy::default() }
}

fn using(action: Action) -> ToolUse {
    ToolUse { tool: "bash", action, workspace: Path::new("/work/app"), home: Path::new("/home/u"), is_confined: false }
}

#[test]
fn every_target_is_denied_as_it_is_written() {
    for target in TARGETS {
        let judgement = policy(Mode::Allow, &[target.rule]).judge(&using(Action::Command(&target.words.join(" "))));
        assert_eq!(judgement.verdict, Verdict::Deny, "{}", target.rule);
    }
}
