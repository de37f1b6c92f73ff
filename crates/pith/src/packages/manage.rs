//! `pith install`, `remove`, `update` and `list`: packages of extensions, skills and templates, kept in pi's layout so
//! that both programs find them.

use std::fmt::Write;
use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use pith_config::{Environment, Layout, locked_file, suggestion};
use pith_resources::Scope;
use serde_json::{Map, Value, json};

use super::programs::{InstallScripts, Programs};
use super::source::Source;
use super::{Entry, PackageDirs};
use crate::cli::{Cli, PackageVerb};
use crate::modes::confirm;
use crate::open::agent_dir;
use crate::program::Program;
use crate::project::Project;
use crate::{rpc, show, warn};

const OPTIONS: &str = "\
  -l, --local        the project's packages (.pi/settings.json) instead of the user's
  -a, --approve      trust the files of the project for this command
  -na, --no-approve  ignore the files of the project
  -y, --yes          do not ask
  --scripts          let npm run the install scripts of packages, which it does not by default
";

/// The parsed arguments.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wanted {
    source: Option<String>,
    is_local: bool,
    approve: Option<bool>,
    is_confirmed: bool,
    runs_scripts: bool,
}

impl Wanted {
    fn read(verb: PackageVerb, arguments: &[String]) -> Result<Wanted, String> {
        let mut wanted = Wanted::default();
        for argument in arguments {
            match argument.as_str() {
                "-l" | "--local" => wanted.is_local = true,
                "-a" | "--approve" => wanted.approve = Some(true),
                "-na" | "--no-approve" => wanted.approve = Some(false),
                "-y" | "--yes" => wanted.is_confirmed = true,
                "--scripts" => wanted.runs_scripts = true,
                // Ways in which pi is told to update its packages.
                "--extensions" | "--all" | "--extension" if verb == PackageVerb::Update => {}
                "--self" | "self" | "pi" | "--models" if verb == PackageVerb::Update => {
                    return Err("pith updates packages only; the program and its models come with a release".to_owned());
                }
                option if option.starts_with('-') => {
                    return Err(format!("unknown option {option}\n\n{}", usage(verb)));
                }
                source if wanted.source.is_none() && verb != PackageVerb::List => {
                    wanted.source = Some(source.to_owned());
                }
                other => return Err(format!("unexpected argument {other}\n\n{}", usage(verb))),
            }
        }
        let needs_source = matches!(verb, PackageVerb::Install | PackageVerb::Remove);
        if needs_source && wanted.source.is_none() {
            return Err(format!("which package?\n\n{}", usage(verb)));
        }
        Ok(wanted)
    }
}

fn usage(verb: PackageVerb) -> String {
    let words = match verb {
        PackageVerb::Install => "install <npm:name[@version] | git:host/path[@ref] | https://… | path>",
        PackageVerb::Remove => "remove <source>",
        PackageVerb::Update => "update [source]",
        PackageVerb::List => "list",
    };
    format!("Usage: pith {words}\n\n{OPTIONS}")
}

