//! Where servers come from, and which of two with the same name counts.

use std::path::{Path, PathBuf};

use pith_config::{Diagnostic, ProjectTrust, document};
use pith_protocol::fields::type_name;
use serde_json::{Map, Value};

use super::entry::{ServerConfig, read_entry};
use super::imports::Program as ImportedProgram;
use super::known::KnownServers;
use super::places::{ConfigFile, Places};
use super::prompted::{Prompted, read_prompted};
use super::registered::Registered;

/// The code of findings about configuration.
pub const MCP_CONFIG: &str = "mcp_config";

/// Who configured a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// `--mcp-config`.
    Flag,
    /// A command of the host.
    Host,
    /// A file of the project.
    Project,
    /// A file of the user.
    User,
    /// An extension.
    Extension,
}

impl Source {
    /// The word that hosts see.
    pub fn as_str(self) -> &'static str {
        match self {
            Source::Flag => "flag",
            Source::Host => "host",
            Source::Project => "project",
            Source::User => "user",
            Source::Extension => "extension",
        }
    }

    /// Whether somebody else may have written it.
    pub fn is_of_project(self) -> bool {
        self == Source::Project
    }
}

/// What `timeout` means in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutUnit {
    Seconds,
    Milliseconds,
}

/// What the command line and the host say.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// `--mcp-config`: files, or JSON texts.
    pub configs: Vec<String>,
    /// `--no-mcp`: no files but those given.
    pub no_files: bool,
    /// `--approve`: the project's files are trusted as they are now.
    pub is_approved: bool,
    /// Servers of the host.
    pub host: Vec<ServerConfig>,
    /// Servers of extensions.
    pub registered: Registered,
}

/// What was read.
#[derive(Clone, Debug, Default)]
pub struct Read {
    pub servers: Vec<ServerConfig>,
    pub diagnostics: Vec<Diagnostic>,
    /// The servers of the project that the user accepts by using them; `None` if that has happened before, or must not.
    accepted: Option<Vec<ServerConfig>>,
}

impl Read {
    /// Remembers which servers of the project were accepted, also if there were none: later ones need to be accepted,
    /// too.
    pub fn remember(&self, places: &Places) {
        if let Some(accepted) = &self.accepted {
            KnownServers::of(places).remember(accepted);
        }
    }

    /// The servers of the project that are accepted now.
    pub(super) fn accepted(&self) -> &[ServerConfig] {
        self.accepted.as_deref().unwrap_or_default()
    }
}

/// Reads everything; the first of a name counts.
pub fn read_all(places: &Places, given: &Given, trust: ProjectTrust) -> Read {
    let mut reading = Reading::default();
    let is_replaced = given.registered.has_client;
    for config in given.configs.iter().filter(|_| !is_replaced) {
        reading.given(config, places);
    }
    for server in &given.host {
        reading.add(server.clone());
    }
    if given.no_files || is_replaced {
        return reading.read;
    }
    let known = KnownServers::of(places);
    let is_trusted = trust == ProjectTrust::Given;
    let is_approved = is_trusted && (given.is_approved || !known.has_project());
    reading.read.accepted = is_approved.then(Vec::new);
    for file in places.project_files() {
        let Some(entries) = reading.entries(&file) else { continue };
        if !is_trusted {
            reading.untrusted(&file.path, &entries.servers);
            continue;
        }
        for (name, value) in entries.servers {
            if overrides_only(&value) {
                reading.overrides.push((name, value, file.path.clone()));
                continue;
            }
            let Some(server) = reading.entry(&name, &value, &file, &entries.prompted) else { continue };
            if is_approved || known.knows(&server) {
                reading.read.accepted.iter_mut().for_each(|accepted| accepted.push(server.clone()));
                reading.add(server);
            } else {
                reading.unapproved(&server);
            }
        }
    }
    for file in places.user_files() {
        let Some(entries) = reading.entries(&file) else { continue };
        for (name, value) in entries.servers {
            reading.add_of_user(&name, &value, &file, &entries.prompted);
        }
    }
    reading.imports(places);
    for (name, _, path) in std::mem::take(&mut reading.overrides) {
        if !reading.read.servers.iter().any(|server| is_same(&server.name, &name)) {
            reading.warn(&path, format!("server \"{name}\": it has neither \"command\" nor \"url\""));
        }
    }
    for server in &given.registered.servers {
        let path = server.extension.clone();
        let file = ConfigFile { path, source: Source::Extension, unit: TimeoutUnit::Seconds };
        if let Some(server) = reading.entry(&server.name, &server.entry, &file, &[]) {
            reading.add(server);
        }
    }
    reading.read
}

