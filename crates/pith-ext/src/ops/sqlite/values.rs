//! Rows on their way to JavaScript, and values on their way from it.

use rquickjs::{Array, BigInt, Ctx, IntoJs, Object, TypedArray, Value};
use rusqlite::types::{Value as Cell, ValueRef};

use super::super::text::{Packed, Text};
use crate::engine::throw;

/// Numbers beyond are not exact in JavaScript.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// What a statement returned.
pub(super) struct Rows {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Cell>>,
    pub n_changes: u64,
    pub last_row: i64,
}

pub(super) fn cell(value: ValueRef<'_>) -> Cell {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Integer(number),
        ValueRef::Real(number) => Cell::Real(number),
        ValueRef::Text(text) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Cell::Blob(bytes.to_vec()),
    }
}

/// What a value takes in the engine, about.
pub(super) fn size_of_cell(cell: &Cell) -> usize {
    16 + match cell {
        Cell::Null | Cell::Integer(_) | Cell::Real(_) => 0,
        Cell::Text(text) => text.len(),
        Cell::Blob(bytes) => bytes.len(),
    }
}

/// A value from JavaScript, which has refused all others. Numbers are bound as Node binds them: as real ones.
pub(super) fn from_js(value: Value<'_>) -> rquickjs::Result<Cell> {
    if let Some(number) = value.as_number() {
        return Ok(Cell::Real(number));
    }
    if value.is_big_int() {
        return value.get::<BigInt<'_>>()?.to_i64().map(Cell::Integer);
    }
    if value.is_string() {
        return value.get::<Text>().map(|text| Cell::Text(text.0));
    }
    if value.is_null() {
        return Ok(Cell::Null);
    }
    // Bytes come as base64, in an object of their own so that they are no text.
    let bytes = value.get::<Object<'_>>()?.get::<_, Packed>("bytes")?;
    Ok(Cell::Blob(bytes.0))
}

fn to_js<'js>(ctx: &Ctx<'js>, cell: Cell, reads_big: bool) -> rquickjs::Result<Value<'js>> {
    match cell {
        Cell::Null => Ok(Value::new_null(ctx.clone())),
        Cell::Integer(number) if reads_big => Ok(BigInt::from_i64(ctx.clone(), number)?.into_value()),
        Cell::Integer(number) if number.unsigned_abs() > MAX_SAFE_INTEGER => {
            let why = format!("Value is too large to be represented as a JavaScript number: {number}");
            Err(throw(ctx, "ERR_OUT_OF_RANGE", &why))
        }
        Cell::Integer(number) => Ok(Value::new_number(ctx.clone(), number as f64)),
        Cell::Real(number) => Ok(Value::new_number(ctx.clone(), number)),
        Cell::Text(text) => text.into_js(ctx),
        Cell::Blob(bytes) => Ok(TypedArray::<u8>::new(ctx.clone(), bytes)?.into_value()),
    }
}

/// What JavaScript gets: the names of the columns, the rows, how many rows changed and the last one that was added.
pub(super) fn answer<'js>(ctx: &Ctx<'js>, found: Rows, reads_big: bool) -> rquickjs::Result<Object<'js>> {
    let rows = Array::new(ctx.clone())?;
    for (at, cells) in found.rows.into_iter().enumerate() {
        let row = Array::new(ctx.clone())?;
        for (at, cell) in cells.into_iter().enumerate() {
            row.set(at, to_js(ctx, cell, reads_big)?)?;
        }
        rows.set(at, row)?;
    }
    let answer = Object::new(ctx.clone())?;
    answer.set("columns", found.columns)?;
    answer.set("rows", rows)?;
    let n_changes = i64::try_from(found.n_changes).unwrap_or(i64::MAX);
    answer.set("changes", to_js(ctx, Cell::Integer(n_changes), reads_big)?)?;
    answer.set("lastInsertRowid", to_js(ctx, Cell::Integer(found.last_row), reads_big)?)?;
    Ok(answer)
}