/// Runs one of the subcommands and returns the exit code.
pub fn run(verb: PackageVerb, arguments: &[String], program: &Program) -> anyhow::Result<u8> {
    if arguments.iter().any(|argument| argument == "-h" || argument == "--help") {
        return show(&usage(verb));
    }
    let wanted = Wanted::read(verb, arguments).map_err(anyhow::Error::msg)?;
    let environment = Environment::of_process();
    let agent_dir = agent_dir(rpc::dialect(&Cli::default(), program)?, &environment);
    if agent_dir.layout() != Layout::Pi {
        bail!("packages are kept in the layout of pi; run this in dialect pi");
    }
    let cwd = crate::current_dir()?;
    let mut cli = Cli::default();
    cli.approve = wanted.approve;
    let mut project = Project::new(&cli, &agent_dir, &environment, None);
    let settings = project.settings(&cwd).settings;
    let packages = Packages {
        dirs: PackageDirs { agent_dir: &agent_dir, cwd: &cwd, home: environment.home() },
        is_project_trusted: project.trusts(&cwd),
        programs: Programs {
            npm: settings.npm_command.unwrap_or_else(|| vec!["npm".to_owned()]),
            install_scripts: if wanted.runs_scripts { InstallScripts::Run } else { InstallScripts::Ignored },
            is_attended: io::stdin().is_terminal(),
        },
    };
    let scope = if wanted.is_local { Scope::Project } else { Scope::User };
    if wanted.is_local && !packages.is_project_trusted {
        bail!("the project {} is not trusted; add --approve if its files are yours", cwd.display());
    }
    match (verb, &wanted.source) {
        (PackageVerb::Install, Some(source)) => packages.install(source, scope, wanted.is_confirmed),
        (PackageVerb::Remove, Some(source)) => packages.remove(source, scope),
        (PackageVerb::Update, source) => packages.update(source.as_deref()),
        (PackageVerb::List, _) | (_, None) => packages.list(),
    }
}

/// The packages of the user and of one project.
struct Packages<'a> {
    dirs: PackageDirs<'a>,
    is_project_trusted: bool,
    programs: Programs,
}

/// A package in a settings file.
struct Configured {
    source: String,
    scope: Scope,
    root: PathBuf,
}

