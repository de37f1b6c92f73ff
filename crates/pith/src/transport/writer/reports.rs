//! What running tool calls report while the queue is full: the newest of it.

use super::super::output::WaitingOutput;
use super::tail::EncodeText;

/// Held back reports of tool calls.
#[derive(Default)]
pub(super) struct Reports {
    /// The newest progress of each call, encoded.
    progress: Vec<(String, Vec<u8>)>,
    /// The newest output of each command.
    outputs: Vec<Output>,
}

/// Output of a command that is not encoded yet, because more of it may follow.
struct Output {
    call: String,
    text: WaitingOutput,
    encode: EncodeText,
}

impl Output {
    fn encoded(self) -> Vec<u8> {
        let mut line = Vec::new();
        (self.encode)(&self.text.into_text(), &mut line);
        line
    }
}

impl Reports {
    /// Keeps the newest progress of a call, instead of an older report.
    pub fn hold_progress(&mut self, call: &str, line: Vec<u8>) {
        match self.progress.iter_mut().find(|(held, _)| held == call) {
            Some((_, held)) => *held = line,
            None => self.progress.push((call.to_owned(), line)),
        }
    }

    /// Takes the progress of a call.
    pub fn take_progress(&mut self, call: &str) -> Option<Vec<u8>> {
        let at = self.progress.iter().position(|(held, _)| held == call)?;
        Some(self.progress.remove(at).1)
    }

    /// Adds to the output of a command, of which the newest is kept.
    pub fn hold_output(&mut self, call: &str, text: &str, encode: impl Fn(&str, &mut Vec<u8>) + Send + 'static) {
        if let Some(output) = self.outputs.iter_mut().find(|output| output.call == call) {
            return output.text.add(text);
        }
        let mut output = Output { call: call.to_owned(), text: WaitingOutput::default(), encode: Box::new(encode) };
        output.text.add(text);
        self.outputs.push(output);
    }

    /// Takes the output of a command as a line.
    pub fn take_output(&mut self, call: &str) -> Option<Vec<u8>> {
        let at = self.outputs.iter().position(|output| output.call == call)?;
        Some(self.outputs.remove(at).encoded())
    }

    /// Takes everything as lines.
    pub fn take_all(&mut self) -> impl Iterator<Item = Vec<u8>> + use<> {
        let Reports { progress, outputs } = std::mem::take(self);
        progress.into_iter().map(|(_, line)| line).chain(outputs.into_iter().map(Output::encoded))
    }
}
