//! Resolves a specifier to a file or to one of pith's own modules.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use super::embedded;
use super::package::{Importer, Package};
use super::transpile::ModuleKind;

/// What a specifier resolves to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// One of pith's own modules, by its canonical name.
    Host(&'static str),
    File(PathBuf),
}

/// Extensions tried after a path without one, in this order.
const ENDINGS: &[&str] = &["ts", "tsx", "mts", "cts", "js", "mjs", "cjs", "json"];

/// Resolves specifiers as pi's loader does, and caches the results.
#[derive(Default)]
pub struct Resolver {
    packages: RefCell<HashMap<PathBuf, Option<Rc<Package>>>>,
    found: RefCell<HashMap<(PathBuf, String, Importer), Target>>,
}

impl Resolver {
    /// Resolves `specifier` in the file `from`.
    pub fn resolve(&self, specifier: &str, from: &Path, importer: Importer) -> Result<Target, String> {
        let directory = from.parent().unwrap_or(Path::new("/"));
        if let Some(host) = embedded::canonical(specifier) {
            return Ok(Target::Host(host));
        }
        let key = (directory.to_owned(), specifier.to_owned(), importer);
        if let Some(found) = self.found.borrow().get(&key) {
            return Ok(found.clone());
        }
        let found =
            self.find(specifier, directory, importer).or_else(|| embedded::fallback(specifier).map(Target::Host));
        let target = found.ok_or_else(|| {
            if specifier.starts_with("node:") {
                format!("No such built-in module: {specifier}")
            } else {
                format!("Cannot find module '{specifier}' imported from {}", from.display())
            }
        })?;
        self.found.borrow_mut().insert(key, target.clone());
        Ok(target)
    }

    /// Clears the caches, so that a reload sees the disk as it is.
    pub fn forget(&self) {
        self.packages.borrow_mut().clear();
        self.found.borrow_mut().clear();
    }

