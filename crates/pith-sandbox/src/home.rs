//! What of a home can be read in a sandbox: everything but names that begin with a dot, and of those what this table opens.
//!
//! Keys are where their programs put them, and nobody has a list of all programs. So a name is closed unless it is
//! known to hold none, in a row with its reason.

use std::fs;
use std::path::{Path, PathBuf};

/// A place below a home that can be read, and why. What lies beside it stays closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenedInHome {
    pub path: &'static str,
    pub reason: &'static str,
}

const fn row(path: &'static str, reason: &'static str) -> OpenedInHome {
    OpenedInHome { path, reason }
}

/// What tools need below a home, in the order of its names.
pub const OPENED_IN_HOME: &[OpenedInHome] = &[
    row(".agents/skills", "skills"),
    row(".asdf", "toolchains of asdf"),
    row(".bun", "bun and what it has installed"),
    row(".cabal/bin", "programs of Haskell"),
    row(".cabal/packages", "packages of Haskell"),
    row(".cabal/store", "packages of Haskell"),
    row(".cache/JetBrains", "caches of editors"),
    row(".cache/Cypress", "a browser for tests"),
    row(".cache/act", "actions of CI"),
    row(".cache/bazel", "what bazel has built"),
    row(".cache/bazelisk", "versions of bazel"),
    row(".cache/ccache", "what compilers have made"),
    row(".cache/clangd", "an index of sources"),
    row(".cache/composer", "packages of PHP"),
    row(".cache/coursier", "packages of Scala"),
    row(".cache/deno", "modules of deno"),
    row(".cache/electron", "electron itself"),
    row(".cache/electron-builder", "programs that package electron"),
    row(".cache/fontconfig", "a list of fonts"),
    row(".cache/go-build", "what go has built"),
    row(".cache/gitstatus", "a program that shells run"),
    row(".cache/golangci-lint", "results of a linter"),
    row(".cache/gopls", "an index of sources"),
    row(".cache/huggingface/datasets", "data sets"),
    row(".cache/huggingface/hub", "models"),
    row(".cache/matplotlib", "a list of fonts"),
    row(".cache/meson", "packages of meson"),
    row(".cache/mypy", "results of a checker"),
    row(".cache/node", "versions of package managers (corepack)"),
    row(".cache/node-gyp", "headers of node"),
    row(".cache/nix", "results of nix"),
    row(".cache/pants", "what pants has built"),
    row(".cache/pip", "packages of Python"),
    row(".cache/pip-tools", "packages of Python"),
    row(".cache/pnpm", "packages of JavaScript"),
    row(".cache/pre-commit", "programs that check commits"),
    row(".cache/prisma", "programs of prisma"),
    row(".cache/puppeteer", "a browser for tests"),
    row(".cache/ms-playwright", "browsers for tests"),
    row(".cache/pypoetry/artifacts", "packages of Python"),
    row(".cache/pypoetry/cache", "packages of Python"),
    row(".cache/pypoetry/virtualenvs", "environments of Python"),
    row(".cache/ruff", "results of a linter"),
    row(".cache/sccache", "what compilers have made"),
    row(".cache/selenium", "drivers of browsers"),
    row(".cache/torch", "models"),
    row(".cache/turbo", "what turbo has built"),
    row(".cache/typescript", "types of packages"),
    row(".cache/uv", "packages of Python"),
    row(".cache/vcpkg", "packages of C++"),
    row(".cache/yarn", "packages of JavaScript"),
    row(".cache/zig", "what zig has built"),
    row(".cargo/.crates.toml", "which programs cargo has installed"),
    row(".cargo/.crates2.json", "which programs cargo has installed"),
    row(".cargo/.global-cache", "what cargo has used last"),
    row(".cargo/.package-cache", "a lock of cargo"),
    row(".cargo/.package-cache-mutate", "a lock of cargo"),
    row(".cargo/advisory-db", "known holes in packages"),
    row(".cargo/advisory-dbs", "known holes in packages"),
    row(".cargo/bin", "programs"),
    row(".cargo/config", "settings of cargo; its keys are in credentials.toml"),
    row(".cargo/config.toml", "settings of cargo; its keys are in credentials.toml"),
    row(".cargo/env", "sets PATH"),
    row(".cargo/git", "packages of Rust"),
    row(".cargo/registry", "packages of Rust"),
    row(".ccache", "what compilers have made"),
    row(".clang-format", "how code is formatted"),
    row(".clang-tidy", "what a linter looks for"),
    row(".conan2/p", "packages of C++"),
    row(".conan2/profiles", "compilers that conan uses"),
    row(".conda/environments.txt", "environments of conda"),
    row(".conda/envs", "environments of conda"),
    row(".conda/pkgs", "packages of conda"),
    row(".config/ccache", "settings of a cache"),
    row(".config/clangd", "settings of an index"),
    row(".config/fontconfig", "settings of fonts"),
    row(".config/git/attributes", "settings of git"),
    row(".config/git/config", "settings of git"),
    row(".config/git/ignore", "settings of git"),
    row(".config/matplotlib", "settings of plots"),
    row(".config/rustfmt", "how code is formatted"),
    row(".config/yarn/global", "programs that yarn has installed"),
    row(".cpan/build", "packages of Perl"),
    row(".cpan/sources", "packages of Perl"),
    row(".cpanm/work", "packages of Perl"),
    row(".deno/bin", "deno and its programs"),
    row(".dotnet", "toolchains of .NET"),
    row(".elan", "toolchains of Lean"),
    row(".emacs.d/elpa", "packages of an editor"),
    row(".fonts", "fonts"),
    row(".gem/ruby", "packages of Ruby"),
    row(".ghcup", "toolchains of Haskell"),
    row(".gitattributes", "settings of git"),
    row(".gitconfig", "settings of git"),
    row(".gitignore", "settings of git"),
    row(".gitignore_global", "settings of git"),
    row(".gitmessage", "how a commit message begins"),
    row(".goenv", "toolchains of go"),
    row(".gradle/caches", "packages of Java"),
    row(".gradle/daemon", "what a build server says"),
    row(".gradle/jdks", "toolchains of Java"),
    row(".gradle/native", "libraries of gradle"),
    row(".gradle/wrapper", "versions of gradle"),
    row(".hex/packages", "packages of Elixir"),
    row(".ivy2/cache", "packages of Scala"),
    row(".ivy2/local", "packages of Scala"),
    row(".jbang/bin", "jbang"),
    row(".jbang/cache", "packages of Java"),
    row(".jenv", "toolchains of Java"),
    row(".julia/artifacts", "packages of Julia"),
    row(".julia/compiled", "packages of Julia"),
    row(".julia/conda", "packages of Julia"),
    row(".julia/environments", "environments of Julia"),
    row(".julia/juliaup", "toolchains of Julia"),
    row(".julia/packages", "packages of Julia"),
    row(".julia/registries", "packages of Julia"),
    row(".juliaup", "toolchains of Julia"),
    row(".konan", "toolchains of Kotlin"),
    row(".local/bin", "programs"),
    row(".local/include", "headers"),
    row(".local/lib", "libraries, packages of Python"),
    row(".local/libexec", "programs"),
    row(".local/opt", "programs"),
    row(".local/pipx/venvs", "programs of Python"),
    row(".local/sbin", "programs"),
    row(".local/share/bash-completion", "completions of shells"),
    row(".local/share/cmake", "modules of cmake"),
    row(".local/share/coursier", "programs of Scala"),
    row(".local/share/fnm", "toolchains of node"),
    row(".local/share/fonts", "fonts"),
    row(".local/share/gem", "packages of Ruby"),
    row(".local/share/hatch/env", "environments of Python"),
    row(".local/share/hatch/pythons", "toolchains of Python"),
    row(".local/share/mamba/envs", "environments of conda"),
    row(".local/share/mamba/pkgs", "packages of conda"),
    row(".local/share/man", "manuals"),
    row(".local/share/mime", "kinds of files"),
    row(".local/share/mise/installs", "toolchains of mise"),
    row(".local/share/mise/plugins", "plugins of mise"),
    row(".local/share/mise/shims", "toolchains of mise"),
    row(".local/share/pdm/venvs", "environments of Python"),
    row(".local/share/pipx/shared", "programs of Python"),
    row(".local/share/pipx/venvs", "programs of Python"),
    row(".local/share/pkgconfig", "libraries"),
    row(".local/share/pnpm", "programs and packages of JavaScript"),
    row(".local/share/pypoetry/venv", "poetry itself"),
    row(".local/share/rtx/installs", "toolchains of mise"),
    row(".local/share/rtx/shims", "toolchains of mise"),
    row(".local/share/uv/python", "toolchains of Python"),
    row(".local/share/uv/tools", "programs of Python"),
    row(".local/share/virtualenv", "environments of Python"),
    row(".local/share/virtualenvs", "environments of Python"),
    row(".local/share/vulkan", "drivers"),
    row(".local/share/zig", "toolchains of zig"),
    row(".luarocks/lib", "packages of Lua"),
    row(".luarocks/share", "packages of Lua"),
    row(".m2/extensions.xml", "extensions of maven"),
    row(".m2/repository", "packages of Java"),
    row(".m2/toolchains.xml", "toolchains of Java"),
    row(".m2/wrapper", "versions of maven"),
    row(".mix/archives", "programs of Elixir"),
    row(".mix/elixir", "programs of Elixir"),
    row(".mozbuild", "toolchains of Firefox"),
    row(".n", "toolchains of node"),
    row(".nix-defexpr", "channels of nix"),
    row(".nix-profile", "programs of nix"),
    row(".node-gyp", "headers of node"),
    row(".node_libraries", "packages of JavaScript"),
    row(".node_modules", "packages of JavaScript"),
    row(".nodenv", "toolchains of node"),
    row(".npm/_cacache", "packages of JavaScript"),
    row(".npm/_libvips", "a library of a package"),
    row(".npm/_npx", "programs of JavaScript"),
    row(".npm/_prebuilds", "libraries of packages"),
    row(".npm-global", "programs of JavaScript"),
    row(".npm-packages", "programs of JavaScript"),
    row(".nuget/packages", "packages of .NET"),
    row(".nuget/plugins", "plugins of .NET"),
    row(".nvm", "toolchains of node"),
    row(".opam", "toolchains of OCaml"),
    row(".perl5", "packages of Perl"),
    row(".phpenv", "toolchains of PHP"),
    row(".platformio/packages", "toolchains of boards"),
    row(".platformio/platforms", "toolchains of boards"),
    row(".pnpm-store", "packages of JavaScript"),
    row(".poetry", "poetry itself"),
    row(".pub-cache/bin", "programs of Dart"),
    row(".pub-cache/git", "packages of Dart"),
    row(".pub-cache/hosted", "packages of Dart"),
    row(".pyenv", "toolchains of Python"),
    row(".rbenv", "toolchains of Ruby"),
    row(".rustup", "toolchains of Rust"),
    row(".rvm", "toolchains of Ruby"),
    row(".rye/py", "toolchains of Python"),
    row(".rye/self", "rye itself"),
    row(".rye/shims", "programs of Python"),
    row(".rye/tools", "programs of Python"),
    row(".sbt/boot", "versions of sbt"),
    row(".sdkman/bin", "toolchains of Java"),
    row(".sdkman/candidates", "toolchains of Java"),
    row(".sdkman/src", "a script that sets PATH"),
    row(".sdkman/var", "which toolchains there are"),
    row(".stack/pantry", "packages of Haskell"),
    row(".stack/programs", "toolchains of Haskell"),
    row(".stack/snapshots", "packages of Haskell"),
    row(".svm", "compilers of Solidity"),
    row(".swiftly/bin", "toolchains of Swift"),
    row(".swiftpm/cache", "packages of Swift"),
    row(".tfenv", "versions of terraform"),
    row(".tool-versions", "which toolchains are used"),
    row(".vcpkg/registries", "packages of C++"),
    row(".virtualenvs", "environments of Python"),
    row(".volta/bin", "toolchains of node"),
    row(".volta/tools", "toolchains of node"),
    row(".yarn/berry/cache", "packages of JavaScript"),
    row(".yarn/bin", "programs of JavaScript"),
    row(".yarn/cache", "packages of JavaScript"),
    row(".yarn/releases", "versions of yarn"),
    row(".zig", "toolchains of zig"),
];

