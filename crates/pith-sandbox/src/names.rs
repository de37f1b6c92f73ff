//! Files inside a project that other programs run or obey without being asked to run the project: an editor that opens
//! it, a shell that enters it, an agent that starts in it. What a build or a package manager runs when it is asked to
//! is plain work and is not here.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

/// A name that is protected in every directory of a project.
#[derive(Debug, PartialEq, Eq)]
pub struct Row {
    /// One name or several with slashes between them; `*.x` stands for every name that ends so. Compared without case.
    pub name: &'static str,
    /// Who runs or obeys it.
    pub program: &'static str,
    /// What it makes that program do.
    pub reason: &'static str,
    /// Whether an empty directory stands in for it while commands run, so that the kernel keeps it from being made.
    pub is_reserved: bool,
}

const fn row(name: &'static str, program: &'static str, reason: &'static str) -> Row {
    Row { name, program, reason, is_reserved: false }
}

/// A row that the kernel also keeps from being made at the top of a writable directory.
const fn reserved(name: &'static str, program: &'static str, reason: &'static str) -> Row {
    Row { is_reserved: true, ..row(name, program, reason) }
}

const AGENT: &str = "its settings start servers and hooks, or allow commands";
const TASKS: &str = "tasks and settings run programs when the folder is opened";
const START: &str = "run when the program starts in the directory";
const EACH: &str = "names programs for every call, also those that run nothing of the project";