    /// The kind of module that the name and the package of a file imply.
    pub fn kind(&self, path: &Path) -> ModuleKind {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("mjs" | "mts") => ModuleKind::Module,
            Some("cjs" | "cts") => ModuleKind::CommonJs,
            Some("js") if self.nearest(path).is_some_and(|(_, package)| package.is_module) => ModuleKind::Module,
            _ => ModuleKind::Unknown,
        }
    }

    /// Returns the path of a package's file if the package is installed next to `from`.
    pub fn installed(&self, specifier: &str, from: &Path) -> Option<PathBuf> {
        match self.bare(specifier, from.parent()?, Importer::Import)? {
            Target::File(path) => Some(path),
            Target::Host(_) => None,
        }
    }

    fn find(&self, specifier: &str, directory: &Path, importer: Importer) -> Option<Target> {
        if let Some(path) = specifier.strip_prefix("file://") {
            let path = path.split(['?', '#']).next().unwrap_or(path);
            return self.file(Path::new(&percent_decoded(path)), importer);
        }
        if specifier.starts_with('/') {
            return self.file(Path::new(specifier), importer);
        }
        if specifier == "." || specifier == ".." || specifier.starts_with("./") || specifier.starts_with("../") {
            return self.file(&normalized(&directory.join(specifier)), importer);
        }
        if specifier.starts_with('#') {
            let (root, package) = self.nearest(&directory.join("x"))?;
            let target = package.imported(specifier, importer)?;
            return if target.starts_with('.') {
                self.file(&normalized(&root.join(target)), importer)
            } else {
                self.find(&target, &root, importer)
            };
        }
        self.bare(specifier, directory, importer)
    }

    fn bare(&self, specifier: &str, directory: &Path, importer: Importer) -> Option<Target> {
        let specifier = specifier.trim_end_matches('/');
        let split = if specifier.starts_with('@') {
            specifier.match_indices('/').nth(1).map(|(at, _)| at)
        } else {
            specifier.find('/')
        };
        let (name, rest) = specifier.split_at(split.unwrap_or(specifier.len()));
        let subpath = format!(".{rest}");
        // A package may import itself by name.
        if let Some((root, package)) = self.nearest(&directory.join("x"))
            && package.name.as_deref() == Some(name)
            && package.exports.is_some()
            && let Some(target) = package.exported(&subpath, importer)
        {
            return self.file(&normalized(&root.join(target)), importer);
        }
        directory
            .ancestors()
            .filter(|ancestor| ancestor.file_name().is_none_or(|name| name != "node_modules"))
            .find_map(|ancestor| {
                let root = ancestor.join("node_modules").join(name);
                root.is_dir().then(|| self.in_package(&root, &subpath, importer)).flatten()
            })
    }

    fn in_package(&self, root: &Path, subpath: &str, importer: Importer) -> Option<Target> {
        let package = self.package(root);
        if let Some(package) = package.as_ref().filter(|package| package.exports.is_some()) {
            let target = package.exported(subpath, importer)?;
            return self.file(&normalized(&root.join(target)), importer);
        }
        match subpath {
            "." => self.directory(root, importer),
            _ => self.file(&normalized(&root.join(subpath)), importer),
        }
    }

    /// Resolves to a file at exactly this path, with another extension, or the index of a directory.
    fn file(&self, path: &Path, importer: Importer) -> Option<Target> {
        if path.is_file() {
            return Some(Target::File(real(path)));
        }
        // `./x.js` is how TypeScript writes a file that is `x.ts` on disk.
        let written = path.extension().and_then(|extension| extension.to_str());
        let compiled_from: &[&str] = match written {
            Some("js") => &["ts", "tsx"],
            Some("jsx") => &["tsx"],
            Some("mjs") => &["mts"],
            Some("cjs") => &["cts"],
            _ => &[],
        };
        let replaced = compiled_from.iter().map(|ending| path.with_extension(ending));
        let appended = ENDINGS.iter().map(|ending| {
            let mut name = path.as_os_str().to_owned();
            name.push(".");
            name.push(ending);
            PathBuf::from(name)
        });
        if let Some(found) = replaced.chain(appended).find(|candidate| candidate.is_file()) {
            return Some(Target::File(real(&found)));
        }
        path.is_dir().then(|| self.directory(path, importer)).flatten()
    }

    fn directory(&self, path: &Path, importer: Importer) -> Option<Target> {
        let package = self.package(path);
        let entries = package.iter().flat_map(|package| {
            let module = package.module.as_ref().filter(|_| importer == Importer::Import && package.main.is_none());
            package.main.iter().chain(module)
        });
        for entry in entries {
            let entry = normalized(&path.join(entry));
            if entry != path
                && let Some(found) = self.file(&entry, importer)
            {
                return Some(found);
            }
        }
        let index = ENDINGS.iter().map(|ending| path.join(format!("index.{ending}"))).find(|index| index.is_file())?;
        Some(Target::File(real(&index)))
    }

    fn package(&self, directory: &Path) -> Option<Rc<Package>> {
        if let Some(known) = self.packages.borrow().get(directory) {
            return known.clone();
        }
        let package = Package::read(directory).map(Rc::new);
        self.packages.borrow_mut().insert(directory.to_owned(), package.clone());
        package
    }

    /// Returns the package a file belongs to.
    fn nearest(&self, path: &Path) -> Option<(PathBuf, Rc<Package>)> {
        let directories = path.ancestors().skip(1);
        directories
            .take_while(|directory| directory.file_name().is_none_or(|name| name != "node_modules"))
            .find_map(|directory| Some((directory.to_owned(), self.package(directory)?)))
    }
}

/// Follows links: packages are often linked into place, and their own imports start from their real location.
fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Removes `.` and `..` without reading the disk.
pub fn normalized(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            other => clean.push(other),
        }
    }
    clean
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let digits = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
