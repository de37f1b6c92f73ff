//! Redirections: which files they open, and how.

use brush_parser::ast::{IoFileRedirectKind as Kind, IoFileRedirectTarget as Target, IoRedirect, Word as ShellWord};

use super::reader::Reader;
use super::word::Word;
use super::{AccessKind, FileAccess};

impl Reader {
    pub fn redirection(&mut self, redirection: &IoRedirect) {
        match redirection {
            IoRedirect::File(_, kind, target) => self.file(kind, target),
            IoRedirect::HereDocument(_, document) => {
                if document.requires_expansion {
                    self.here_document(&document.doc.value);
                }
            }
            IoRedirect::HereString(_, word) => drop(self.word(word)),
            IoRedirect::OutputAndError(word, _) => self.opened(AccessKind::Write, word),
        }
    }

    fn file(&mut self, kind: &Kind, target: &Target) {
        match target {
            Target::Filename(word) => match kind {
                Kind::Read => self.opened(AccessKind::Read, word),
                Kind::Write | Kind::Append | Kind::Clobber => self.opened(AccessKind::Write, word),
                Kind::ReadAndWrite => {
                    self.opened(AccessKind::Read, word);
                    self.opened(AccessKind::Write, word);
                }
                Kind::DuplicateInput | Kind::DuplicateOutput => self.duplicated(kind, word),
            },
            Target::Fd(_) => {}
            Target::ProcessSubstitution(..) => self.opaque("a redirection to a process".to_owned()),
            Target::Duplicate(word) => self.duplicated(kind, word),
        }
    }

    /// `>&1` names a descriptor, `>&name` a file.
    fn duplicated(&mut self, kind: &Kind, word: &ShellWord) {
        let is_descriptor = word.value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        if is_descriptor {
            return;
        }
        let access = if matches!(kind, Kind::DuplicateInput) { AccessKind::Read } else { AccessKind::Write };
        self.opened(access, word);
    }

    fn opened(&mut self, kind: AccessKind, word: &ShellWord) {
        let path = self.path(word);
        if let Word::Literal(path) = &path {
            if path.starts_with("/dev/tcp/") || path.starts_with("/dev/udp/") {
                self.opaque("a redirection to the network".to_owned());
            }
            if is_free(path) {
                return;
            }
        }
        self.files.push(FileAccess { kind, path });
    }
}

/// Whether a path is no file but a descriptor, or nothing.
fn is_free(path: &str) -> bool {
    let is_numbered = path.strip_prefix("/dev/fd/").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
    is_numbered || ["/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"].contains(&path)
}
