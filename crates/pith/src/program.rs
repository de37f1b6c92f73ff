//! The name pith was started under, and what follows from it.

use std::ffi::OsString;
use std::path::Path;

use crate::dialect::{Dialect, PI, XCSH};

/// Versions printed under the names of other agents, because hosts check them.
const CLAIMS: [(&str, &str); 2] = [("pi", "1.4.0"), ("xcsh", "19.54.0")];

/// The name pith was started under.
pub struct Program {
    name: String,
}

impl Program {
    /// Reads the name from the first argument.
    pub fn of(argument: Option<OsString>) -> Self {
        let path = argument.unwrap_or_default();
        let name = Path::new(&path).file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        Program { name }
    }

    /// The dialect of hosts that use this name.
    pub fn dialect(&self) -> &'static Dialect {
        match self.name.as_str() {
            "omp" => &XCSH,
            name if name.starts_with("xcsh") => &XCSH,
            _ => &PI,
        }
    }

    /// Whether it serves a host without `--mode rpc`.
    pub fn is_rpc(&self) -> bool {
        self.name == "pith-rpc"
    }

    /// Whether it takes the place of pi.
    pub fn is_pi(&self) -> bool {
        self.name == "pi"
    }

    /// What `--version` prints.
    pub fn version(&self) -> String {
        match CLAIMS.iter().find(|(name, _)| *name == self.name) {
            Some((_, version)) => std::env::var("PITH_CLAIM_VERSION").unwrap_or_else(|_| (*version).to_owned()),
            None => format!("pith {}", env!("CARGO_PKG_VERSION")),
        }
    }
}

/// Converts arguments to text; the error names one that is not UTF-8.
pub fn utf8(arguments: Vec<OsString>) -> anyhow::Result<Vec<String>> {
    let text = |argument: OsString| {
        argument.into_string().map_err(|bad| anyhow::anyhow!("argument is not valid UTF-8: {}", bad.to_string_lossy()))
    };
    arguments.into_iter().map(text).collect()
}
