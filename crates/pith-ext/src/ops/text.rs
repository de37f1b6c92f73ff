//! Text: encodings, widths, segments, time zones and URLs.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use rquickjs::function::{Func, Opt};
use rquickjs::{Ctx, FromJs, Object, TypedArray, Value};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::url;

/// A JavaScript string; lone surrogates, which Rust strings cannot hold, are replaced.
pub struct Text(pub String);

impl<'js> FromJs<'js> for Text {
    fn from_js(_: &Ctx<'js>, value: Value<'js>) -> rquickjs::Result<Self> {
        let kind = value.type_name();
        let Some(string) = value.into_string() else {
            return Err(rquickjs::Error::new_from_js(kind, "string"));
        };
        match string.to_string() {
            Ok(text) => Ok(Text(text)),
            Err(rquickjs::Error::Utf8(_)) => {
                let raw = string.to_cstring()?;
                Ok(Text(String::from_utf8_lossy(raw.as_ref()).into_owned()))
            }
            Err(error) => Err(error),
        }
    }
}

/// Bytes from JavaScript, which sends them as base64.
pub struct Packed(pub Vec<u8>);

impl<'js> FromJs<'js> for Packed {
    fn from_js(ctx: &Ctx<'js>, value: Value<'js>) -> rquickjs::Result<Self> {
        let text = String::from_js(ctx, value)?;
        STANDARD.decode(text).map(Packed).map_err(|_| rquickjs::Error::new_from_js("string", "base64"))
    }
}

/// Base64 in the lenient form that browsers and Node accept.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

pub(super) fn install(group: &Object<'_>) -> rquickjs::Result<()> {
    group.set("encode", Func::from(|ctx, text: Text| bytes(ctx, text.0.into_bytes())))?;
    group.set("decode", Func::from(|encoded: String| decode(&encoded)))?;
    group.set("byteLength", Func::from(|text: Text| text.0.len()))?;
    group.set(
        "isUtf8",
        Func::from(|encoded: String| STANDARD.decode(encoded).is_ok_and(|bytes| std::str::from_utf8(&bytes).is_ok())),
    )?;
    group.set("decodeBase64", Func::from(|ctx, text: Text| bytes(ctx, decode_base64(&text.0))))?;
    group.set("width", Func::from(|text: Text| text.0.width()))?;
    group.set("segments", Func::from(|text: Text, granularity: String| segments(&text.0, &granularity)))?;
    group.set("zone", Func::from(zone))?;
    group.set("zoneOffset", Func::from(|name: Text, millis: f64| zone_offset(&name.0, millis)))?;
    group.set(
        "parseUrl",
        Func::from(|text: Text, base: Opt<Option<Text>>| {
            url::parse(&text.0, base.0.flatten().as_ref().map(|base| base.0.as_str()))
        }),
    )?;
    group.set("setUrl", Func::from(|href: Text, part: String, value: Text| url::set(&href.0, &part, &value.0)))
}

fn bytes<'js>(ctx: Ctx<'js>, bytes: Vec<u8>) -> rquickjs::Result<TypedArray<'js, u8>> {
    TypedArray::new(ctx, bytes)
}

/// Decodes UTF-8 that is given as base64.
fn decode(encoded: &str) -> String {
    let bytes = STANDARD.decode(encoded).unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

fn decode_base64(text: &str) -> Vec<u8> {
    let clean: Vec<u8> = text
        .bytes()
        .take_while(|byte| *byte != b'=')
        .filter_map(|byte| match byte {
            b'-' => Some(b'+'),
            b'_' => Some(b'/'),
            b'+' | b'/' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => Some(byte),
            _ => None,
        })
        .collect();
    // A single character holds no byte.
    let usable = if clean.len() % 4 == 1 { clean.len() - 1 } else { clean.len() };
    LENIENT.decode(&clean[..usable]).unwrap_or_default()
}

/// Lengths in UTF-16 units, and for words whether each is a word.
fn segments(text: &str, granularity: &str) -> Vec<Vec<usize>> {
    let units = |part: &str| part.encode_utf16().count();
    match granularity {
        "word" => text
            .split_word_bounds()
            .map(|part| vec![units(part), usize::from(part.chars().any(char::is_alphanumeric))])
            .collect(),
        "sentence" => text.split_sentence_bounds().map(|part| vec![units(part)]).collect(),
        _ => text.graphemes(true).map(|part| vec![units(part)]).collect(),
    }
}

/// The name of the local time zone.
fn zone() -> String {
    let linked = std::fs::read_link("/etc/localtime").ok();
    let named =
        linked.as_ref().and_then(|path| path.to_str()?.split_once("zoneinfo/").map(|(_, name)| name.to_owned()));
    std::env::var("TZ").ok().filter(|name| name.contains('/')).or(named).unwrap_or_else(|| "UTC".to_owned())
}

/// Minutes east of UTC in a named zone at a moment.
fn zone_offset(name: &str, millis: f64) -> Option<f64> {
    let data = ["/usr/share/zoneinfo", "/usr/lib/zoneinfo"].iter().find_map(|root| {
        // The name comes from an extension: it must not lead out of the directory.
        let is_safe = !name.is_empty() && !name.starts_with('/') && !name.split('/').any(|part| part == "..");
        is_safe.then(|| std::fs::read(format!("{root}/{name}")).ok()).flatten()
    })?;
    let zone = jiff::tz::TimeZone::tzif(name, &data).ok()?;
    let moment = jiff::Timestamp::from_millisecond(millis as i64).ok()?;
    Some(f64::from(zone.to_offset(moment).seconds()) / 60.0)
}
