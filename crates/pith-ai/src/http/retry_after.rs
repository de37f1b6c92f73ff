//! When to try again: what the server asked for, else a growing pause.

use std::time::{Duration, SystemTime};

/// Returns the delay a server asks for: `retry-after-ms`, else `retry-after` in seconds or as a date. LiteLLM passes on
/// the headers of the server behind it with a name before theirs.
pub(crate) fn server_delay<'a>(header: impl Fn(&str) -> Option<&'a str>) -> Option<Duration> {
    delay_of(&header).or_else(|| delay_of(&|name: &str| header(&format!("llm_provider-{name}"))))
}

fn delay_of<'a>(header: &dyn Fn(&str) -> Option<&'a str>) -> Option<Duration> {
    if let Some(millis) = header("retry-after-ms").and_then(|value| value.parse::<f64>().ok()) {
        return delay(millis / 1000.0);
    }
    let value = header("retry-after")?;
    if let Ok(seconds) = value.parse::<f64>() {
        return delay(seconds);
    }
    let at = jiff::fmt::rfc2822::parse(value).ok()?.timestamp();
    let now = jiff::Timestamp::try_from(SystemTime::now()).ok()?;
    delay((at.as_millisecond() - now.as_millisecond()).max(0) as f64 / 1000.0)
}

fn delay(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok()
}

/// Whether a delay is more than the caller will wait; zero means no limit.
pub(super) fn is_too_long(asked: Duration, max: Duration) -> bool {
    !max.is_zero() && asked > max
}

/// Returns the pause after try number `attempt`, with a little jitter so that clients do not come back in step.
pub(super) fn back_off(attempt: u32) -> Duration {
    let full = 0.5 * f64::from(2u32.pow(attempt.min(4)));
    let nanos = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |now| now.subsec_nanos());
    let jitter = f64::from(nanos % 1000) / 1000.0 * 0.25;
    Duration::from_secs_f64(full.min(8.0) * (1.0 - jitter))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(name: &str, value: &str) -> Option<u128> {
        server_delay(|wanted| (wanted == name).then_some(value)).map(|delay| delay.as_millis())
    }

    #[test]
    fn servers_ask_in_three_ways() {
        assert_eq!(asked("retry-after-ms", "1500"), Some(1500));
        assert_eq!(asked("retry-after", "2"), Some(2000));
        assert_eq!(asked("retry-after", "0.5"), Some(500));
        assert_eq!(asked("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT"), Some(0));
        let far = asked("retry-after", "Wed, 21 Oct 2099 07:28:00 GMT").expect("a delay");
        assert!(far > 1_000_000_000);
        assert_eq!(asked("retry-after", "soon"), None);
        assert_eq!(asked("retry-after", "-5"), None);
        assert_eq!(asked("retry-after", "inf"), None);
    }

    #[test]
    fn pauses_grow_to_eight_seconds() {
        for (attempt, seconds) in [(0, 0.5), (1, 1.0), (2, 2.0), (4, 8.0), (40, 8.0)] {
            let pause = back_off(attempt).as_secs_f64();
            assert!(pause <= seconds && pause >= seconds * 0.75, "{attempt}: {pause}");
        }
    }
}
