//! The run under the eyes of extensions.
