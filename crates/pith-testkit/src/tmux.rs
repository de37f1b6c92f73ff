//! A program in a terminal that really draws: a pane of tmux, with keys sent to it and its screen captured.

use std::process::Command;

use crate::{TempHome, eventually, skip};

/// A tmux server with one program, ended with the test.
pub struct Tmux<'a> {
    home: &'a TempHome,
    pane: String,
}

impl<'a> Tmux<'a> {
    /// Starts a program in a pane of a size. `None` where there is no tmux; the test is counted as skipped then.
    ///
    /// When the program has ended, the pane says `exit=CODE` and stays.
    pub fn open(
        home: &'a TempHome,
        size: (u16, u16),
        program: &[&str],
        variables: &[(&str, &str)],
    ) -> Option<Tmux<'a>> {
        let mut tmux = Tmux { home, pane: String::new() };
        let (columns, rows) = (size.0.to_string(), size.1.to_string());
        // An interactive shell, because stopping and continuing a job is its work.
        let shell = [
            "new-session",
            "-d",
            "-P",
            "-F",
            "#{pane_id}",
            "-x",
            &columns,
            "-y",
            &rows,
            "env",
            "PS1=$ ",
            "bash",
            "--norc",
            "-i",
        ];
        let Some(pane) = tmux.run(&shell) else {
            skip("tmux is not installed or does not start");
            return None;
        };
        pane.trim().clone_into(&mut tmux.pane);
        tmux.run(&["set-option", "-s", "set-clipboard", "on"])?;
        tmux.run(&["set-option", "-s", "escape-time", "0"])?;
        let quoted = |word: &&str| format!("'{}'", word.replace('\'', "'\\''"));
        let words: Vec<String> = program.iter().map(quoted).collect();
        let variables: Vec<String> = variables.iter().map(|(name, value)| format!("{name}='{value}'")).collect();
        tmux.enter(&format!("clear; {} {}; echo exit=$?", variables.join(" "), words.join(" ")));
        Some(tmux)
    }

    fn run(&self, arguments: &[&str]) -> Option<String> {
        let mut command = Command::new("tmux");
        command.env_clear().envs(self.home.environment()).env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8");
        command.env_remove("NO_COLOR");
        command.arg("-u").arg("-S").arg(self.home.work().join("tmux.sock")).args(["-f", "/dev/null"]);
        let output = command.args(arguments).current_dir(self.home.work()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Types a text as it is.
    #[track_caller]
    pub fn type_text(&self, text: &str) {
        self.run(&["send-keys", "-t", &self.pane, "-l", "--", text]).expect("keys are sent");
    }

    /// Presses keys by their names, such as `Enter`, `M-Enter`, `C-c`.
    #[track_caller]
    pub fn press(&self, keys: &[&str]) {
        self.run(&[&["send-keys", "-t", &self.pane][..], keys].concat()).expect("keys are sent");
    }

    /// Types a text and presses Enter.
    #[track_caller]
    pub fn enter(&self, text: &str) {
        self.type_text(text);
        self.press(&["Enter"]);
    }

    /// Pastes a text, as terminals do that tell pasting from typing.
    #[track_caller]
    pub fn paste(&self, text: &str) {
        let file = self.home.work().join("pasted.txt");
        std::fs::write(&file, text).expect("written");
        self.run(&["load-buffer", &file.display().to_string()]).expect("loaded");
        self.run(&["paste-buffer", "-d", "-p", "-t", &self.pane]).expect("pasted");
    }

    /// Changes the size of the terminal.
    #[track_caller]
    pub fn resize(&self, columns: u16, rows: u16) {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        self.run(&["resize-window", "-t", &self.pane, "-x", &columns, "-y", &rows]).expect("resized");
    }

    /// Closes the window, as somebody does who has had enough.
    #[track_caller]
    pub fn close(&self) {
        self.run(&["kill-server"]).expect("closed");
    }

    /// What is on the screen.
    pub fn screen(&self) -> String {
        self.run(&["capture-pane", "-p", "-t", &self.pane]).unwrap_or_default()
    }

    /// What is on the screen and above it.
    pub fn history(&self) -> String {
        self.run(&["capture-pane", "-p", "-S", "-", "-t", &self.pane]).unwrap_or_default()
    }

    /// Waits until the screen, with what has scrolled off it, fits.
    #[track_caller]
    pub fn wait_until(&self, what: &str, is_so: impl Fn(&str) -> bool) {
        let seen = std::cell::RefCell::new(String::new());
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            eventually(what, || {
                *seen.borrow_mut() = self.history();
                is_so(&seen.borrow())
            });
        }));
        assert!(result.is_ok(), "waited in vain: {what}; the screen:\n{}", seen.borrow());
    }

    /// Waits until a text is on the screen or above it.
    #[track_caller]
    pub fn wait(&self, text: &str) {
        self.wait_until(text, |screen| screen.contains(text));
    }

    /// Waits until a text is gone from the screen.
    #[track_caller]
    pub fn wait_gone(&self, text: &str) {
        eventually(&format!("{text} is gone"), || !self.screen().contains(text));
    }

    /// The title of the pane.
    pub fn title(&self) -> String {
        self.run(&["display-message", "-p", "-t", &self.pane, "#{pane_title}"]).unwrap_or_default()
    }

    /// What programs have put into the clipboard.
    pub fn clipboard(&self) -> String {
        self.run(&["list-buffers"]).unwrap_or_default()
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        let _ = self.run(&["kill-server"]);
    }
}
