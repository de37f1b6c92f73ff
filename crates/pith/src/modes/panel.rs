//! Status texts and widgets of extensions. A chat has no permanent place for them, so they are shown before the next
//! prompt, if they have changed.

use std::collections::BTreeMap;

use pith_protocol::host::UiMethod;

/// Status texts and widgets, and a text for the next line.
#[derive(Debug, Default)]
pub struct Panel {
    statuses: BTreeMap<String, String>,
    widgets: BTreeMap<String, Vec<String>>,
    /// What was shown last.
    shown: String,
    /// The text the next line begins with.
    draft: String,
}

impl Panel {
    /// Applies a change.
    pub fn set(&mut self, method: UiMethod) {
        match method {
            UiMethod::SetStatus { status_key, status_text: Some(text) } => drop(self.statuses.insert(status_key, text)),
            UiMethod::SetStatus { status_key, status_text: None } => drop(self.statuses.remove(&status_key)),
            UiMethod::SetWidget { widget_key, widget_lines: Some(lines), .. } => {
                self.widgets.insert(widget_key, lines);
            }
            UiMethod::SetWidget { widget_key, widget_lines: None, .. } => drop(self.widgets.remove(&widget_key)),
            UiMethod::SetEditorText { text } => self.draft = text,
            _ => {}
        }
    }

    /// Returns what to show, if it has changed.
    pub fn changed_text(&mut self) -> Option<&str> {
        let mut lines: Vec<String> = self.widgets.values().flatten().cloned().collect();
        let statuses: Vec<&str> =
            self.statuses.values().map(|text| text.trim()).filter(|text| !text.is_empty()).collect();
        if !statuses.is_empty() {
            lines.push(statuses.join(" · "));
        }
        let seen = lines.join("\n");
        if seen == self.shown {
            return None;
        }
        self.shown = seen;
        Some(&self.shown).filter(|seen| !seen.is_empty()).map(String::as_str)
    }

    /// Returns the text the next line begins with, once.
    pub fn take_draft(&mut self) -> String {
        std::mem::take(&mut self.draft)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_are_shown() {
        let mut panel = Panel::default();
        assert_eq!(panel.changed_text(), None);
        let status = |key: &str, text: Option<&str>| UiMethod::SetStatus {
            status_key: key.to_owned(),
            status_text: text.map(str::to_owned),
        };
        panel.set(status("b", Some("ready")));
        panel.set(status("a", Some(" 3 todos ")));
        let widget_lines = Some(vec!["one".to_owned(), "two".to_owned()]);
        panel.set(UiMethod::SetWidget { widget_key: "w".to_owned(), widget_lines, widget_placement: None });
        assert_eq!(panel.changed_text(), Some("one\ntwo\n3 todos · ready"));
        panel.set(status("b", Some("ready")));
        assert_eq!(panel.changed_text(), None);
        panel.set(status("a", None));
        panel.set(UiMethod::SetWidget { widget_key: "w".to_owned(), widget_lines: None, widget_placement: None });
        assert_eq!(panel.changed_text(), Some("ready"));
        panel.set(status("b", None));
        assert_eq!(panel.changed_text(), None);
    }
}
