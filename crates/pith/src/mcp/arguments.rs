//! The arguments of `pith mcp`.

use pith_mcp::config::ImportedProgram;
use serde_json::{Map, Value, json};

/// The text of `pith mcp --help`.
pub const USAGE: &str = "Usage: pith mcp <command>

  list [--json]                      every server: state, version, tools, file
  add NAME [-l] [--env K=V]... [--cwd DIR] [--exposure E] -- PROGRAM ARGS...
  add NAME [-l] --url URL [--header K=V]... [--bearer-token-env-var V]
                                     configure a server for you, -l: for the project
  remove NAME [-l]                   remove it
  test NAME [--call TOOL JSON]       start it, list its tools, call one, end it
  login NAME [--device] [--token] [--client-credentials]
                                     sign in to a server with a url: with the browser,
                                     a code for a browser anywhere, a token from stdin,
                                     or the client's secret
  logout NAME                        forget the sign-in
  import PROGRAM [--dry-run]         copy the servers of claude-code, claude-desktop, cursor,
                                     vscode, windsurf, codex or opencode into your mcp.json
";

/// What to do.
#[derive(Debug, PartialEq)]
pub enum Wish {
    Help,
    List { is_json: bool },
    Add { name: String, scope: Scope, entry: Map<String, Value> },
    Remove { name: String, scope: Scope },
    Test { name: String, call: Option<(String, Map<String, Value>)> },
    Login { name: String, with: LoginWith },
    Logout { name: String },
    Import { program: ImportedProgram, is_dry: bool },
}

/// What somebody signs in with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginWith {
    Browser,
    Device,
    Token,
    ClientCredentials,
}

/// Whose file is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    User,
    Project,
}

/// Parses the arguments.
pub fn parse(arguments: &[String]) -> Result<Wish, String> {
    let (verb, rest) = match arguments.split_first() {
        Some((verb, rest)) => (verb.as_str(), rest),
        None => return Err(format!("mcp requires list, add, remove, test, login, logout or import\n\n{USAGE}")),
    };
    if matches!(verb, "help" | "-h" | "--help")
        || rest.iter().take_while(|word| *word != "--").any(|word| word == "-h" || word == "--help")
    {
        return Ok(Wish::Help);
    }
    match verb {
        "list" => match rest {
            [] => Ok(Wish::List { is_json: false }),
            [flag] if flag == "--json" => Ok(Wish::List { is_json: true }),
            [other, ..] => Err(unexpected(other)),
        },
        "add" => add(rest),
        "remove" => {
            let mut wanted = Named::default();
            for argument in rest {
                wanted.take(argument)?;
            }
            Ok(Wish::Remove { name: wanted.name("remove")?, scope: wanted.scope })
        }
        "test" => test(rest),
        "login" => login(rest),
        "import" => match rest {
            [name] => Ok(Wish::Import { program: ImportedProgram::named(name)?, is_dry: false }),
            [name, flag] | [flag, name] if flag == "--dry-run" => {
                Ok(Wish::Import { program: ImportedProgram::named(name)?, is_dry: true })
            }
            [] => Err("mcp import requires a program".to_owned()),
            [other, ..] => Err(unexpected(other)),
        },
        "logout" => {
            let mut wanted = Named::default();
            for argument in rest {
                wanted.take(argument)?;
            }
            Ok(Wish::Logout { name: wanted.name("logout")? })
        }
        other => Err(unexpected(other)),
    }
}

fn unexpected(argument: &str) -> String {
    format!("unexpected argument: {argument}\n\n{USAGE}")
}

struct Named {
    name: Option<String>,
    scope: Scope,
}

impl Default for Named {
    fn default() -> Self {
        Named { name: None, scope: Scope::User }
    }
}

impl Named {
    fn take(&mut self, argument: &str) -> Result<(), String> {
        match argument {
            "-l" | "--local" => self.scope = Scope::Project,
            other if other.starts_with('-') || self.name.is_some() => return Err(unexpected(other)),
            name => self.name = Some(name.to_owned()),
        }
        Ok(())
    }

    fn name(&self, verb: &str) -> Result<String, String> {
        self.name.clone().ok_or_else(|| format!("mcp {verb} requires a name"))
    }
}

