//! Where skills and templates are looked for, in order of precedence.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

use pith_config::Diagnostic;
use pith_config::settings::ResourceLists;

use crate::notes::Notes;
use crate::options::ResourceOptions;
use crate::packages;
use crate::scan::{self, Candidate, How, Rule, is_markdown};
use crate::selection::Selection;
use crate::source_info::{Origin, Scope, SourceInfo};

/// The two kinds of resources that are found by walking directories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    Skill,
    Prompt,
}

/// A candidate and where it comes from.
#[derive(Debug)]
pub(crate) struct Located {
    pub candidate: Candidate,
    pub source_info: SourceInfo,
}

/// A directory that is searched without being asked for.
struct Root {
    directory: PathBuf,
    /// What relative patterns start from; shown to hosts as `baseDir`.
    base: PathBuf,
    rule: Rule,
}

/// Whose conventional directories and settings list are read.
struct Owner<'a> {
    scope: Scope,
    /// What relative entries of the list start from.
    base: PathBuf,
    lists: &'a ResourceLists,
    roots: Vec<Root>,
}

/// Finds all candidates, the ones that win a name first.
pub(crate) fn discover(resource: Resource, options: &ResourceOptions, notes: &mut Notes) -> Vec<Located> {
    let mut search = Search { resource, options, notes, located: Vec::new() };
    let is_off = match resource {
        Resource::Skill => options.no_skills,
        Resource::Prompt => options.no_prompt_templates,
    };
    if !is_off {
        if options.trusted {
            let project = search.project_owner();
            search.add_owner(&project);
        }
        let user = search.user_owner();
        search.add_owner(&user);
        search.add_packages();
    }
    search.add_contributed();
    search.add_explicit();
    search.located
}

struct Search<'a> {
    resource: Resource,
    options: &'a ResourceOptions,
    notes: &'a mut Notes,
    located: Vec<Located>,
}

impl<'a> Search<'a> {
    fn project_owner(&mut self) -> Owner<'a> {
        let base = self.options.project_dir();
        let mut roots = vec![self.conventional_root(&base)];
        if self.resource == Resource::Skill {
            roots.extend(project_agents_dirs(self.options).into_iter().map(agents_root));
        }
        Owner { scope: Scope::Project, base, lists: &self.options.project_lists, roots }
    }

    fn user_owner(&mut self) -> Owner<'a> {
        let base = self.options.agent_dir.clone();
        let mut roots = vec![self.conventional_root(&base)];
        if let (Resource::Skill, Some(home)) = (self.resource, &self.options.home) {
            roots.push(agents_root(home.join(".agents")));
        }
        Owner { scope: Scope::User, base, lists: &self.options.user_lists, roots }
    }

    /// Returns the conventional directory inside a configuration directory.
    fn conventional_root(&mut self, base: &Path) -> Root {
        let mut directory = base.join(self.resource.directory_name());
        // Templates were once called commands; a directory that still has the old name is read.
        if self.resource == Resource::Prompt && self.notes.look(&directory).is_err() {
            let old = base.join(OLD_PROMPTS);
            if self.notes.look(&old).is_ok_and(|metadata| metadata.is_dir()) {
                directory = old;
            }
        }
        Root { directory, base: base.to_path_buf(), rule: self.resource.named_rule() }
    }

    /// Adds what a settings list names, then what is in the conventional directories.
    fn add_owner(&mut self, owner: &Owner) {
        let home = self.options.home.as_deref();
        let selection = Selection::parse(self.resource.list_of(owner.lists), &owner.base, home, self.notes);
        for path in &selection.added {
            for candidate in self.named(path, self.resource.listed_rule(), Missing::Warning) {
                if selection.keeps_added(&candidate.path, &owner.base) {
                    self.add(candidate, "local".into(), owner.scope, None);
                }
            }
        }
        for root in &owner.roots {
            for candidate in scan::scan(&root.directory, root.rule, self.notes) {
                if selection.keeps_found(&candidate.path, &root.base) {
                    self.add(candidate, "auto".into(), owner.scope, Some(root.base.clone()));
                }
            }
        }
    }

    fn add_packages(&mut self) {
        let options = self.options;
        for package in &options.packages {
            for candidate in packages::candidates(self.resource, package, self.notes) {
                let path = candidate.path.clone();
                let source = package.source.clone().into();
                let (scope, base_dir) = (package.scope, Some(package.root.clone()));
                let source_info = SourceInfo { path, source, scope, origin: Origin::Package, base_dir };
                self.located.push(Located { candidate, source_info });
            }
        }
    }

    fn add_contributed(&mut self) {
        let options = self.options;
        let contributed = match self.resource {
            Resource::Skill => &options.contributed_skills,
            Resource::Prompt => &options.contributed_prompts,
        };
        for entry in contributed {
            let path = pith_config::resolve(&entry.path, &options.cwd, options.home.as_deref());
            for candidate in self.named(&path, self.resource.named_rule(), Missing::Warning) {
                self.add(candidate, entry.source.clone().into(), Scope::Temporary, entry.base_dir.clone());
            }
        }
    }

    fn add_explicit(&mut self) {
        let options = self.options;
        let values = match self.resource {
            Resource::Skill => &options.skill_paths,
            Resource::Prompt => &options.prompt_paths,
        };
        for value in values {
            let path = pith_config::resolve(value, &options.cwd, options.home.as_deref());
            for candidate in self.named(&path, self.resource.named_rule(), Missing::Error) {
                let (scope, base) = self.explicit_scope(&candidate.path);
                self.add(candidate, "local".into(), scope, base);
            }
        }
    }

    /// Returns the scope of a named path: that of the conventional directory it is in, if any.
    fn explicit_scope(&self, path: &Path) -> (Scope, Option<PathBuf>) {
        let homes = [(Scope::User, self.options.agent_dir.clone()), (Scope::Project, self.options.project_dir())];
        for (scope, directory) in homes {
            let root = directory.join(self.resource.directory_name());
            if path.starts_with(&root) {
                return (scope, Some(root));
            }
        }
        (Scope::Temporary, path.parent().map(Path::to_path_buf))
    }

    /// Returns the candidates of a named path.
    fn named(&mut self, path: &Path, rule: Rule, missing: Missing) -> Vec<Candidate> {
        let noun = self.resource.noun();
        let metadata = match self.notes.look(path) {
            Ok(metadata) => metadata,
            Err(_) => {
                let (code, message) = (self.resource.missing_code(), format!("{noun} path does not exist"));
                self.notes.diagnostics.push(missing.diagnostic(code, path, message));
                return Vec::new();
            }
        };
        if metadata.is_dir() {
            return scan::scan(path, rule, self.notes);
        }
        if !metadata.is_file() || !is_markdown(path) {
            let message = format!("{noun} path is not a markdown file");
            self.notes.diagnostics.push(Diagnostic::warning(self.resource.not_markdown_code(), path, message));
            return Vec::new();
        }
        let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        vec![Candidate { path: path.to_path_buf(), real, found: How::Named }]
    }

    fn add(&mut self, candidate: Candidate, source: Cow<'static, str>, scope: Scope, base_dir: Option<PathBuf>) {
        let path = candidate.path.clone();
        let source_info = SourceInfo { path, source, scope, origin: Origin::TopLevel, base_dir };
        self.located.push(Located { candidate, source_info });
    }
}

