//! A list to choose from, with a search.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::text::Row;
use super::theme;

/// How many choices are shown at once.
const MAX_SHOWN: usize = 10;

/// Something to choose.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice<T> {
    pub label: String,
    /// Shown after the label.
    pub detail: String,
    pub value: T,
}

/// A list and what is typed to search it.
#[derive(Clone, Debug)]
pub struct Picker<T> {
    title: String,
    choices: Vec<Choice<T>>,
    /// What is searched, by choice: made once, because every key searches all of it.
    texts: Vec<String>,
    search: String,
    /// Indices of choices that fit the search.
    found: Vec<usize>,
    /// The place in `found`; `None` until the user has moved or searched.
    selected: Option<usize>,
}

/// What a key did.
#[derive(Debug, PartialEq)]
pub enum Picked<T> {
    Chosen(T),
    Cancelled,
    Open,
}

impl<T: Clone> Picker<T> {
    /// Creates a list; the choice at `selected` is what Enter takes at first.
    pub fn new(title: &str, choices: Vec<Choice<T>>, selected: Option<usize>) -> Self {
        let found = (0..choices.len()).collect();
        let text = |(at, choice): (usize, &Choice<T>)| format!("{} {} {}", at + 1, choice.label, choice.detail);
        let texts = choices.iter().enumerate().map(text).map(|text| text.to_lowercase()).collect();
        Picker { title: title.to_owned(), choices, texts, search: String::new(), found, selected }
    }