/// What can be read of the agent directory, wherever it is: what models and their commands are meant to read.
pub(crate) const OPENED_IN_AGENT_DIR: &[&str] = &[
    "AGENTS.md",
    "AGENTS.override.md",
    "CLAUDE.md",
    "APPEND_SYSTEM.md",
    "SYSTEM.md",
    "agents",
    "bin",
    "commands",
    "docs",
    "extensions",
    "git",
    "hooks",
    "node_modules",
    "npm",
    "packages",
    "prompts",
    "rules",
    "skills",
    "themes",
    "tools",
];

/// Where keys are outside of homes, and what leads to daemons that hold some.
pub(crate) const CLOSED_ELSEWHERE: &[&str] = &[
    "/etc/NetworkManager/system-connections",
    "/etc/docker/key.json",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/krb5.keytab",
    "/etc/kubernetes",
    "/etc/letsencrypt",
    "/etc/rancher",
    "/etc/security/opasswd",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/ssh/ssh_host_dsa_key",
    "/etc/ssh/ssh_host_ecdsa_key",
    "/etc/ssh/ssh_host_ed25519_key",
    "/etc/ssh/ssh_host_rsa_key",
    "/etc/ssl/private",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/wireguard",
    "/run/buildkit",
    "/run/containerd",
    "/run/credentials",
    "/run/crio",
    "/run/docker.sock",
    "/run/k3s",
    "/run/podman",
    "/run/secrets",
    "/run/user",
    "/var/lib/docker",
    "/var/lib/kubelet",
    "/var/lib/rancher",
    "/var/run/secrets",
];

