//! bash is the oracle: what the reader says a script runs is compared with what bash runs.
//!
//! Generated scripts that the reader understands are run with programs that record how they were called. Each recorded
//! call must be one that the reader has listed; of scripts without conditions all must be recorded.
//! `PITH_ORACLE_SCRIPTS` says how many, `PITH_ORACLE_SEED` which ones.
#![cfg(unix)]

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use pith_permissions::command::{Part, Reading, Role, Word, read};

/// How many scripts one bash runs.
const BATCH: usize = 250;

const RECORDER: &str = "#!/bin/sh\nprintf '%s\\0' \"$PITH_N\" \"$#\" \"${0##*/}\" \"$@\" >>\"$PITH_RECORD\"\n";

/// Programs that record, and those that are looked through.
const STUBS: [&str; 4] = ["p1", "p2", "p3", "git"];
const REAL: [&str; 8] = ["timeout", "nice", "nohup", "env", "xargs", "bash", "sh", "setsid"];

#[test]
fn bash_runs_what_the_reader_says() {
    let number = |name: &str, default| std::env::var(name).map_or(default, |text| text.parse().expect(name));
    let (n_scripts, seed) = (number("PITH_ORACLE_SCRIPTS", 1000), number("PITH_ORACLE_SEED", 1));
    let mut dice = Dice(seed as u64 * 2 + 1);
    let directory = tempfile::tempdir().expect("temp dir");
    let bin = programs(directory.path());
    let (mut n_made, mut n_run, mut n_calls) = (0, 0, 0);
    while n_made < n_scripts {
        let mut batch = Vec::new();
        while batch.len() < BATCH && n_made < n_scripts {
            n_made += 1;
            let script = dice.script();
            let reading = read(&script.text);
            if reading.opaque.is_empty() && is_safe(&script, &reading) {
                batch.push((script, reading));
            }
        }
        n_run += batch.len();
        let recorded = run(directory.path(), &bin, &batch);
        for (position, (script, reading)) in batch.iter().enumerate() {
            let calls = recorded.get(&position).map_or(&[][..], Vec::as_slice);
            n_calls += calls.len();
            compare(script, reading, calls);
        }
    }
    println!("{n_made} scripts made, {n_run} understood and run, {n_calls} calls recorded");
    assert!(n_run * 4 > n_made, "only {n_run} of {n_made} were understood");
    assert!(n_calls > n_run, "only {n_calls} calls were recorded");
}

/// Scripts that somebody thought of: what bash runs, and that the reader says so.
#[test]
fn known_scripts_are_read_as_bash_reads_them() {
    let scripts = [
        "p1 a b; p2 'c d' \"e f\" g\\ h",
        "p1 a|p2 b&&p3||git c",
        "(p1; { p2; }) >/dev/null 2>&1 &",
        "if p1; then p2; else p3; fi",
        "for x in a b; do p1 $x \"$x\"; done",
        "p1 $(p2 a) `p3 b` <(git c)",
        "p1 \"${x:-$(p2 y)}\" ${z-$(p3)}",
        "p1 <<E\n$(p2 in)\nE\np3",
        "p1 <<'E'\n$(p2 out)\nE\np3",
        "p1 <<-E\n\ta $(p2)\n\tE\np3 b",
        "case a in a) p1 ;; b|c) p2 ;; *) p3 ;; esac",
        "f() { p1 \"$@\"; }; f a b; p2",
        "! p1 | p2; time p3",
        "p1 a\\\nb \"c\\\nd\"",
        "p1 # p2 comment\np3",
        "p1 $'a\\n\\'b' \"$\" a$ {} { }",
        "timeout 5 p1 a; nice -n 3 p2; nohup p3 b; env RUST_LOG=x git c",
        "bash -c 'p1 a; p2 \"$0\"' z; sh -c p3",
        "p1 | xargs p2 -n 3 c",
        "RUST_LOG=debug p1 x=y z=~ HEAD~1",
        "p1 *.rs [ab] {a,b} ? ~ ~root",
        "while ! p1; do p2; done; until p3; do git; done",
        "p1 \"a'b\" 'c\"d' e\"f\"'g'h",
        "p1 >|/dev/null <>/dev/null 2>&1 <&- p2",
        "p1 <<<\"$(p2)\"; p3 <<A <<B\n1\nA\n$(git)\nB",
        "[[ a == b && -n $(p1) ]] || p2",
        "p1 \"`p2 a`\" $((1 + 2))",
        "p1 if then fi do done; p2 ! x",
        "{ p1; } 2>/dev/null | { p2; }",
    ];
    let directory = tempfile::tempdir().expect("temp dir");
    let bin = programs(directory.path());
    let script = |text: &str| Script { text: text.to_owned(), is_straight: false };
    let batch: Vec<_> = scripts.iter().map(|text| (script(text), read(text))).collect();
    for (script, reading) in &batch {
        assert_eq!(reading.opaque, Vec::<String>::new(), "{}", script.text);
    }
    let recorded = run(directory.path(), &bin, &batch);
    for (position, (script, reading)) in batch.iter().enumerate() {
        let calls = recorded.get(&position).map_or(&[][..], Vec::as_slice);
        assert!(!calls.is_empty(), "bash ran nothing: {}", script.text);
        compare(script, reading, calls);
    }
}

