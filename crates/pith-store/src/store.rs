//! One open session: its entries, the position in the tree, and the conversation there.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pith_protocol::Message;

use crate::backing::Backing;
use crate::branch::BranchSettings;
use crate::claim::Claim;
use crate::context::Context;
use crate::error::FORMAT_VERSION;
use crate::ids::{EntryId, new_session_id};
use crate::inputs::Inputs;
use crate::journal::{Journal, SyncTask};
use crate::line::Line;
use crate::navigate::Move;
use crate::paths::{file_name, normalise};
use crate::report::{Repairs, ReportKind, StoreReport};
use crate::time;
use crate::tree::{EntryTree, Header, NodeIndex};

/// A session in memory and, once it has content, in its file.
pub struct SessionStore {
    pub(crate) tree: EntryTree,
    pub(crate) leaf: Option<NodeIndex>,
    pub(crate) context: Context,
    pub(crate) settings: BranchSettings,
    /// `None`: nothing is ever written.
    pub(crate) journal: Option<Journal>,
    pub(crate) cwd: PathBuf,
    /// Set while there is no file and other processes may make one for the same session.
    pub(crate) claim: Option<Claim>,
    pub(crate) inputs: Inputs,
    /// Set while the leaf was moved and nothing was appended since.
    pub(crate) moved: Option<Move>,
    /// Whether a note of a position lies beside the file, valid or not.
    pub(crate) has_note: bool,
    pub(crate) reports: Vec<StoreReport>,
    /// Entries already reported as unreadable; they are found again whenever the context is built.
    known_unreadable: HashSet<EntryId>,
    write_error: Option<String>,
}

/// A session to be created.
#[derive(Clone, Debug, Default)]
pub struct NewSession {
    pub cwd: PathBuf,
    /// The directory for the file itself, see [`crate::session_directory`].
    pub session_dir: PathBuf,
    /// Chosen by the caller, see [`crate::is_session_id`]; otherwise made up.
    pub id: Option<String>,
    /// Stored unchecked.
    pub parent_session: Option<String>,
}

impl SessionStore {
    /// Makes a session that is never written.
    pub fn in_memory(cwd: &Path, id: Option<String>) -> Self {
        let header = new_header(cwd, id, None);
        SessionStore::start(header, None, cwd)
    }

    /// Makes a new session. Its path is fixed; the file is created with the first content.
    pub fn create(options: NewSession) -> Self {
        let claim = options.id.as_ref().map(|_| Claim::Id);
        let header = new_header(&options.cwd, options.id, options.parent_session);
        let path = options.session_dir.join(file_name(header.created, &header.id));
        SessionStore { claim, ..SessionStore::start(header, Some(Journal::planned(path)), &options.cwd) }
    }

    /// Makes a new session that will be saved at exactly that path.
    pub fn create_at(path: &Path, cwd: &Path, id: Option<String>) -> Self {
        let journal = Some(Journal::planned(path.to_owned()));
        SessionStore { claim: Some(Claim::Path), ..SessionStore::start(new_header(cwd, id, None), journal, cwd) }
    }

    fn start(header: Header, journal: Option<Journal>, cwd: &Path) -> Self {
        SessionStore::at(EntryTree::new(header, Backing::None), None, journal, cwd.to_owned())
    }

    /// Puts a loaded tree to use. The caller builds the context.
    pub(crate) fn at(tree: EntryTree, leaf: Option<NodeIndex>, journal: Option<Journal>, cwd: PathBuf) -> Self {
        SessionStore {
            settings: BranchSettings::of(&tree, leaf),
            tree,
            leaf,
            context: Context::default(),
            journal,
            cwd,
            claim: None,
            inputs: Inputs::default(),
            moved: None,
            has_note: false,
            reports: Vec::new(),
            known_unreadable: HashSet::new(),
            write_error: None,
        }
    }

    /// Returns the session id.
    pub fn id(&self) -> &str {
        &self.tree.header().id
    }

    /// Returns the session file, whether it exists yet or not; `None` for sessions in memory.
    pub fn path(&self) -> Option<&Path> {
        self.journal.as_ref().map(|journal| &*journal.path)
    }

    /// Whether the session has a file.
    pub fn is_saved(&self) -> bool {
        self.journal.as_ref().is_some_and(Journal::is_created)
    }

    /// Returns the working directory the session belongs to.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// Returns the name given to the session.
    pub fn name(&self) -> Option<&str> {
        self.tree.name()
    }

    /// Returns all entries.
    pub fn tree(&self) -> &EntryTree {
        &self.tree
    }

    /// Returns the entry new ones are appended below.
    pub fn leaf(&self) -> Option<&str> {
        self.leaf.map(|leaf| &*self.tree.node(leaf).id)
    }

