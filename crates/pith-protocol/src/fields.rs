//! Reading one command's fields, with error texts that name the field, and writing them.

use base64::Engine;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::Serialize;
use serde::ser::SerializeMap;
use serde_json::{Map, Value};

use crate::{ErrorCode, ImageBlock};

/// Why a command's fields could not be taken. `Display` is the wire text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    #[error("Missing required field \"{path}\" for command \"{command}\"")]
    Missing { command: &'static str, path: String },
    #[error("Invalid field \"{path}\" for command \"{command}\": {why}")]
    Invalid { command: &'static str, path: String, why: String },
    /// The tools of the host have texts and a code of their own.
    #[error("{0}")]
    HostTool(String),
}

impl FieldError {
    /// The failure as programs know it.
    pub fn code(&self) -> ErrorCode {
        match self {
            FieldError::Missing { .. } => ErrorCode::MissingField,
            FieldError::Invalid { .. } => ErrorCode::InvalidField,
            FieldError::HostTool(_) => ErrorCode::HostTool,
        }
    }
}

/// Where a value stands: command and path, for error texts.
#[derive(Clone, Debug)]
pub struct Place {
    command: &'static str,
    path: String,
}

impl Place {
    /// The place of a top-level field.
    pub fn new(command: &'static str, field: &str) -> Self {
        Place { command, path: field.to_owned() }
    }

    /// A member below this place.
    pub fn member(&self, name: &str) -> Self {
        Place { command: self.command, path: format!("{}.{name}", self.path) }
    }

    /// An element below this place.
    pub fn element(&self, index: usize) -> Self {
        Place { command: self.command, path: format!("{}[{index}]", self.path) }
    }

    /// The error for an absent value.
    pub fn missing(&self) -> FieldError {
        FieldError::Missing { command: self.command, path: self.path.clone() }
    }

    /// The error for an unusable value.
    pub fn invalid(&self, why: impl Into<String>) -> FieldError {
        FieldError::Invalid { command: self.command, path: self.path.clone(), why: why.into() }
    }

    /// The error for a value of another JSON type.
    pub fn expected(&self, wanted: &str, got: &Value) -> FieldError {
        self.invalid(format!("expected {wanted}, got {}", type_name(got)))
    }
}

/// A type that can be read from a command and written into one.
pub trait Field: Sized + Serialize {
    /// Whether a command must have it.
    const IS_REQUIRED: bool = true;

    /// What hosts may write.
    #[cfg(feature = "schema")]
    fn schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema;

    /// Reads the value of the key; `None` means the key is absent.
    fn read(value: Option<Value>, place: &Place) -> Result<Self, FieldError>;

    /// Adds the key and its value to a command that is being written; what says nothing is left out.
    fn write<M: SerializeMap>(&self, key: &'static str, command: &mut M) -> Result<(), M::Error> {
        command.serialize_entry(key, self)
    }
}

/// The JSON type as hosts know it.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Reads the members of an object that stands inside a field.
pub fn read_object(value: Value, place: &Place) -> Result<Map<String, Value>, FieldError> {
    match value {
        Value::Object(object) => Ok(object),
        other => Err(place.expected("object", &other)),
    }
}

/// Reads one of a closed set of words.
pub fn read_word<T: Copy>(value: Option<Value>, place: &Place, words: &[(&str, T)]) -> Result<T, FieldError> {
    let word = String::read(value, place)?;
    if let Some((_, meaning)) = words.iter().find(|(name, _)| *name == word) {
        return Ok(*meaning);
    }
    let names: Vec<_> = words.iter().map(|(name, _)| format!("\"{name}\"")).collect();
    Err(place.invalid(format!("expected one of {}, got \"{word}\"", names.join(", "))))
}

impl Field for String {
    #[cfg(feature = "schema")]
    fn schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        generator.subschema_for::<String>()
    }

    fn read(value: Option<Value>, place: &Place) -> Result<Self, FieldError> {
        match value {
            Some(Value::String(text)) => Ok(text),
            None | Some(Value::Null) => Err(place.missing()),
            Some(other) => Err(place.expected("string", &other)),
        }
    }
}

impl Field for bool {
    #[cfg(feature = "schema")]
    fn schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        generator.subschema_for::<bool>()
    }

    fn read(value: Option<Value>, place: &Place) -> Result<Self, FieldError> {
        match value {
            Some(Value::Bool(flag)) => Ok(flag),
            None | Some(Value::Null) => Err(place.missing()),
            Some(other) => Err(place.expected("boolean", &other)),
        }
    }
}

/// A count.
impl Field for u64 {
    #[cfg(feature = "schema")]
    fn schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        generator.subschema_for::<u64>()
    }

    fn read(value: Option<Value>, place: &Place) -> Result<Self, FieldError> {
        match value {
            None | Some(Value::Null) => Err(place.missing()),
            Some(value) => value.as_u64().ok_or_else(|| place.expected("whole number", &value)),
        }
    }
}

impl Field for Vec<String> {
    #[cfg(feature = "schema")]
    fn schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        generator.subschema_for::<Vec<String>>()
    }

    fn read(value: Option<Value>, place: &Place) -> Result<Self, FieldError> {
        let items = Vec::<Value>::read(value, place)?;
        items.into_iter().enumerate().map(|(index, item)| String::read(Some(item), &place.element(index))).collect()
    }
}

