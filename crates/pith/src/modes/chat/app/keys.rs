//! Keys, pasted text and typed lines.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use pith_protocol::host::UiAnswer;
use pith_protocol::permissions::OptionId;
use serde_json::json;

use super::answers::Expected;
use super::commands::Joins;
use super::{Action, App, Overlay};
use crate::modes::chat::approval::Pressed;
use crate::modes::chat::menu::Menu;
use crate::modes::chat::picker::Picked;

impl App {
    /// Takes what the terminal sent.
    pub fn input(&mut self, event: Event) {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.key(key),
            Event::Paste(text) => self.paste(&text),
            // The loop asks for the size when it draws.
            _ => {}
        }
    }

    fn paste(&mut self, text: &str) {
        match &mut self.overlay {
            Some(Overlay::Dialog(dialog)) => dialog.paste(text),
            Some(Overlay::Picker(picker)) => picker.paste(text),
            Some(Overlay::Approval(approval)) => {
                if !approval.paste(text) {
                    self.editor.paste(text);
                }
            }
            None => self.editor.paste(text),
        }
    }

    fn key(&mut self, key: KeyEvent) {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control {
            match key.code {
                KeyCode::Char('z') => return self.actions.push(Action::Suspend),
                KeyCode::Char('l') => return self.actions.push(Action::Redraw),
                KeyCode::Char('o') => return self.show(None),
                _ => {}
            }
        }
        match &mut self.overlay {
            Some(Overlay::Dialog(dialog)) => {
                if let Some(answer) = dialog.key(key) {
                    self.answer(answer);
                }
            }
            Some(Overlay::Picker(picker)) => match picker.key(key) {
                Picked::Chosen(place) => {
                    self.overlay = None;
                    self.go(place);
                }
                Picked::Cancelled => self.overlay = None,
                Picked::Open => {}
            },
            Some(Overlay::Approval(approval)) => {
                let is_text = !approval.is_seen || approval.editor().is_none() && self.is_writing(key);
                if is_text { self.editor_key(key) } else { self.approval_key(key) }
            }
            None => self.editor_key(key),
        }
    }

    /// Takes a key for the text.
    fn editor_key(&mut self, key: KeyEvent) {
        self.edit(key);
        self.wrote_at = Some(self.now).filter(|_| !self.editor.is_empty());
    }

    fn edit(&mut self, key: KeyEvent) {
        let has = |modifier| key.modifiers.contains(modifier);
        let is_interrupt = key.code == KeyCode::Char('c') && has(KeyModifiers::CONTROL);
        if !is_interrupt {
            self.has_hinted = false;
        }
        match key.code {
            KeyCode::Char('c') if is_interrupt => return self.interrupt(),
            KeyCode::Esc if self.menu.is_some() => return self.menu = None,
            KeyCode::Esc => return self.stop(),
            KeyCode::Char('d') if has(KeyModifiers::CONTROL) && self.editor.is_empty() => {
                return self.actions.push(Action::Leave);
            }
            KeyCode::Enter if has(KeyModifiers::SHIFT) => self.editor.newline(),
            KeyCode::Char('j') if has(KeyModifiers::CONTROL) => self.editor.newline(),
            KeyCode::Enter if has(KeyModifiers::ALT) && self.work.is_none() => self.editor.newline(),
            KeyCode::Enter if has(KeyModifiers::ALT) => self.enter(Joins::FollowUp),
            KeyCode::Enter if self.menu.as_ref().is_some_and(Menu::is_entered) => self.complete(),
            KeyCode::Enter => self.enter(Joins::Steering),
            KeyCode::Tab if self.menu.is_some() => self.complete(),
            KeyCode::Up if self.menu.is_some() => return self.menu.iter_mut().for_each(|menu| menu.move_by(-1)),
            KeyCode::Down if self.menu.is_some() => return self.menu.iter_mut().for_each(|menu| menu.move_by(1)),
            KeyCode::BackTab => self.send(json!({"type": "cycle_thinking_level"}), Expected::Nothing),
            KeyCode::Up | KeyCode::Down => {
                // Keys that walk through earlier lines are not caught by what could complete one.
                self.editor.key(key);
                return self.menu = None;
            }
            _ => drop(self.editor.key(key)),
        }
        self.update_menu();
    }

    /// Sends the text, or starts another line of it.
    fn enter(&mut self, joins: Joins) {
        if self.editor.continues() {
            return self.editor.newline();
        }
        let text = self.editor.take();
        self.submit(text.trim_end(), joins);
    }

    fn complete(&mut self) {
        if let Some(menu) = self.menu.take() {
            let (n_chars, text) = menu.chosen();
            self.editor.complete(n_chars, text);
        }
    }

    pub(super) fn update_menu(&mut self) {
        let before = self.editor.before_cursor();
        let commands = || Menu::of_commands(&before, &self.commands).filter(|_| self.editor.is_on_first_line());
        self.menu = commands().or_else(|| Menu::of_files(&before, &self.setup.cwd, &self.setup.home));
    }

    /// Ctrl-C: stops what is going on, or clears the text, or leaves at the second time.
    pub fn interrupt(&mut self) {
        if self.is_busy() {
            self.stop();
        } else if !self.editor.is_empty() {
            self.editor.clear();
            self.update_menu();
        } else if std::mem::replace(&mut self.has_hinted, true) {
            self.actions.push(Action::Leave);
        } else {
            self.note("Ctrl-C again, Ctrl-D or /quit leaves.");
        }
    }

    fn is_busy(&self) -> bool {
        self.work.is_some() || self.is_shell_running()
    }

    /// Stops the shell command or the run; what is queued comes back into the editor.
    fn stop(&mut self) {
        if self.is_shell_running() {
            return self.send(json!({"type": "abort_bash"}), Expected::Nothing);
        }
        if self.work.is_none() {
            return;
        }
        if !self.steering.is_empty() || !self.follow_up.is_empty() {
            self.send(json!({"type": "clear_queue"}), Expected::Queue);
        }
        self.set_doing("stopping");
        self.send(json!({"type": "abort"}), Expected::Nothing);
    }

    /// Takes a line of a terminal without keys; `None` at its end.
    pub fn line(&mut self, line: Option<String>) {
        let Some(line) = line else { return self.actions.push(Action::Leave) };
        self.has_hinted = false;
        match &mut self.overlay {
            Some(Overlay::Dialog(dialog)) => match dialog.line(&line) {
                Some(answer) => self.answer(answer),
                None => self.complain("that is no answer; Ctrl-C gives none"),
            },
            Some(Overlay::Picker(picker)) => {
                let place = picker.named(&line);
                self.overlay = None;
                match place {
                    Some(place) => self.go(place),
                    None => self.note("nothing chosen"),
                }
            }
            Some(Overlay::Approval(approval)) if approval.is_seen => match approval.line(&line) {
                Some(pressed) => self.pressed(pressed),
                None => self.complain("that is no answer: one of the letters, or e and a reason"),
            },
            Some(Overlay::Approval(_)) | None => self.submit(line.trim_end(), Joins::Steering),
        }
    }

    /// Takes an interrupt of a terminal without keys.
    pub fn interrupted(&mut self) {
        match self.overlay {
            Some(Overlay::Dialog(_)) => self.answer(UiAnswer::Cancelled),
            Some(Overlay::Approval(_)) => self.pressed(Pressed::Decided(OptionId::Stop, None)),
            Some(Overlay::Picker(_)) => self.overlay = None,
            None => self.interrupt(),
        }
    }
}
