//! The help text, generated from the flag table.

use pith_ext::registry::{FlagInfo, FlagKind};

use super::subcommand::SUBCOMMANDS;
use super::table::{GROUPS, Group};

const USAGE: &str = "\
pith: a coding agent for terminals, scripts and host programs

Usage:
  pith [options] [@file...]            chat, when started on a terminal
  pith -p [options] [@file...] TEXT    answer once and leave
  pith --mode rpc [options]            serve a host on stdin and stdout
";

const EXAMPLES: &str = "
Examples:
  pith tour                                   see it work: no key, no network
  pith -p --model scripted/tour \"hello\"       the same as a single answer
  pith -p \"What does this project do?\"        the answer goes to stdout
  git diff | pith -p \"Review this change\"     text from a pipe comes first
  pith -p @screenshot.png \"What is wrong?\"    files: text and images
  pith --json \"Fix the tests\"                 every event as a line of JSON
  echo '{\"type\":\"get_state\"}' | pith --mode rpc

Exit codes: 0 done, 1 failed, 2 not possible, 130 interrupted.
Settings are in ~/.pi/agent; `pith config check` tells what is wrong with them.
PITH_LOG=debug shows what pith does, PITH_LOG_FILE=path writes it to a file.
";

/// The column at which descriptions begin.
const INDENT: usize = 37;

/// Returns what `--help` prints, with the flags that extensions have registered.
pub fn help(extension_flags: &[FlagInfo], are_all_loaded: bool) -> String {
    let mut text = USAGE.to_owned();
    text.push_str("\nSubcommands:\n");
    for subcommand in SUBCOMMANDS {
        line(&mut text, subcommand.usage, subcommand.help);
    }
    for Group { title, flags } in GROUPS {
        text.push_str(&format!("\n{title}:\n"));
        flags.iter().for_each(|flag| line(&mut text, &flag.usage(), flag.help));
    }
    if !extension_flags.is_empty() {
        text.push_str("\nFlags of extensions:\n");
    }
    for flag in extension_flags {
        let value = if flag.kind == FlagKind::String { " <VALUE>" } else { "" };
        line(&mut text, &format!("--{}{value}", flag.name), flag.description.as_deref().unwrap_or_default());
    }
    if !are_all_loaded {
        text.push_str("\nNot all extensions could be loaded; `pith config check` tells why.\n");
    }
    text.push_str(EXAMPLES);
    text
}

fn line(text: &mut String, left: &str, right: &str) {
    let right = right.lines().next().unwrap_or_default();
    let width = INDENT - 3;
    if left.chars().count() <= width {
        text.push_str(&format!("  {left:width$} {right}\n"))
    } else {
        text.push_str(&format!("  {left}\n{:INDENT$}{right}\n", ""))
    }
}
