//! Drafts and continuations at the end of turns and runs.