/// How much it matters that a named path is not there.
#[derive(Clone, Copy)]
enum Missing {
    Warning,
    /// It was on the command line.
    Error,
}

impl Missing {
    fn diagnostic(self, code: &'static str, path: &Path, message: String) -> Diagnostic {
        match self {
            Missing::Warning => Diagnostic::warning(code, path, message),
            Missing::Error => {
                let (first, rest) = message.split_at(1);
                Diagnostic::error(code, path, format!("{}{rest}", first.to_ascii_uppercase()))
            }
        }
    }
}

impl Resource {
    fn noun(self) -> &'static str {
        match self {
            Resource::Skill => "skill",
            Resource::Prompt => "prompt template",
        }
    }

    pub(crate) fn directory_name(self) -> &'static str {
        match self {
            Resource::Skill => "skills",
            Resource::Prompt => "prompts",
        }
    }

    fn missing_code(self) -> &'static str {
        match self {
            Resource::Skill => "skill_path_missing",
            Resource::Prompt => "prompt_path_missing",
        }
    }

    fn not_markdown_code(self) -> &'static str {
        match self {
            Resource::Skill => "skill_path_not_markdown",
            Resource::Prompt => "prompt_path_not_markdown",
        }
    }

    fn list_of(self, lists: &ResourceLists) -> &[String] {
        match self {
            Resource::Skill => &lists.skills,
            Resource::Prompt => &lists.prompts,
        }
    }

    /// Returns how a directory from a settings list is searched.
    pub(crate) fn listed_rule(self) -> Rule {
        match self {
            Resource::Skill => Rule::Skills,
            Resource::Prompt => Rule::TemplateTree,
        }
    }

    /// Returns how any other directory is searched.
    fn named_rule(self) -> Rule {
        match self {
            Resource::Skill => Rule::Skills,
            Resource::Prompt => Rule::Templates,
        }
    }
}

/// The former name of the `prompts` directory.
pub(crate) const OLD_PROMPTS: &str = "commands";

fn agents_root(base: PathBuf) -> Root {
    Root { directory: base.join("skills"), base, rule: Rule::AgentSkills }
}

/// Returns the `.agents` directories from the working directory up to the root of its repository.
fn project_agents_dirs(options: &ResourceOptions) -> Vec<PathBuf> {
    let mut directories = Vec::new();
    for directory in options.cwd.ancestors() {
        if !is_users_own(directory, options.home.as_deref()) {
            directories.push(directory.join(".agents"));
        }
        if directory.join(".git").exists() {
            break;
        }
    }
    directories
}

/// Whether the `.agents` of a directory is the user's own, which is never part of a project.
pub(crate) fn is_users_own(directory: &Path, home: Option<&Path>) -> bool {
    let Some(home) = home else { return false };
    // Links matter only where there is something to confuse.
    let is_same =
        || directory.join(".agents").exists() && fs::canonicalize(directory).ok() == fs::canonicalize(home).ok();
    directory == home || is_same()
}