    /// Takes a key.
    pub fn key(&mut self, key: KeyEvent) -> Picked<T> {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return Picked::Cancelled,
            KeyCode::Char('c' | 'd') if is_control => return Picked::Cancelled,
            KeyCode::Enter => {
                let chosen = self.selected.and_then(|place| self.found.get(place));
                return chosen.map_or(Picked::Open, |index| Picked::Chosen(self.choices[*index].value.clone()));
            }
            KeyCode::Up | KeyCode::BackTab => self.move_by(-1),
            KeyCode::Down | KeyCode::Tab => self.move_by(1),
            KeyCode::Char('p') if is_control => self.move_by(-1),
            KeyCode::Char('n') if is_control => self.move_by(1),
            KeyCode::PageUp => self.move_by(-(MAX_SHOWN as isize)),
            KeyCode::PageDown => self.move_by(MAX_SHOWN as isize),
            KeyCode::Char('u') if is_control => self.look_for(String::new()),
            KeyCode::Char(char) if !is_control => self.look_for(format!("{}{char}", self.search)),
            KeyCode::Backspace => {
                let mut search = self.search.clone();
                search.pop();
                self.look_for(search);
            }
            _ => {}
        }
        Picked::Open
    }

    /// Adds to the search.
    pub fn paste(&mut self, text: &str) {
        self.look_for(format!("{}{}", self.search, text.trim()));
    }

    /// Returns the only choice that fits a typed line: its number, its label, or the beginning of its label.
    pub fn named(&self, line: &str) -> Option<T> {
        let word = line.trim().to_lowercase();
        let numbered = word.parse::<usize>().ok().and_then(|number| self.choices.get(number.checked_sub(1)?));
        let label = |choice: &Choice<T>| choice.label.trim().to_lowercase();
        let equal = || self.choices.iter().find(|choice| label(choice) == word);
        let mut beginning = self.choices.iter().filter(|choice| !word.is_empty() && label(choice).starts_with(&word));
        let mut only = || beginning.next().filter(|_| beginning.next().is_none());
        numbered.or_else(equal).or_else(&mut only).map(|choice| choice.value.clone())
    }

    fn look_for(&mut self, search: String) {
        let words: Vec<String> = search.to_lowercase().split_whitespace().map(str::to_owned).collect();
        let fits = |index: &usize| words.iter().all(|word| self.texts[*index].contains(word));
        self.found = (0..self.choices.len()).filter(fits).collect();
        self.selected = (!self.found.is_empty()).then_some(0);
        self.search = search;
    }

    fn move_by(&mut self, n_places: isize) {
        let Some(last) = self.found.len().checked_sub(1) else { return };
        self.selected = Some(match self.selected {
            None if n_places < 0 => last,
            None => 0,
            // One step wraps around, a page does not.
            Some(0) if n_places == -1 => last,
            Some(place) if place == last && n_places == 1 => 0,
            Some(place) => place.saturating_add_signed(n_places).min(last),
        });
    }

    /// The rows of the list.
    pub fn rows(&self, width: usize, max_shown: usize) -> Vec<Row> {
        let max_shown = max_shown.clamp(1, MAX_SHOWN);
        let search =
            Row::new(&self.title, theme::bold()).with("  search: ", theme::dim()).with(&self.search, theme::accent());
        let mut rows = vec![search.cut(width)];
        let selected = self.selected.unwrap_or(0);
        let first = (selected + 1).saturating_sub(max_shown);
        for (place, index) in self.found.iter().enumerate().skip(first).take(max_shown) {
            let choice = &self.choices[*index];
            let is_selected = self.selected == Some(place);
            let (mark, style) = if is_selected { ("❯ ", theme::accent()) } else { ("  ", Default::default()) };
            let row = Row::new(mark, style).with(&format!("{}  {}", index + 1, choice.label), style);
            rows.push(row.with(&format!("  {}", choice.detail), theme::dim()).cut(width));
        }
        let help = match (self.found.len(), self.choices.len()) {
            (0, _) => "nothing fits; Backspace widens the search, Esc closes".to_owned(),
            (found, all) => format!("{found} of {all} · ↑↓ Enter, Esc for none"),
        };
        rows.push(Row::new(&help, theme::dim()).cut(width));
        rows
    }

    /// The list in lines, for a terminal that cannot redraw.
    pub fn lines(&self) -> Vec<String> {
        let one = |(at, choice): (usize, &Choice<T>)| format!("{:>3}  {}  {}", at + 1, choice.label, choice.detail);
        let head = std::iter::once(self.title.clone());
        head.chain(self.choices.iter().enumerate().map(one)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picker(selected: Option<usize>) -> Picker<u8> {
        let choice = |label: &str, value| Choice { label: label.to_owned(), detail: String::new(), value };
        Picker::new("Which?", vec![choice("Allow", 0), choice("Allow always", 1), choice("Block", 2)], selected)
    }

    fn press(picker: &mut Picker<u8>, code: KeyCode) -> Picked<u8> {
        picker.key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn keys_choose() {
        let mut list = picker(Some(0));
        press(&mut list, KeyCode::Down);
        assert_eq!(press(&mut list, KeyCode::Enter), Picked::Chosen(1));
        let mut list = picker(Some(0));
        for char in "blo".chars() {
            press(&mut list, KeyCode::Char(char));
        }
        assert_eq!(press(&mut list, KeyCode::Enter), Picked::Chosen(2));
        press(&mut list, KeyCode::Char('x'));
        assert_eq!(press(&mut list, KeyCode::Enter), Picked::Open);
        assert_eq!(press(&mut list, KeyCode::Esc), Picked::Cancelled);
    }

    #[test]
    fn nothing_is_chosen_by_an_enter_that_was_meant_for_something_else() {
        let mut list = picker(None);
        assert_eq!(press(&mut list, KeyCode::Enter), Picked::Open);
        press(&mut list, KeyCode::Up);
        assert_eq!(press(&mut list, KeyCode::Enter), Picked::Chosen(2));
    }

    #[test]
    fn a_line_names_a_choice() {
        let named = |line| picker(None).named(line);
        assert_eq!([named("2"), named("allow"), named("b")], [Some(1), Some(0), Some(2)]);
        assert_eq!([named("all"), named("0"), named("4"), named("")], [None; 4]);
    }

    #[test]
    fn rows_show_the_selected_choice() {
        let choices =
            (0..50).map(|value| Choice { label: format!("item {value}"), detail: String::new(), value }).collect();
        let mut list = Picker::new("Many", choices, Some(0));
        press(&mut list, KeyCode::Up);
        let rows: Vec<String> = list.rows(30, 3).iter().map(Row::text).collect();
        assert_eq!(
            rows,
            [
                "Many  search: ",
                "  48  item 47  ",
                "  49  item 48  ",
                "❯ 50  item 49  ",
                "50 of 50 · ↑↓ Enter, Esc for …"
            ]
        );
    }
}
