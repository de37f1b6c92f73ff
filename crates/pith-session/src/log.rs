//! Lines on stderr about a session.

use std::future::Future;

tokio::task_local! {
    /// The session that works, in a process that has several.
    static NAME: String;
}

/// Lets the lines that a session writes begin with its id, cut to what tells sessions apart.
pub async fn with_name<F: Future>(id: &str, work: F) -> F::Output {
    NAME.scope(short_name(id), work).await
}

/// The beginning of a session's id, by which lines on stderr name it.
pub fn short_name(id: &str) -> String {
    id.chars().take(8).collect()
}

/// Writes one line.
pub(crate) fn log_line(text: &str) {
    let line = NAME.try_with(|name| format!("pith {name}: {text}\n")).unwrap_or_else(|_| format!("pith: {text}\n"));
    pith_visible::write_stderr(&line);
}
