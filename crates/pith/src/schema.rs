//! `pith schema`: the protocol as a JSON Schema or as TypeScript declarations. The files are made by a test of
//! `pith-protocol` and are part of the program as they stand in the repository.

use crate::program::Program;
use crate::{cli::Cli, rpc, show};

/// Prints one of the files and returns the exit code.
pub fn print(arguments: &[String], program: &Program) -> anyhow::Result<u8> {
    let wanted = Wanted::read(arguments).map_err(anyhow::Error::msg)?;
    let dialect = match wanted.dialect {
        Some(dialect) => dialect,
        None => rpc::dialect(&Cli::default(), program)?.name.to_owned(),
    };
    show(match (dialect.as_str(), wanted.is_typescript) {
        ("xcsh", false) => include_str!("../../../schema/xcsh.json"),
        ("xcsh", true) => include_str!("../../../schema/xcsh.ts"),
        (_, false) => include_str!("../../../schema/pi.json"),
        (_, true) => include_str!("../../../schema/pi.ts"),
    })
}

/// What the arguments ask for.
#[derive(Debug, Default, PartialEq)]
struct Wanted {
    dialect: Option<String>,
    is_typescript: bool,
}

impl Wanted {
    fn read(arguments: &[String]) -> Result<Wanted, String> {
        let mut wanted = Wanted::default();
        let words = arguments.iter().flat_map(|argument| argument.splitn(2, '='));
        let mut words = words.peekable();
        while let Some(word) = words.next() {
            match (word, words.next()) {
                ("--dialect", Some(name @ ("pi" | "xcsh"))) => wanted.dialect = Some(name.to_owned()),
                ("--dialect", _) => return Err("--dialect requires pi or xcsh".to_owned()),
                ("--format", Some("json-schema")) => wanted.is_typescript = false,
                ("--format", Some("typescript")) => wanted.is_typescript = true,
                ("--format", _) => return Err("--format requires json-schema or typescript".to_owned()),
                (other, _) => return Err(format!("pith schema knows --dialect and --format, not {other}")),
            }
        }
        Ok(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_in_both_spellings() {
        let read = |line: &str| Wanted::read(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        let wanted = |dialect: &str, is_typescript| Wanted { dialect: Some(dialect.to_owned()), is_typescript };
        assert_eq!(read(""), Ok(Wanted::default()));
        assert_eq!(read("--dialect xcsh --format=typescript"), Ok(wanted("xcsh", true)));
        assert_eq!(read("--dialect=pi --format json-schema"), Ok(wanted("pi", false)));
        assert!(read("--dialect klingon").is_err() && read("--format").is_err() && read("more").is_err());
    }
}