/// Reads the servers of a host; one that is wrong refuses all.
pub fn read_host(servers: &Map<String, Value>) -> Result<Vec<ServerConfig>, String> {
    let mut read: Vec<ServerConfig> = Vec::new();
    for (name, value) in servers {
        let server = read_entry(name, value, Source::Host, TimeoutUnit::Seconds).map_err(|error| error.to_string())?;
        if let Some(other) = read.iter().find(|other| is_same(&other.name, name)) {
            return Err(format!("servers \"{}\" and \"{name}\" have the same name", other.name));
        }
        read.push(server);
    }
    Ok(read)
}

/// Names that differ only in `-` and `_` are the same.
pub fn is_same(one: &str, other: &str) -> bool {
    one.replace('-', "_") == other.replace('-', "_")
}

/// Whether an entry of a project changes one of the user instead of bringing its own.
fn overrides_only(entry: &Value) -> bool {
    entry.as_object().is_some_and(|entry| !["command", "url", "type"].iter().any(|key| entry.contains_key(*key)))
}

fn overridden(entry: &Value, changes: &Value) -> Value {
    let mut entry = entry.clone();
    if let (Some(entry), Some(changes)) = (entry.as_object_mut(), changes.as_object()) {
        if changes.contains_key("enabled") {
            entry.shift_remove("disabled");
        }
        for key in ["enabled", "exposure", "toolExposure"] {
            if let Some(value) = changes.get(key) {
                entry.insert(key.to_owned(), value.clone());
            }
        }
    }
    entry
}

/// What a file has.
#[derive(Default)]
struct Entries {
    servers: Map<String, Value>,
    prompted: Vec<Prompted>,
}

#[derive(Default)]
struct Reading {
    read: Read,
    /// What entries of the project change of the user's: name, members, file.
    overrides: Vec<(String, Value, PathBuf)>,
}

impl Reading {
    /// Reports something that is left out or mended while the rest counts.
    fn warn(&mut self, path: &Path, message: String) {
        self.read.diagnostics.push(Diagnostic::warning(MCP_CONFIG, path, message));
    }

    /// Reports something that cannot be used.
    fn refuse(&mut self, path: &Path, message: impl Into<String>) {
        self.read.diagnostics.push(Diagnostic::error(MCP_CONFIG, path, message));
    }

    fn add(&mut self, server: ServerConfig) {
        if !self.read.servers.iter().any(|other| is_same(&other.name, &server.name)) {
            self.read.servers.push(server);
        }
    }

    /// Reads what `--mcp-config` names: JSON if it looks like it, else a file.
    fn given(&mut self, config: &str, places: &Places) {
        let shown = Path::new("--mcp-config");
        let is_text = config.trim_start().starts_with('{');
        let path = if is_text { shown.to_owned() } else { places.cwd.join(places.environment.expand(config)) };
        let read =
            if is_text { document::parse(Path::new("config.json"), config) } else { document::read_named(&path) };
        let unit = if path.ends_with(".mcp.json") { TimeoutUnit::Milliseconds } else { TimeoutUnit::Seconds };
        let file = ConfigFile { path: path.clone(), source: Source::Flag, unit };
        match read {
            Ok(value) => {
                let entries = self.servers_of(&path, value).unwrap_or_default();
                for (name, value) in entries.servers {
                    if let Some(server) = self.entry(&name, &value, &file, &entries.prompted) {
                        self.add(server);
                    }
                }
            }
            Err(why) => self.refuse(&path, why),
        }
    }

