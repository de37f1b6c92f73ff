//! What can be completed at the cursor: commands after a slash, files after an at sign.

use std::path::Path;

use pith_visible::is_order;

use super::text::Row;
use super::theme;
use crate::modes::attach::resolve;

/// How many completions are shown at once.
const MAX_SHOWN: usize = 6;

/// Entries of a directory beyond this are not looked at: a key must not wait for them.
const MAX_ENTRIES: usize = 5000;

/// Completions of the word before the cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Menu {
    /// Text and explanation.
    items: Vec<(String, String)>,
    /// How many characters before the cursor are replaced.
    n_chars: usize,
    /// `None` until the user has moved into the menu.
    selected: Option<usize>,
}

impl Menu {
    /// Returns the commands that begin like the typed line.
    pub fn of_commands(line: &str, commands: &[(String, String)]) -> Option<Menu> {
        let typed = line.strip_prefix('/').filter(|typed| !typed.contains(char::is_whitespace))?;
        let fits = |(name, _): &&(String, String)| name.starts_with(typed) && !name.contains(is_order);
        let items = commands.iter().filter(fits).map(|(name, about)| (format!("/{name} "), about.clone()));
        Menu::new(items.collect(), line)
    }

    /// Returns the files that begin like the word after the last at sign.
    pub fn of_files(before: &str, cwd: &Path, home: &Path) -> Option<Menu> {
        let word = before.rsplit(char::is_whitespace).next()?;
        let typed = word.strip_prefix('@')?;
        let (directory, start) =
            typed.rsplit_once('/').map_or(("", typed), |(_, start)| (&typed[..typed.len() - start.len()], start));
        let place = resolve(if directory.is_empty() { "." } else { directory }, cwd, home);
        let mut items: Vec<(String, String)> = Vec::new();
        for entry in std::fs::read_dir(place).ok()?.take(MAX_ENTRIES).flatten() {
            let Ok(name) = entry.file_name().into_string() else { continue };
            let is_hidden = name.starts_with('.') && !start.starts_with('.');
            let is_typable = !name.contains(is_order) && !name.contains(char::is_whitespace);
            if is_hidden || !is_typable || !name.to_lowercase().starts_with(&start.to_lowercase()) {
                continue;
            }
            // Links are followed, other entries say what they are.
            let is_directory =
                entry.file_type().is_ok_and(|kind| kind.is_dir() || kind.is_symlink() && entry.path().is_dir());
            let end = if is_directory { "/" } else { " " };
            items.push((format!("@{directory}{name}{end}"), String::new()));
        }
        items.sort();
        Menu::new(items, word)
    }

    fn new(items: Vec<(String, String)>, typed: &str) -> Option<Menu> {
        let is_done = matches!(items.as_slice(), [(only, _)] if only.trim_end() == typed);
        let n_chars = typed.chars().count();
        (!items.is_empty() && !is_done).then_some(Menu { items, n_chars, selected: None })
    }

    /// Moves to the next or the previous item.
    pub fn move_by(&mut self, n_places: isize) {
        let last = self.items.len() - 1;
        self.selected = Some(match self.selected {
            None if n_places < 0 => last,
            None => 0,
            Some(0) if n_places < 0 => last,
            Some(place) if place == last && n_places > 0 => 0,
            Some(place) => place.saturating_add_signed(n_places),
        });
    }

    /// Whether the user has moved into the menu.
    pub fn is_entered(&self) -> bool {
        self.selected.is_some()
    }

    /// The selected item, or the first one, and how many characters it replaces.
    pub fn chosen(&self) -> (usize, &str) {
        (self.n_chars, &self.items[self.selected.unwrap_or(0)].0)
    }

    /// The rows of the menu.
    pub fn rows(&self, width: usize) -> Vec<Row> {
        let first = (self.selected.unwrap_or(0) + 1).saturating_sub(MAX_SHOWN);
        let shown = self.items.iter().enumerate().skip(first).take(MAX_SHOWN);
        let widest = shown.clone().map(|(_, (text, _))| text.chars().count()).max().unwrap_or(0).min(width / 2);
        let one = |(at, (text, about)): (usize, &(String, String))| {
            let (mark, style) =
                if self.selected == Some(at) { ("❯ ", theme::accent()) } else { ("  ", Default::default()) };
            Row::new(mark, style)
                .with(&format!("{text:<widest$}"), style)
                .with(&format!(" {about}"), theme::dim())
                .cut(width)
        };
        let mut rows: Vec<Row> = shown.map(one).collect();
        if self.items.len() > MAX_SHOWN {
            rows.push(Row::new(&format!("  {} in all", self.items.len()), theme::dim()));
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_by_their_beginning() {
        let commands: Vec<(String, String)> =
            ["model", "models", "new"].map(|name| (name.to_owned(), String::new())).to_vec();
        let mut menu = Menu::of_commands("/mo", &commands).expect("two");
        assert_eq!(menu.chosen(), (3, "/model "));
        menu.move_by(1);
        menu.move_by(1);
        assert_eq!(menu.chosen(), (3, "/models "));
        assert_eq!(Menu::of_commands("/new", &commands), None);
        assert_eq!(Menu::of_commands("/x", &commands), None);
        assert_eq!(Menu::of_commands("/new x", &commands), None);
        assert_eq!(Menu::of_commands("say /new", &commands), None);
    }

    #[test]
    fn files_are_found_in_their_directory() {
        let directory = std::env::temp_dir().join(format!("pith-menu-{}", std::process::id()));
        std::fs::create_dir_all(directory.join("src")).expect("created");
        for name in ["src/main.rs", "src/lib.rs", "src/a b", "Setup.md", ".hidden"] {
            std::fs::write(directory.join(name), "").expect("written");
        }
        let found = |before: &str| Menu::of_files(before, &directory, Path::new("/none")).map(|menu| menu.items);
        let named = |names: &[&str]| Some(names.iter().map(|name| ((*name).to_owned(), String::new())).collect());
        assert_eq!(found("look at @s"), named(&["@Setup.md ", "@src/"]));
        assert_eq!(found("@src/"), named(&["@src/lib.rs ", "@src/main.rs "]));
        assert_eq!(found("@.h"), named(&["@.hidden "]));
        assert_eq!(found("@none/x"), None);
        assert_eq!(found("mail@s"), None);
        std::fs::remove_dir_all(&directory).expect("removed");
    }
}
