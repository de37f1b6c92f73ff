//! Reading JSON for a few members, whatever the rest of it looks like.
//!
//! Session files come from several programs and versions. A member of an
//! unexpected type must not cost the line it stands in, and text nobody asked
//! for must not be copied. Each [`LenientRead`] says what it takes from which JSON
//! type; everything else is skipped without being built.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use memchr::memchr;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// What a reader takes from a JSON value. Types it does not expect give the default.
pub(crate) trait LenientRead<'de>: Default {
    fn text(_text: Cow<'de, str>) -> Self {
        Self::default()
    }

    fn number(_number: f64) -> Self {
        Self::default()
    }

    fn null() -> Self {
        Self::default()
    }

    fn list<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }

    fn object<A: MapAccess<'de>>(mut object: A) -> Result<Self, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }
}

/// Lets serde read a [`LenientRead`].
pub(crate) struct Lenient<T>(pub T);

/// A string, or nothing.
#[derive(Default)]
pub(crate) struct Text<'a>(pub Option<Cow<'a, str>>);

/// A number, or nothing.
#[derive(Default)]
pub(crate) struct Number(pub Option<f64>);

impl<'de> LenientRead<'de> for Text<'de> {
    fn text(text: Cow<'de, str>) -> Self {
        Text(Some(text))
    }
}

impl<'de> LenientRead<'de> for Number {
    fn number(number: f64) -> Self {
        Number(Some(number))
    }
}

/// Returns the next member's name; names with escapes are copied, others borrowed.
pub(crate) fn next_name<'de, A: MapAccess<'de>>(object: &mut A) -> Result<Option<Cow<'de, str>>, A::Error> {
    Ok(object.next_key::<Lenient<Text<'de>>>()?.map(|Lenient(Text(name))| name.unwrap_or_default()))
}

/// Returns the value of the member just named.
pub(crate) fn value<'de, T: LenientRead<'de>, A: MapAccess<'de>>(object: &mut A) -> Result<T, A::Error> {
    Ok(object.next_value::<Lenient<T>>()?.0)
}

/// Skips the value of the member just named.
pub(crate) fn skip<'de, A: MapAccess<'de>>(object: &mut A) -> Result<(), A::Error> {
    object.next_value::<IgnoredAny>().map(|_| ())
}

impl<'de, T: LenientRead<'de>> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(GlanceVisitor(PhantomData))
    }
}

struct GlanceVisitor<T>(PhantomData<T>);

impl<'de, T: LenientRead<'de>> Visitor<'de> for GlanceVisitor<T> {
    type Value = Lenient<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Lenient<T>, E> {
        Ok(Lenient(T::text(Cow::Borrowed(text))))
    }

    fn visit_str<E>(self, text: &str) -> Result<Lenient<T>, E> {
        Ok(Lenient(T::text(Cow::Owned(text.to_owned()))))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Lenient<T>, E> {
        Ok(Lenient(T::number(number as f64)))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Lenient<T>, E> {
        Ok(Lenient(T::number(number as f64)))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Lenient<T>, E> {
        Ok(Lenient(T::number(number)))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Lenient<T>, E> {
        Ok(Lenient(T::default()))
    }

    fn visit_unit<E>(self) -> Result<Lenient<T>, E> {
        Ok(Lenient(T::null()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Lenient<T>, A::Error> {
        T::list(list).map(Lenient)
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Lenient<T>, A::Error> {
        T::object(object).map(Lenient)
    }
}

/// Returns a copy of the line that strict JSON readers accept, if that takes no more than
/// replacing what is not Unicode: bytes that are not UTF-8, and the lone surrogate
/// escapes JavaScript writes when a string was cut in the middle of a character.
pub(crate) fn mend(line: &[u8]) -> Option<Vec<u8>> {
    // Nearly every line is Unicode: then only escapes have to be looked at.
    if std::str::from_utf8(line).is_ok() {
        return replace_lone_surrogates(line);
    }
    let text = String::from_utf8_lossy(line).into_owned().into_bytes();
    Some(replace_lone_surrogates(&text).unwrap_or(text))
}

fn replace_lone_surrogates(line: &[u8]) -> Option<Vec<u8>> {
    let mut out: Option<Vec<u8>> = None;
    let mut at = 0;
    while let Some(next) = line.get(at..).and_then(|rest| memchr(b'\\', rest)) {
        at += next;
        at += match surrogate(&line[at..]) {
            Some(0xD800..=0xDBFF) if matches!(surrogate(&line[at + 6..]), Some(0xDC00..=0xDFFF)) => 12,
            Some(_) => {
                let out = out.get_or_insert_with(|| line.to_vec());
                out[at..at + 6].copy_from_slice(b"\\ufffd");
                6
            }
            None => 2,
        };
    }
    out
}

/// Returns the code unit of a surrogate escape at the start of `text`.
fn surrogate(text: &[u8]) -> Option<u16> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    let unit = u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    (0xD800..=0xDFFF).contains(&unit).then_some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_not_unicode_is_replaced() {
        let check = |line: &[u8], expected: Option<&str>| {
            assert_eq!(mend(line).map(|line| String::from_utf8(line).unwrap()).as_deref(), expected);
        };
        check(br#""plain \u00e9 \ud83d\ude00 \n""#, None);
        check(br#""cut \ud83d""#, Some(r#""cut \ufffd""#));
        check(br#""cut \ud83d\u0041 \ude00""#, Some(r#""cut \ufffd\u0041 \ufffd""#));
        check(br#""two \ud83d\ud83d\ude00""#, Some(r#""two \ufffd\ud83d\ude00""#));
        check(br#""not an escape: \\ud83d""#, None);
        check(b"\"byte \xff\"", Some("\"byte \u{fffd}\""));
        check(br#""\ud8"#, None);
    }
}
