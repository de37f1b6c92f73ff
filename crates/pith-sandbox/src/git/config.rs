//! Reads configuration as git does: sections, keys and values of one file, and which keys make git run something.

/// One line of a configuration file that sets something. Section and key are in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub section: String,
    pub subsection: Option<String>,
    pub key: String,
    /// A key without a value counts as `true`.
    pub value: String,
}

impl Entry {
    /// The key as git names it.
    pub fn name(&self) -> String {
        match &self.subsection {
            Some(subsection) => format!("{}.{subsection}.{}", self.section, self.key),
            None if self.section.is_empty() => self.key.clone(),
            None => format!("{}.{}", self.section, self.key),
        }
    }

    /// Whether git only reads a value here, and neither runs a program that is named nor reads more configuration. What
    /// is not known counts as a program, so that a key of a later git is no way out.
    pub fn is_harmless(&self) -> bool {
        let key = self.key.as_str();
        match (self.section.as_str(), &self.subsection) {
            ("core", None) => CORE.contains(&key),
            ("extensions", None) => EXTENSIONS.contains(&key),
            ("remote", Some(_)) => REMOTE.contains(&key),
            ("branch", Some(_)) => BRANCH.contains(&key),
            ("submodule", Some(_)) => SUBMODULE.contains(&key) || key == "update" && !self.value.starts_with('!'),
            ("advice" | "color", _) => true,
            _ => OTHERS.contains(&self.name().as_str()),
        }
    }
}

const CORE: [&str; 26] = [
    "repositoryformatversion",
    "filemode",
    "bare",
    "logallrefupdates",
    "ignorecase",
    "precomposeunicode",
    "protecthfs",
    "protectntfs",
    "symlinks",
    "worktree",
    "sparsecheckout",
    "sparsecheckoutcone",
    "untrackedcache",
    "autocrlf",
    "eol",
    "safecrlf",
    "abbrev",
    "quotepath",
    "commentchar",
    "commentstring",
    "whitespace",
    "preloadindex",
    "sharedrepository",
    "compression",
    "trustctime",
    "checkstat",
];
const EXTENSIONS: [&str; 7] = [
    "objectformat",
    "compatobjectformat",
    "refstorage",
    "worktreeconfig",
    "partialclone",
    "preciousobjects",
    "relativeworktrees",
];
const REMOTE: [&str; 11] = [
    "url",
    "pushurl",
    "fetch",
    "push",
    "mirror",
    "prune",
    "prunetags",
    "tagopt",
    "promisor",
    "partialclonefilter",
    "followremotehead",
];
const BRANCH: [&str; 6] = ["remote", "pushremote", "merge", "rebase", "description", "vscode-merge-base"];
const SUBMODULE: [&str; 6] = ["url", "active", "branch", "ignore", "path", "fetchrecursesubmodules"];
const OTHERS: [&str; 37] = [
    "author.email",
    "author.name",
    "commit.gpgsign",
    "commit.verbose",
    "committer.email",
    "committer.name",
    "feature.manyfiles",
    "fetch.parallel",
    "fetch.prune",
    "fetch.prunetags",
    "gc.auto",
    "index.threads",
    "index.version",
    "init.defaultbranch",
    "log.date",
    "merge.conflictstyle",
    "merge.ff",
    "merge.renamelimit",
    "pull.ff",
    "pull.rebase",
    "push.autosetupremote",
    "push.default",
    "push.followtags",
    "rebase.autosquash",
    "rebase.autostash",
    "rebase.updaterefs",
    "receive.denycurrentbranch",
    "rerere.autoupdate",
    "rerere.enabled",
    "status.showuntrackedfiles",
    "submodule.active",
    "submodule.recurse",
    "tag.gpgsign",
    "tag.sort",
    "user.email",
    "user.name",
    "user.useconfigonly",
];