/// Whose links of a home may lead to: software of the system is the same for everybody, and holds no keys.
const SYSTEM: [&str; 5] = ["/nix/store", "/gnu/store", "/usr", "/opt", "/proc"];

/// The homes of the user, links resolved: the one that programs are told, and the one in the list of users, where keys
/// stay when somebody tells programs another one.
pub(crate) fn homes(told: Option<PathBuf>) -> Vec<PathBuf> {
    let listed = listed_home().and_then(|home| home.canonicalize().ok()).filter(|home| home.is_dir());
    let listed = listed.filter(|home| Some(home) != told.as_ref());
    told.into_iter().chain(listed).collect()
}

#[cfg(unix)]
fn listed_home() -> Option<PathBuf> {
    let user = rustix::process::geteuid().as_raw().to_string();
    let users = fs::read_to_string("/etc/passwd").ok()?;
    let fields = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    fields.filter(|fields| fields.get(2) == Some(&&*user)).find_map(|fields| fields.get(5).map(PathBuf::from))
}

#[cfg(not(unix))]
fn listed_home() -> Option<PathBuf> {
    None
}

/// The directories of programs below these homes that commands are found in.
pub(crate) fn programs(homes: &[PathBuf]) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).filter(|path| path.is_absolute() && path.is_dir());
    found.filter(|path| homes.iter().any(|home| path != home && path.starts_with(home))).collect()
}