struct Script {
    text: String,
    /// Whether each command runs exactly once.
    is_straight: bool,
}

/// A call of a program: its name and its arguments.
type Call = Vec<String>;

fn compare(script: &Script, reading: &Reading, calls: &[Call]) {
    let mut listed = Vec::new();
    reading.parts.iter().for_each(|part| leaves(part, &mut listed));
    for call in calls {
        let is_listed = listed.iter().any(|words| fits(words, call));
        assert!(is_listed, "bash ran {call:?}, which is not listed\n{}\n{reading:#?}", script.text);
    }
    if script.is_straight {
        let ours = listed.iter().filter(|words| words[0].literal().is_some_and(|name| STUBS.contains(&name))).count();
        assert_eq!(ours, calls.len(), "{}\n{reading:#?}\n{calls:?}", script.text);
    }
}

fn leaves<'a>(part: &'a Part, listed: &mut Vec<&'a [Word]>) {
    if part.role == Role::Command {
        listed.push(&part.words);
    }
    part.inner.iter().for_each(|inner| leaves(inner, listed));
}

/// Whether a call is what the words say; a computed word may be any number of arguments.
fn fits(words: &[Word], call: &[String]) -> bool {
    match (words.split_first(), call.split_first()) {
        (None, None) => true,
        (Some((Word::Literal(word), words)), Some((first, call))) => word == first && fits(words, call),
        (Some((Word::Unknown(_), rest)), _) => {
            fits(rest, call) || call.split_first().is_some_and(|(_, call)| fits(words, call))
        }
        _ => false,
    }
}

/// Whether a script can do no harm even if the reader is wrong about it.
fn is_safe(script: &Script, reading: &Reading) -> bool {
    let text = script.text.replace("/dev/null", "");
    let is_endless = !script.is_straight && (text.contains("while") || text.contains("until"));
    !text.contains('/') && !is_endless && reading.files.is_empty()
}

fn programs(directory: &Path) -> std::path::PathBuf {
    let bin = directory.join("bin");
    fs::create_dir(&bin).expect("directory");
    for name in STUBS {
        fs::write(bin.join(name), RECORDER).expect("write");
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).expect("chmod");
    }
    for name in REAL {
        let found = ["/usr/bin", "/bin"].map(|place| Path::new(place).join(name));
        let found = found.iter().find(|path| path.exists()).expect(name);
        std::os::unix::fs::symlink(found, bin.join(name)).expect("link");
    }
    bin
}

