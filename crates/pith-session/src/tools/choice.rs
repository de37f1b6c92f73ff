//! Which tools are active. Flags, settings, extensions and the session file all name tools; what follows from their
//! names is decided in [`ToolChoice::select`] alone.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use pith_agent::is_named_by;
use pith_tools::BUILTINS;
use serde::{Deserialize, Serialize};

/// What the command line and settings say about tools.
#[derive(Clone, Debug, Default)]
pub struct ToolChoice {
    /// Names or patterns: no other tool is used, but for those of the host.
    pub only: Option<Vec<String>>,
    /// No built-in tool is active by default.
    pub no_builtins: bool,
    /// `+name` and `-name` of the command line, which change the default selection.
    pub changes: Vec<String>,
    /// `--exclude-tools`: names or patterns of tools that are never used.
    pub exclude: Vec<String>,
    /// The `defaultTools` setting.
    pub defaults: Option<Vec<String>>,
    /// Tools that are added to the default ones.
    pub additional: Vec<&'static str>,
    /// Known tools that are not listed until they are named or activated.
    pub unlisted: Vec<&'static str>,
}

/// The flags about tools.
#[derive(Clone, Debug, Default)]
pub struct ToolFlags {
    /// `--tools`
    pub tools: Option<Vec<String>>,
    /// `--no-tools`
    pub no_tools: bool,
    /// `--no-builtin-tools`
    pub no_builtin_tools: bool,
    /// `--exclude-tools`
    pub exclude: Vec<String>,
}

/// Where a tool comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Built in, or added at the start.
    Known,
    Extension,
    Host,
    /// An MCP server, or the search for tools of such servers.
    Server,
}

/// A tool that could be active.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub name: Arc<str>,
    pub source: Source,
    /// Whether it is active unless something says otherwise.
    pub is_shown: bool,
}

/// The tools that an extension has chosen, as the session file keeps them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Chosen {
    /// In the order the model gets them.
    pub active: Vec<String>,
    /// All others there were. A tool in neither list is a new one.
    pub inactive: Vec<String>,
}

impl ToolFlags {
    /// Returns what is wrong with the entries of `--tools`.
    pub fn problem(entries: &[String]) -> Option<String> {
        let changes: Vec<&String> = entries.iter().filter(|entry| change(entry).is_some()).collect();
        if !changes.is_empty() && changes.len() < entries.len() {
            return Some("names cannot be mixed with +name and -name".to_owned());
        }
        let pattern = changes.iter().find(|entry| entry.contains('*'))?;
        Some(format!("+name and -name take the name of one tool, not a pattern: {pattern}"))
    }

    /// Combines the flags with the setting `defaultTools`.
    pub fn with_defaults(self, defaults: Option<Vec<String>>) -> ToolChoice {
        let is_changing = self.tools.iter().flatten().any(|entry| change(entry).is_some());
        let (named, changes) = if is_changing { (None, self.tools.unwrap_or_default()) } else { (self.tools, vec![]) };
        let only = named.or_else(|| self.no_tools.then(|| changed(Vec::new(), &changes)));
        let no_builtins = self.no_builtin_tools;
        ToolChoice { only, no_builtins, changes, exclude: self.exclude, defaults, ..ToolChoice::default() }
    }
}

/// Returns the name of a tool that an entry of a list means, without the `+` or `-` before it.
pub fn name_in_entry(entry: &str) -> &str {
    entry.strip_prefix(['+', '-']).unwrap_or(entry)
}

/// Returns whether an entry adds (`+name`) or removes (`-name`) a tool, and which; `None` for a plain name.
fn change(entry: &str) -> Option<(bool, &str)> {
    match entry.split_at_checked(1)? {
        ("+", name) => Some((true, name)),
        ("-", name) => Some((false, name)),
        _ => None,
    }
}