/// The table. Rows of one kind stand together.
pub const TABLE: &[Row] = &[
    // Agents.
    reserved(".pi", "pi and pith", AGENT),
    reserved(".xcsh", "xcsh", AGENT),
    reserved(".agents", "several agents", AGENT),
    reserved(".claude", "Claude Code", AGENT),
    reserved(".mcp.json", "several agents", "starts the servers it lists"),
    row(".omp", "omp", AGENT),
    row("mcp.json", "several agents", "starts the servers it lists"),
    row(".cursor", "Cursor", AGENT),
    row(".codex", "Codex", AGENT),
    row(".gemini", "Gemini CLI", AGENT),
    row(".qwen", "Qwen Code", AGENT),
    row(".windsurf", "Windsurf", AGENT),
    row(".codeium", "Windsurf", AGENT),
    row(".kiro", "Kiro", AGENT),
    row(".amazonq", "Amazon Q", AGENT),
    row(".continue", "Continue", AGENT),
    row(".roo", "Roo Code", AGENT),
    row(".cline", "Cline", AGENT),
    row(".kilocode", "Kilo Code", AGENT),
    row(".augment", "Augment", AGENT),
    row(".junie", "Junie", AGENT),
    row(".trae", "Trae", AGENT),
    row(".goose", "Goose", AGENT),
    row(".factory", "Factory", AGENT),
    row(".opencode", "OpenCode", AGENT),
    row("opencode.json", "OpenCode", AGENT),
    row("opencode.jsonc", "OpenCode", AGENT),
    row(".crush", "Crush", AGENT),
    row(".crush.json", "Crush", AGENT),
    row("crush.json", "Crush", AGENT),
    row(".aider.conf.yml", "aider", AGENT),
    // Editors.
    reserved(".vscode", "VS Code", TASKS),
    reserved(".idea", "JetBrains", TASKS),
    row("*.code-workspace", "VS Code", TASKS),
    row(".run", "JetBrains", TASKS),
    row(".fleet", "Fleet", TASKS),
    row(".zed", "Zed", TASKS),
    row(".vs", "Visual Studio", TASKS),
    row("*.sublime-project", "Sublime Text", TASKS),
    row(".nova", "Nova", TASKS),
    row(".theia", "Theia", TASKS),
    row(".helix", "Helix", TASKS),
    row(".kakrc", "Kakoune", START),
    row(".exrc", "Vim", START),
    row(".vimrc", "Vim", START),
    row("_vimrc", "Vim", START),
    row(".lvimrc", "Vim", START),
    row(".local.vimrc", "Vim", START),
    row(".nvimrc", "Neovim", START),
    row(".nvim.lua", "Neovim", START),
    row(".nvim", "Neovim", START),
    row(".vimspector.json", "Vim", "debuggers start what it lists"),
    row(".ycm_extra_conf.py", "YouCompleteMe", START),
    row(".dir-locals.el", "Emacs", START),
    row(".dir-locals-2.el", "Emacs", START),
    row("nbproject", "NetBeans", TASKS),
    row(".externalToolBuilders", "Eclipse", TASKS),
    row(".clangd", "clangd", "names the compiler that it runs"),
    row(".ccls", "ccls", "names the compiler that it runs"),
    row(".lsp", "language servers", START),
    row(".clj-kondo", "clj-kondo", "hooks are run while a file is edited"),
    // Containers for development.
    row(".devcontainer", "VS Code and others", "commands run on the machine when the folder is opened"),
    row(".devcontainer.json", "VS Code and others", "commands run on the machine when the folder is opened"),
    row(".gitpod.yml", "Gitpod", "commands run when the folder is opened"),
    row(".devfile.yaml", "Che", "commands run when the folder is opened"),
    row("devfile.yaml", "Che", "commands run when the folder is opened"),
    row("devbox.json", "devbox", "hooks run when a shell enters the directory"),
    // Shells that enter a directory.
    reserved(".envrc", "direnv", "run when a shell enters the directory"),
    row(".autoenv", "autoenv", "run when a shell enters the directory"),
    row(".autoenv.zsh", "zsh-autoenv", "run when a shell enters the directory"),
    row(".autoenv_leave.zsh", "zsh-autoenv", "run when a shell leaves the directory"),
    row("mise.toml", "mise", "hooks run when a shell enters the directory"),
    row(".mise.toml", "mise", "hooks run when a shell enters the directory"),
    row("mise.local.toml", "mise", "hooks run when a shell enters the directory"),
    row(".mise", "mise", "hooks run when a shell enters the directory"),
    row(".config/mise.toml", "mise", "hooks run when a shell enters the directory"),
    row(".config/mise", "mise", "hooks run when a shell enters the directory"),
    row(".rtx.toml", "mise", "hooks run when a shell enters the directory"),
    row(".tool-versions", "asdf and mise", "names the programs that stand for others in the directory"),
    row(".tmuxinator.yml", "tmuxinator", START),
    row(".tmux.conf", "tmux", START),
    // Hooks of version control.
    row(".husky", "husky", "hooks of git"),
    row(".huskyrc", "husky", "hooks of git"),
    row(".huskyrc.json", "husky", "hooks of git"),
    row(".githooks", "git", "hooks of git"),
    row(".git-hooks", "git", "hooks of git"),
    row(".lefthook", "lefthook", "hooks of git"),
    row("lefthook.yml", "lefthook", "hooks of git"),
    row("lefthook-local.yml", "lefthook", "hooks of git"),
    row(".lefthook.yml", "lefthook", "hooks of git"),
    row(".pre-commit-config.yaml", "pre-commit", "hooks of git"),
    row(".pre-commit-hooks.yaml", "pre-commit", "hooks of git"),
    row(".overcommit.yml", "overcommit", "hooks of git"),
    row(".hg/hgrc", "Mercurial", "names hooks and programs"),
    row(".hg/hgrc-not-shared", "Mercurial", "names hooks and programs"),
    row(".sl/config", "Sapling", "names hooks and programs"),
    row(".jj/repo/config.toml", "Jujutsu", "names programs"),
    row(".bzr/branch/branch.conf", "Breezy", "names programs"),
    // Debuggers, interpreters and pagers that start in a directory.
    row(".gdbinit", "gdb", START),
    row(".gdbearlyinit", "gdb", START),
    row(".lldbinit", "lldb", START),
    row(".radare2rc", "radare2", START),
    row(".pdbrc", "pdb", START),
    row(".pythonrc", "python", START),
    row(".pythonrc.py", "python", START),
    row("sitecustomize.py", "python", START),
    row("usercustomize.py", "python", START),
    row(".irbrc", "irb", START),
    row(".pryrc", "pry", START),
    row(".byebugrc", "byebug", START),
    row(".Rprofile", "R", START),
    row(".Renviron", "R", START),
    row(".ghci", "ghci", START),
    row(".haskeline", "ghci", START),
    row(".ocamlinit", "ocaml", START),
    row(".iex.exs", "iex", START),
    row(".erlang", "erl", START),
    row(".octaverc", "octave", START),
    row(".gnuplot", "gnuplot", START),
    row(".psqlrc", "psql", START),
    row(".sqliterc", "sqlite3", START),
    row(".inputrc", "readline", START),
    row(".screenrc", "screen", START),
    row(".netrc", "curl and git", "names where a password is sent"),
    row(".curlrc", "curl", EACH),
    row(".wgetrc", "wget", EACH),
    row(".ssh", "ssh", EACH),
    // Package managers and builds: what every call of theirs obeys, before it runs anything of the project.
    row(".npmrc", "npm", EACH),
    row(".yarnrc", "yarn", EACH),
    row(".yarnrc.yml", "yarn", EACH),
    row(".pnpmfile.cjs", "pnpm", EACH),
    row(".pnpmfile.mjs", "pnpm", EACH),
    row("bunfig.toml", "bun", EACH),
    row(".cargo/config", "cargo", EACH),
    row(".cargo/config.toml", "cargo", EACH),
    row(".mvn/extensions.xml", "Maven", EACH),
    row(".mvn/maven.config", "Maven", EACH),
    row(".mvn/jvm.config", "Maven", EACH),
    row(".bazelrc", "Bazel", EACH),
    row(".buckconfig", "Buck", EACH),
    row(".terraformrc", "terraform", EACH),
    row(".watchmanconfig", "watchman", EACH),
    row(".ansible.cfg", "ansible", EACH),
];

