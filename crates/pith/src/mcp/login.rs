//! `pith mcp login`: prints the address to sign in at, opens it where there is a display, and waits.

use std::io::{self, BufRead, IsTerminal, Read, StdinLock, stdin, stdout};
use std::pin::pin;
use std::process::{Command, Stdio};

use pith_mcp::{DeviceCode, Means, Servers};
use tokio::sync::oneshot;

use super::arguments::LoginWith;
use crate::show;

/// No token is longer.
const MAX_TOKEN: u64 = 64 * 1024;

/// Signs in and returns the exit code.
pub async fn login(servers: &Servers, name: &str, with: LoginWith) -> anyhow::Result<u8> {
    let mut show_page = |page: &str| {
        let _ = show(&format!("sign in here:\n\n  {page}\n\n"));
        if stdin().is_terminal() {
            let _ = show("then, if the browser is on another machine, paste the address it ended at:\n");
        }
        open(page);
    };
    let signed_in = match with {
        LoginWith::Browser => {
            let mut pasted = pin!(pasted_line());
            servers.login(name, Means::Browser { show: &mut show_page, pasted: &mut pasted }).await
        }
        LoginWith::Device => {
            let mut show_code = |begun: &DeviceCode| {
                let _ = show(&format!(
                    "open this page, on any machine:\n\n  {}\n\nand type:  {}\n",
                    begun.page, begun.code
                ));
            };
            servers.login(name, Means::Device { show: &mut show_code }).await
        }
        LoginWith::ClientCredentials => servers.login(name, Means::ClientCredentials).await,
        LoginWith::Token => {
            let token = from_stdin(|input| {
                let mut token = String::new();
                input.take(MAX_TOKEN).read_to_string(&mut token).map(|_| token)
            });
            let token = token.await?;
            servers.login(name, Means::Token(token.trim().to_owned())).await
        }
    };
    signed_in.map_err(anyhow::Error::msg)?;
    show(&format!("signed in to {name}\n"))
}

/// Opens a page, if somebody sits at a terminal with a display.
fn open(page: &str) {
    let has_display = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    if !(stdin().is_terminal() && stdout().is_terminal() && (has_display || cfg!(target_os = "macos"))) {
        return;
    }
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    // The address is on the screen if this does not work.
    let _ = Command::new(program).arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
}

/// Waits for a line from a terminal; for ever where there is none.
async fn pasted_line() -> String {
    if !stdin().is_terminal() {
        return std::future::pending().await;
    }
    let line = from_stdin(|mut input| {
        let mut line = String::new();
        input.read_line(&mut line).map(|_| line)
    });
    match line.await {
        Ok(line) if !line.is_empty() => line,
        _ => std::future::pending().await,
    }
}

/// Reads from stdin on a thread of its own, which the end of the process does not wait for.
async fn from_stdin(
    read: impl FnOnce(StdinLock<'static>) -> io::Result<String> + Send + 'static,
) -> io::Result<String> {
    let (sender, text) = oneshot::channel();
    std::thread::Builder::new().spawn(move || {
        // Nobody waits for it any more once the sign-in is over.
        let _ = sender.send(read(stdin().lock()));
    })?;
    text.await.unwrap_or_else(|_| Err(io::Error::other("stdin could not be read")))
}