/// Applies the entries `+name` and `-name` in their order.
fn changed(mut names: Vec<String>, entries: &[String]) -> Vec<String> {
    for (is_added, name) in entries.iter().filter_map(|entry| change(entry)) {
        if !is_added {
            names.retain(|known| known != name);
        } else if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

impl ToolChoice {
    /// Returns which of the candidates, whose names differ, are active, in the order the model gets them. What an
    /// extension has chosen comes in the place of the default selection; neither gets past what the user excludes.
    pub(super) fn select(&self, candidates: &[Candidate], chosen: Option<&Chosen>) -> Vec<usize> {
        let usable = || candidates.iter().enumerate().filter(|(_, candidate)| self.allows(candidate));
        let places: HashMap<&str, usize> = usable().map(|(place, candidate)| (&*candidate.name, place)).collect();
        let named = |names: &[String]| names.iter().filter_map(|name| places.get(name.as_str()).copied()).collect();
        let (first, left_out): (Vec<usize>, HashSet<&str>) = match (chosen, &self.only) {
            (Some(chosen), _) => (named(&chosen.active), chosen.inactive.iter().map(String::as_str).collect()),
            (None, Some(only)) => (only.iter().flat_map(|entry| ranked(usable(), entry)).collect(), HashSet::new()),
            (None, None) => (named(&self.default_names()), self.removed().into_iter().collect()),
        };
        let is_left = |candidate: &Candidate| candidate.is_shown && !left_out.contains(&*candidate.name);
        let others = usable().filter(|(_, candidate)| is_left(candidate)).map(|(place, _)| place);
        let mut seen = HashSet::new();
        first.into_iter().chain(others).filter(|place| seen.insert(*place)).collect()
    }

    /// Whether the user lets a tool be used at all. The host's own need not be named.
    pub(super) fn allows(&self, candidate: &Candidate) -> bool {
        match candidate.source {
            Source::Host => !self.is_excluded(&candidate.name),
            Source::Known | Source::Extension | Source::Server => self.is_usable(&candidate.name),
        }
    }

    /// Whether the user lets a tool be used that is not the host's.
    pub(super) fn is_usable(&self, name: &str) -> bool {
        self.is_named(name) && !self.is_excluded(name)
    }

    /// Whether `--tools` names a tool, or does not say which tools there are.
    pub(super) fn is_named(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.iter().any(|entry| is_named_by(entry, name)))
    }

    /// Whether the flags choose the tools, so that no session file does.
    pub(super) fn is_made_by_flags(&self) -> bool {
        self.only.is_some() || self.no_builtins
    }

    pub(super) fn is_excluded(&self, name: &str) -> bool {
        self.exclude.iter().any(|excluded| is_named_by(excluded, name))
    }

    /// Whether a known tool does not exist for anybody, because nothing names it.
    pub(super) fn is_unlisted(&self, name: &str) -> bool {
        let is_named = || self.only.iter().flatten().any(|entry| is_named_by(entry, name));
        self.unlisted.contains(&name) && !is_named() && !self.default_names().iter().any(|default| default == name)
    }

    /// Applies `+name` and `-name` of the command line to what a session file says.
    pub(super) fn change(&self, chosen: &mut Chosen) {
        chosen.active = changed(std::mem::take(&mut chosen.active), &self.changes);
        chosen.inactive.extend(self.removed().into_iter().map(str::to_owned));
        chosen.inactive.retain(|name| !chosen.active.contains(name));
    }

    /// The tools that are active by default, as far as there are such.
    fn default_names(&self) -> Vec<String> {
        let entries = self.defaults.as_deref().unwrap_or_default();
        let plain: Vec<String> = entries.iter().filter(|entry| change(entry).is_none()).cloned().collect();
        let is_built_in_choice = self.defaults.is_none() || (plain.is_empty() && !entries.is_empty());
        let base = match (self.no_builtins, is_built_in_choice) {
            (true, _) => return changed(Vec::new(), &self.changes),
            (false, false) => plain,
            (false, true) => {
                let builtins = BUILTINS.iter().filter(|builtin| builtin.is_default).map(|builtin| builtin.name);
                builtins.chain(self.additional.iter().copied()).map(str::to_owned).collect()
            }
        };
        changed(changed(base, entries), &self.changes)
    }

    /// The tools that the setting and the command line take away by name, whatever they come from.
    fn removed(&self) -> Vec<&str> {
        let mut removed: Vec<&str> = Vec::new();
        let setting = self.defaults.iter().flatten().filter(|_| !self.no_builtins);
        for (is_added, name) in setting.chain(&self.changes).filter_map(|entry| change(entry)) {
            removed.retain(|known| *known != name);
            if !is_added {
                removed.push(name);
            }
        }
        removed
    }
}

/// The tools that an entry of `--tools` names. Those of servers come last whatever names them, so that requests stay
/// alike while servers come and go; those of the host need no name.
fn ranked<'a>(candidates: impl Iterator<Item = (usize, &'a Candidate)>, entry: &str) -> impl Iterator<Item = usize> {
    let is_meant = move |(_, candidate): &(usize, &Candidate)| {
        matches!(candidate.source, Source::Known | Source::Extension) && is_named_by(entry, &candidate.name)
    };
    candidates.filter(is_meant).map(|(place, _)| place)
}

impl Chosen {
    /// Returns a choice of names among the known ones. Tools that stay keep their places, so that what providers keep
    /// of a prompt stays valid.
    pub fn new(names: &[&str], known: &[&str], selected: &[String], before: Option<&Chosen>) -> Chosen {
        let is_wanted = |name: &&str| names.contains(name) && known.contains(name);
        let kept = selected.iter().map(String::as_str).filter(is_wanted);
        let mut active: Vec<&str> = kept.collect();
        for name in names.iter().copied().filter(is_wanted) {
            if !active.contains(&name) {
                active.push(name);
            }
        }
        // Tools of servers that are still starting stay chosen, unless this choice takes others away.
        let is_wider = selected.iter().all(|name| active.contains(&name.as_str()));
        let is_awaited = |name: &&str| is_wider && !known.contains(name);
        let (before_active, before_inactive) =
            before.map_or((&[][..], &[][..]), |before| (&before.active, &before.inactive));
        active.extend(before_active.iter().map(String::as_str).filter(is_awaited));
        let mut inactive: Vec<&str> = Vec::new();
        for name in known.iter().copied().chain(before_inactive.iter().chain(before_active).map(String::as_str)) {
            if !active.contains(&name) && !inactive.contains(&name) {
                inactive.push(name);
            }
        }
        let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
        Chosen { active: owned(active), inactive: owned(inactive) }
    }

    /// Makes a tool a new one again, which is active unless something says otherwise.
    pub fn readmit(&mut self, name: &str) {
        self.inactive.retain(|left_out| left_out != name);
    }
}

#[cfg(test)]
mod tests;
