//! One entry of a configuration: checked once, here, so that everything later can rely on it.

use std::path::PathBuf;
use std::time::Duration;

use pith_protocol::fields::type_name;
use serde_json::Value;

use super::exposure::{Exposure, exposure_named};
use super::fields::Fields;
use super::oauth::OAuth;
use super::prompted::Prompted;
use super::sources::{Source, TimeoutUnit};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
const STARTUP_TIMEOUT: Duration = Duration::from_secs(30);
/// Programs that download what they start.
const SLOW_STARTERS: [&str; 3] = ["npx", "uvx", "docker"];
const SLOW_STARTUP_TIMEOUT: Duration = Duration::from_secs(120);
const IDLE_TIMEOUT: Duration = Duration::from_secs(600);
const MAX_NAME: usize = 64;

/// A server as it is configured. Texts still contain their variables.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerConfig {
    pub name: String,
    pub source: Source,
    /// The file it was read from.
    pub path: Option<PathBuf>,
    pub transport: Transport,
    pub is_enabled: bool,
    /// For each request; progress of the server starts it again.
    pub timeout: Duration,
    pub startup_timeout: Duration,
    pub exposure: Exposure,
    /// Exact names before patterns, in order.
    pub tool_exposure: Vec<(String, Exposure)>,
    /// Only these tools, if given.
    pub include: Option<Vec<String>>,
    pub exclude: Vec<String>,
    pub description: Option<String>,
    /// Words that its tools are found by, beside their own.
    pub search_keywords: Vec<String>,
    /// Whether the model gets the server's own instructions.
    pub is_heard: bool,
    pub lifecycle: Lifecycle,
    /// `None`: an idle server is never ended.
    pub idle_timeout: Option<Duration>,
    pub protocol: Protocol,
    /// Whether the server may ask the session's model.
    pub sampling: SamplingConsent,
    /// Tools whose calls the user has approved in advance.
    pub approved: Vec<String>,
    /// What the user is asked for, of all that its file names.
    pub prompted: Vec<Prompted>,
    /// Keys nobody here knows.
    pub unknown: Vec<String>,
    /// What could not be used and is not worth refusing the entry for.
    pub notes: Vec<String>,
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq)]
pub enum Transport {
    Stdio(Stdio),
    Remote(Remote),
}

/// A program that speaks over its standard streams.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stdio {
    pub command: String,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    pub cwd: Option<String>,
    /// The program gets every variable of pith but model keys.
    pub inherits_env: bool,
}

/// A server at an address.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Remote {
    pub url: String,
    pub headers: Vec<(String, String)>,
    /// `bearerToken`, or the variable of `bearerTokenEnv`.
    pub bearer: Option<String>,
    /// How to sign in; `None` if a stored sign-in must not be used.
    pub oauth: Option<OAuth>,
    /// The transport of 2024-11-05 and no other.
    pub is_sse: bool,
}

/// When a server runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifecycle {
    Lazy,
    Eager,
    KeepAlive,
}

/// Whether a server may ask the session's model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SamplingConsent {
    Never,
    /// The user is asked each time.
    Ask,
    Always,
}

/// Which era of the protocol to speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Auto,
    Legacy,
    Modern,
}

/// Why an entry cannot be used: the field, where there is one, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("server \"{name}\": {why}")]
pub struct EntryError {
    pub name: String,
    pub why: String,
}

/// Reads one entry.
pub fn read_entry(name: &str, value: &Value, source: Source, unit: TimeoutUnit) -> Result<ServerConfig, EntryError> {
    let failed = |why: String| EntryError { name: name.to_owned(), why };
    check_name(name).map_err(failed)?;
    let Value::Object(object) = value else {
        return Err(failed(format!("expected an object, got {}", type_name(value))));
    };
    Entry { fields: Fields(object), notes: Vec::new() }.read(name, source, unit).map_err(failed)
}

fn check_name(name: &str) -> Result<(), String> {
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.' | ' ');
    if name.trim().is_empty() {
        return Err("the name is empty".to_owned());
    }
    if name.chars().count() > MAX_NAME || !name.chars().all(is_allowed) {
        return Err(format!("a name has 1 to {MAX_NAME} letters, digits, \"_\", \"-\", \".\" and spaces"));
    }
    Ok(())
}

/// The members of an entry, and what was noticed about them.
struct Entry<'a> {
    fields: Fields<'a>,
    notes: Vec<String>,
}

