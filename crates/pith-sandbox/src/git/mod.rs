//! What git, run by the user in a directory, would read that makes it run something: the oracle of the sandbox.
//!
//! It follows git's own rules for finding a repository and its configuration. Where git takes one of several ways, as
//! with conditions of includes, this takes all of them: more is found than git reads, never less.

mod config;
mod index;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use config::Entry;

use crate::put_back::ASIDE;

pub use index::gitlinks;

/// Larger files are not compared by what is in them but by when they were changed.
const MAX_FILE: u64 = 1 << 20;
/// How deep files include others; git allows ten.
const MAX_DEPTH: usize = 10;

/// The way to a repository: a `.git` in a directory, or a directory that is a git directory itself.
pub type Place = PathBuf;

/// What makes git run something at a place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fact {
    pub kind: Kind,
    /// The key, the hook, the file.
    pub name: String,
    /// The value, the contents, the line.
    pub value: Vec<u8>,
    /// Where it stands.
    pub source: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A key of the configuration that is not known to be harmless.
    Key,
    Hook,
    /// A file of the project that a key names as a program or its argument.
    Program,
    /// A line of a rebase that runs a command.
    Todo,
    /// An address in one of the old files for them.
    Remote,
}

/// What git reads at a place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repository {
    pub git_dir: PathBuf,
    /// What worktrees of one repository have in common.
    pub common_dir: PathBuf,
    pub facts: BTreeSet<Fact>,
    /// Every file and directory that was looked at, whether it exists or not.
    pub read: BTreeSet<PathBuf>,
    /// Where hooks of this repository are, whether they exist or not.
    pub hooks: Vec<PathBuf>,
}

impl Fact {
    /// Why it must not be new.
    pub fn reason(&self) -> String {
        let Fact { kind, name, .. } = self;
        match kind {
            Kind::Key if name.starts_with("include") => format!("{name} makes git read more configuration"),
            Kind::Key => format!("git may run what {name} says"),
            Kind::Hook => format!("git runs it as the hook {name}"),
            Kind::Program => format!("{name} makes git run it"),
            Kind::Todo => "a rebase that goes on runs its exec lines".to_owned(),
            Kind::Remote => "git takes the address of a remote from it".to_owned(),
        }
    }

    /// Whether git runs the same because of another fact, wherever that stands.
    pub fn is_same(&self, other: &Fact) -> bool {
        (self.kind, &self.name, &self.value) == (other.kind, &other.name, &other.value)
    }
}

/// Reads as git does, for one user.
#[derive(Clone, Debug, Default)]
pub struct Oracle {
    pub home: Option<PathBuf>,
    /// What the user's own configuration says is not new wherever it counts, but hooks in these directories may be.
    pub writable: Vec<PathBuf>,
}

impl Oracle {
    /// Reads what git would at a place. Where there is no repository nothing but what was looked at is found.
    pub fn look(&self, place: &Path) -> Repository {
        let mut found = Repository::default();
        let top = if place.file_name().is_some_and(|name| name == ".git") { place.parent() } else { Some(place) };
        let top = top.unwrap_or(place);
        found.read.insert(place.to_owned());
        let Some(git_dir) = follow(place, &mut found.read) else { return found };
        let Some(common_dir) = common_dir(&git_dir, &mut found.read) else { return found };
        let mut entries = Vec::new();
        let written = self.configuration(&common_dir.join("config"), 0, &mut entries, &mut found.read);
        if written.iter().any(has_worktree_configuration) {
            self.configuration(&git_dir.join("config.worktree"), 0, &mut entries, &mut found.read);
        }
        let mut hooks = vec![common_dir.join("hooks")];
        for (source, entry) in entries.iter().filter(|(_, entry)| !entry.is_harmless()) {
            let (name, value) = (entry.name(), entry.value.clone().into_bytes());
            if name == "core.hookspath" {
                hooks.push(self.resolve(&entry.value, top));
            } else if entry.section != "alias" && !entry.section.starts_with("include") {
                programs(entry, top, &mut found);
            }
            found.facts.insert(Fact { kind: Kind::Key, name, value, source: source.clone() });
        }
        hooks.extend(self.hooks_of_the_user(top));
        for directory in &hooks {
            hooks_in(directory, &mut found);
        }
        found.hooks = hooks;
        todos(&git_dir, &mut found);
        for directory in ["remotes", "branches"] {
            remotes(&common_dir.join(directory), &mut found);
        }
        (found.git_dir, found.common_dir) = (git_dir, common_dir);
        found
    }