impl Packages<'_> {
    fn install(&self, written: &str, scope: Scope, is_confirmed: bool) -> anyhow::Result<u8> {
        let source = self.resolve(written, scope)?;
        // A settings file that cannot be changed is found before anything is fetched.
        self.entries(scope)?;
        if !is_confirmed && !is_wanted(written) {
            warn("nothing was installed");
            return Ok(1);
        }
        self.fetch(&source, scope)?;
        let root = source.root(scope, self.dirs);
        if !root.exists() {
            bail!("{written} was fetched, but there is no {}", root.display());
        }
        self.edit_entries(scope, |entries| {
            let same = entries.iter_mut().find(|entry| self.root_of(entry, scope).as_ref() == Some(&root));
            match same {
                Some(Value::Object(entry)) => {
                    drop(entry.insert("source".to_owned(), json!(written_as(&source, written))))
                }
                Some(entry) => *entry = json!(written_as(&source, written)),
                None => entries.push(json!(written_as(&source, written))),
            }
        })?;
        show(&format!("Installed {written} at {}\n", root.display()))
    }

    fn remove(&self, written: &str, scope: Scope) -> anyhow::Result<u8> {
        let root = self.resolve(written, scope)?.root(scope, self.dirs);
        let Some(found) = self.configured(scope)?.into_iter().find(|package| package.root == root) else {
            bail!("{}", self.unknown(written, scope)?);
        };
        // The settings first: a package that stays on disk unnamed harms nobody, one that is named and missing does.
        self.edit_entries(scope, |entries| {
            entries.retain(|entry| self.root_of(entry, scope).as_ref() != Some(&root));
        })?;
        match Source::parse(&found.source) {
            Source::Npm { name, .. } if root.exists() => {
                self.programs.npm_uninstall(&self.dirs.base(scope).join("npm"), &name)?;
            }
            Source::Git(_) if root.exists() => remove_clone(&root, &self.dirs.base(scope).join("git"))?,
            Source::Npm { .. } | Source::Git(_) | Source::Local(_) => {}
        }
        show(&format!("Removed {written}\n"))
    }

    fn update(&self, written: Option<&str>) -> anyhow::Result<u8> {
        let scopes: &[Scope] = if self.is_project_trusted { &[Scope::User, Scope::Project] } else { &[Scope::User] };
        let mut packages = Vec::new();
        for scope in scopes {
            let root = written.map(|written| self.resolve(written, *scope)).transpose()?;
            let root = root.map(|source| source.root(*scope, self.dirs));
            let configured = self.configured(*scope)?.into_iter();
            packages.extend(configured.filter(|package| root.as_ref().is_none_or(|root| *root == package.root)));
        }
        if let (Some(written), true) = (written, packages.is_empty()) {
            bail!("{}", self.unknown(written, Scope::User)?);
        }
        let mut code = 0;
        for package in packages {
            match self.update_one(&package) {
                Ok(done) => drop(show(&format!("{}: {done}\n", package.source))?),
                Err(error) => {
                    warn(&format!("{}: {error:#}", package.source));
                    code = 1;
                }
            }
        }
        Ok(code)
    }

    fn update_one(&self, package: &Configured) -> anyhow::Result<&'static str> {
        let source = Source::parse(&package.source);
        if !package.root.exists() {
            self.fetch(&source, package.scope)?;
            return Ok("installed");
        }
        match &source {
            Source::Npm { version: Some(_), .. } => Ok("stays at the version that settings name"),
            Source::Npm { name, version: None } => {
                let project = self.dirs.base(package.scope).join("npm");
                self.programs.npm_install(&project, &format!("{name}@latest")).map(|()| "up to date")
            }
            Source::Git(repository) => self.programs.update_clone(repository, &package.root).map(|()| "up to date"),
            Source::Local(_) => Ok("a directory of yours"),
        }
    }

    fn list(&self) -> anyhow::Result<u8> {
        let mut text = String::new();
        let mut section = |title: &str, packages: Vec<Configured>| {
            let _ = if packages.is_empty() { Ok(()) } else { writeln!(text, "{title}:") };
            for Configured { source, root, .. } in packages {
                let missing = if root.exists() { "" } else { "    (not installed)" };
                let _ = writeln!(text, "  {source}{missing}\n    {}", root.display());
            }
        };
        section("User packages", self.configured(Scope::User)?);
        if self.is_project_trusted {
            section("Project packages", self.configured(Scope::Project)?);
        } else {
            warn("the project is not trusted; its packages are not listed (--approve lists them)");
        }
        show(if text.is_empty() { "No packages are installed.\n" } else { &text })
    }

    /// Fetches a package to its place. Paths stay where they are.
    fn fetch(&self, source: &Source, scope: Scope) -> anyhow::Result<()> {
        let root = source.root(scope, self.dirs);
        match source {
            Source::Npm { name, version } => {
                let spec = version.as_ref().map_or_else(|| name.clone(), |version| format!("{name}@{version}"));
                self.programs.npm_install(&self.dirs.base(scope).join("npm"), &spec)
            }
            Source::Git(repository) if root.exists() => self.programs.update_clone(repository, &root),
            Source::Git(repository) => self.programs.clone(repository, &root),
            Source::Local(_) if root.exists() => Ok(()),
            Source::Local(_) => bail!("there is no {}; packages are npm:name, git:host/path or a path", root.display()),
        }
    }

    /// Reads a source from the command line, where paths are relative to the current directory.
    fn resolve(&self, written: &str, scope: Scope) -> anyhow::Result<Source> {
        let Source::Local(path) = Source::parse(written) else { return Ok(Source::parse(written)) };
        let path = pith_ext::discovery::expand(&path, self.dirs.cwd, self.dirs.home);
        // A project may be moved or shared, so its settings name its own directories from where they stand.
        let inside = path.strip_prefix(self.dirs.cwd).ok().filter(|_| scope == Scope::Project);
        let path = inside.map_or(path.clone(), |inside| Path::new("..").join(inside));
        Ok(Source::Local(path.to_str().context("the path is not UTF-8")?.to_owned()))
    }

    fn settings_file(&self, scope: Scope) -> PathBuf {
        match scope {
            Scope::Project => self.dirs.agent_dir.project_settings_file(self.dirs.cwd),
            Scope::User | Scope::Temporary => self.dirs.agent_dir.settings_file(),
        }
    }

    /// Returns the entries of a settings file, or what is wrong with it.
    fn entries(&self, scope: Scope) -> anyhow::Result<Vec<Value>> {
        let file = self.settings_file(scope);
        let wrong = |reason: &str| anyhow::anyhow!("{}: {reason}", file.display());
        let settings = locked_file::read(&file).map_err(|reason| wrong(&reason))?.unwrap_or_else(|| json!({}));
        let settings: &Map<_, _> = settings.as_object().ok_or_else(|| wrong("expected an object"))?;
        match settings.get("packages") {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(entries)) => Ok(entries.clone()),
            Some(_) => Err(wrong("packages must be an array")),
        }
    }

    fn configured(&self, scope: Scope) -> anyhow::Result<Vec<Configured>> {
        let entries = self.entries(scope)?.into_iter().filter_map(|entry| Entry::read(&entry));
        let configured = entries.map(|entry| Configured {
            root: Source::parse(&entry.source).root(scope, self.dirs),
            source: entry.source,
            scope,
        });
        Ok(configured.collect())
    }

    fn root_of(&self, entry: &Value, scope: Scope) -> Option<PathBuf> {
        Entry::read(entry).map(|entry| Source::parse(&entry.source).root(scope, self.dirs))
    }

    fn edit_entries(&self, scope: Scope, edit: impl FnOnce(&mut Vec<Value>)) -> anyhow::Result<()> {
        let mut entries = self.entries(scope)?;
        edit(&mut entries);
        let file = self.settings_file(scope);
        let update =
            locked_file::update(&file, |settings| drop(settings.insert("packages".to_owned(), entries.into())));
        update.with_context(|| format!("cannot change {}", file.display()))
    }

    fn unknown(&self, written: &str, scope: Scope) -> anyhow::Result<String> {
        let sources: Vec<String> = self.configured(scope)?.into_iter().map(|package| package.source).collect();
        let near = suggestion(written, sources.iter().map(String::as_str));
        Ok(format!("{} names no package {written}{near}", self.settings_file(scope).display()))
    }
}

