//! Why a call about a database has no result, as Node says it.

use rquickjs::{Ctx, Exception, Value};

use super::{MAX_DATABASES, MAX_RESULT};
use crate::engine::throw;

/// Why a call has no result.
pub(super) enum Refusal {
    Sqlite(rusqlite::Error),
    Closed,
    TooMany,
    TooLarge,
    UnknownName(String),
}

impl From<rusqlite::Error> for Refusal {
    fn from(error: rusqlite::Error) -> Self {
        Refusal::Sqlite(error)
    }
}

impl Refusal {
    /// Takes out the path that rusqlite adds to what SQLite says; Node does not name it.
    pub fn without_path(error: rusqlite::Error) -> Refusal {
        Refusal::Sqlite(match error {
            rusqlite::Error::SqliteFailure(error, _) => rusqlite::Error::SqliteFailure(error, None),
            other => other,
        })
    }

    /// Throws it with the members that Node gives it.
    pub fn throw(self, ctx: &Ctx<'_>) -> rquickjs::Error {
        match self {
            Refusal::Sqlite(error) => throw_sqlite(ctx, &error),
            Refusal::Closed => throw(ctx, "ERR_INVALID_STATE", "database is not open"),
            Refusal::TooMany => {
                throw(ctx, "ERR_SQLITE_ERROR", &format!("more than {MAX_DATABASES} databases are open"))
            }
            Refusal::TooLarge => {
                throw(ctx, "ERR_BUFFER_TOO_LARGE", &format!("the result is larger than {MAX_RESULT} bytes"))
            }
            Refusal::UnknownName(name) => throw(ctx, "ERR_INVALID_STATE", &format!("Unknown named parameter '{name}'")),
        }
    }
}

fn throw_sqlite(ctx: &Ctx<'_>, error: &rusqlite::Error) -> rquickjs::Error {
    let (code, message) = match error {
        rusqlite::Error::SqliteFailure(error, Some(text)) => (error.extended_code, text.clone()),
        rusqlite::Error::SqliteFailure(error, None) => (error.extended_code, name_of(error.extended_code).to_owned()),
        rusqlite::Error::SqlInputError { error, msg, .. } => (error.extended_code, msg.clone()),
        other => (rusqlite::ffi::SQLITE_ERROR, other.to_string()),
    };
    let made = Exception::from_message(ctx.clone(), &message).and_then(|exception| {
        exception.as_object().set("code", "ERR_SQLITE_ERROR")?;
        exception.as_object().set("errcode", code)?;
        exception.as_object().set("errstr", name_of(code))?;
        Ok(exception)
    });
    match made {
        Ok(exception) => ctx.throw(Value::from(exception.into_object())),
        Err(error) => error,
    }
}

/// What SQLite calls an error; the lowest byte of its code says which.
fn name_of(code: i32) -> &'static str {
    match code & 0xff {
        1 => "SQL logic error",
        3 => "access permission denied",
        4 => "query aborted",
        5 => "database is locked",
        6 => "database table is locked",
        7 => "out of memory",
        8 => "attempt to write a readonly database",
        9 => "interrupted",
        10 => "disk I/O error",
        11 => "database disk image is malformed",
        12 => "unknown operation",
        13 => "database or disk is full",
        14 => "unable to open database file",
        15 => "locking protocol",
        17 => "database schema has changed",
        18 => "string or blob too big",
        19 => "constraint failed",
        20 => "datatype mismatch",
        21 => "bad parameter or other API misuse",
        23 => "authorization denied",
        25 => "column index out of range",
        26 => "file is not a database",
        _ => "unknown error",
    }
}