/// Reads a file. Where git would stop with an error this stops too: what comes after it is not read by git either.
pub(super) fn read(text: &[u8]) -> Vec<Entry> {
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    let mut reader = Reader { rest: text };
    let mut entries = Vec::new();
    let (mut section, mut subsection) = (String::new(), None);
    while let Some(byte) = reader.next() {
        match byte {
            b'#' | b';' => reader.skip_line(),
            b'[' => match reader.section() {
                Some(header) => (section, subsection) = header,
                None => break,
            },
            byte if byte.is_ascii_whitespace() => {}
            byte if byte.is_ascii_alphabetic() => match reader.key_and_value(byte) {
                Some((key, value)) => {
                    entries.push(Entry { section: section.clone(), subsection: subsection.clone(), key, value });
                }
                None => break,
            },
            _ => break,
        }
    }
    entries
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    /// The next byte; a carriage return before a newline is none.
    fn next(&mut self) -> Option<u8> {
        if self.rest.starts_with(b"\r\n") {
            self.rest = &self.rest[1..];
        }
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn skip_line(&mut self) {
        while self.next().is_some_and(|byte| byte != b'\n') {}
    }

    /// What stands in brackets: `section`, `section.sub` or `section "sub"`.
    fn section(&mut self) -> Option<(String, Option<String>)> {
        let mut name = String::new();
        loop {
            match self.next()? {
                b']' => {
                    let lower = name.to_ascii_lowercase();
                    return Some(match lower.split_once('.') {
                        Some((section, subsection)) => (section.to_owned(), Some(subsection.to_owned())),
                        None => (lower, None),
                    });
                }
                byte if byte.is_ascii_whitespace() => {
                    return Some((name.to_ascii_lowercase(), Some(self.subsection()?)));
                }
                byte if byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-' => name.push(char::from(byte)),
                _ => return None,
            }
        }
    }

    fn subsection(&mut self) -> Option<String> {
        let mut byte = self.next()?;
        while byte.is_ascii_whitespace() && byte != b'\n' {
            byte = self.next()?;
        }
        if byte != b'"' {
            return None;
        }
        let mut name = Vec::new();
        loop {
            match self.next()? {
                b'\n' => return None,
                b'"' => break,
                b'\\' => name.push(self.next().filter(|byte| *byte != b'\n')?),
                byte => name.push(byte),
            }
        }
        (self.next()? == b']').then(|| String::from_utf8_lossy(&name).into_owned())
    }

    fn key_and_value(&mut self, first: u8) -> Option<(String, String)> {
        let mut key = String::from(char::from(first.to_ascii_lowercase()));
        let mut byte = self.next();
        while let Some(part) = byte.filter(|byte| byte.is_ascii_alphanumeric() || *byte == b'-') {
            key.push(char::from(part.to_ascii_lowercase()));
            byte = self.next();
        }
        while byte.is_some_and(|byte| byte == b' ' || byte == b'\t') {
            byte = self.next();
        }
        match byte {
            None | Some(b'\n') => Some((key, "true".to_owned())),
            Some(b'=') => Some((key, self.value()?)),
            Some(_) => None,
        }
    }

    fn value(&mut self) -> Option<String> {
        let mut value = Vec::new();
        let (mut is_quoted, mut n_kept) = (false, 0);
        loop {
            match self.next() {
                None if is_quoted => return None,
                None => break,
                Some(b'\n') if is_quoted => return None,
                Some(b'\n') => break,
                Some(byte) if !is_quoted && byte.is_ascii_whitespace() => {
                    // Blanks at the beginning do not count, and those at the end are cut off below.
                    if !value.is_empty() {
                        value.push(byte);
                    }
                    continue;
                }
                Some(b'#' | b';') if !is_quoted => {
                    self.skip_line();
                    break;
                }
                Some(b'"') => is_quoted = !is_quoted,
                Some(b'\\') => match self.next()? {
                    b'\n' => continue,
                    b't' => value.push(b'\t'),
                    b'b' => value.push(8),
                    b'n' => value.push(b'\n'),
                    byte @ (b'\\' | b'"') => value.push(byte),
                    _ => return None,
                },
                Some(byte) => value.push(byte),
            }
            n_kept = value.len();
        }
        value.truncate(n_kept);
        Some(String::from_utf8_lossy(&value).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<(String, String)> {
        read(text.as_bytes()).into_iter().map(|entry| (entry.name(), entry.value)).collect()
    }

    #[test]
    fn files_are_read_as_git_reads_them() {
        let check = |text: &str, expected: &[(&str, &str)]| {
            let expected: Vec<_> =
                expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            assert_eq!(shown(text), expected, "{text:?}");
        };
        check("[core]\n\tbare = false\n", &[("core.bare", "false")]);
        check("[Core] FsMonitor=x", &[("core.fsmonitor", "x")]);
        check("[core]\nfsmonitor", &[("core.fsmonitor", "true")]);
        check("[a \"B \\\" c\"]d=e", &[("a.B \" c.d", "e")]);
        check("[a.B]d=e", &[("a.b.d", "e")]);
        check("[a]b = \"c # d\" e ; f\n", &[("a.b", "c # d e")]);
        check("[a]b = c\\\n  d\r\n[e]f=g\r\n", &[("a.b", "c  d"), ("e.f", "g")]);
        check("\u{FEFF}[a]b=c", &[("a.b", "c")]);
        check("# x\n; y\n[a]\nb=c\n!", &[("a.b", "c")]);
        check("[a]b=\"c", &[]);
        check("[a]b=\\q\nc=d", &[]);
    }

    /// Random files of what configuration is made of, compared with what git itself reads.
    #[test]
    fn random_files_are_read_as_git_reads_them() {
        const PARTS: [&str; 30] = [
            "[core]",
            "[a \"b\"]",
            "[A.B]",
            "[x \"\\\"\"]",
            "[",
            "]",
            "\n",
            "\n",
            "\n",
            "\r\n",
            " ",
            "\t",
            "key",
            "k-1",
            "=",
            "=",
            " = ",
            "value",
            "\"",
            "\"quoted #\"",
            "#",
            ";",
            "\\\n",
            "\\n",
            "\\t",
            "\\\\",
            "\\\"",
            "true",
            "\u{e9}",
            "[include]path=x\n",
        ];
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config");
        let mut state = 7_u64;
        let mut below = |n: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % n
        };
        let mut n_read = 0;
        for _ in 0..300 {
            let mut text = String::new();
            for _ in 0..below(14) {
                match below(3) {
                    0 => text.push_str("[s]\n"),
                    1 => text.push_str(&format!("k{}=v", below(9))),
                    _ => {}
                }
                text.push_str(PARTS[below(PARTS.len())]);
            }
            std::fs::write(&file, &text).unwrap();
            let listed = std::process::Command::new("git")
                .args(["config", "--list", "-z", "--no-includes", "--file"])
                .arg(&file)
                .current_dir(dir.path())
                .output();
            let Ok(listed) = listed else { return };
            if !listed.status.success() {
                continue;
            }
            n_read += 1;
            let listed = String::from_utf8_lossy(&listed.stdout);
            let theirs = listed.split_terminator('\0').map(|entry| match entry.split_once('\n') {
                Some((name, value)) => (name.to_owned(), value.to_owned()),
                None => (entry.to_owned(), "true".to_owned()),
            });
            assert_eq!(shown(&text), theirs.collect::<Vec<_>>(), "{text:?}");
        }
        assert!(n_read > 50, "{n_read} files could be read");
    }

    #[test]
    fn keys_that_are_not_known_to_be_harmless_count_as_programs() {
        let is_harmless = |text: &str| read(text.as_bytes())[0].is_harmless();
        for text in [
            "[core]bare=true",
            "[remote \"origin\"]url=x",
            "[branch \"main\"]merge=x",
            "[submodule \"x\"]update=checkout",
            "[user]name=x",
            "[extensions]worktreeConfig=true",
            "[pull]rebase=true",
        ] {
            assert!(is_harmless(text), "{text}");
        }
        for text in [
            "[core]fsmonitor=x",
            "[core]hooksPath=x",
            "[core]sshCommand=x",
            "[core]editor=x",
            "[include]path=x",
            "[includeIf \"gitdir:x\"]path=x",
            "[filter \"x\"]clean=x",
            "[diff \"x\"]textconv=x",
            "[diff]external=x",
            "[merge \"x\"]driver=x",
            "[merge]tool=x",
            "[remote \"x\"]uploadpack=x",
            "[submodule \"x\"]update=!x",
            "[alias]x=!x",
            "[hook \"x\"]command=x",
            "[gpg]program=x",
            "[sequence]editor=x",
            "[gc]recentObjectsHook=x",
            "[unknown]x=y",
        ] {
            assert!(!is_harmless(text), "{text}");
        }
    }
}
