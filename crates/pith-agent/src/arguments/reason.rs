//! Describes where a value is wrong and why, in the wording models know from other agents.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use serde_json::Value;

/// What is wrong with one member, or everything one object lacks.
pub(super) struct Problem {
    path: String,
    reason: String,
    lack: Option<Lack>,
}

/// The members an object lacks.
struct Lack {
    object: String,
    names: Vec<String>,
}

impl Problem {
    pub fn new(error: &ValidationError<'_>) -> Self {
        let object = || error.instance_path().as_str().to_owned();
        let lack = missing(error).map(|name| Lack { object: object(), names: vec![name] });
        Problem { path: path(error), reason: text(error), lack }
    }

    /// Whether another problem belongs to the same line.
    pub fn covers(&self, other: &Problem) -> bool {
        match (&self.lack, &other.lack) {
            (Some(lack), Some(other)) => lack.object == other.object,
            (None, None) => self.path == other.path && self.reason == other.reason,
            _ => false,
        }
    }

    /// Adds what the object lacks as well.
    pub fn take(&mut self, other: Problem) {
        if let (Some(lack), Some(other)) = (&mut self.lack, other.lack) {
            let new = other.names.into_iter().filter(|name| !lack.names.contains(name)).collect::<Vec<_>>();
            lack.names.extend(new);
        }
    }

    pub fn line(&self) -> String {
        match &self.lack {
            Some(lack) => format!("{}: must have required properties {}", self.path, lack.names.join(", ")),
            None => format!("{}: {}", self.path, self.reason),
        }
    }
}

/// The missing member, if that is the error.
fn missing(error: &ValidationError<'_>) -> Option<String> {
    match error.kind() {
        Kind::Required { property } => Some(plain(property)),
        _ => None,
    }
}

/// The dotted path of the wrong member; a missing member is named by its own path.
fn path(error: &ValidationError<'_>) -> String {
    let pointer = error.instance_path().as_str();
    let names = pointer.split('/').skip(1).map(|segment| segment.replace("~1", "/").replace("~0", "~"));
    let path = names.chain(missing(error)).collect::<Vec<_>>().join(".");
    if path.is_empty() { "root".to_owned() } else { path }
}

/// What the value has to be.
fn text(error: &ValidationError<'_>) -> String {
    let fixed = match error.kind() {
        Kind::Required { property } => return format!("must have required properties {}", plain(property)),
        Kind::Type { kind: TypeKind::Single(one) } => return format!("must be {one}"),
        Kind::Type { kind: TypeKind::Multiple(types) } => {
            let names: Vec<_> = types.iter().map(|name| name.as_str()).collect();
            return format!("must be either {}", names.join(" or "));
        }
        Kind::Minimum { limit } => return format!("must be >= {}", plain(limit)),
        Kind::Maximum { limit } => return format!("must be <= {}", plain(limit)),
        Kind::ExclusiveMinimum { limit } => return format!("must be > {}", plain(limit)),
        Kind::ExclusiveMaximum { limit } => return format!("must be < {}", plain(limit)),
        Kind::MultipleOf { multiple_of } => return format!("must be multiple of {multiple_of}"),
        Kind::MinLength { limit } => return format!("must not have fewer than {limit} characters"),
        Kind::MaxLength { limit } => return format!("must not have more than {limit} characters"),
        Kind::MinItems { limit } => return format!("must not have fewer than {limit} items"),
        Kind::MaxItems { limit } => return format!("must not have more than {limit} items"),
        Kind::AdditionalItems { limit } => return format!("must not have more than {limit} items"),
        Kind::MinProperties { limit } => return format!("must not have fewer than {limit} properties"),
        Kind::MaxProperties { limit } => return format!("must not have more than {limit} properties"),
        Kind::Pattern { pattern } => return format!("must match pattern \"{pattern}\""),
        Kind::Format { format } => return format!("must match format \"{format}\""),
        Kind::ContentEncoding { content_encoding } => return format!("must be encoded as {content_encoding}"),
        Kind::ContentMediaType { content_media_type } => return format!("must be of media type {content_media_type}"),
        Kind::PropertyNames { error } => return format!("has an invalid property name: {}", text(error)),
        Kind::Custom { message, .. } => return message.clone(),
        Kind::Enum { .. } => "must be equal to one of the allowed values",
        Kind::Constant { .. } => "must be equal to constant",
        Kind::AnyOf { .. } => "must match a schema in anyOf",
        Kind::OneOfNotValid { .. } | Kind::OneOfMultipleValid { .. } => "must match exactly one schema in oneOf",
        Kind::Not { .. } => "must not be valid",
        Kind::AdditionalProperties { .. } => "must not have additional properties",
        Kind::UnevaluatedProperties { .. } => "must not have unevaluated properties",
        Kind::UnevaluatedItems { .. } => "must not have unevaluated items",
        Kind::UniqueItems => "must not have duplicate items",
        Kind::Contains => "must contain at least 1 valid item",
        // The validator's error for `additionalProperties: false` without any properties.
        Kind::FalseSchema if error.schema_path().as_str().ends_with("/additionalProperties") => {
            "must not have additional properties"
        }
        Kind::FalseSchema => "schema is false",
        Kind::FromUtf8 { .. }
        | Kind::BacktrackLimitExceeded { .. }
        | Kind::RegexEngineFailure { .. }
        | Kind::Referencing(_) => "could not be checked",
    };
    fixed.to_owned()
}

/// Text without quotes, numbers without a needless fraction.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => pith_protocol::json::to_string(other),
    }
}