/// Every key that has a meaning here or in a program whose files are read.
const KEYS: [&str; 31] = [
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "headers",
    "type",
    "auth",
    "bearerToken",
    "bearerTokenEnv",
    "oauth",
    "enabled",
    "disabled",
    "timeout",
    "requestTimeoutMs",
    "startupTimeoutMs",
    "exposure",
    "toolExposure",
    "includeTools",
    "excludeTools",
    "description",
    "instructions",
    "inheritEnv",
    "lifecycle",
    "idleTimeout",
    "protocolVersion",
    "sampling",
    "approveTools",
    "searchKeywords",
    "gallery",
    "name",
];

impl Entry<'_> {
    fn read(mut self, name: &str, source: Source, unit: TimeoutUnit) -> Result<ServerConfig, String> {
        let transport = self.transport(source)?;
        let program = match &transport {
            Transport::Stdio(stdio) => stdio.command.rsplit('/').next().unwrap_or_default(),
            Transport::Remote(_) => "",
        };
        let startup_default = if SLOW_STARTERS.contains(&program) { SLOW_STARTUP_TIMEOUT } else { STARTUP_TIMEOUT };
        let startup_timeout = self.fields.milliseconds("startupTimeoutMs")?.unwrap_or(startup_default);
        let timeout = self.timeout(unit)?;
        let is_enabled =
            self.fields.flag("enabled")?.unwrap_or(true) && !self.fields.flag("disabled")?.unwrap_or(false);
        let unknown = self.fields.0.keys().filter(|key| !KEYS.contains(&key.as_str())).cloned().collect();
        Ok(ServerConfig {
            name: name.to_owned(),
            source,
            path: None,
            transport,
            is_enabled,
            timeout,
            startup_timeout,
            exposure: self.exposure()?,
            tool_exposure: self.tool_exposure()?,
            include: self.fields.texts("includeTools")?,
            exclude: self.fields.texts("excludeTools")?.unwrap_or_default(),
            description: self.fields.text("description")?,
            search_keywords: self.fields.texts("searchKeywords")?.unwrap_or_default(),
            is_heard: self.fields.flag("instructions")?.unwrap_or(true),
            lifecycle: self.lifecycle()?,
            idle_timeout: self.idle_timeout()?,
            protocol: self.protocol()?,
            sampling: self.sampling(source)?,
            approved: self.approved(source)?,
            prompted: Vec::new(),
            unknown,
            notes: self.notes,
        })
    }

    fn transport(&mut self, source: Source) -> Result<Transport, String> {
        let kind = self.fields.text("type")?;
        match (self.fields.text("command")?, self.fields.text("url")?) {
            (Some(_), Some(_)) => Err("it has both \"command\" and \"url\"".to_owned()),
            (None, None) => Err("it has neither \"command\" nor \"url\"".to_owned()),
            (Some(command), None) => match kind.as_deref() {
                None | Some("stdio") => self.stdio(command, source).map(Transport::Stdio),
                Some(other) => Err(format!("type: \"{other}\" does not go with \"command\"")),
            },
            (None, Some(url)) => match kind.as_deref() {
                None | Some("http" | "streamable-http" | "sse") => {
                    let is_sse = kind.as_deref() == Some("sse");
                    self.remote(url, is_sse).map(Transport::Remote)
                }
                Some(other) => Err(format!(
                    "type: expected one of \"http\", \"streamable-http\", \"sse\" with \"url\", got \"{other}\""
                )),
            },
        }
    }

    fn stdio(&mut self, command: String, source: Source) -> Result<Stdio, String> {
        if command.trim().is_empty() {
            return Err("command: it is empty".to_owned());
        }
        let wants_all = self.fields.flag("inheritEnv")?.unwrap_or(false);
        let inherits_env = wants_all && self.is_said_by_user("inheritEnv", source);
        Ok(Stdio {
            command,
            args: self.fields.texts("args")?.unwrap_or_default(),
            env: self.fields.pairs("env")?,
            cwd: self.fields.text("cwd")?,
            inherits_env,
        })
    }

    /// Whether a key counts that is none of a project's business; if not, that is noted.
    fn is_said_by_user(&mut self, key: &str, source: Source) -> bool {
        if source.is_of_project() {
            self.notes.push(format!("{key}: only files of the user may say so"));
        }
        !source.is_of_project()
    }

    fn sampling(&mut self, source: Source) -> Result<SamplingConsent, String> {
        let consent = match self.fields.text("sampling")?.as_deref() {
            None => return Ok(SamplingConsent::Never),
            Some("ask") => SamplingConsent::Ask,
            Some("allow") => SamplingConsent::Always,
            Some(other) => return Err(format!("sampling: expected one of \"ask\", \"allow\", got \"{other}\"")),
        };
        Ok(if self.is_said_by_user("sampling", source) { consent } else { SamplingConsent::Never })
    }

    fn approved(&mut self, source: Source) -> Result<Vec<String>, String> {
        let Some(names) = self.fields.texts("approveTools")? else { return Ok(Vec::new()) };
        Ok(if self.is_said_by_user("approveTools", source) { names } else { Vec::new() })
    }

    fn remote(&mut self, url: String, is_sse: bool) -> Result<Remote, String> {
        if !(url.starts_with("http://") || url.starts_with("https://") || url.contains("${") || url.starts_with('$')) {
            return Err("url: it must begin with http:// or https://".to_owned());
        }
        let bearer = match (self.fields.text("bearerToken")?, self.fields.text("bearerTokenEnv")?) {
            (Some(token), _) => Some(token),
            (None, Some(variable)) => Some(format!("${{{variable}}}")),
            (None, None) => None,
        };
        let oauth = OAuth::read(&self.fields)?;
        Ok(Remote { url, headers: self.fields.pairs("headers")?, bearer, oauth, is_sse })
    }

    fn timeout(&mut self, unit: TimeoutUnit) -> Result<Duration, String> {
        if let Some(exact) = self.fields.milliseconds("requestTimeoutMs")? {
            return Ok(exact);
        }
        let Some(number) = self.fields.number("timeout")? else { return Ok(REQUEST_TIMEOUT) };
        match unit {
            TimeoutUnit::Seconds => Ok(Duration::from_secs_f64(number)),
            TimeoutUnit::Milliseconds if number < 1000.0 => {
                self.notes.push(format!("timeout: {number} milliseconds are too short and were ignored"));
                Ok(REQUEST_TIMEOUT)
            }
            TimeoutUnit::Milliseconds => Ok(Duration::from_secs_f64(number / 1000.0)),
        }
    }

    fn exposure(&self) -> Result<Exposure, String> {
        let word = self.fields.text("exposure")?;
        word.map_or(Ok(Exposure::Auto), |word| exposure_named(&word).map_err(|why| format!("exposure: {why}")))
    }

    fn tool_exposure(&self) -> Result<Vec<(String, Exposure)>, String> {
        let rows = self.fields.pairs("toolExposure")?;
        let mut rows: Vec<(String, Exposure)> = rows
            .into_iter()
            .map(|(tool, word)| match exposure_named(&word) {
                Ok(exposure) => Ok((tool, exposure)),
                Err(why) => Err(format!("toolExposure.{tool}: {why}")),
            })
            .collect::<Result<_, _>>()?;
        rows.sort_by_key(|(tool, _)| tool.contains('*'));
        Ok(rows)
    }

    fn lifecycle(&self) -> Result<Lifecycle, String> {
        match self.fields.text("lifecycle")?.as_deref() {
            None | Some("lazy") => Ok(Lifecycle::Lazy),
            Some("eager") => Ok(Lifecycle::Eager),
            Some("keep-alive") => Ok(Lifecycle::KeepAlive),
            Some(other) => {
                Err(format!("lifecycle: expected one of \"lazy\", \"eager\", \"keep-alive\", got \"{other}\""))
            }
        }
    }

    fn idle_timeout(&self) -> Result<Option<Duration>, String> {
        Ok(match self.fields.number("idleTimeout")? {
            None => Some(IDLE_TIMEOUT),
            Some(0.0) => None,
            Some(minutes) => Some(Duration::from_secs_f64(minutes * 60.0)),
        })
    }

    fn protocol(&self) -> Result<Protocol, String> {
        match self.fields.text("protocolVersion")?.as_deref() {
            None | Some("auto") => Ok(Protocol::Auto),
            Some("legacy") => Ok(Protocol::Legacy),
            Some("2026-07-28") => Ok(Protocol::Modern),
            Some(other) => {
                Err(format!("protocolVersion: expected one of \"auto\", \"legacy\", \"2026-07-28\", got \"{other}\""))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: Value) -> Result<ServerConfig, String> {
        read_entry("x", &value, Source::User, TimeoutUnit::Seconds).map_err(|error| error.why)
    }

    #[test]
    fn entries_are_refused_with_their_field() {
        let check = |value: Value, why: &str| assert_eq!(read(value).expect_err("refused"), why);
        check(json!(7), "expected an object, got number");
        check(json!({}), "it has neither \"command\" nor \"url\"");
        check(json!({"command": "a", "url": "http://b"}), "it has both \"command\" and \"url\"");
        check(json!({"command": ["a"]}), "command: expected a string, got array");
        check(json!({"command": " "}), "command: it is empty");
        check(json!({"command": "a", "args": "b"}), "args: expected an array, got string");
        check(json!({"command": "a", "args": [{}]}), "args[0]: expected a string, got object");
        check(json!({"command": "a", "env": {"K": []}}), "env.K: expected a string, got array");
        check(json!({"command": "a", "type": "http"}), "type: \"http\" does not go with \"command\"");
        check(json!({"command": "a", "enabled": "yes"}), "enabled: expected a boolean, got string");
        check(json!({"command": "a", "timeout": -1}), "timeout: -1 is out of range");
        check(json!({"url": "ftp://a"}), "url: it must begin with http:// or https://");
        check(
            json!({"command": "a", "exposure": "all"}),
            "exposure: expected one of \"auto\", \"direct\", \"deferred\", \"hidden\", got \"all\"",
        );
    }

    #[test]
    fn a_project_cannot_approve_its_own_server() {
        let entry = json!({"command": "a", "sampling": "allow", "approveTools": ["*"], "inheritEnv": true});
        let config = read(entry.clone()).expect("usable");
        assert_eq!((config.sampling, config.approves("x")), (SamplingConsent::Always, true));
        let config = read_entry("x", &entry, Source::Project, TimeoutUnit::Seconds).expect("usable");
        assert_eq!((config.sampling, config.approves("x")), (SamplingConsent::Never, false));
        let only = |key: &str| format!("{key}: only files of the user may say so");
        assert_eq!(config.notes, ["inheritEnv", "sampling", "approveTools"].map(only));
        let wrong = read(json!({"command": "a", "sampling": "yes"})).expect_err("refused");
        assert_eq!(wrong, "sampling: expected one of \"ask\", \"allow\", got \"yes\"");
    }

    #[test]
    fn names_are_checked() {
        let check = |name: &str| read_entry(name, &json!({"command": "a"}), Source::User, TimeoutUnit::Seconds).is_ok();
        assert!(check("a-b_c.d e9"));
        assert!(!check("") && !check("  ") && !check("a/b") && !check("ä") && !check(&"x".repeat(65)));
    }

    #[test]
    fn a_timeout_has_the_unit_of_its_file() {
        let check = |entry: Value, unit, seconds: u64| {
            let config = read_entry("x", &entry, Source::User, unit).expect("usable");
            assert_eq!(config.timeout, Duration::from_secs(seconds), "{entry} {unit:?}");
        };
        check(json!({"command": "a"}), TimeoutUnit::Seconds, 60);
        check(json!({"command": "a", "timeout": 5}), TimeoutUnit::Seconds, 5);
        check(json!({"command": "a", "timeout": 5000}), TimeoutUnit::Milliseconds, 5);
        check(json!({"command": "a", "timeout": 5}), TimeoutUnit::Milliseconds, 60);
        check(json!({"command": "a", "timeout": 5, "requestTimeoutMs": 7000}), TimeoutUnit::Seconds, 7);
    }

    #[test]
    fn programs_that_download_have_more_time_to_start() {
        let startup = |command: &str| read(json!({"command": command})).expect("usable").startup_timeout.as_secs();
        assert_eq!((startup("node"), startup("npx"), startup("/usr/bin/uvx")), (30, 120, 120));
    }

    #[test]
    fn tools_are_chosen_by_names_and_patterns() {
        let entry = json!({"command": "a", "includeTools": ["get_*", "put"], "excludeTools": ["get_s*t"],
            "toolExposure": {"get_*": "direct", "get_x": "hidden"}});
        let config = read(entry).expect("usable");
        let offered: Vec<&str> =
            ["get_a", "get_x", "get_secret", "put", "putter"].into_iter().filter(|tool| config.offers(tool)).collect();
        assert_eq!(offered, ["get_a", "put"]);
    }

    #[test]
    fn unknown_keys_are_kept_for_a_note() {
        let config = read(json!({"command": "a", "comand": "b", "envFile": ".env", "disabled": true})).expect("usable");
        assert_eq!((config.unknown, config.is_enabled), (vec!["comand".to_owned(), "envFile".to_owned()], false));
    }
}
