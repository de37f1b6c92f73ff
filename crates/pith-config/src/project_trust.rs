//! Whether the files that a project brings may be used.

/// What was decided about a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProjectTrust {
    /// The user trusts it: by an answer, a saved decision, a setting or a flag.
    Given,
    Refused,
    /// It had nothing that needs trust when it was looked at. What it brings later has to be decided about.
    NotNeeded,
}
