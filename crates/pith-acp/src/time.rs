//! Times as editors read them.

/// Returns a Unix time in milliseconds as ISO 8601 in UTC; `None` if it is out of range.
pub fn iso(milliseconds: i64) -> Option<String> {
    let time = jiff::Timestamp::from_millisecond(milliseconds).ok()?;
    Some(format!("{time:.3}"))
}
