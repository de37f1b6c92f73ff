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

/// Lets the lines of a task that the current one is about to spawn begin with the same session's id.
pub(crate) fn with_same_name<F: Future>(work: F) -> impl Future<Output = F::Output> {
    let name = NAME.try_with(String::clone).ok();
    async move {
        match name {
            Some(name) => NAME.scope(name, work).await,
            None => work.await,
        }
    }
}

/// The end of a session's id, by which lines on stderr name it. An id begins with the time, so sessions that were opened
/// within a minute share its beginning.
pub fn short_name(id: &str) -> String {
    let start = id.char_indices().nth_back(7).map_or(0, |(at, _)| at);
    id[start..].to_owned()
}

/// Writes one line.
pub(crate) fn log_line(text: &str) {
    let line = NAME.try_with(|name| format!("pith {name}: {text}\n")).unwrap_or_else(|_| format!("pith: {text}\n"));
    pith_visible::write_stderr(&line);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_spawned_task_names_the_session_that_has_spawned_it() {
        let name = || async { NAME.try_with(String::clone).ok() };
        let spawned = with_name("a session", async { tokio::spawn(with_same_name(name())).await.expect("no panic") });
        assert_eq!(spawned.await.as_deref(), Some(" session"));
        assert_eq!(with_same_name(name()).await, None);
    }

    #[test]
    fn sessions_that_were_opened_together_have_names_of_their_own() {
        assert_eq!(short_name("019a9000-1111-7aaa-8bbb-00000000cafe"), "0000cafe");
        assert_eq!(short_name("019a9000-1112-7aaa-8bbb-00000000beef"), "0000beef");
        assert_eq!((short_name("own"), short_name("")), ("own".to_owned(), String::new()));
    }
}