    /// The entries of a file; `None` if there is none.
    fn entries(&mut self, file: &ConfigFile) -> Option<Entries> {
        match document::read(&file.path) {
            Ok(value) => self.servers_of(&file.path, value?),
            Err(why) => {
                self.refuse(&file.path, why);
                None
            }
        }
    }

    fn servers_of(&mut self, path: &Path, value: Value) -> Option<Entries> {
        let prompted = self.prompted(path, &value);
        let found = match value {
            Value::Object(mut object) => {
                let key = if object.contains_key("mcpServers") { "mcpServers" } else { "servers" };
                object.remove(key).map(|servers| (key, servers))
            }
            other => {
                self.refuse(path, format!("expected an object, got {}", type_name(&other)));
                return None;
            }
        };
        match found? {
            (_, Value::Object(servers)) => Some(Entries { servers, prompted }),
            (key, other) => {
                self.refuse(path, format!("{key}: expected an object, got {}", type_name(&other)));
                None
            }
        }
    }

    /// What a file says that users are asked for.
    fn prompted(&mut self, path: &Path, document: &Value) -> Vec<Prompted> {
        let (prompted, problems) = read_prompted(document);
        problems.into_iter().for_each(|problem| self.refuse(path, problem));
        prompted
    }

    fn entry(&mut self, name: &str, value: &Value, file: &ConfigFile, prompted: &[Prompted]) -> Option<ServerConfig> {
        match read_entry(name, value, file.source, file.unit) {
            Ok(server) => {
                for note in &server.notes {
                    self.warn(&file.path, format!("server \"{name}\": {note}"));
                }
                if !server.unknown.is_empty() {
                    let keys = server.unknown.join(", ");
                    self.warn(&file.path, format!("server \"{name}\": unknown keys are ignored: {keys}"));
                }
                let text = value.to_string();
                let is_used = |prompted: &&Prompted| text.contains(&format!("${{input:{}}}", prompted.id));
                let prompted = prompted.iter().filter(is_used).cloned().collect();
                Some(ServerConfig { path: Some(file.path.clone()), prompted, ..server })
            }
            Err(error) => {
                self.refuse(&file.path, error.to_string());
                None
            }
        }
    }

    /// Adds the servers of the programs that the user's file imports.
    fn imports(&mut self, places: &Places) {
        let file = places.user_file();
        // The file has been read before; what is wrong with it is known.
        let named = document::read(&file).ok().flatten().and_then(|mut read| read.get_mut("imports").map(Value::take));
        let names = match named {
            None | Some(Value::Null) => return,
            Some(Value::Array(names)) => names,
            Some(other) => return self.refuse(&file, format!("imports: expected an array, got {}", type_name(&other))),
        };
        for (index, name) in names.iter().enumerate() {
            match name.as_str().ok_or_else(|| "expected a string".to_owned()).and_then(ImportedProgram::named) {
                Ok(program) => self.import(program, places),
                Err(why) => self.refuse(&file, format!("imports[{index}]: {why}")),
            }
        }
    }

    fn import(&mut self, program: ImportedProgram, places: &Places) {
        let path = program.file(&places.environment);
        let (entries, prompted) = match program.document(&path).and_then(|document| {
            let prompted = document.as_ref().map_or_else(Vec::new, |document| self.prompted(&path, document));
            Ok((program.entries(document)?, prompted))
        }) {
            Ok(read) => read,
            Err(why) => return self.refuse(&path, why),
        };
        let file = ConfigFile { path, source: Source::User, unit: program.unit() };
        for (name, value) in entries {
            self.add_of_user(&name, &value, &file, &prompted);
        }
    }

