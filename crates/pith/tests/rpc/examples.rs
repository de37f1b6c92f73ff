//! The hosts in `examples/`, run as a reader would run them.

use std::path::Path;
use std::process::Command;

use pith_testkit::TempHome;

#[test]
fn the_python_host_plays_its_session() {
    let has_python = Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success());
    if !has_python {
        pith_testkit::skip("python3 is not installed");
        return;
    }
    let home = TempHome::new();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/host.py");
    let mut command = Command::new("python3");
    command.arg(example).args(["--pith", env!("CARGO_BIN_EXE_pith")]);
    let output =
        command.env_clear().envs(home.environment()).current_dir(home.work()).output().expect("python3 starts");
    let (printed, problems) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let wanted = "todos: ['task-1', 'task-2']\n\
                  tool: looking out of the window in Oslo\n\
                  tool result: Oslo: 4 degrees, rain\n\
                  answer: Oslo: 4 degrees and rain. You said: Keep it short.\n\
                  todo status: ['completed', 'completed']\n\
                  answer: In short: it rains.\n\
                  exit code: 0\n";
    assert!(output.status.success(), "{problems}\n{printed}");
    assert_eq!(printed, wanted, "{problems}");
}
