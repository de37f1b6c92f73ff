//! Commands that print a credential: bounded in time and output, killed with
//! their children, and run once for everybody who asks at the same moment.

use std::collections::HashMap;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::sync::OnceCell;
use tokio::time::{Instant, timeout};

/// How long a command may take.
pub const LIMIT: Duration = Duration::from_secs(10);
/// No credential is longer than this.
const MAX_OUTPUT: u64 = 64 * 1024;
/// How much of the complaint of a failed command is passed on.
const STDERR_TAIL: usize = 300;

/// How long the outcome of a command stays good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// Only those waiting for the same run share it.
    Never,
    For(Duration),
    /// Also a failure is final.
    Forever,
}

/// Runs commands and remembers what they said.
#[derive(Debug)]
pub struct Commands {
    limit: Duration,
    /// Keyed by command text. A cell is filled by the first asker and awaited by the others.
    runs: Mutex<HashMap<String, Arc<OnceCell<Outcome>>>>,
}

#[derive(Clone, Debug)]
struct Outcome {
    at: Instant,
    output: Result<String, String>,
}

impl Default for Commands {
    fn default() -> Self {
        Commands::with_limit(LIMIT)
    }
}

impl Commands {
    /// Commands with another time limit.
    pub fn with_limit(limit: Duration) -> Commands {
        Commands { limit, runs: Mutex::default() }
    }

    /// Returns what the command prints, trimmed, or the reason why there is nothing.
    pub async fn output(&self, command: &str, reuse: Reuse) -> Result<String, String> {
        let cell = self.cell(command, reuse);
        // A cancelled asker leaves the cell empty; the next one starts the command again.
        let outcome = cell.get_or_init(|| async {
            let output = run(command, self.limit).await;
            Outcome { at: Instant::now(), output }
        });
        outcome.await.output.clone()
    }

    fn cell(&self, command: &str, reuse: Reuse) -> Arc<OnceCell<Outcome>> {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let cell = runs.entry(command.to_owned()).or_default();
        let stale = cell.get().is_some_and(|outcome| match reuse {
            Reuse::Never => true,
            Reuse::For(limit) => outcome.at.elapsed() >= limit || outcome.output.is_err(),
            Reuse::Forever => false,
        });
        if stale {
            *cell = Arc::default();
        }
        cell.clone()
    }
}

async fn run(command: &str, limit: Duration) -> Result<String, String> {
    let child = shell(command)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("cannot start: {error}"))?;
    // Dropped on every way out, also when the asker gives up.
    let mut group = Group { child };
    let (status, output, complaint) = match timeout(limit, group.finish()).await {
        Ok(finished) => finished.map_err(|error| error.to_string())?,
        Err(_) => return Err(format!("no answer within {} s", limit.as_secs_f32())),
    };
    // Asked first: a command cut off while writing also ends with a failure.
    if output.len() as u64 > MAX_OUTPUT {
        return Err(format!("more than {MAX_OUTPUT} bytes of output"));
    }
    if !status.success() {
        return Err(failure(status, &complaint));
    }
    match String::from_utf8_lossy(&output).trim() {
        "" => Err(with_complaint("no output", &complaint)),
        text => Ok(text.to_owned()),
    }
}

fn failure(status: ExitStatus, complaint: &[u8]) -> String {
    match status.code() {
        Some(code) => with_complaint(&format!("exit code {code}"), complaint),
        None => with_complaint("killed by a signal", complaint),
    }
}

fn with_complaint(what: &str, complaint: &[u8]) -> String {
    match String::from_utf8_lossy(complaint).trim() {
        "" => what.to_owned(),
        complaint => format!("{what}: {complaint}"),
    }
}

#[cfg(unix)]
fn shell(command: &str) -> Command {
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command).process_group(0);
    shell
}

#[cfg(not(unix))]
fn shell(command: &str) -> Command {
    let mut shell = Command::new("cmd");
    shell.arg("/C").arg(command);
    shell
}

/// A command with everything it started.
struct Group {
    child: Child,
}

impl Group {
    /// Reads to the end and waits.
    async fn finish(&mut self) -> std::io::Result<(ExitStatus, Vec<u8>, Vec<u8>)> {
        let output = read_head(self.child.stdout.take());
        let complaint = read_tail(self.child.stderr.take());
        let (output, complaint) = tokio::join!(output, complaint);
        let status = self.child.wait().await?;
        Ok((status, output?, complaint?))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The id is gone once the command was waited for; then nothing is left to kill.
        #[cfg(unix)]
        if let Some(id) = self.child.id().and_then(|id| i32::try_from(id).ok())
            && let Some(leader) = rustix::process::Pid::from_raw(id)
        {
            let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
        }
    }
}

async fn read_head(pipe: Option<impl AsyncRead + Unpin>) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        pipe.take(MAX_OUTPUT + 1).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}

