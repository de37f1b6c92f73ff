//! What names a package: npm, a git repository, or a path.

use std::path::PathBuf;

use pith_resources::Scope;

use super::PackageDirs;

/// A package as settings and commands name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    Npm { name: String, version: Option<String> },
    Git(Repository),
    Local(String),
}

/// A repository that git can fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    pub host: String,
    pub path: String,
    /// What git is told to clone.
    pub address: String,
    /// A branch, a tag or a commit.
    pub reference: Option<String>,
}

impl Source {
    /// Reads a source. What is neither npm's nor git's is a path.
    pub fn parse(source: &str) -> Source {
        let source = source.trim();
        if let Some(spec) = source.strip_prefix("npm:") {
            return npm(spec.trim()).unwrap_or_else(|| Source::Local(source.to_owned()));
        }
        let is_url = ["https://", "http://", "ssh://", "git://"].iter().any(|scheme| source.starts_with(scheme));
        let address = match source.strip_prefix("git:") {
            Some(rest) if !rest.starts_with("//") => rest.trim(),
            _ if is_url => source,
            _ => return Source::Local(source.to_owned()),
        };
        repository(address).map_or_else(|| Source::Local(source.to_owned()), Source::Git)
    }

    /// Returns where a package of a scope is, or would be. Paths are relative to the directory of the scope.
    pub fn root(&self, scope: Scope, package_dirs: PackageDirs<'_>) -> PathBuf {
        let base = package_dirs.base(scope);
        match self {
            Source::Npm { name, .. } => base.join("npm/node_modules").join(name),
            Source::Git(Repository { host, path, .. }) => base.join("git").join(host).join(path),
            Source::Local(path) => pith_ext::discovery::expand(path, &base, package_dirs.home),
        }
    }
}

/// Reads `name@version`; a leading `@` begins a scope of npm.
fn npm(spec: &str) -> Option<Source> {
    let at = spec.char_indices().skip(1).find(|(_, character)| *character == '@').map(|(at, _)| at);
    let (name, version) = at.map_or((spec, None), |at| (&spec[..at], Some(spec[at + 1..].to_owned())));
    let version = version.filter(|version| !version.is_empty());
    is_inside(name).then(|| Source::Npm { name: name.to_owned(), version })
}

/// Reads the address of a repository: a URL, `git@host:path`, `host/path`, or `user/name` of GitHub.
fn repository(address: &str) -> Option<Repository> {
    let is_whole = address.contains("://") || address.starts_with("git@");
    let rest = match address.split_once("://") {
        Some((_, rest)) => {
            rest.split_once('@').filter(|(user, _)| !user.contains('/')).map_or(rest, |(_, rest)| rest).to_owned()
        }
        None => match address.strip_prefix("git@") {
            Some(rest) => rest.replacen(':', "/", 1),
            None => address.to_owned(),
        },
    };
    let shortcuts = [("github:", "github.com/"), ("gitlab:", "gitlab.com/"), ("bitbucket:", "bitbucket.org/")];
    let long = shortcuts.iter().find_map(|(short, host)| rest.strip_prefix(short).map(|path| format!("{host}{path}")));
    let rest = long.unwrap_or(rest);
    let (mut host, mut path) = rest.split_once('/')?;
    if !host.contains('.') && host != "localhost" {
        (host, path) = ("github.com", &rest);
    }
    let (path, reference) = match path.split_once(['@', '#']) {
        Some((path, reference)) => (path, Some(reference.to_owned())),
        None => (path, None),
    };
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    let host = host.split(':').next().unwrap_or(host);
    let is_repository = path.contains('/') && is_inside(path) && is_inside(host);
    let address = match &reference {
        _ if !is_whole => format!("https://{host}/{path}"),
        // The character before the reference goes, too.
        Some(reference) => address[..address.len() - reference.len() - 1].to_owned(),
        None => address.to_owned(),
    };
    let reference = reference.filter(|reference| !reference.is_empty());
    is_repository.then(|| Repository { host: host.to_owned(), path: path.to_owned(), address, reference })
}

/// Returns whether a name stays below the directory it is joined to, and is no option of npm or git.
fn is_inside(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(['/', '-'])
        && !name.contains(['\\', '\0'])
        && !name.split('/').any(|part| part == "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn npm(name: &str, version: Option<&str>) -> Source {
        Source::Npm { name: name.to_owned(), version: version.map(str::to_owned) }
    }

    fn git(host: &str, path: &str, address: &str, reference: Option<&str>) -> Source {
        let reference = reference.map(str::to_owned);
        Source::Git(Repository { host: host.to_owned(), path: path.to_owned(), address: address.to_owned(), reference })
    }

    #[test]
    fn sources_name_a_place() {
        let local = |path: &str| Source::Local(path.to_owned());
        let check = |source: &str, expected: Source| assert_eq!(Source::parse(source), expected, "{source}");
        check("npm:tools", npm("tools", None));
        check("npm:tools@1.2.3", npm("tools", Some("1.2.3")));
        check("npm:@me/tools@^2", npm("@me/tools", Some("^2")));
        check("npm:@me/tools@", npm("@me/tools", None));
        check("npm:../up", local("npm:../up"));
        check("npm:--prefix=/etc", local("npm:--prefix=/etc"));
        let tools = |reference| git("github.com", "me/tools", "https://github.com/me/tools", reference);
        check("git:github.com/me/tools@v1", tools(Some("v1")));
        check("git:me/tools", tools(None));
        check("https://github.com/me/tools", tools(None));
        check(
            "git:git@example.org:me/deep/tools.git",
            git("example.org", "me/deep/tools", "git@example.org:me/deep/tools.git", None),
        );
        check("git:gitlab:me/tools#main", git("gitlab.com", "me/tools", "https://gitlab.com/me/tools", Some("main")));
        check(
            "https://github.com/me/tools.git",
            git("github.com", "me/tools", "https://github.com/me/tools.git", None),
        );
        check(
            "ssh://git@example.org:2222/me/tools@abc",
            git("example.org", "me/tools", "ssh://git@example.org:2222/me/tools", Some("abc")),
        );
        check("git://example.org/me/tools", git("example.org", "me/tools", "git://example.org/me/tools", None));
        check("https://example.org/only", local("https://example.org/only"));
        check("git:example.org/a/../../b", local("git:example.org/a/../../b"));
        check("./here", local("./here"));
        check("~/there", local("~/there"));
    }
}