/// Where closed names of a home lead, if they are links: what is there is closed too. Software of the system is not.
pub(crate) fn led_to_from(home: &Path) -> Vec<PathBuf> {
    let config = [home.join(".config"), home.join(".local/share")];
    let entries = [home].into_iter().chain(config.iter().map(PathBuf::as_path)).flat_map(|directory| {
        let all = fs::read_dir(directory).into_iter().flatten().flatten();
        all.filter(move |entry| directory != home || is_dot(&entry.file_name()))
    });
    let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    let targets = links.filter_map(|link| link.path().canonicalize().ok());
    targets.filter(|target| !home.starts_with(target) && !SYSTEM.iter().any(|top| target.starts_with(top))).collect()
}

/// Whether a name in a home is closed unless the table opens it.
pub(crate) fn is_dot(name: &std::ffi::OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_below_dot_names_and_none_is_in_another() {
        for row in OPENED_IN_HOME {
            assert!(row.path.starts_with('.') && !row.path.ends_with('/') && !row.path.contains("//"), "{row:?}");
            assert!(!row.reason.is_empty() && row.path.len() > 1, "{row:?}");
            let above = OPENED_IN_HOME
                .iter()
                .find(|other| other.path != row.path && Path::new(row.path).starts_with(other.path));
            assert_eq!(above, None, "{row:?}");
            assert_eq!(OPENED_IN_HOME.iter().filter(|other| other.path == row.path).count(), 1, "{row:?}");
        }
    }
}
