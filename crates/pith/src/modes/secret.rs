//! Reads what a subcommand asks for: a secret from the terminal without showing it, or from a pipe; other lines from the
//! terminal.

use std::io::{self, BufRead, IsTerminal, Read};

use anyhow::{Context, bail};
use pith_visible::write_stderr;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

use super::attach::piped;

/// Longer than any key.
const MAX_BYTES: usize = 64 << 10;

/// Asks for a secret on a terminal; takes all of stdin otherwise. Surrounding space is removed.
pub fn read_secret(question: &str) -> anyhow::Result<String> {
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        return piped(stdin.lock());
    }
    let typed = {
        let mut mode = tcgetattr(&stdin).context("cannot read from the terminal")?;
        let _kept = KeptMode(mode.clone());
        // Every key comes at once and unseen, Ctrl-C too: a signal would leave the terminal without echo.
        mode.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        mode.special_codes[SpecialCodeIndex::VMIN] = 1;
        mode.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(&stdin, OptionalActions::Now, &mode).context("cannot hide what is typed")?;
        // Not before: a fast typist would be seen.
        write_stderr(question);
        typed_line(stdin.lock())
    };
    write_stderr("\n");
    match typed.context("cannot read from the terminal")? {
        Some(line) => Ok(line.trim().to_owned()),
        None => bail!("nothing was changed"),
    }
}

/// Asks for a line on a terminal; `None` if there is none. Surrounding space is removed.
pub fn read_line(question: &str) -> anyhow::Result<Option<String>> {
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        return Ok(None);
    }
    write_stderr(question);
    let mut line = String::new();
    stdin.lock().read_line(&mut line).context("cannot read from the terminal")?;
    Ok(Some(line.trim().to_owned()))
}

/// The state of stdin's terminal, restored when dropped.
struct KeptMode(Termios);

impl Drop for KeptMode {
    fn drop(&mut self) {
        // If this fails there is nothing left to do.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}

/// Reads keys until Enter; `None` if the user gives up.
fn typed_line(mut keys: impl Read) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    loop {
        let mut key = [0];
        if keys.read(&mut key)? == 0 {
            return Ok(Some(text(line)).filter(|line| !line.is_empty()));
        }
        match key[0] {
            b'\r' | b'\n' => return Ok(Some(text(line))),
            // Ctrl-C, Ctrl-D, Escape.
            3 | 4 | 27 => return Ok(None),
            // Ctrl-U.
            21 => line.clear(),
            8 | 127 => drop(line.pop()),
            key if line.len() < MAX_BYTES => line.push(key),
            _ => {}
        }
    }
}

fn text(line: Vec<u8>) -> String {
    String::from_utf8_lossy(&line).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_make_a_line() {
        let typed = |keys: &[u8]| typed_line(keys).expect("read");
        assert_eq!(typed(b"sk-1\r").as_deref(), Some("sk-1"));
        assert_eq!(typed(b"wrong\x15sk-12\x7f\n").as_deref(), Some("sk-1"));
        assert_eq!(typed(b"sk\x03"), None);
        assert_eq!(typed(b""), None);
        assert_eq!(typed(b"\r").as_deref(), Some(""));
    }
}