/// Runs scripts in one bash, each in a subshell, and returns what was called in each.
fn run(directory: &Path, bin: &Path, batch: &[(Script, Reading)]) -> HashMap<usize, Vec<Call>> {
    let record = directory.join("record");
    let work = directory.join("work");
    fs::create_dir_all(&work).expect("directory");
    fs::write(work.join("a.rs"), "").expect("write");
    fs::write(&record, "").expect("write");
    let mut driver = String::new();
    for (position, (script, _)) in batch.iter().enumerate() {
        let quoted = script.text.replace('\'', "'\\''");
        driver.push_str(&format!("PITH_N={position}; ( eval '{quoted}' ) </dev/null >/dev/null 2>&1\n"));
    }
    fs::write(directory.join("driver"), driver).expect("write");
    // Whatever a script leaves in the background holds descriptor 9, so the end of this pipe is the end of all.
    let child = Command::new("/bin/bash")
        .args(["-c", "exec 9>&1; export PITH_N; . \"$0\""])
        .arg(directory.join("driver"))
        .current_dir(&work)
        .env_clear()
        .env("PATH", bin)
        .env("HOME", directory)
        .env("PITH_RECORD", &record)
        // A damaged script may call itself.
        .env("FUNCNEST", "20")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("bash");
    let output = child.wait_with_output().expect("bash ends");
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    let text = fs::read(&record).expect("record");
    let mut fields = text.split(|byte| *byte == 0).map(|field| String::from_utf8_lossy(field).into_owned());
    let mut calls: HashMap<usize, Vec<Call>> = HashMap::new();
    while let (Some(position), Some(count)) = (fields.next(), fields.next()) {
        let n_words: usize = count.parse().expect("a count");
        let call = fields.by_ref().take(n_words + 1).collect();
        calls.entry(position.parse().expect("a number")).or_default().push(call);
    }
    calls
}