    /// Reads a file and what it includes. Returns the entries of the file itself.
    fn configuration(
        &self,
        file: &Path,
        depth: usize,
        all: &mut Vec<(PathBuf, Entry)>,
        read: &mut BTreeSet<PathBuf>,
    ) -> Vec<Entry> {
        // Of a link both count: where it leads, and what is there.
        let real = tidy(file);
        read.extend([file.to_owned(), real.clone()]);
        let Some(text) = read_file(file) else { return Vec::new() };
        let entries = config::read(&text);
        for entry in &entries {
            all.push((real.clone(), entry.clone()));
            if entry.section.starts_with("include") && entry.key == "path" && depth < MAX_DEPTH {
                let included = self.resolve(&entry.value, file.parent().unwrap_or(file));
                self.configuration(&included, depth + 1, all, read);
            }
        }
        entries
    }

    /// What is configured for the user wherever git runs, the last word last.
    fn of_the_user(&self) -> Vec<(PathBuf, Entry)> {
        let mut files = vec![PathBuf::from("/etc/gitconfig")];
        if let Some(home) = &self.home {
            files.extend([home.join(".config/git/config"), home.join(".gitconfig")]);
        }
        let (mut entries, mut read) = (Vec::new(), BTreeSet::new());
        for file in files {
            self.configuration(&file, 0, &mut entries, &mut read);
        }
        entries
    }

    /// The directories of hooks that the user's own configuration names and that lie where commands can write.
    fn hooks_of_the_user(&self, top: &Path) -> Vec<PathBuf> {
        let entries = self.of_the_user();
        let named = entries.iter().filter(|(_, entry)| entry.name() == "core.hookspath");
        let directories = named.map(|(_, entry)| self.resolve(&entry.value, top));
        directories.filter(|path| self.writable.iter().any(|root| path.starts_with(root))).collect()
    }

    /// A path as configuration writes it.
    fn resolve(&self, written: &str, base: &Path) -> PathBuf {
        match (written.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => tidy(&base.join(written)),
        }
    }
}

/// Whether the user has told git to take no directory for a repository that is not in a `.git`.
pub fn is_bare_explicit(home: &Path) -> bool {
    let oracle = Oracle { home: Some(home.to_owned()), writable: Vec::new() };
    let entries = oracle.of_the_user();
    let last = entries.iter().rfind(|(_, entry)| entry.name() == "safe.barerepository");
    last.is_some_and(|(_, entry)| entry.value == "explicit")
}

/// Returns the git directory that a `.git` or a bare repository leads to, if git would take it for one.
fn follow(place: &Path, read: &mut BTreeSet<PathBuf>) -> Option<PathBuf> {
    let git_dir = match fs::metadata(place) {
        Ok(metadata) if metadata.is_dir() => place.to_owned(),
        Ok(metadata) if metadata.is_file() => {
            let text = read_file(place)?;
            let target = trim_end(text.strip_prefix(b"gitdir:")?.trim_ascii_start());
            tidy(&place.parent()?.join(std::ffi::OsStr::from_bytes(target)))
        }
        _ => return None,
    };
    let head = git_dir.join("HEAD");
    read.insert(git_dir.clone());
    read.insert(head.clone());
    is_head(&head).then_some(git_dir)
}

/// Whether git takes a file for the `HEAD` of a repository.
fn is_head(path: &Path) -> bool {
    if let Ok(target) = fs::read_link(path)
        && target.starts_with("refs")
    {
        return true;
    }
    let Some(text) = read_file(path) else { return false };
    match text.strip_prefix(b"ref:") {
        Some(name) => name.trim_ascii_start().starts_with(b"refs/"),
        None => text.len() >= 40 && text[..40].iter().all(u8::is_ascii_hexdigit),
    }
}

