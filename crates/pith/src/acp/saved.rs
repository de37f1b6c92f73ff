//! Sessions in files: finding, listing, naming and removing them.

use std::path::{Path, PathBuf};

use pith_acp::acp::{
    Error, ListSessionsRequest, ListSessionsResponse, SessionId, SessionInfo, SetSessionTitleResponse,
};
use pith_acp::error::{internal, invalid_params, no_session};
use pith_acp::updates::title_of;
use pith_session::SessionPlaces;
use pith_store::{
    LocatedSession, SessionStore, SessionSummary, find_anywhere, find_unreadable, is_session_id, list_all,
};
use serde_json::json;

/// How many sessions one answer lists.
const PAGE: usize = 50;

/// Returns the file of a session.
pub fn find(id: &str, places: &SessionPlaces) -> Result<LocatedSession, Error> {
    // Only what can be an id is looked for.
    if !is_session_id(id) {
        return Err(no_session(id));
    }
    find_anywhere(id, &places.root).ok_or_else(|| match find_unreadable(id, &places.root) {
        Some(path) => internal(format!("Session file {}: its header cannot be read", path.display())),
        None => no_session(id),
    })
}

/// Returns the file of a session that belongs to a directory.
pub fn find_in(id: &str, places: &SessionPlaces, cwd: &Path) -> Result<PathBuf, Error> {
    let LocatedSession { path, cwd: stored } = find(id, places)?;
    check_directory(Path::new(&stored), cwd)?;
    Ok(path)
}

/// Checks that an editor asks for a session in the directory that it belongs to.
pub fn check_directory(stored: &Path, asked: &Path) -> Result<(), Error> {
    if real(stored) == real(asked) {
        return Ok(());
    }
    let why = format!("The session belongs to {}, not to {}", stored.display(), asked.display());
    Err(invalid_params("cwd", why))
}

/// Where links lead.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Lists sessions, newest first.
pub fn list(request: &ListSessionsRequest, places: &SessionPlaces) -> Result<ListSessionsResponse, Error> {
    let mut sessions = list_all(&places.root);
    if let Some(cwd) = &request.cwd {
        let wanted = real(cwd);
        sessions.retain(|session| real(Path::new(&session.cwd)) == wanted);
    }
    let start = match &request.cursor {
        None => 0,
        // The last session of the page before. The list may have changed since, so its place is looked for.
        Some(cursor) => {
            let last = Cursor::read(cursor).ok_or_else(|| invalid_params("cursor", "Unknown cursor"))?;
            sessions.partition_point(|session| Cursor::of(session) >= last)
        }
    };
    let end = sessions.len().min(start + PAGE);
    let page = &sessions[start..end];
    let next = (end < sessions.len()).then(|| page.last().map(|last| Cursor::of(last).write())).flatten();
    Ok(ListSessionsResponse::new(page.iter().map(info).collect()).next_cursor(next))
}

/// A place in the list: the time of the last message, then the file.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Cursor {
    modified: i64,
    path: PathBuf,
}

impl Cursor {
    fn of(session: &SessionSummary) -> Self {
        Cursor { modified: session.modified, path: session.path.clone() }
    }

    fn read(text: &str) -> Option<Self> {
        let (modified, path) = text.split_once(' ')?;
        Some(Cursor { modified: modified.parse().ok()?, path: PathBuf::from(path) })
    }

    fn write(&self) -> String {
        format!("{} {}", self.modified, self.path.display())
    }
}

fn info(session: &SessionSummary) -> SessionInfo {
    let title = session.name.clone().unwrap_or_else(|| title_of(&session.first_message));
    let mut own = json!({"messageCount": session.message_count});
    if let Some(parent) = session.parent_session_path.as_deref().and_then(id_in) {
        own["parentSessionId"] = parent.into();
    }
    let meta = serde_json::Map::from_iter([("pith".to_owned(), own)]);
    SessionInfo::new(SessionId::new(session.id.clone()), PathBuf::from(&session.cwd))
        .title(title)
        .updated_at(pith_acp::iso(session.modified))
        .meta(meta)
}

/// The id in the name that pith and pi give to session files.
fn id_in(path: &str) -> Option<&str> {
    Path::new(path).file_stem()?.to_str()?.rsplit_once('_').map(|(_, id)| id)
}

/// Removes a session for good. One that does not exist is no error.
pub fn remove(id: &str, places: &SessionPlaces) -> Result<(), Error> {
    match find(id, places) {
        Ok(located) => pith_store::remove(&located.path).map_err(|error| internal(error.to_string())),
        Err(_) => Ok(()),
    }
}

/// Names a session that is not open.
pub fn set_title(id: &str, title: &str, places: &SessionPlaces) -> Result<SetSessionTitleResponse, Error> {
    let LocatedSession { path, cwd } = find(id, places)?;
    let failed = |error: pith_store::StoreError| internal(error.to_string());
    let mut store = SessionStore::resume(&path, Path::new(&cwd)).map_err(failed)?;
    store.append_session_info(title);
    match store.write_error() {
        Some(error) => Err(internal(error)),
        None => Ok(SetSessionTitleResponse::new(store.name().unwrap_or(title))),
    }
}
