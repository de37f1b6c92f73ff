//! A home, an agent directory and a project in a temporary directory.

use std::fs;
use std::path::{Path, PathBuf};

use pith_config::Diagnostic;
use pith_resources::{ResourceOptions, Resources};
use tempfile::TempDir;

/// Directories of one test, gone with it.
pub struct World {
    // Removed on drop.
    _directory: TempDir,
    root: PathBuf,
    pub options: ResourceOptions,
}

impl World {
    /// `home`, `home/.pi/agent` and the trusted project `home/work/app`, a repository.
    pub fn new() -> World {
        let directory = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(directory.path()).unwrap();
        let options = ResourceOptions {
            agent_dir: root.join("home/.pi/agent"),
            project_dir_name: ".pi".into(),
            cwd: root.join("home/work/app"),
            home: Some(root.join("home")),
            trusted: true,
            ..ResourceOptions::default()
        };
        fs::create_dir_all(options.cwd.join(".git")).unwrap();
        World { _directory: directory, root, options }
    }

    /// A path in the world. `~` is the home, `@` the agent directory, `.` the project.
    pub fn path(&self, path: &str) -> PathBuf {
        let (place, rest) = match path.split_once('/').unwrap_or((path, "")) {
            ("~", rest) => (self.root.join("home"), rest),
            ("@", rest) => (self.options.agent_dir.clone(), rest),
            (".", rest) => (self.options.cwd.clone(), rest),
            _ => (self.root.clone(), path),
        };
        // Joining nothing would add a slash.
        if rest.is_empty() { place } else { place.join(rest) }
    }

    /// The same as text.
    pub fn text(&self, path: &str) -> String {
        self.path(path).to_str().unwrap().to_owned()
    }

    /// Writes a file, making its directories.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) -> &World {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    /// Writes a skill with a name and a description.
    pub fn skill(&self, path: &str, name: &str) -> &World {
        self.write(path, format!("---\nname: {name}\ndescription: About {name}\n---\nDo {name}.\n"))
    }

    /// Makes a link; `target` is in the world, too.
    #[cfg(unix)]
    pub fn link(&self, path: &str, target: &str) -> &World {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(self.path(target), path).unwrap();
        self
    }

    /// Makes a pipe; whoever opens it waits forever.
    #[cfg(target_os = "linux")]
    pub fn pipe(&self, path: &str) -> &World {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap();
        self
    }

    pub fn load(&self) -> Resources {
        Resources::load(&self.options)
    }

    /// A path as [`World::path`] reads it.
    pub fn short(&self, path: &Path) -> String {
        let places = [("@", self.options.agent_dir.clone()), (".", self.path(".")), ("~", self.path("~"))];
        for (short, place) in places {
            if let Ok(rest) = path.strip_prefix(place) {
                return Path::new(short).join(rest).to_str().unwrap().trim_end_matches('/').to_owned();
            }
        }
        path.strip_prefix(&self.root).unwrap_or(path).to_str().unwrap().to_owned()
    }

    /// Diagnostics as `type code path: message`, those about places outside of the world left out.
    pub fn problems(&self, resources: &Resources) -> Vec<String> {
        let is_ours =
            |diagnostic: &&Diagnostic| diagnostic.path.as_ref().is_some_and(|path| path.starts_with(&self.root));
        let line = |diagnostic: &Diagnostic| {
            let path = self.short(diagnostic.path.as_ref().unwrap());
            let kind = serde_json::to_value(diagnostic.kind).unwrap();
            format!("{} {} {path}: {}", kind.as_str().unwrap(), diagnostic.code, diagnostic.message)
        };
        resources.diagnostics().iter().filter(is_ours).map(line).collect()
    }

    /// Skills as `name path`.
    pub fn skills(&self, resources: &Resources) -> Vec<String> {
        resources.skills().iter().map(|skill| format!("{} {}", skill.name, self.short(&skill.path))).collect()
    }

    /// Templates as `name path`.
    pub fn templates(&self, resources: &Resources) -> Vec<String> {
        let line = |name: &str, path: &Path| format!("{name} {}", self.short(path));
        resources.templates().iter().map(|template| line(&template.name, &template.path)).collect()
    }
}

/// Runs something without the powers of root, for which nothing is unreadable.
#[cfg(target_os = "linux")]
pub fn as_nobody<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    use rustix::process::{Uid, geteuid};
    use rustix::thread::set_thread_res_uid;
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            if geteuid().is_root() {
                // Only this thread changes; it ends with the test.
                let nobody = Uid::from_raw(65534);
                set_thread_res_uid(nobody, nobody, nobody).unwrap();
            }
            work()
        });
        thread.join().unwrap()
    })
}

/// Lets everybody in, or nobody.
#[cfg(unix)]
pub fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}
