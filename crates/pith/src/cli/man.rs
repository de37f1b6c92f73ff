//! The manual page, generated from the flag table.

use super::subcommand::SUBCOMMANDS;
use super::table::{GROUPS, Group};

const DESCRIPTION: &str = "\
.B pith
reads and changes files and runs commands in the current directory on behalf of a language model.
Started on a terminal it is a chat.
With
.B \\-p
it answers once and leaves.
With
.B \\-\\-mode rpc
a host program drives it over JSON lines.
.PP
Arguments that begin with
.B @
name files: text becomes part of the first message, images are attached to it.
Text on standard input comes before the first message.
Everything after
.B \\-\\-
is a message or a file.
";

const REST: &str = "\
.SH EXIT STATUS
.TP
.B 0
The work is done.
.TP
.B 1
It failed: bad arguments, a refused prompt, an answer that ended in an error, was cut off, or does not fit its schema.
.TP
.B 2
pith does not do that.
.TP
.B 130, 143, 129
Ended by an interrupt, by SIGTERM, by SIGHUP.
.SH FILES
.TP
.I ~/.pi/agent/settings.json
Settings.
.TP
.I ~/.pi/agent/models.json
Own providers and models.
.TP
.I ~/.pi/agent/auth.json
Stored keys.
.TP
.I ~/.pi/agent/sessions/
Conversations, one file each.
.TP
.I AGENTS.md
Instructions for a project, from the root of the file system down to the current directory.
.SH ENVIRONMENT
.TP
.B ANTHROPIC_API_KEY, OPENAI_API_KEY, ...
Keys of providers.
.TP
.B PI_CODING_AGENT_DIR, PITH_AGENT_DIR
Another place for the files above.
.TP
.B PI_OFFLINE
The same as
.BR \\-\\-offline .
.TP
.B PITH_LOG, PITH_LOG_FILE
What to log (debug, or model=trace,tool=debug), and a file for it instead of standard error.
.TP
.B PITH_RECORD, PITH_REPLAY
A directory that model calls are written to, or answered from.
.TP
.B NO_COLOR
No colours.
";

/// Returns the page as troff.
pub fn man() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut page = format!(
        ".TH PITH 1 \"\" \"pith {version}\" \"User Commands\"\n.SH NAME\npith \\- a coding agent for terminals, scripts and host programs\n"
    );
    page.push_str(".SH SYNOPSIS\n.B pith\n.RI [ options ]\n.RI [ @file ...]\n.RI [ message ...]\n.SH DESCRIPTION\n");
    page.push_str(DESCRIPTION);
    page.push_str(".SH SUBCOMMANDS\n");
    for subcommand in SUBCOMMANDS {
        entry(&mut page, subcommand.usage, subcommand.help);
    }
    page.push_str(".SH OPTIONS\n");
    for Group { title, flags } in GROUPS {
        page.push_str(&format!(".SS {title}\n"));
        flags.iter().for_each(|flag| entry(&mut page, &flag.usage(), flag.help));
    }
    page.push_str(REST);
    page
}

fn entry(page: &mut String, name: &str, help: &str) {
    page.push_str(&format!(".TP\n.B {}\n{}\n", escape(name), escape(help)));
}

/// Escapes hyphens, and lines that troff would take for requests.
fn escape(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}
