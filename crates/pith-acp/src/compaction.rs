//! Summaries of the conversation, as editors show them.

use agent_client_protocol_schema::v1::{CompactionStatus, CompactionUpdate, ContentBlock, SessionUpdate, TextContent};
use pith_protocol::Event;

use crate::updates::{Notable, Sink, Translator};

impl Translator {
    /// Takes the start or the end of a compaction.
    pub(crate) fn compaction(&mut self, event: &Event<'_>, sink: &mut impl Sink) {
        let update = match event {
            Event::CompactionEnd { result, aborted, error_message, .. } => {
                let id = self.compaction.clone();
                match (result, error_message) {
                    (Some(result), _) => CompactionUpdate::new(id, CompactionStatus::Completed)
                        .summary(vec![ContentBlock::Text(TextContent::new(result.summary.clone()))]),
                    (None, _) if *aborted => CompactionUpdate::new(id, CompactionStatus::Cancelled),
                    (None, error) => CompactionUpdate::new(id, CompactionStatus::Failed)
                        .error(error.as_deref().unwrap_or("the summary was not written").to_owned()),
                }
            }
            _ => {
                // The time keeps a card of an earlier life of the session from being taken for this one.
                self.compaction = format!("compaction-{}", jiff::Timestamp::now().as_nanosecond());
                CompactionUpdate::new(self.compaction.clone(), CompactionStatus::InProgress)
            }
        };
        if matches!(event, Event::CompactionEnd { .. }) {
            sink.tell(Notable::Compacted);
        }
        if self.client.shows_compactions() {
            sink.update(SessionUpdate::CompactionUpdate(update));
        } else if let Event::CompactionEnd { error_message: Some(error), .. } = event {
            sink.log(&format!("the conversation was not summarised: {error}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use pith_protocol::CompactionReason;

    use super::*;
    use crate::Client;

    #[test]
    fn each_compaction_has_an_id_of_its_own() {
        let start = Event::CompactionStart { reason: CompactionReason::Manual };
        let id = || {
            let mut translator = Translator::new("/w".into(), Client::default());
            translator.compaction(&start, &mut Nowhere);
            translator.compaction
        };
        // Two lives of one session.
        assert_ne!(id(), id());
    }

    struct Nowhere;

    impl Sink for Nowhere {
        fn update(&mut self, _update: SessionUpdate) {}
        fn text(&mut self, _piece: crate::piece::Piece, _text: &str) {}
        fn progress(&mut self, _call: &str, _update: SessionUpdate) {}
        fn progress_ended(&mut self, _call: &str) {}
        fn tell(&mut self, _notable: Notable) {}
        fn log(&mut self, _text: &str) {}
    }
}