/// What is in a dependency is no project that somebody opens.
const DEPENDENCIES: [&str; 2] = ["node_modules", "site-packages"];

/// Start-up files and programs of the user, from the home directory on. Protected where a home can be written.
pub(crate) const IN_HOME: &[&str] = &[
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".bash_completion",
    ".profile",
    ".zshrc",
    ".zprofile",
    ".zshenv",
    ".zlogin",
    ".zlogout",
    ".oh-my-zsh",
    ".kshrc",
    ".mkshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".logout",
    ".config/fish",
    ".config/zsh",
    ".config/nushell",
    ".gitconfig",
    ".config/git",
    ".config/systemd",
    ".config/environment.d",
    ".config/autostart",
    ".config/autostart-scripts",
    ".config/plasma-workspace",
    ".config/i3",
    ".config/sway",
    ".config/hypr",
    ".config/nvim",
    ".config/helix",
    ".config/Code/User",
    ".config/direnv",
    ".config/mise",
    ".config/tmux",
    ".config/kitty",
    ".config/alacritty",
    ".config/gh",
    ".xinitrc",
    ".xsession",
    ".xsessionrc",
    ".xprofile",
    ".pam_environment",
    ".vim",
    ".emacs",
    ".emacs.d",
    ".hgrc",
    ".config/hg",
    ".cargo/bin",
    ".cargo/env",
    ".local/bin",
    ".local/share/applications",
    ".local/share/systemd",
    ".local/share/dbus-1",
    "bin",
];

/// Where the table holds, and what of it the user has opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// The directories in which it holds, links resolved.
    pub trees: Vec<PathBuf>,
    /// Rows that `allowWrite` names: opened in every directory.
    pub opened: Vec<String>,
    /// Paths that `allowWrite` names: what matches at or above one of them is opened there.
    pub opened_paths: Vec<PathBuf>,
}

impl Names {
    /// Finds the row that protects a path, and the part of the path that it names. `path` has its links resolved.
    pub fn find(&self, path: &Path) -> Option<(PathBuf, &'static Row)> {
        let tree = self.trees.iter().filter(|tree| path.starts_with(tree)).min_by_key(|tree| tree.as_os_str().len())?;
        let (n_parts, row) = matched(path.strip_prefix(tree).ok()?)?;
        let named: PathBuf = path.components().take(tree.components().count() + n_parts).collect();
        let is_opened = self.opened.iter().any(|opened| opened.eq_ignore_ascii_case(row.name))
            || self.opened_paths.iter().any(|opened| opened.starts_with(&named) && path.starts_with(opened));
        (!is_opened).then_some((named, row))
    }
}

/// Whether a path that ends with this name can be one that a row names. Quick, for names of whole directories.
pub(crate) fn may_be_named(name: &OsStr) -> bool {
    static LAST: OnceLock<HashSet<String>> = OnceLock::new();
    let last = LAST.get_or_init(|| {
        let last = TABLE.iter().filter_map(|row| row.name.rsplit('/').next());
        last.map(|name| name.trim_start_matches('*').to_ascii_lowercase()).collect()
    });
    let Some(name) = name.to_str().filter(|name| name.len() <= 128) else {
        return false;
    };
    let name = name.to_ascii_lowercase();
    last.contains(&name) || name.rfind('.').is_some_and(|at| last.contains(&name[at..]))
}

/// Returns the rows that a user can name.
pub(crate) fn is_row(name: &str) -> bool {
    TABLE.iter().any(|row| row.name.eq_ignore_ascii_case(name))
}

/// Whether a path, from the top of a project on, is named by the table or lies in what is.
pub fn is_named(below: &Path) -> bool {
    matched(below).is_some()
}