    /// Adds a server of the user, with what the project changes of it.
    fn add_of_user(&mut self, name: &str, value: &Value, file: &ConfigFile, prompted: &[Prompted]) {
        let changed = self.overrides.iter().find(|(other, ..)| is_same(other, name));
        let value = changed.map_or_else(|| value.clone(), |(_, changes, _)| overridden(value, changes));
        if let Some(server) = self.entry(name, &value, file, prompted) {
            self.add(server);
        }
    }

    fn untrusted(&mut self, path: &Path, entries: &Map<String, Value>) {
        let names: Vec<&str> = entries.keys().map(String::as_str).collect();
        if !names.is_empty() {
            let names = names.join(", ");
            self.warn(path, format!("servers left out because the project is not trusted (pith trust): {names}"));
        }
    }

    fn unapproved(&mut self, server: &ServerConfig) {
        let path = server.path.clone().unwrap_or_default();
        self.warn(
            &path,
            format!(
                "server \"{}\" is left out: the file has changed since the project was trusted (pith trust, or \
                 --approve, accepts it)",
                server.name
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pith_config::{AgentDir, Environment, Layout};

    struct Home {
        directory: tempfile::TempDir,
        places: Places,
    }

    fn home() -> Home {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path();
        let places = Places {
            agent_dir: AgentDir::at(root.join("agent"), Layout::Pi),
            environment: Environment::of(root.join("home"), []),
            cwd: root.join("work"),
        };
        Home { directory, places }
    }

    impl Home {
        fn write(&self, path: &str, text: &str) -> &Self {
            let path = self.directory.path().join(path);
            std::fs::create_dir_all(path.parent().expect("below")).expect("made");
            std::fs::write(path, text).expect("written");
            self
        }

        fn read(&self, given: &Given, is_trusted: bool) -> (Vec<String>, Vec<String>) {
            self.read_with(given, if is_trusted { ProjectTrust::Given } else { ProjectTrust::Refused })
        }

        fn read_with(&self, given: &Given, trust: ProjectTrust) -> (Vec<String>, Vec<String>) {
            let read = read_all(&self.places, given, trust);
            read.remember(&self.places);
            let servers = read.servers.iter().map(|server| format!("{} {}", server.name, server.source.as_str()));
            let findings = read.diagnostics.iter().map(|found| found.message.clone());
            (servers.collect(), findings.collect())
        }
    }

    fn entry(name: &str) -> String {
        format!(r#"{{"mcpServers": {{"{name}": {{"command": "run-{name}"}}}}}}"#)
    }

    #[test]
    fn the_first_of_a_name_counts() {
        let home = home();
        home.write("agent/mcp.json", &entry("a-b")).write("home/.config/mcp/mcp.json", &entry("c"));
        home.write("home/.agents/mcp.json", &entry("c")).write("work/.mcp.json", &entry("a_b"));
        home.write("work/.pi/mcp.json", r#"{"servers": {"v": {"command": "x"}}, /* c */ "inputs": [],}"#);
        let given = Given { configs: vec![entry("c")], ..Given::default() };
        let (servers, findings) = home.read(&given, true);
        assert_eq!(servers, ["c flag", "v project", "a_b project"]);
        assert_eq!(findings, Vec::<String>::new());
        let (servers, _) = home.read(&Given { no_files: true, ..given }, true);
        assert_eq!(servers, ["c flag"]);
    }

    #[test]
    fn servers_of_other_programs_are_imported_last() {
        let home = home();
        home.write(
            "agent/mcp.json",
            r#"{"imports": ["cursor", "codex", "emacs"], "mcpServers": {"a": {"command": "x"}}}"#,
        );
        home.write("home/.cursor/mcp.json", r#"{"mcpServers": {"a": {"command": "theirs"}, "b": {"command": "y"}}}"#);
        home.write("home/.codex/config.toml", "[mcp_servers.c]\ncommand = 7\n");
        let (servers, findings) = home.read(&Given::default(), true);
        assert_eq!(servers, ["a user", "b user"]);
        assert_eq!(findings[0], "server \"c\": command: expected a string, got number");
        assert!(findings[1].starts_with("imports[2]: expected one of \"claude-code\", "), "{findings:?}");
    }

    #[test]
    fn an_untrusted_project_is_left_out_and_named() {
        let home = home();
        home.write("work/.mcp.json", &entry("p")).write("agent/mcp.json", &entry("u"));
        let (servers, findings) = home.read(&Given::default(), false);
        assert_eq!(servers, ["u user"]);
        assert_eq!(findings, ["servers left out because the project is not trusted (pith trust): p"]);
    }

    #[test]
    fn a_changed_file_starts_nothing_new_under_an_old_trust() {
        let home = home();
        home.write("work/.mcp.json", &entry("p"));
        assert_eq!(home.read(&Given::default(), true).0, ["p project"]);
        home.write("work/.mcp.json", r#"{"mcpServers": {"p": {"command": "run-p"}, "q": {"command": "evil"}}}"#);
        let (servers, findings) = home.read(&Given::default(), true);
        assert_eq!(servers, ["p project"]);
        assert!(findings[0].starts_with("server \"q\" is left out: the file has changed"), "{findings:?}");
        for change in [r#""args": ["-x"]"#, r#""env": {"PATH": "."}"#, r#""cwd": "below""#] {
            let changed = format!(r#"{{"mcpServers": {{"p": {{"command": "run-p", {change}}}}}}}"#);
            home.write("work/.mcp.json", &changed);
            assert_eq!(home.read(&Given::default(), true).0, Vec::<String>::new(), "{change}");
        }
        let approved = Given { is_approved: true, ..Given::default() };
        assert_eq!(home.read(&approved, true).0, ["p project"]);
        assert_eq!(home.read(&Given::default(), true).0, ["p project"]);
    }

    #[test]
    fn a_trusted_project_without_servers_cannot_bring_one_later() {
        let home = home();
        assert_eq!(home.read(&Given::default(), true).0, Vec::<String>::new());
        home.write("work/.mcp.json", &entry("p"));
        let (servers, findings) = home.read(&Given::default(), true);
        assert_eq!(servers, Vec::<String>::new());
        assert!(findings[0].starts_with("server \"p\" is left out: the file has changed"), "{findings:?}");
        // `pith trust` accepts what is there when it is run, and nothing else.
        KnownServers::accept(&home.places);
        assert_eq!(home.read(&Given::default(), true).0, ["p project"]);
        home.write("work/.pi/mcp.json", &entry("q"));
        assert_eq!(home.read(&Given::default(), true).0, ["p project"]);
    }

    #[test]
    fn a_file_that_comes_after_nothing_needed_trust_is_not_trusted() {
        let home = home();
        assert_eq!(home.read_with(&Given::default(), ProjectTrust::NotNeeded).0, Vec::<String>::new());
        home.write("work/.mcp.json", &entry("p"));
        let (servers, findings) = home.read_with(&Given::default(), ProjectTrust::NotNeeded);
        assert_eq!(servers, Vec::<String>::new());
        assert_eq!(findings, ["servers left out because the project is not trusted (pith trust): p"]);
        // Nothing was noted before, so whoever trusts it now accepts it.
        assert_eq!(home.read(&Given::default(), true).0, ["p project"]);
    }

    #[test]
    fn what_was_accepted_and_cannot_be_read_counts_as_not_accepted() {
        let home = home();
        home.write("work/.mcp.json", &entry("p")).write("agent/pith-mcp/projects.json", "{");
        let (servers, findings) = home.read(&Given::default(), true);
        assert_eq!(servers, Vec::<String>::new());
        assert!(findings[0].starts_with("server \"p\" is left out"), "{findings:?}");
    }

    #[test]
    fn other_agents_files_of_a_project_have_their_own_unit() {
        let mut home = home();
        home.places.agent_dir = AgentDir::at(home.directory.path().join("agent"), Layout::Xcsh);
        home.write("work/.xcsh/mcp.json", r#"{"mcpServers": {"a": {"command": "x", "timeout": 5}}}"#);
        home.write("work/.omp/mcp.json", r#"{"mcpServers": {"b": {"command": "x", "timeout": 7000}}}"#);
        let read = read_all(&home.places, &Given::default(), ProjectTrust::Given);
        let timeouts: Vec<_> = read.servers.iter().map(|server| (&*server.name, server.timeout.as_secs())).collect();
        assert_eq!(timeouts, [("a", 5), ("b", 7)]);
        home.places.agent_dir = AgentDir::at(home.directory.path().join("agent"), Layout::Pi);
        assert!(
            read_all(&home.places, &Given::default(), ProjectTrust::Given).servers.is_empty(),
            "the files of another agent"
        );
    }

    #[test]
    fn an_entry_of_the_project_may_switch_off_one_of_the_user() {
        let home = home();
        home.write("agent/mcp.json", &entry("u"));
        home.write("work/.pi/mcp.json", r#"{"mcpServers": {"u": {"enabled": false, "env": {"A": "b"}}, "n": {}}}"#);
        let read = read_all(&home.places, &Given::default(), ProjectTrust::Given);
        assert_eq!((read.servers.len(), read.servers[0].is_enabled, read.servers[0].source), (1, false, Source::User));
        // Also on again, and one of another program.
        home.write(
            "agent/mcp.json",
            r#"{"imports": ["cursor"], "mcpServers": {"u": {"command": "x", "disabled": true}}}"#,
        );
        home.write("home/.cursor/mcp.json", &entry("i"));
        home.write(
            "work/.pi/mcp.json",
            r#"{"mcpServers": {"u": {"enabled": true}, "i": {"enabled": false}, "n": {}}}"#,
        );
        let read = read_all(&home.places, &Given::default(), ProjectTrust::Given);
        let enabled: Vec<_> = read.servers.iter().map(|server| (&*server.name, server.is_enabled)).collect();
        assert_eq!(enabled, [("u", true), ("i", false)]);
        let findings: Vec<_> = read.diagnostics.iter().map(|found| &*found.message).collect();
        assert_eq!(findings, ["server \"n\": it has neither \"command\" nor \"url\""]);
    }

    #[test]
    fn what_is_wrong_has_a_place_and_the_rest_counts() {
        let home = home();
        home.write("agent/mcp.json", "{\n  \"mcpServers\": [}").write("home/.agents/mcp.json", &entry("good"));
        home.write(
            "home/.config/mcp/mcp.json",
            r#"{"mcpServers": {"bad": {"command": 7}, "odd": {"command": "a", "colour": 1}}}"#,
        );
        let (servers, findings) = home.read(&Given { configs: vec!["none.json".to_owned()], ..Given::default() }, true);
        assert_eq!(servers, ["odd user", "good user"]);
        assert_eq!(findings[0], "there is no such file");
        assert!(findings[1].contains("line 2 column 18"), "{findings:?}");
        assert_eq!(findings[2], "server \"bad\": command: expected a string, got number");
        assert_eq!(findings[3], "server \"odd\": unknown keys are ignored: colour");
    }

    #[test]
    fn servers_of_a_host_are_refused_as_a_whole() {
        let refused = |servers: Value| read_host(servers.as_object().expect("an object")).expect_err("refused");
        let bad = serde_json::json!({"a": {"command": "x"}, "b": {}});
        assert_eq!(refused(bad), "server \"b\": it has neither \"command\" nor \"url\"");
        let twice = serde_json::json!({"a-b": {"command": "x"}, "a_b": {"command": "x"}});
        assert_eq!(refused(twice), "servers \"a-b\" and \"a_b\" have the same name");
    }
}
