//! The audit: records of what was asked, allowed and refused, kept in the session file.

use pith_protocol::CommandError;
use pith_protocol::audit::{AUDIT, AuditRecord};
use pith_protocol::commands::GetAudit;

use crate::reply::Reply;
use crate::session::Session;

impl Session {
    /// Writes a record into the session file and shows the entry to the host.
    pub fn audit(&mut self, record: &AuditRecord) {
        let data = serde_json::to_value(record).expect("records are JSON objects");
        self.append_custom_entry(AUDIT, Some(data));
    }

    pub(crate) fn get_audit(&mut self, call: &GetAudit, reply: Reply<GetAudit>) {
        let entries = self.store.tree().custom_entries_json(AUDIT, call.since.as_deref());
        let answer = entries.map(|entries| format!("{{\"entries\":{entries}}}")).map_err(CommandError::from);
        reply.send_json(&mut *self.out, answer);
    }
}
