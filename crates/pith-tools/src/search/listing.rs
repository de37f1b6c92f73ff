//! A list of results under the byte limit, with notes about what is missing.

use pith_agent::ToolOutput;
use serde_json::{Map, Value};

use crate::truncate::{Extent, Limits, head_of, size};

/// Lists are limited in bytes only; the line limit is the largest integer that JavaScript hosts can represent.
const LIMITS: Limits = Limits { lines: (1 << 53) - 1, bytes: Limits::RESULT.bytes };

/// Collects lines. Past the limit they are counted, but not kept.
#[derive(Default)]
pub(super) struct Listing {
    text: String,
    extent: Extent,
    notices: Vec<String>,
    details: Map<String, Value>,
}

impl Listing {
    pub fn push(&mut self, line: &str) {
        let separator = usize::from(self.extent.lines > 0);
        self.extent = Extent { lines: self.extent.lines + 1, bytes: self.extent.bytes + separator + line.len() };
        if self.text.len() <= LIMITS.bytes {
            if separator > 0 {
                self.text.push('\n');
            }
            self.text.push_str(line);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.extent.lines == 0
    }

    /// Adds a note for the model and its form for hosts.
    pub fn notice(&mut self, text: String, detail: &str, value: impl Into<Value>) {
        self.notices.push(text);
        self.details.insert(detail.to_owned(), value.into());
    }

    /// Makes the result. `trailing` is a note that follows the one about bytes.
    pub fn finish(mut self, trailing: Option<(String, &str, Value)>) -> ToolOutput {
        let (text, truncation) = head_of(&self.text, self.extent, LIMITS);
        let mut text = text.to_owned();
        if let Some(truncation) = truncation {
            self.notices.push(format!("{} limit reached", size(LIMITS.bytes)));
            self.details.insert("truncation".to_owned(), truncation.details());
        }
        if let Some((notice, detail, value)) = trailing {
            self.notice(notice, detail, value);
        }
        if !self.notices.is_empty() {
            text = format!("{text}\n\n[{}]", self.notices.join(". "));
        }
        let details = (!self.details.is_empty()).then_some(Value::Object(self.details));
        ToolOutput { details, ..ToolOutput::text(text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_long_list_is_cut_between_lines() {
        let mut listing = Listing::default();
        for _ in 0..1000 {
            listing.push(&"x".repeat(99));
        }
        listing.notice("1000 things limit reached".to_owned(), "thingLimitReached", 1000);
        let output = listing.finish(Some(("last".to_owned(), "lastDetail", json!(true))));
        let text = output.content[0].as_text().unwrap();
        assert!(text.ends_with("x\n\n[1000 things limit reached. 50.0KB limit reached. last]"));
        let truncation = &output.details.as_ref().unwrap()["truncation"];
        assert_eq!((&truncation["outputLines"], &truncation["totalLines"]), (&json!(512), &json!(1000)));
        assert_eq!(
            (&truncation["totalBytes"], &truncation["maxLines"]),
            (&json!(99_999), &json!(9_007_199_254_740_991u64))
        );
    }

    #[test]
    fn a_short_list_has_no_details() {
        let mut listing = Listing::default();
        listing.push("a");
        listing.push("b");
        assert_eq!(listing.finish(None), ToolOutput::text("a\nb"));
    }
}