async fn read_tail(pipe: Option<impl AsyncRead + Unpin>) -> std::io::Result<Vec<u8>> {
    let mut tail = Vec::new();
    let Some(mut pipe) = pipe else { return Ok(tail) };
    let mut buffer = [0; 1024];
    loop {
        let n = pipe.read(&mut buffer).await?;
        if n == 0 {
            return Ok(tail);
        }
        tail.extend_from_slice(&buffer[..n]);
        let excess = tail.len().saturating_sub(STDERR_TAIL);
        tail.drain(..excess);
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime")
    }

    fn check(command: &str, expected: Result<&str, &str>) {
        let outcome = runtime().block_on(Commands::default().output(command, Reuse::Never));
        assert_eq!(outcome.as_deref().map_err(String::as_str), expected, "{command}");
    }

    #[test]
    fn outcomes() {
        check("echo '  key '", Ok("key"));
        check("cat; echo done", Ok("done"));
        check("echo noise >&2; echo key", Ok("key"));
        check("exit 3", Err("exit code 3"));
        check("echo locked >&2; exit 1", Err("exit code 1: locked"));
        check("true", Err("no output"));
        check("kill -9 $$", Err("killed by a signal"));
        check("head -c 100000 /dev/zero | tr '\\0' x", Err("more than 65536 bytes of output"));
    }

    #[test]
    fn only_the_end_of_a_long_complaint_is_kept() {
        let complaint =
            runtime().block_on(Commands::default().output("seq 1 9999 >&2; exit 1", Reuse::Never)).expect_err("fails");
        assert!(complaint.len() < 400 && complaint.ends_with("9999"), "{complaint}");
    }

    #[test]
    fn a_slow_command_is_killed_with_its_children() {
        let directory = tempfile::tempdir().expect("temp dir");
        let file = directory.path().join("pid");
        let command = format!("sleep 300 & echo $! > {}; wait", file.display());
        let commands = Commands::with_limit(Duration::from_millis(300));
        let outcome = runtime().block_on(commands.output(&command, Reuse::Never));
        assert_eq!(outcome, Err("no answer within 0.3 s".to_owned()));
        let pid: i32 = fs::read_to_string(&file).expect("pid file").trim().parse().expect("pid");
        let pid = rustix::process::Pid::from_raw(pid).expect("pid");
        let deadline = Instant::now() + Duration::from_secs(5);
        while rustix::process::test_kill_process(pid).is_ok() && !is_zombie(pid) {
            assert!(Instant::now() < deadline, "the child is still running");
            std::thread::yield_now();
        }
    }

    /// A killed child whose new parent has not looked yet.
    fn is_zombie(pid: rustix::process::Pid) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
        status.contains(") Z ")
    }

    /// Returns a command that prints how often it ran.
    fn counter(directory: &std::path::Path) -> String {
        let file = directory.join("count");
        format!("echo x >> {0}; wc -l < {0}", file.display())
    }

    #[test]
    fn concurrent_askers_share_one_run() {
        let directory = tempfile::tempdir().expect("temp dir");
        let command = counter(directory.path());
        let commands = Commands::default();
        runtime().block_on(async {
            let ask = || commands.output(&command, Reuse::Never);
            let (a, b, c) = tokio::join!(ask(), ask(), ask());
            assert_eq!([a, b, c], [Ok("1".to_owned()), Ok("1".to_owned()), Ok("1".to_owned())]);
            assert_eq!(ask().await.as_deref(), Ok("2"));
        });
    }

    #[test]
    fn outcomes_are_reused_as_told() {
        let directory = tempfile::tempdir().expect("temp dir");
        let command = counter(directory.path());
        let commands = Commands::default();
        runtime().block_on(async {
            assert_eq!(commands.output(&command, Reuse::Forever).await.as_deref(), Ok("1"));
            assert_eq!(commands.output(&command, Reuse::Forever).await.as_deref(), Ok("1"));
            let hour = Reuse::For(Duration::from_secs(3600));
            assert_eq!(commands.output(&command, hour).await.as_deref(), Ok("1"));
            assert_eq!(commands.output(&command, Reuse::For(Duration::ZERO)).await.as_deref(), Ok("2"));
            // Failures of stored commands are final, those of others are tried again.
            let failing = format!("{command}; exit 1");
            assert!(commands.output(&failing, Reuse::Forever).await.is_err());
            assert!(commands.output(&failing, Reuse::Forever).await.is_err());
            assert_eq!(commands.output(&command, Reuse::Never).await.as_deref(), Ok("4"));
        });
    }

    #[test]
    fn giving_up_on_a_command_kills_it() {
        let directory = tempfile::tempdir().expect("temp dir");
        let file = directory.path().join("pid");
        let command = format!("echo $$ > {}; sleep 300", file.display());
        let commands = Commands::default();
        runtime().block_on(async {
            let asked = commands.output(&command, Reuse::Never);
            tokio::pin!(asked);
            while !fs::read_to_string(&file).is_ok_and(|text| !text.is_empty()) {
                let _ = timeout(Duration::from_millis(5), &mut asked).await;
            }
        });
        let pid: i32 = fs::read_to_string(&file).expect("pid file").trim().parse().expect("pid");
        let pid = rustix::process::Pid::from_raw(pid).expect("pid");
        let deadline = Instant::now() + Duration::from_secs(5);
        while rustix::process::test_kill_process(pid).is_ok() && !is_zombie(pid) {
            assert!(Instant::now() < deadline, "the command is still running");
            std::thread::yield_now();
        }
    }
}