fn add(arguments: &[String]) -> Result<Wish, String> {
    let (options, program) = match arguments.iter().position(|argument| argument == "--") {
        Some(at) => (&arguments[..at], &arguments[at + 1..]),
        None => (arguments, &[][..]),
    };
    let (mut wanted, mut entry) = (Named::default(), Map::new());
    let mut options = options.iter();
    while let Some(option) = options.next() {
        let mut value = || options.next().ok_or_else(|| format!("{option} requires a value"));
        match option.as_str() {
            "--env" => insert_pair(&mut entry, "env", value()?, option)?,
            "--header" => insert_pair(&mut entry, "headers", value()?, option)?,
            "--cwd" => drop(entry.insert("cwd".to_owned(), json!(value()?))),
            "--exposure" => drop(entry.insert("exposure".to_owned(), json!(value()?))),
            "--url" => drop(entry.insert("url".to_owned(), json!(value()?))),
            "--bearer-token-env-var" => drop(entry.insert("bearerTokenEnv".to_owned(), json!(value()?))),
            other => wanted.take(other)?,
        }
    }
    let name = wanted.name("add")?;
    match (program.split_first(), entry.contains_key("url")) {
        (Some((program, arguments)), false) => {
            entry.shift_insert(0, "command".to_owned(), json!(program));
            if !arguments.is_empty() {
                entry.shift_insert(1, "args".to_owned(), json!(arguments));
            }
        }
        (None, true) => {}
        (Some(_), true) => return Err("mcp add takes --url or a program after --, not both".to_owned()),
        (None, false) => return Err("mcp add requires --url, or a program after --".to_owned()),
    }
    Ok(Wish::Add { name, scope: wanted.scope, entry })
}

fn insert_pair(entry: &mut Map<String, Value>, key: &str, pair: &str, option: &str) -> Result<(), String> {
    let (name, value) = pair.split_once('=').ok_or_else(|| format!("{option} requires NAME=VALUE, got {pair}"))?;
    let members = entry.entry(key).or_insert_with(|| json!({}));
    if let Value::Object(members) = members {
        members.insert(name.to_owned(), json!(value));
    }
    Ok(())
}

fn test(arguments: &[String]) -> Result<Wish, String> {
    let (mut wanted, mut call) = (Named::default(), None);
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if argument != "--call" {
            wanted.take(argument)?;
            continue;
        }
        let tool = arguments.next().ok_or("--call requires a tool and its arguments")?;
        let text = arguments.next().map_or("{}", String::as_str);
        let parsed = serde_json::from_str(text).map_err(|error| format!("--call {tool}: {error}"))?;
        call = Some((tool.clone(), parsed));
    }
    Ok(Wish::Test { name: wanted.name("test")?, call })
}

fn login(arguments: &[String]) -> Result<Wish, String> {
    let (mut wanted, mut with) = (Named::default(), LoginWith::Browser);
    for argument in arguments {
        match argument.as_str() {
            "--device" => with = LoginWith::Device,
            "--token" => with = LoginWith::Token,
            "--client-credentials" => with = LoginWith::ClientCredentials,
            other => wanted.take(other)?,
        }
    }
    Ok(Wish::Login { name: wanted.name("login")?, with })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Wish, String> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn a_server_is_described_by_its_arguments() {
        let entry = json!({"command": "prog", "args": ["-x", "--env"], "env": {"A": "b=c"}, "cwd": "d"});
        let expected = Wish::Add {
            name: "n".to_owned(),
            scope: Scope::Project,
            entry: entry.as_object().expect("an object").clone(),
        };
        assert_eq!(parsed("add n -l --env A=b=c --cwd d -- prog -x --env"), Ok(expected));
        let Ok(Wish::Add { entry, .. }) = parsed("add n --url https://x --header K=v") else { panic!("an entry") };
        assert_eq!(Value::Object(entry), json!({"url": "https://x", "headers": {"K": "v"}}));
    }

    #[test]
    fn a_sign_in_says_what_with() {
        let with = |line: &str| match parsed(line) {
            Ok(Wish::Login { with, .. }) => with,
            other => panic!("{line}: {other:?}"),
        };
        assert_eq!((with("login n"), with("login --device n")), (LoginWith::Browser, LoginWith::Device));
        assert_eq!(
            (with("login n --token"), with("login n --client-credentials")),
            (LoginWith::Token, LoginWith::ClientCredentials)
        );
    }

    #[test]
    fn bad_arguments_are_named() {
        let check = |line: &str, part: &str| {
            let why = parsed(line).expect_err("refused");
            assert!(why.contains(part), "{line}: {why}");
        };
        check("", "mcp requires list");
        check("frob", "unexpected argument: frob");
        check("list -x", "unexpected argument: -x");
        check("add", "mcp add requires a name");
        check("add n", "requires --url, or a program");
        check("add n --url http://x -- p", "not both");
        check("add n --env A -- p", "--env requires NAME=VALUE");
        check("add n --url", "--url requires a value");
        check("remove", "mcp remove requires a name");
        check("import", "mcp import requires a program");
        check("import emacs", "expected one of");
        check("login", "mcp login requires a name");
        check("login n --frob", "unexpected argument: --frob");
        check("test n --call t [1]", "--call t:");
    }
}