impl Field for Vec<Value> {
    #[cfg(feature = "schema")]
    fn schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        generator.subschema_for::<Vec<Value>>()
    }

    fn read(value: Option<Value>, place: &Place) -> Result<Self, FieldError> {
        match value {
            Some(Value::Array(items)) => Ok(items),
            None | Some(Value::Null) => Err(place.missing()),
            Some(other) => Err(place.expected("array", &other)),
        }
    }
}

impl<T: Field> Field for Option<T> {
    const IS_REQUIRED: bool = false;

    #[cfg(feature = "schema")]
    fn schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        crate::schema::or_null(T::schema(generator))
    }

    fn read(value: Option<Value>, place: &Place) -> Result<Self, FieldError> {
        match value {
            None | Some(Value::Null) => Ok(None),
            present => T::read(present, place).map(Some),
        }
    }

    fn write<M: SerializeMap>(&self, key: &'static str, command: &mut M) -> Result<(), M::Error> {
        match self {
            Some(value) => value.write(key, command),
            None => Ok(()),
        }
    }
}

/// Images are always optional; an absent list is an empty one.
impl Field for Vec<ImageBlock> {
    const IS_REQUIRED: bool = false;

    #[cfg(feature = "schema")]
    fn schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        crate::schema::images(generator)
    }

    fn read(value: Option<Value>, place: &Place) -> Result<Self, FieldError> {
        let Some(items) = Option::<Vec<Value>>::read(value, place)? else { return Ok(Vec::new()) };
        items.into_iter().enumerate().map(|(index, item)| read_image(item, &place.element(index))).collect()
    }

    fn write<M: SerializeMap>(&self, key: &'static str, command: &mut M) -> Result<(), M::Error> {
        /// A picture as it stands among other blocks.
        #[derive(Serialize)]
        #[serde(tag = "type", rename_all = "lowercase")]
        enum Tagged<'a> {
            Image(&'a ImageBlock),
        }
        if self.is_empty() {
            return Ok(());
        }
        command.serialize_entry(key, &self.iter().map(Tagged::Image).collect::<Vec<_>>())
    }
}

fn read_image(value: Value, place: &Place) -> Result<ImageBlock, FieldError> {
    let mut object = read_object(value, place)?;
    match required_string(&mut object, "type", place)?.as_str() {
        "image" => {}
        other => return Err(place.member("type").invalid(format!("expected one of \"image\", got \"{other}\""))),
    }
    let data = required_string(&mut object, "data", place)?;
    let mime_type = required_string(&mut object, "mimeType", place)?;
    if data.is_empty() || !is_base64(&data) {
        return Err(place.member("data").invalid("not valid base64"));
    }
    Ok(ImageBlock { data, mime_type })
}

/// Nested members name their type even when absent, as the path alone does not say "required".
fn required_string(object: &mut Map<String, Value>, name: &str, place: &Place) -> Result<String, FieldError> {
    let place = place.member(name);
    match object.remove(name) {
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(place.expected("string", &other)),
        None => Err(place.missing()),
    }
}

/// Padding is optional because hosts differ.
fn is_base64(data: &str) -> bool {
    const ENGINE: GeneralPurpose = GeneralPurpose::new(
        &base64::alphabet::STANDARD,
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
    );
    // Four characters at a time keep the check free of a copy of the picture.
    let (whole, rest) = data.as_bytes().split_at(data.len() - data.len() % 4096);
    let mut scratch = [0u8; 3072 + 16];
    let mut fits = |piece: &[u8]| ENGINE.decode_slice(piece, &mut scratch).is_ok();
    let last_is_whole = rest.is_empty();
    whole.chunks(4096).enumerate().all(|(index, piece)| {
        let is_last = last_is_whole && (index + 1) * 4096 == whole.len();
        (is_last || !piece.contains(&b'=')) && fits(piece)
    }) && fits(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn images(value: Value) -> Result<Vec<ImageBlock>, String> {
        Vec::<ImageBlock>::read(Some(value), &Place::new("prompt", "images")).map_err(|error| error.to_string())
    }

    #[test]
    fn image_errors_name_their_path() {
        let check = |value: Value, text: &str| assert_eq!(images(value).expect_err("refused"), text);
        check(json!("x"), "Invalid field \"images\" for command \"prompt\": expected array, got string");
        check(
            json!([{"type":"image","data":"aGk=","mimeType":null}]),
            "Invalid field \"images[0].mimeType\" for command \"prompt\": expected string, got null",
        );
        check(
            json!([{"type":"image","data":"not base64!","mimeType":"image/png"}]),
            "Invalid field \"images[0].data\" for command \"prompt\": not valid base64",
        );
        check(json!([7]), "Invalid field \"images[0]\" for command \"prompt\": expected object, got number");
    }

    #[test]
    fn long_base64_is_checked_piece_by_piece() {
        let good = "AAAA".repeat(5000);
        assert!(is_base64(&good) && is_base64(&format!("{good}AA==")) && is_base64(&format!("{good}AA")));
        assert!(!is_base64(&format!("{good}A")) && !is_base64(&format!("AA=={good}")));
        assert!(is_base64(&format!("{}AAA=", &"AAAA".repeat(1023))));
    }
}
