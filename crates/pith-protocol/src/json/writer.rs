//! The serializer behind [`super::append`].

use std::io::Write;

use serde::Serialize;
use serde::ser::{
    Error as _, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};
use serde_json::Error;

use super::escape::append_escaped;

/// How `serde_json` marks JSON that is to be copied as it is.
const RAW: &str = "$serde_json::private::RawValue";

/// Writes to the end of a buffer.
pub struct Writer<'o>(pub &'o mut Vec<u8>);

/// A list or an object under way.
pub struct Compound<'o> {
    out: &'o mut Vec<u8>,
    is_first: bool,
    end: &'static [u8],
}

impl Writer<'_> {
    fn text(&mut self, text: &str) {
        self.0.push(b'"');
        append_escaped(self.0, text);
        self.0.push(b'"');
    }

    fn plain(&mut self, value: impl std::fmt::Display) {
        write!(self.0, "{value}").expect("a vector takes every byte");
    }

    fn open(&mut self, start: &[u8], end: &'static [u8]) -> Compound<'_> {
        self.0.extend_from_slice(start);
        Compound { out: self.0, is_first: true, end }
    }

    /// An object with one field, whose value comes next.
    fn variant(&mut self, name: &str) {
        self.0.push(b'{');
        self.text(name);
        self.0.push(b':');
    }
}

macro_rules! plain {
    ($($method:ident: $kind:ty,)*) => {
        $(fn $method(self, value: $kind) -> Result<(), Error> {
            self.plain(value);
            Ok(())
        })*
    };
}

impl<'w> Serializer for &'w mut Writer<'_> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Compound<'w>;
    type SerializeTuple = Compound<'w>;
    type SerializeTupleStruct = Compound<'w>;
    type SerializeTupleVariant = Compound<'w>;
    type SerializeMap = Compound<'w>;
    type SerializeStruct = Compound<'w>;
    type SerializeStructVariant = Compound<'w>;

    plain! {
        serialize_bool: bool,
        serialize_i8: i8,
        serialize_i16: i16,
        serialize_i32: i32,
        serialize_i64: i64,
        serialize_i128: i128,
        serialize_u8: u8,
        serialize_u16: u16,
        serialize_u32: u32,
        serialize_u64: u64,
        serialize_u128: u128,
    }

    fn serialize_f32(self, value: f32) -> Result<(), Error> {
        match value.is_finite() {
            true => self.plain(value),
            false => self.plain("null"),
        }
        Ok(())
    }

    fn serialize_f64(self, value: f64) -> Result<(), Error> {
        // `Display` is the shortest decimal that reads back equal, and has no fraction when there is none.
        match value.is_finite() {
            true => self.plain(value),
            false => self.plain("null"),
        }
        Ok(())
    }

    fn serialize_char(self, value: char) -> Result<(), Error> {
        self.text(value.encode_utf8(&mut [0; 4]));
        Ok(())
    }

    fn serialize_str(self, value: &str) -> Result<(), Error> {
        self.text(value);
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Error> {
        self.collect_seq(value)
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.0.extend_from_slice(b"null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.variant(variant);
        value.serialize(&mut *self)?;
        self.0.push(b'}');
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Compound<'w>, Error> {
        Ok(self.open(b"[", b"]"))
    }

    fn serialize_tuple(self, _: usize) -> Result<Compound<'w>, Error> {
        Ok(self.open(b"[", b"]"))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Compound<'w>, Error> {
        Ok(self.open(b"[", b"]"))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Compound<'w>, Error> {
        self.variant(variant);
        Ok(self.open(b"[", b"]}"))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Compound<'w>, Error> {
        Ok(self.open(b"{", b"}"))
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Compound<'w>, Error> {
        Ok(if name == RAW { self.open(b"", b"") } else { self.open(b"{", b"}") })
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Compound<'w>, Error> {
        self.variant(variant);
        Ok(self.open(b"{", b"}}"))
    }
}

impl Compound<'_> {
    fn separate(&mut self) {
        if !std::mem::take(&mut self.is_first) {
            self.out.push(b',');
        }
    }

    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.separate();
        value.serialize(&mut Writer(self.out))
    }

    fn field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Error> {
        if name == RAW {
            let text = serde_json::to_value(value)?;
            let text = text.as_str().ok_or_else(|| Error::custom("raw JSON is a text"))?;
            self.out.extend_from_slice(text.as_bytes());
            return Ok(());
        }
        self.separate();
        Writer(self.out).text(name);
        self.out.push(b':');
        value.serialize(&mut Writer(self.out))
    }

    fn finish(self) -> Result<(), Error> {
        self.out.extend_from_slice(self.end);
        Ok(())
    }
}

macro_rules! list {
    ($($kind:ident $method:ident,)*) => {
        $(impl $kind for Compound<'_> {
            type Ok = ();
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.element(value)
            }

            fn end(self) -> Result<(), Error> {
                self.finish()
            }
        })*
    };
}

list! {
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field,
}

macro_rules! object {
    ($($kind:ident,)*) => {
        $(impl $kind for Compound<'_> {
            type Ok = ();
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Error> {
                self.field(name, value)
            }

            fn end(self) -> Result<(), Error> {
                self.finish()
            }
        })*
    };
}

object! {
    SerializeStruct,
    SerializeStructVariant,
}

impl SerializeMap for Compound<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.separate();
        let start = self.out.len();
        key.serialize(&mut Writer(self.out))?;
        match self.out.get(start) {
            Some(b'"') => {}
            // Names are texts, whatever they are made of.
            Some(b'0'..=b'9' | b'-' | b't' | b'f') => {
                self.out.insert(start, b'"');
                self.out.push(b'"');
            }
            _ => return Err(Error::custom("key must be a string")),
        }
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.out.push(b':');
        value.serialize(&mut Writer(self.out))
    }

    fn end(self) -> Result<(), Error> {
        self.finish()
    }
}
