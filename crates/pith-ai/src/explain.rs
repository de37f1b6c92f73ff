//! Failed model calls in words for people: provider, status, what the server said, and what to do about it. Hosts get
//! the text of the wire module instead, which other agents have too.

use pith_protocol::{ErrorKind, Failure};
use serde_json::Value;

use crate::key_variable;

/// The server's own words are cut here; the rest helps nobody.
const MAX_WORDS: usize = 300;

/// Says in one sentence what went wrong and in another what helps. `text` is what hosts are told.
pub fn explain(provider: &str, text: &str, failure: Option<&Failure>) -> String {
    let Some(failure) = failure.filter(|failure| failure.kind != ErrorKind::Limit && !provider.is_empty()) else {
        return text.to_owned();
    };
    // No server was asked: the text is pith's own, and says what to change.
    if failure.kind == ErrorKind::InvalidRequest && failure.status.is_none() {
        return text.to_owned();
    }
    let said = match failure.kind {
        // Without a status nothing was sent, and the text speaks of commands that only other agents have.
        ErrorKind::Auth if text.starts_with("No API key found") => "there is no API key".to_owned(),
        ErrorKind::Auth if text.starts_with("Authentication failed") && failure.status.is_none() => {
            "the login has expired, and pith cannot renew it".to_owned()
        }
        _ => words(text, failure.status),
    };
    let said = if said.is_empty() { usual(failure).to_owned() } else { said };
    let status = failure.status.map(|status| format!(" {status}")).unwrap_or_default();
    let said = said.trim_end_matches(['.', ' ']);
    format!("{provider}:{status} {said}. {}", advice(provider, failure))
}

/// Says in a few words why a request failed, for a line that counts down.
pub fn cause(text: &str, failure: Option<&Failure>) -> String {
    const MAX_CAUSE: usize = 60;
    match failure {
        Some(Failure { kind: ErrorKind::RateLimit, .. }) => "rate limit".to_owned(),
        Some(failure) => usual(failure).to_owned(),
        None => {
            let said = words(text, None);
            match said.char_indices().nth(MAX_CAUSE) {
                Some((at, _)) => format!("{}…", &said[..at]),
                None if said.is_empty() => "no answer".to_owned(),
                None => said,
            }
        }
    }
}

/// What the server said, without status, JSON and HTML around it.
fn words(text: &str, status: Option<u16>) -> String {
    let mut text = text.trim();
    if let Some(status) = status.map(|status| status.to_string()) {
        text = text.strip_prefix(status.as_str()).unwrap_or(text).trim_start_matches([':', ' ']);
    }
    if is_page(text) {
        return String::new();
    }
    // A quotation mark inside a sentence is part of it.
    let at = if text.starts_with('"') { Some(0) } else { text.find(['{', '[']) };
    let body = at.and_then(|at| Some((at, first_value(&text[at..])?)));
    let said = match &body {
        Some((_, Value::String(said))) => said,
        Some((at, body)) => message(body).unwrap_or(&text[..*at]),
        None => text,
    };
    // A body that was cut is no JSON any more, but its message may be whole.
    let cut = text.find("\"message\":").filter(|_| body.is_none()).and_then(|at| first_value(&text[at + 10..]));
    let said = cut.as_ref().and_then(Value::as_str).unwrap_or(said);
    let line = said.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let said = line.trim_end_matches([':', ' ']);
    if said == "status code (no body)" {
        return String::new();
    }
    match said.char_indices().nth(MAX_WORDS) {
        Some((at, _)) => format!("{}…", &said[..at]),
        None => said.to_owned(),
    }
}

/// The JSON value a text begins with.
fn first_value(text: &str) -> Option<Value> {
    serde_json::Deserializer::from_str(text).into_iter().next()?.ok()
}

/// The message in the error bodies of the vendors.
fn message(body: &Value) -> Option<&str> {
    let body = body.as_array().and_then(|all| all.first()).unwrap_or(body);
    let places = ["/error/message", "/message", "/detail", "/error", "/error/error/message", "/errors/0/message"];
    places.iter().find_map(|place| body.pointer(place)?.as_str()).filter(|text| !text.trim().is_empty())
}

fn is_page(text: &str) -> bool {
    let start: String = text.trim_start().chars().take(200).flat_map(char::to_lowercase).collect();
    start.starts_with("<!doctype") || start.contains("<html") || start.contains("<head") || start.contains("<body")
}

/// What to say if the server said nothing.
fn usual(failure: &Failure) -> &'static str {
    match failure.kind {
        ErrorKind::Auth => "the key was refused",
        ErrorKind::RateLimit => "too many requests",
        ErrorKind::Overloaded => "the server cannot answer",
        ErrorKind::Overflow => "the request is too large",
        ErrorKind::Quota => "the account may not be used",
        ErrorKind::InvalidRequest => "the request was refused",
        ErrorKind::Network => "no connection",
        ErrorKind::Timeout => "no answer in time",
        ErrorKind::Protocol => "the answer was not understood",
        ErrorKind::Limit => "a limit was reached",
    }
}