/// Returns the directory that a git directory shares with others, if git would take both for a repository.
fn common_dir(git_dir: &Path, read: &mut BTreeSet<PathBuf>) -> Option<PathBuf> {
    let file = git_dir.join("commondir");
    let common = match read_file(&file) {
        Some(text) => tidy(&git_dir.join(std::ffi::OsStr::from_bytes(trim_end(&text)))),
        None => git_dir.to_owned(),
    };
    let needed = [common.join("objects"), common.join("refs")];
    let is_repository = needed.iter().all(|path| path.exists());
    read.insert(file);
    read.extend(needed);
    is_repository.then_some(common)
}

fn has_worktree_configuration(entry: &Entry) -> bool {
    entry.name() == "extensions.worktreeconfig" && !matches!(&*entry.value, "" | "false" | "no" | "off" | "0")
}

/// Files that a key names as a program or hand to one. The first word may be a program on the search path.
fn programs(entry: &Entry, top: &Path, found: &mut Repository) {
    let is_between = |c: char| c.is_whitespace() || "'\"!;|&()<>=$`".contains(c);
    let words = entry.value.split(is_between).filter(|word| !word.is_empty()).take(32);
    for (i, word) in words.enumerate() {
        if i == 0 && !word.contains('/') {
            continue;
        }
        let path = tidy(&top.join(word));
        if path.starts_with(top) && path.is_file() {
            let value = contents(&path);
            found.facts.insert(Fact { kind: Kind::Program, name: entry.name(), value, source: path.clone() });
            found.read.insert(path);
        }
    }
}

fn hooks_in(directory: &Path, found: &mut Repository) {
    found.read.insert(directory.to_owned());
    let directory = tidy(directory);
    for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if name.ends_with(".sample") || name.ends_with(ASIDE) {
            continue;
        }
        let source = tidy(&path);
        if fs::metadata(&path).is_ok_and(|metadata| metadata.is_file() && metadata.mode() & 0o111 != 0) {
            found.facts.insert(Fact { kind: Kind::Hook, name, value: contents(&path), source: source.clone() });
        }
        found.read.extend([path, source]);
    }
    found.read.insert(directory);
}

/// The lines of a rebase that run commands.
fn todos(git_dir: &Path, found: &mut Repository) {
    let directory = git_dir.join("rebase-merge");
    let file = directory.join("git-rebase-todo");
    let text = read_file(&file).unwrap_or_default();
    for line in text.split(|byte| *byte == b'\n').filter(|line| runs_command(line)) {
        let value = line.trim_ascii().to_owned();
        found.facts.insert(Fact { kind: Kind::Todo, name: "exec".to_owned(), value, source: file.clone() });
    }
    found.read.extend([directory, file]);
}

/// Whether a line of a rebase makes git run a command.
pub fn runs_command(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    let word = line.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    word == b"exec" || word == b"x"
}

fn remotes(directory: &Path, found: &mut Repository) {
    found.read.insert(directory.to_owned());
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if path.is_file() && !name.ends_with(ASIDE) {
            found.facts.insert(Fact { kind: Kind::Remote, name, value: contents(&path), source: path.clone() });
        }
        found.read.insert(path);
    }
}

/// What a file says; for one that is too large, when it was changed.
fn contents(path: &Path) -> Vec<u8> {
    read_file(path).unwrap_or_else(|| {
        let metadata = fs::metadata(path).ok();
        metadata.map(|it| format!("{} {} {}", it.ino(), it.ctime(), it.ctime_nsec()).into_bytes()).unwrap_or_default()
    })
}

/// Reads a regular file that is not too large. Never waits for a pipe that somebody has put there.
fn read_file(path: &Path) -> Option<Vec<u8>> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = File::options().read(true).custom_flags(flags).open(path).ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > MAX_FILE {
        return None;
    }
    let mut contents = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0));
    file.take(MAX_FILE).read_to_end(&mut contents).ok()?;
    Some(contents)
}

fn trim_end(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
    &text[..end]
}

/// A path without `.` and, where no link is in the way, without `..`.
fn tidy(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    path.components().fold(PathBuf::new(), |mut path, part| {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::CurDir => {}
            part => path.push(part),
        }
        path
    })
}
