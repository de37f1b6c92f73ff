//! The output and exit code of a program that has ended.

use std::process::{Child, Command};

#[derive(Debug)]
pub struct Output {
    pub stdout: String,
    pub stderr: String,
    pub code: i32,
}

impl Output {
    /// Runs a command until it ends.
    pub fn of(command: &mut Command) -> Output {
        command.output().expect("the program starts").into()
    }

    /// Waits for the end of a program.
    pub fn of_child(child: Child) -> Output {
        child.wait_with_output().expect("the program ends").into()
    }

    /// Fails unless it succeeded with empty stderr; returns stdout.
    #[track_caller]
    pub fn quiet(self) -> String {
        assert_eq!((self.stderr.as_str(), self.code), ("", 0), "stdout: {}", self.stdout);
        self.stdout
    }

    /// Fails unless it ended with this error and nothing else.
    #[track_caller]
    pub fn refused(self, stderr: &str) {
        assert_eq!((self.stdout.as_str(), self.stderr.as_str(), self.code), ("", stderr, 1));
    }

    /// Fails unless it ended with this error at the end of stderr and nothing on stdout.
    #[track_caller]
    pub fn refused_in_the_end(self, text: &str) {
        assert_eq!((self.stdout.as_str(), self.code), ("", 1), "{}", self.stderr);
        assert!(self.stderr.ends_with(text), "{}", self.stderr);
    }
}

impl From<std::process::Output> for Output {
    fn from(output: std::process::Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8 output");
        Output { stdout: text(output.stdout), stderr: text(output.stderr), code: output.status.code().unwrap_or(-1) }
    }
}