fn advice(provider: &str, failure: &Failure) -> String {
    match failure.kind {
        ErrorKind::Auth => match key_variable(provider) {
            Some(variable) => format!("Check {variable} or run pith auth set {provider}"),
            None => format!("Check its key in models.json or auth.json, or run pith auth set {provider}"),
        },
        ErrorKind::RateLimit => {
            let time =
                failure.retry_after_ms.map_or_else(|| "a little".to_owned(), |ms| format!("{}s", ms.div_ceil(1000)));
            format!("Wait {time} and try again, or use another model (--model)")
        }
        ErrorKind::Quota => format!("See to the account at {provider}, or use another model (--model)"),
        ErrorKind::Overloaded => "Try again later, or use another model (--model)".to_owned(),
        ErrorKind::Network | ErrorKind::Timeout => {
            "Check the network, the proxy and the baseUrl of the provider, or try again later".to_owned()
        }
        ErrorKind::Overflow => "The conversation does not fit the model: shorten it with /compact in the chat, begin \
                                a new session, send less, or use a model with a larger window (pith --list-models)"
            .to_owned(),
        ErrorKind::InvalidRequest if failure.status == Some(404) => {
            format!("Check the name of the model: pith --list-models {provider}")
        }
        ErrorKind::InvalidRequest | ErrorKind::Protocol | ErrorKind::Limit => {
            "--verbose shows the whole answer of the server".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure;

    fn check(provider: &str, status: u16, kind: ErrorKind, text: &str, expected: &str) {
        let failure = Failure { status: Some(status), ..failure(kind) };
        assert_eq!(explain(provider, text, Some(&failure)), expected);
    }

    #[test]
    fn a_refused_key_is_named_with_its_variable() {
        let body = r#"401 {"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#;
        let advice = "Check ANTHROPIC_API_KEY or run pith auth set anthropic";
        check("anthropic", 401, ErrorKind::Auth, body, &format!("anthropic: 401 invalid x-api-key. {advice}"));
        check(
            "anthropic",
            403,
            ErrorKind::Auth,
            "403 status code (no body)",
            &format!("anthropic: 403 the key was refused. {advice}"),
        );
        let missing = explain("anthropic", "No API key found for anthropic.\n\nSet", Some(&failure(ErrorKind::Auth)));
        assert_eq!(missing, format!("anthropic: there is no API key. {advice}"));
        let own = "Check its key in models.json or auth.json, or run pith auth set mine";
        check("mine", 401, ErrorKind::Auth, "401 no", &format!("mine: 401 no. {own}"));
    }

    #[test]
    fn a_cause_is_a_few_words() {
        let body = r#"429 {"type":"error","error":{"type":"rate_limit_error","message":"Number of request tokens has exceeded your limit"}}"#;
        assert_eq!(cause(body, Some(&failure(ErrorKind::RateLimit))), "rate limit");
        assert_eq!(cause(body, Some(&failure(ErrorKind::Overloaded))), "the server cannot answer");
        assert_eq!(cause(body, None), "Number of request tokens has exceeded your limit");
        assert_eq!(cause("<html>", None), "no answer");
    }

    #[test]
    fn pages_are_never_shown() {
        let page =
            "502 <!DOCTYPE html>\n<html><head><title>Bad gateway</title></head><body><h1>Oops</h1></body></html>";
        let expected = "openai: 502 the server cannot answer. Try again later, or use another model (--model)";
        check("openai", 502, ErrorKind::Overloaded, page, expected);
    }

    #[test]
    fn what_the_server_says_is_found_in_every_body() {
        for body in [
            r#"{"error":{"message":"no such model"}}"#,
            r#"[{"error":{"message":"no such model"}}]"#,
            r#"404: {"message":"no such model"}"#,
            r#"404 Not found: {"detail":"no such model."}"#,
            r#"{"error":"no such model"}"#,
            r#"404: "no such model""#,
            r#"x API error (404): {"message":"no such model","type":"t"}"#,
            "404: {\"message\":\"no such model\"}\nwhat the real provider said",
            r#"404 {"type":"error","error":{"message":"no such model","details":["cut he..."#,
            "no such model",
            "\n  no such model\nand a long trace",
        ] {
            let expected = "x: 404 no such model. Check the name of the model: pith --list-models x";
            check("x", 404, ErrorKind::InvalidRequest, body, expected);
        }
        let long = "a".repeat(1000);
        let failure = Failure { status: Some(400), ..failure(ErrorKind::InvalidRequest) };
        assert!(explain("x", &long, Some(&failure)).len() < 400);
    }

    #[test]
    fn texts_of_pith_itself_stay() {
        assert_eq!(explain("x", "enough", Some(&failure(ErrorKind::Limit))), "enough");
        assert_eq!(explain("x", "Request was aborted.", None), "Request was aborted.");
    }

    #[test]
    fn what_no_server_has_refused_is_said_as_it_is() {
        let text = "Invalid baseUrl \"gateway.test/v1\" of provider x: it must begin with http:// or https://";
        assert_eq!(explain("x", text, Some(&failure(ErrorKind::InvalidRequest))), text);
    }

    #[test]
    fn quotation_marks_are_part_of_a_sentence() {
        let text = "Cannot connect to 127.0.0.1; check \"baseUrl\" of the provider";
        let shown = explain("x", text, Some(&failure(ErrorKind::Network)));
        assert!(shown.starts_with(&format!("x: {text}. Check the network")), "{shown}");
    }

    #[test]
    fn an_overflow_says_what_helps() {
        let text = explain("x", "prompt is too long: 9 tokens > 8 maximum", Some(&failure(ErrorKind::Overflow)));
        assert!(
            text.starts_with("x: prompt is too long: 9 tokens > 8 maximum. The conversation does not fit"),
            "{text}"
        );
    }
}
