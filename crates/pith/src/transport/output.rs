//! Output of a command that waits for a host.

/// How much output of one command is kept for a host that does not read. Several times what one report of a command
/// holds, so a host that is merely slow loses nothing.
const MAX_WAITING: usize = 256 << 10;

/// Stands where older output was left out.
const GAP: &str = "\n[…]\n";

/// The newest output of a command.
#[derive(Debug, Default)]
pub struct WaitingOutput {
    text: String,
    is_cut: bool,
}

impl WaitingOutput {
    /// Adds what the command has printed since, and leaves out what is too old.
    pub fn add(&mut self, text: &str) {
        self.text.push_str(text);
        // Cut at twice the size, so that each byte is moved once at most.
        if self.text.len() > 2 * MAX_WAITING {
            let start = self.text.ceil_char_boundary(self.text.len() - MAX_WAITING);
            self.text.drain(..start);
            self.is_cut = true;
        }
    }

    /// Returns the text to show, which says so if something is left out.
    pub fn into_text(self) -> String {
        if self.is_cut { format!("{GAP}{}", self.text) } else { self.text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_output_is_kept_and_a_gap_is_marked() {
        let mut output = WaitingOutput::default();
        output.add("one\n");
        output.add("two\n");
        assert_eq!(output.into_text(), "one\ntwo\n");
        let mut output = WaitingOutput::default();
        for number in 0..200_000 {
            output.add(&format!("é{number}\n"));
        }
        let text = output.into_text();
        assert!(text.len() <= 2 * MAX_WAITING + GAP.len(), "{}", text.len());
        assert!(text.starts_with(GAP) && text.ends_with("é199998\né199999\n"));
    }
}
