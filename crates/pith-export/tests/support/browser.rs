//! A real browser, without its window.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// How long a page may take, on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(90);

/// A browser of the Chromium family, if there is one; says so if there is none.
pub struct Browser {
    program: PathBuf,
    profile: tempfile::TempDir,
}

impl Browser {
    pub fn find() -> Option<Self> {
        let path = std::env::var_os("PATH")?;
        let names = ["chromium", "chromium-browser", "google-chrome"];
        let program = std::env::split_paths(&path)
            .flat_map(|directory| names.map(|name| directory.join(name)))
            .find(|program| program.is_file());
        match program {
            Some(program) => Some(Browser { program, profile: tempfile::tempdir().expect("a directory") }),
            None => {
                pith_testkit::skip("no chromium, chromium-browser or google-chrome in PATH");
                None
            }
        }
    }

    /// The document a page has become after its scripts have run.
    pub fn dom(&self, page: &Path, fragment: &str) -> String {
        let mut child = Command::new(&self.program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"])
            .args(["--disable-component-update", "--disable-sync", "--disable-extensions", "--dump-dom"])
            .args(["--virtual-time-budget=4000", "--window-size=1400,900"])
            .arg(format!("--user-data-dir={}", self.profile.path().display()))
            .arg(format!("file://{}{fragment}", page.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the browser starts");
        let mut stdout = child.stdout.take().expect("piped");
        let (send, receive) = channel();
        std::thread::spawn(move || {
            let mut dom = String::new();
            let result = stdout.read_to_string(&mut dom);
            send.send(result.map(|_| dom)).ok();
        });
        let dom = receive.recv_timeout(PATIENCE);
        finish(child, &dom);
        dom.expect("the browser is done in time").expect("documents are UTF-8")
    }
}

fn finish(mut child: Child, dom: &Result<io::Result<String>, RecvTimeoutError>) {
    if dom.is_err() {
        child.kill().ok();
    }
    child.wait().ok();
}

/// Listens on the loopback interface and tells which paths were asked for.
pub struct Lure {
    pub address: String,
    /// One path per request, sent by the listening thread.
    requests: Receiver<String>,
}

impl Lure {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let (send, requests) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let mut line = String::new();
                BufReader::new(&stream).read_line(&mut line).ok();
                stream.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").ok();
                let path = line.split_whitespace().nth(1).unwrap_or("(connection)").to_owned();
                if send.send(path).is_err() {
                    return;
                }
            }
        });
        Lure { address, requests }
    }

    /// The requests until one with that path.
    pub fn requests_until(&self, last: &str) -> Vec<String> {
        let mut paths = Vec::new();
        loop {
            let path = self.requests.recv_timeout(PATIENCE).expect("the request arrives");
            if path == last {
                return paths;
            }
            paths.push(path);
        }
    }
}