/// Makes scripts.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).expect("small")
    }

    fn one<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }

    fn script(&mut self) -> Script {
        match self.below(3) {
            0 => {
                let text = self.list(2, true);
                Script { text, is_straight: true }
            }
            1 => Script { text: self.list(3, false), is_straight: false },
            _ => {
                let text = self.list(2, false);
                Script { text: self.damaged(&text), is_straight: false }
            }
        }
    }

    /// Some characters of a text replaced, removed or added.
    fn damaged(&mut self, text: &str) -> String {
        const ODD: [&str; 32] = [
            "'", "\"", "\\", "$", "`", "(", ")", "{", "}", ";", "&", "|", "<", ">", "#", "\n", " ", "!", "~", "*", "=",
            "[", "]", "$(", "${", "\\\n", "<<", "&&", ";;", "$'", "if ", "a",
        ];
        let mut letters: Vec<String> = text.chars().map(String::from).collect();
        for _ in 0..=self.below(3) {
            let at = self.below(letters.len() + 1);
            match self.below(3) {
                0 if at < letters.len() => drop(letters.remove(at)),
                1 if at < letters.len() => letters[at] = self.one(&ODD).to_owned(),
                _ => letters.insert(at, self.one(&ODD).to_owned()),
            }
        }
        letters.concat()
    }

    fn list(&mut self, depth: usize, is_straight: bool) -> String {
        let mut text = self.command(depth, is_straight);
        for _ in 0..self.below(3) {
            let separators: &[&str] =
                if is_straight { &["; ", "\n", " | ", " &\n"] } else { &["; ", "\n", " | ", " & ", "&&", " || "] };
            text.push_str(self.one(separators));
            text.push_str(&self.command(depth, is_straight));
        }
        text
    }

    fn command(&mut self, depth: usize, is_straight: bool) -> String {
        if depth == 0 || self.below(3) > 0 {
            return self.simple(depth, is_straight);
        }
        let inner = |dice: &mut Dice| dice.list(depth - 1, is_straight);
        let n_kinds = if is_straight { 5 } else { 11 };
        match self.below(n_kinds) {
            0 => format!("{{ {}\n}}", inner(self)),
            1 => format!("( {} )", inner(self)),
            2 => format!("bash -c '{}'", inner(self).replace('\'', "'\\''")),
            3 => format!("! {}", self.simple(0, is_straight)),
            4 => format!("{{ {}\n}} >/dev/null 2>&1", inner(self)),
            5 => format!("if {}\nthen {}\nelse {}\nfi", inner(self), inner(self), inner(self)),
            6 => format!("for x in a 'b c'; do {}\ndone", inner(self)),
            7 => format!("case {} in a|'b') {}\n;; *) {}\n;; esac", self.word(0, true), inner(self), inner(self)),
            8 => format!("f{depth}() {{ {}\n}}; f{depth} {}", inner(self), self.word(0, true)),
            9 => format!("while ! {}; do {}\ndone", self.simple(0, true), inner(self)),
            _ => format!("[[ {} == {} ]]", self.word(0, true), self.word(0, true)),
        }
    }

    fn simple(&mut self, depth: usize, is_straight: bool) -> String {
        let wrapper =
            self.one(&["", "", "", "", "", "timeout 9 ", "nice -n 1 ", "env CI=1 ", "RUST_LOG=a ", "command "]);
        let mut text = format!("{wrapper}{}", self.one(&["p1", "p2", "p3", "git", "'p1'", "p\\2", "\"p3\""]));
        for _ in 0..self.below(4) {
            text.push(' ');
            text.push_str(&self.word(depth, is_straight));
        }
        match self.below(12) {
            0 => text.push_str(" >/dev/null"),
            1 => text.push_str(" 2>&1 </dev/null"),
            2 => text.push_str(&format!(" <<E\n{}\n$(p1 in)\nE\n", self.one(&["text", "it's", "\"q", "a $x b"]))),
            3 => text.push_str(" <<'E'\n$(p1 out) `p2`\nE\n"),
            4 => text.push_str(&format!(" <<< {}", self.word(depth, is_straight))),
            _ => {}
        }
        text
    }

    fn word(&mut self, depth: usize, is_straight: bool) -> String {
        let n_kinds = if depth > 0 { 16 } else { 12 };
        match self.below(n_kinds) {
            0 => "'a b'".to_owned(),
            1 => "\"c d\"".to_owned(),
            2 => "e\\ f".to_owned(),
            3 => "$'g\\th'".to_owned(),
            4 => self.one(&["--flag=x", "-x", "HEAD~1", "a=b", "@", "%s", ",", "+", "a:b", "é"]).to_owned(),
            5 => self.one(&["$x", "\"$x\"", "${x}", "${x:-y}", "\"${x-a b}\"", "$?", "$#", "$((1+2))"]).to_owned(),
            6 => self.one(&["*", "a?", "{a,b}", "[ab]", "~", "~x", "x=~", "{}", "}", "{"]).to_owned(),
            7 => self
                .one(&["\"it's\"", "'say \"x\"'", "a'b'\"c\"", "\"a\\\"b\"", "\"\\$x\"", "\"a\\\nb\"", "a\\\nb"])
                .to_owned(),
            8 => self.one(&["if", "then", "done", "in", "case", "!", "time", "function"]).to_owned(),
            9 => self.one(&["\\#x", "x#y", "'#'", "\"#\"", "$", "a$", "\"$\"", "\\$x", "\\`"]).to_owned(),
            10 | 11 => self.one(&["a", "b1", "word", "3", "x.rs"]).to_owned(),
            12 => format!("$({})", self.list(depth - 1, is_straight)),
            13 => format!("\"$({})\"", self.list(depth - 1, is_straight)),
            14 => format!("`{}`", self.simple(0, is_straight).replace(['`', '\\'], "")),
            _ if is_straight => "z".to_owned(),
            _ => format!("${{x:-$({})}}", self.simple(0, false)),
        }
    }
}
