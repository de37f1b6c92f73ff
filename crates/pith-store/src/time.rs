//! Time as session files write it: UTC, milliseconds, `Z`.

use jiff::Timestamp;

/// Returns the current time in Unix milliseconds.
pub(crate) fn now() -> i64 {
    Timestamp::now().as_millisecond()
}

/// Formats a time as `2026-11-15T06:52:54.872Z`.
pub(crate) fn to_iso(millis: i64) -> String {
    // Out of range only for times thousands of years away, which a damaged file may contain.
    let timestamp = Timestamp::from_millisecond(millis).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{timestamp:.3}")
}

/// Parses an ISO time with offset into Unix milliseconds.
pub(crate) fn from_iso(text: &str) -> Option<i64> {
    text.parse::<Timestamp>().ok().map(|timestamp| timestamp.as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iso_times_round_trip() {
        for text in ["2026-11-15T06:52:54.872Z", "1970-01-01T00:00:00.000Z", "2026-11-15T06:52:54.000Z"] {
            assert_eq!(to_iso(from_iso(text).unwrap()), text);
        }
        assert_eq!(from_iso("2026-11-15T08:52:54+02:00"), from_iso("2026-11-15T06:52:54Z"));
        assert_eq!(from_iso("yesterday"), None);
        assert_eq!(to_iso(i64::MAX), "1970-01-01T00:00:00.000Z");
    }
}