    /// Returns the conversation at the leaf, oldest first, as the model sees it. What is still only
    /// in the file is read by the first call.
    pub fn messages(&self) -> &[Arc<Message>] {
        self.context.messages(&self.tree)
    }

    /// Returns how many messages the conversation has. Unlike [`SessionStore::messages`] this reads nothing.
    pub fn n_messages(&self) -> usize {
        self.context.sources().len()
    }

    /// Returns the ids of the entries the messages come from, in the same order.
    pub fn message_entries(&self) -> impl ExactSizeIterator<Item = &str> {
        self.context.sources().iter().map(|&source| &*self.tree.node(source).id)
    }

    /// Messages before this position are not newer than the latest compaction or context
    /// edit, so a usage reported with one of them does not describe the present context.
    pub fn rewritten_to(&self) -> usize {
        self.context.rewritten_to()
    }

    /// Returns the model and the thinking level at the leaf, as far as the entries say.
    pub fn settings(&self) -> &BranchSettings {
        &self.settings
    }

    /// Returns repairs and failures since the last call, each once.
    pub fn take_report(&mut self) -> Vec<StoreReport> {
        self.report_unreadable();
        std::mem::take(&mut self.reports)
    }

    /// Returns why entries cannot be written at the moment.
    pub fn write_error(&self) -> Option<&str> {
        self.write_error.as_deref()
    }

    /// Returns what was written and not synced yet. The task can run anywhere, off the event path.
    pub fn sync_handle(&mut self) -> Option<SyncTask> {
        self.journal.as_mut()?.take_sync()
    }

    /// Takes in what other programs did to the file. Happens before each append by itself.
    pub fn refresh(&mut self) {
        let Some(journal) = &mut self.journal else { return };
        let result = match journal.refresh(&mut self.tree) {
            Ok(Some(repairs)) => {
                self.report_repairs(repairs);
                return;
            }
            Ok(None) => self.reconcile(),
            Err(error) => Err(error),
        };
        if let Err(error) = result {
            self.report_write_failure(&error);
        }
    }

    /// Builds the conversation of a file that was just read, and tells what was mended.
    pub(crate) fn load_context(&mut self, repairs: Repairs) {
        self.rebuild_context();
        self.report_repairs(repairs);
    }

    /// Tells which messages were asked for and could not be read.
    pub(crate) fn report_unreadable(&mut self) {
        let mut repairs = Repairs::default();
        for index in self.context.take_unreadable() {
            let id = &self.tree.node(index).id;
            if self.known_unreadable.insert(Arc::clone(id)) {
                repairs.unreadable.note(|| id.to_string());
            }
        }
        self.report_repairs(repairs);
    }

    /// Writes what is not in the file yet.
    pub(crate) fn save(&mut self) {
        let Some(journal) = &mut self.journal else { return };
        let is_first = self.claim.is_some() && journal.is_due(&self.tree);
        let result = if is_first { self.save_first() } else { journal.save(&mut self.tree) };
        match result {
            Ok(()) => self.write_error = None,
            Err(error) => self.report_write_failure(&error),
        }
    }

    /// Creates the file if there is none, whether the session has content or not.
    pub(crate) fn create_file(&mut self) {
        let Some(journal) = self.journal.as_mut().filter(|journal| !journal.is_created()) else { return };
        journal.is_wanted = true;
        self.save();
        if let Some(journal) = &mut self.journal {
            journal.end_append();
        }
    }

    pub(crate) fn report_repairs(&mut self, repairs: Repairs) {
        let report = repairs.report(self.path());
        self.reports.extend(report);
    }

    /// Reports the first failed write and keeps it until writing works again; failed retries are not reported.
    pub(crate) fn report_write_failure(&mut self, error: &std::io::Error) {
        if self.write_error.is_some() {
            return;
        }
        let path = self.path().unwrap_or(Path::new("")).display().to_string();
        let message = format!(
            "session file {path}: cannot write: {error}; the conversation goes on and is saved when that works again"
        );
        self.reports.push(StoreReport { kind: ReportKind::Write, message: message.clone() });
        self.write_error = Some(message);
    }
}

pub(crate) fn new_header(cwd: &Path, id: Option<String>, parent_session: Option<String>) -> Header {
    let id = id.unwrap_or_else(new_session_id);
    let created = time::now();
    let cwd = normalise(cwd).to_string_lossy().into_owned();
    let mut line = Line::start("session")
        .member("version", &FORMAT_VERSION)
        .member("id", &id)
        .member("timestamp", &time::to_iso(created))
        .member("cwd", &cwd)
        .optional("parentSession", &parent_session)
        .finish();
    line.pop();
    Header { id, version: FORMAT_VERSION, created, cwd, parent_session, line }
}