/// The first match in a path below a tree: how many parts it takes up to its end, and the row.
fn matched(below: &Path) -> Option<(usize, &'static Row)> {
    let parts: Vec<String> = below
        .components()
        .map(|part| match part {
            Component::Normal(name) => name.to_string_lossy().to_ascii_lowercase(),
            _ => String::new(),
        })
        .collect();
    for (i, part) in parts.iter().enumerate() {
        if DEPENDENCIES.contains(&part.as_str()) {
            return None;
        }
        for row in by_first(part) {
            let n = row.name.split('/').count();
            let is_match =
                row.name.split('/').enumerate().all(|(k, name)| parts.get(i + k).is_some_and(|it| eq(it, name)));
            if is_match {
                return Some((i + n, row));
            }
        }
    }
    None
}

fn eq(lower: &str, name: &str) -> bool {
    match name.strip_prefix('*') {
        Some(suffix) => lower.len() > suffix.len() && lower.ends_with(&suffix.to_ascii_lowercase()),
        None => lower.eq_ignore_ascii_case(name),
    }
}

/// The rows whose first name may be this one, in lower case.
fn by_first(part: &str) -> impl Iterator<Item = &'static Row> {
    static ROWS: OnceLock<HashMap<String, Vec<&'static Row>>> = OnceLock::new();
    let rows = ROWS.get_or_init(|| {
        let mut rows: HashMap<String, Vec<&'static Row>> = HashMap::new();
        for row in TABLE {
            let first = row.name.split('/').next().unwrap_or_default();
            // Those that end somehow are found by their ending.
            let key = first.strip_prefix('*').unwrap_or(first);
            rows.entry(key.to_ascii_lowercase()).or_default().push(row);
        }
        rows
    });
    let ending = part.rfind('.').filter(|at| *at > 0).map(|at| &part[at..]);
    let found = [Some(part), ending].into_iter().flatten().filter_map(|key| rows.get(key));
    found.flatten().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_in_every_directory_and_can_be_opened() {
        let names = |opened: &[&str], paths: &[&str]| Names {
            trees: vec!["/w".into()],
            opened: opened.iter().map(|name| (*name).to_owned()).collect(),
            opened_paths: paths.iter().map(PathBuf::from).collect(),
        };
        let check = |names: &Names, path: &str, expected: Option<&str>| {
            let found = names.find(Path::new(path)).map(|(named, _)| named);
            assert_eq!(found, expected.map(PathBuf::from), "{path}");
        };
        let all = names(&[], &[]);
        check(&all, "/w/.vscode/tasks.json", Some("/w/.vscode"));
        check(&all, "/w/a/b/.VSCode", Some("/w/a/b/.VSCode"));
        check(&all, "/w/a/.cargo/config.toml", Some("/w/a/.cargo/config.toml"));
        check(&all, "/w/a/.cargo/registry/x", None);
        check(&all, "/w/a/x.code-workspace", Some("/w/a/x.code-workspace"));
        check(&all, "/w/.hg/hgrc", Some("/w/.hg/hgrc"));
        check(&all, "/w/node_modules/x/.vscode/tasks.json", None);
        check(&all, "/elsewhere/.vscode", None);
        for work in ["Makefile", "package.json", "build.rs", ".github/workflows/ci.yml", ".gitlab-ci.yml", "src/vscode"]
        {
            check(&all, &format!("/w/{work}"), None);
        }
        check(&names(&[".vscode"], &[]), "/w/a/.vscode/tasks.json", None);
        check(&names(&[".vscode"], &[]), "/w/a/.idea", Some("/w/a/.idea"));
        let one = names(&[], &["/w/a/.vscode"]);
        check(&one, "/w/a/.vscode/tasks.json", None);
        check(&one, "/w/b/.vscode/tasks.json", Some("/w/b/.vscode"));
        check(&names(&[], &["/w/a/.vscode/settings.json"]), "/w/a/.vscode/tasks.json", Some("/w/a/.vscode"));
        // A writable directory opens nothing of what is in it.
        check(&names(&[], &["/w/a"]), "/w/a/.vscode/tasks.json", Some("/w/a/.vscode"));
    }

    #[test]
    fn every_row_is_found_by_its_name_and_stands_there_once() {
        let names = Names { trees: vec!["/w".into()], ..Names::default() };
        for row in TABLE {
            let path = Path::new("/w/deep").join(row.name.replace('*', "x"));
            assert_eq!(names.find(&path), Some((path.clone(), row)), "{}", row.name);
            assert!(may_be_named(path.file_name().unwrap()), "{}", row.name);
            assert_eq!(TABLE.iter().filter(|other| other.name == row.name).count(), 1, "{}", row.name);
        }
    }
}
