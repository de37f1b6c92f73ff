//! `secrets.yml`: what else the user wants hidden, in the form of xcsh.

use std::path::Path;
use std::sync::Arc;

use pith_ai::Registry;
use pith_config::{AgentDir, Environment, document, settings};
use pith_secrets::{Rule, Secrets};
use serde_json::Value;

use crate::dialect::Dialect;
use crate::open::agent_dir;
use crate::warn;

/// Lets texts be searched for the keys of the user where there is no session, or not yet. The registry is asked when the
/// first text is searched, and must live until then.
pub fn learn_without_session(dialect: &Dialect, environment: &Environment) -> anyhow::Result<Arc<Registry>> {
    let agent_dir = agent_dir(dialect, environment);
    let settings = settings::load(&agent_dir, &crate::current_dir()?, false).settings;
    learn(&agent_dir);
    Ok(Registry::load(&agent_dir, environment.clone(), &settings).telling(Secrets::of_process()))
}

/// Lets the rules of the user be read when the first text is searched for secrets.
pub fn learn(agent_dir: &AgentDir) {
    let file = agent_dir.path().join("secrets.yml");
    Secrets::of_process().ask(move || {
        let (rules, complaints) = read(&file);
        Secrets::of_process().add_rules(rules);
        complaints.iter().for_each(|complaint| warn(&format!("Warning: {complaint}")));
        Vec::new()
    });
}

/// Reads the rules of a file; the second part says what is wrong with it.
fn read(file: &Path) -> (Vec<Rule>, Vec<String>) {
    let complaint = |why: String| format!("{}: {why}", file.display());
    let entries = match document::read(file) {
        Ok(None | Some(Value::Null)) => return Default::default(),
        Ok(Some(Value::Array(entries))) => entries,
        Ok(Some(_)) => return (Vec::new(), vec![complaint("expected a list".to_owned())]),
        Err(why) => return (Vec::new(), vec![complaint(why)]),
    };
    let (mut rules, mut complaints) = (Vec::new(), Vec::new());
    for (entry, number) in entries.iter().zip(1..) {
        match rule(entry) {
            Ok(rule) => rules.push(rule),
            Err(why) => complaints.push(complaint(format!("entry {number}: {why}"))),
        }
    }
    (rules, complaints)
}

fn rule(entry: &Value) -> Result<Rule, String> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str);
    let content = text("content").ok_or("\"content\" is missing or no text")?;
    let rule = match text("type") {
        Some("plain") => Rule::value(content),
        Some("regex") => Rule::pattern(content, text("flags").unwrap_or_default()),
        _ => return Err("\"type\" must be \"plain\" or \"regex\"".to_owned()),
    };
    // The content itself may be the secret and is not shown.
    let rule = rule.map_err(|why| format!("\"content\": {why}"))?;
    Ok(match text("replacement") {
        Some(replacement) => rule.shown_as(replacement),
        None => rule,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_and_bad_ones_named() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("secrets.yml");
        assert!(read(&file).0.is_empty() && read(&file).1.is_empty(), "no file is no mistake");
        let text = "- type: plain\n  content: internal-name\n  replacement: NAME\n\
                    - type: regex\n  content: '[a-z'\n- type: magic\n  content: x\n\
                    - type: regex\n  content: id-[0-9]+\n  flags: i\n";
        std::fs::write(&file, text).expect("written");
        let (rules, complaints) = read(&file);
        assert_eq!(rules.len(), 2);
        let complaints: Vec<&str> =
            complaints.iter().filter_map(|text| text.split_once("secrets.yml: ")).map(|(_, why)| why).collect();
        assert_eq!(
            complaints,
            ["entry 2: \"content\": unclosed character class", "entry 3: \"type\" must be \"plain\" or \"regex\""]
        );
    }
}
