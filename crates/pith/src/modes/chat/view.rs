//! What the chat looks like: its state as the last rows of the screen.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::widgets::Widget;

use super::app::{App, Overlay, WidgetLines};
use super::text::Row;
use super::theme;
use crate::modes::attach::attached;
use crate::modes::screen::duration;

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// A change of the spinner, in milliseconds.
pub const TICK: u64 = 100;

/// Rows of widgets that are shown; more would leave no room.
const MAX_WIDGET_ROWS: usize = 10;

/// The prompt before the text, and its columns.
const PROMPT: &str = "› ";
const PROMPT_WIDTH: u16 = 2;

/// The rows at the end of the screen.
pub struct Drawn {
    pub buffer: Buffer,
    /// Where the user writes, if anywhere.
    pub cursor: Option<Position>,
}

/// Draws the state.
pub fn draw(app: &App) -> Drawn {
    let (columns, most) = app.room();
    let (width, most) = (usize::from(columns), usize::from(most));
    let field = match &app.overlay {
        Some(Overlay::Picker(_)) => None,
        Some(Overlay::Dialog(dialog)) => dialog.editor(),
        Some(Overlay::Approval(approval)) => approval.editor(),
        None => Some(&app.editor),
    };
    let room = columns.saturating_sub(PROMPT_WIDTH).max(1);
    let n_field = field.map_or(0, |editor| editor.height(room, u16::try_from(most / 2).unwrap_or(u16::MAX).max(1)));
    let mut bottom: Vec<Row> = app.menu.iter().flat_map(|menu| menu.rows(width)).collect();
    bottom.extend(widgets(app, width, |widget| widget.is_below));
    let n_queued = app.steering.len() + app.follow_up.len();
    bottom.extend(app.footer.rows(width, n_queued, app.statuses.values().map(String::as_str)));
    bottom.truncate(most.saturating_sub(usize::from(n_field)));
    let asked = app.approval().map(|approval| approval.rows(width, most.saturating_sub(usize::from(n_field))));
    if let Some(asked) = &asked {
        // What is asked comes before what stands around it.
        bottom.truncate(most.saturating_sub(usize::from(n_field) + asked.len()));
    }
    let n_top = most.saturating_sub(usize::from(n_field) + bottom.len());
    let mut top = match asked {
        Some(asked) => app.tool_rows(n_top.saturating_sub(asked.len())).into_iter().chain(asked).collect(),
        None => above(app, width, n_top),
    };
    top.drain(..top.len().saturating_sub(n_top));

    let n_rows = top.len() + usize::from(n_field) + bottom.len();
    let height = u16::try_from(n_rows).unwrap_or(u16::MAX).max(1);
    let mut buffer = Buffer::empty(Rect::new(0, 0, columns, height));
    let mut at = 0;
    put(&top, &mut at, &mut buffer);
    let cursor = field.map(|editor| {
        put(&[Row::new(PROMPT, theme::accent().patch(theme::bold()))], &mut at.clone(), &mut buffer);
        let space = Rect::new(PROMPT_WIDTH.min(columns - 1), at, room.min(columns), n_field);
        at += n_field;
        editor.draw(space.intersection(buffer.area), &mut buffer)
    });
    put(&bottom, &mut at, &mut buffer);
    Drawn { buffer, cursor }
}

fn put(rows: &[Row], at: &mut u16, buffer: &mut Buffer) {
    for row in rows {
        let space = Rect::new(0, *at, buffer.area.width, 1).intersection(buffer.area);
        row.to_line().render(space, buffer);
        *at += 1;
    }
}

/// Everything above the editor.
fn above(app: &App, width: usize, most: usize) -> Vec<Row> {
    let mut rows = app.live_rows();
    rows.extend(app.tool_rows(most / 2));
    rows.extend(status(app, width));
    rows.extend(widgets(app, width, |widget| !widget.is_below));
    let queued = app.steering.iter().map(|text| ("joins next", text));
    let queued = queued.chain(app.follow_up.iter().map(|text| ("follows", text)));
    rows.extend(queued.take(5).map(|(when, text)| {
        let (_, words) = attached(text);
        let line = words.lines().next().unwrap_or_default();
        Row::new(&format!("↳ {when}: "), theme::dim()).with(line, theme::accent()).cut(width)
    }));
    match &app.overlay {
        Some(Overlay::Picker(picker)) => rows.extend(picker.rows(width, most.saturating_sub(2))),
        Some(Overlay::Dialog(dialog)) => rows.extend(dialog.rows(width, most)),
        Some(Overlay::Approval(_)) => {}
        None => rows.push(Row::new(&"─".repeat(width), theme::dim())),
    }
    rows
}

/// The widgets of a place.
fn widgets(app: &App, width: usize, is_here: impl Fn(&WidgetLines) -> bool) -> Vec<Row> {
    let lines = app.widgets.values().filter(|widget| is_here(widget)).flat_map(|widget| &widget.lines);
    lines.take(MAX_WIDGET_ROWS).map(|line| Row::plain(line).cut(width)).collect()
}

/// What is going on.
fn status(app: &App, width: usize) -> Option<Row> {
    if let Some(retry) = &app.retry {
        let text = format!("{} · Esc stops", retry.text(app.now));
        return Some(Row::new(&text, theme::accent()).cut(width));
    }
    let work = app.work.as_ref()?;
    let elapsed = app.now.saturating_duration_since(work.since);
    let frame = usize::try_from(elapsed.as_millis() / u128::from(TICK)).unwrap_or(0) % SPINNER.len();
    let row = Row::new(SPINNER[frame], theme::accent()).with(&format!(" {}", work.doing), Default::default());
    Some(row.with(&format!(" {} · Esc stops", duration(elapsed)), theme::dim()).cut(width))
}
