//! `pith conformance`: holds any program that speaks the protocol against the scenarios that pith itself passes.

use std::time::Duration;

use pith_conformance::{Outcome, Scenario, Target, scenarios};

use crate::program::Program;
use crate::{cli::Cli, rpc, show};

/// How long an answer is waited for, unless the arguments say otherwise.
const PATIENCE: Duration = Duration::from_secs(20);

/// Prints a row per scenario and returns the exit code: 0 if every one holds.
pub fn run(arguments: &[String], program: &Program) -> anyhow::Result<u8> {
    let wanted = Wanted::read(arguments).map_err(anyhow::Error::msg)?;
    let dialect = match wanted.dialect {
        Some(dialect) => dialect,
        None => rpc::dialect(&Cli::default(), program)?.name.to_owned(),
    };
    let mut scenarios = scenarios();
    scenarios.retain(|scenario| scenario.dialects.contains(&dialect) && scenario.name.contains(&wanted.filter));
    if scenarios.is_empty() {
        anyhow::bail!("no scenario of dialect {dialect} has \"{}\" in its name", wanted.filter);
    }
    let target = Target::new(wanted.command, &dialect, wanted.patience).map_err(anyhow::Error::msg)?;
    let table = Table::new(&scenarios);
    show(&table.row("scenario", "result", "why"))?;
    let (mut n_held, mut n_failed, mut n_skipped) = (0, 0, 0);
    for scenario in &scenarios {
        let row = match target.play(scenario) {
            Outcome::Held => {
                n_held += 1;
                table.row(&scenario.name, "ok", &scenario.shows)
            }
            Outcome::Failed(why) => {
                n_failed += 1;
                table.row(&scenario.name, "failed", &why)
            }
            Outcome::Skipped(why) => {
                n_skipped += 1;
                table.row(&scenario.name, "skipped", &why)
            }
        };
        show(&row)?;
    }
    show(&format!("\n{n_held} hold, {n_failed} failed, {n_skipped} skipped, in dialect {dialect}\n"))?;
    Ok(u8::from(n_failed > 0))
}

/// Columns as wide as the longest name.
struct Table {
    width: usize,
}

impl Table {
    fn new(scenarios: &[Scenario]) -> Table {
        Table { width: scenarios.iter().map(|scenario| scenario.name.len()).max().unwrap_or_default() }
    }

    fn row(&self, name: &str, result: &str, why: &str) -> String {
        format!("{name:<width$}  {result:<7}  {}\n", why.replace('\n', " "), width = self.width)
    }
}

/// What the arguments ask for.
#[derive(Debug, PartialEq)]
struct Wanted {
    dialect: Option<String>,
    filter: String,
    patience: Duration,
    command: Vec<String>,
}

impl Wanted {
    fn read(arguments: &[String]) -> Result<Wanted, String> {
        let usage = "name the program behind two dashes: pith conformance -- pith --mode rpc";
        let mut parts = arguments.splitn(2, |argument| argument == "--");
        let (options, command) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let mut wanted = Wanted { dialect: None, filter: String::new(), patience: PATIENCE, command: command.to_vec() };
        let mut words = options.iter().flat_map(|option| option.splitn(2, '='));
        while let Some(word) = words.next() {
            match (word, words.next()) {
                ("--dialect", Some(name @ ("pi" | "xcsh"))) => wanted.dialect = Some(name.to_owned()),
                ("--dialect", _) => return Err("--dialect requires pi or xcsh".to_owned()),
                ("--filter", Some(name)) => wanted.filter = name.to_owned(),
                ("--filter", None) => return Err("--filter requires a part of a scenario's name".to_owned()),
                ("--timeout", Some(seconds)) => wanted.patience = Duration::from_secs(whole(seconds)?),
                ("--timeout", None) => return Err("--timeout requires a number of seconds".to_owned()),
                (other, _) => {
                    return Err(format!(
                        "pith conformance knows --dialect, --filter and --timeout, not {other}; {usage}"
                    ));
                }
            }
        }
        if wanted.command.is_empty() { Err(usage.to_owned()) } else { Ok(wanted) }
    }
}

fn whole(seconds: &str) -> Result<u64, String> {
    seconds.parse().map_err(|_| format!("--timeout requires a number of seconds, not \"{seconds}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_stands_behind_two_dashes() {
        let read = |line: &str| Wanted::read(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        let wanted = read("--dialect=xcsh --filter abort --timeout 5 -- pi --mode rpc -- x").expect("understood");
        assert_eq!((wanted.dialect.as_deref(), wanted.filter.as_str()), (Some("xcsh"), "abort"));
        assert_eq!(
            (wanted.patience, wanted.command.join(" ").as_str()),
            (Duration::from_secs(5), "pi --mode rpc -- x")
        );
        for line in ["", "--", "pi --mode rpc", "--dialect klingon -- pi", "--timeout soon -- pi", "--filter"] {
            assert!(read(line).is_err(), "{line}");
        }
    }
}
