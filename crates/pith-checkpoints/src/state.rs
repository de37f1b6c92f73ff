//! What is at a path, as checkpoints know it.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "camelCase")]
pub enum State {
    Absent,
    File {
        sha256: Digest,
        mode: u32,
        bytes: u64,
    },
    Link {
        target: Name,
    },
    Directory {
        mode: u32,
    },
    /// Something that cannot be put back. The two numbers tell whether it is still the same.
    Unkept {
        why: Unkept,
        bytes: u64,
        modified: i64,
    },
}

/// Why a content is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Unkept {
    TooLarge,
    /// The contents of the project take more than is kept.
    TooMuch,
    NotRegular,
    Unreadable,
}

impl State {
    /// Whether the content is the same; modes do not count.
    pub fn same_content(&self, other: &State) -> bool {
        match (self, other) {
            (State::File { sha256: one, .. }, State::File { sha256: other, .. }) => one == other,
            (State::Directory { .. }, State::Directory { .. }) => true,
            (one, other) => one == other,
        }
    }

    /// The number of bytes at the path.
    pub fn bytes(&self) -> u64 {
        match self {
            State::File { bytes, .. } | State::Unkept { bytes, .. } => *bytes,
            State::Absent | State::Link { .. } | State::Directory { .. } => 0,
        }
    }

    pub fn is_directory(&self) -> bool {
        matches!(self, State::Directory { .. })
    }

    /// The digest of a content that is to be kept.
    pub(crate) fn digest(&self) -> Option<&Digest> {
        match self {
            State::File { sha256, .. } => Some(sha256),
            _ => None,
        }
    }
}

impl fmt::Display for Unkept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unkept::TooLarge => "larger than checkpoints.maxFileMb",
            Unkept::TooMuch => "the project is larger than checkpoints.maxTotalMb",
            Unkept::NotRegular => "not a regular file",
            Unkept::Unreadable => "it could not be read",
        })
    }
}

/// The SHA-256 of a content, as hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Digest(String);

impl Digest {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        Digest(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Digests become file names, so a damaged log must not name anything else.
impl TryFrom<String> for Digest {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let is_digest = text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if is_digest { Ok(Digest(text)) } else { Err("not a SHA-256") }
    }
}

/// A path as it is stored: relative to the project, absolute outside of it. Any bytes survive.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(pub PathBuf);

impl Name {
    /// Names a path; `project` is the directory of the store.
    pub fn of(path: &Path, project: &Path) -> Self {
        Name(path.strip_prefix(project).unwrap_or(path).to_owned())
    }

    /// The path that is named.
    pub fn within(&self, project: &Path) -> PathBuf {
        project.join(&self.0)
    }

    /// The path as people and hosts are told.
    pub fn shown(&self) -> String {
        self.0.to_string_lossy().into_owned()
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(text) => serializer.serialize_str(text),
            None => self.0.as_os_str().as_bytes().serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Text(String),
            Bytes(Vec<u8>),
        }
        Ok(Name(match Written::deserialize(deserializer)? {
            Written::Text(text) => text.into(),
            Written::Bytes(bytes) => OsString::from_vec(bytes).into(),
        }))
    }
}