/// Returns how settings name a source: paths as they were resolved, others as the user wrote them.
fn written_as<'a>(source: &'a Source, written: &'a str) -> &'a str {
    match source {
        Source::Local(path) => path,
        Source::Npm { .. } | Source::Git(_) => written.trim(),
    }
}

/// Asks at a terminal whether to go on. Without one the command itself is the answer.
fn is_wanted(source: &str) -> bool {
    let question = format!("The code of {source} will run with all your rights. Install it?");
    !io::stdin().is_terminal() || confirm(&question) == Some(true)
}

/// Deletes a clone, and the directories above it that are then empty.
fn remove_clone(root: &Path, top: &Path) -> anyhow::Result<()> {
    fs::remove_dir_all(root).with_context(|| format!("cannot delete {}", root.display()))?;
    for directory in root.ancestors().skip(1).take_while(|directory| directory.starts_with(top)) {
        if fs::remove_dir(directory).is_err() {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(verb: PackageVerb, line: &str) -> Result<Wanted, String> {
        Wanted::read(verb, &line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_are_read_and_refused_by_name() {
        let wanted = read(PackageVerb::Install, "-l npm:x --approve -y").expect("arguments");
        assert_eq!((wanted.source.as_deref(), wanted.is_local, wanted.approve), (Some("npm:x"), true, Some(true)));
        assert!(wanted.is_confirmed && !wanted.runs_scripts);
        assert!(read(PackageVerb::Install, "").expect_err("no source").contains("which package?"));
        assert!(read(PackageVerb::Remove, "a b").expect_err("two").contains("unexpected argument b"));
        assert!(read(PackageVerb::List, "a").expect_err("none wanted").contains("unexpected argument a"));
        assert!(read(PackageVerb::Update, "--frob").expect_err("unknown").contains("unknown option --frob"));
        assert!(read(PackageVerb::Update, "self").expect_err("not pith's").contains("packages only"));
        assert_eq!(
            read(PackageVerb::Update, "--extension npm:x").map(|wanted| wanted.source),
            Ok(Some("npm:x".into()))
        );
    }
}
