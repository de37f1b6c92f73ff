//! Who can look into pith.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::{fs, io};

/// A user without rights.
const NOBODY: u32 = 65534;

/// Runs pith as somebody who is not root, and returns who owns its environment in `/proc` and what a command said.
fn owner_and_answer(variables: &[(&str, &str)]) -> io::Result<(u32, String)> {
    let home = tempfile::tempdir()?;
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o777))?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_pith"));
    command.args(["--mode", "rpc", "--no-session", "--model", "scripted/tour"]).current_dir(home.path());
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", home.path());
    command.envs(variables.iter().copied()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    if rustix::process::getuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let mut child = command.spawn()?;
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(b"{\"id\":\"1\",\"type\":\"bash\",\"command\":\"id -u; ls /proc/$$/fd | wc -l\"}\n")?;
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut answers = lines.map_while(Result::ok).filter(|line| line.contains("\"type\":\"response\""));
    let answer = answers.next().unwrap_or_default();
    let owner = fs::metadata(format!("/proc/{}/environ", child.id()))?.uid();
    drop(input);
    child.wait()?;
    Ok((owner, answer))
}

#[test]
fn others_of_the_same_user_cannot_look_into_pith() {
    let user = if rustix::process::getuid().is_root() { NOBODY } else { rustix::process::getuid().as_raw() };
    let closed = match owner_and_answer(&[]) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return pith_testkit::skip("nobody may not run the program");
        }
        closed => closed.expect("pith runs"),
    };
    // The kernel gives the files of a process that cannot be dumped to root.
    assert_eq!(closed.0, 0, "{}", closed.1);
    let (owner, answer) = owner_and_answer(&[("PITH_DUMPABLE", "1")]).expect("pith runs");
    assert_eq!(owner, user, "{answer}");
    // Its commands are not concerned.
    for answer in [closed.1, answer] {
        assert!(answer.contains(&format!("\"output\":\"{user}\\n")), "{answer}");
    }
}
