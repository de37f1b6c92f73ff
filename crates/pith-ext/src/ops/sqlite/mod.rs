//! `node:sqlite`, on rusqlite with the library built in.
//!
//! A statement is its text: the connection keeps what it has compiled and compiles again what fell out of that cache.
//! So nothing here borrows from a connection, and closing one leaves no statement behind. Rows are read in one go, up
//! to a bound, and a statement is interrupted after as much time as other code of an extension has.

mod refusal;
mod values;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rquickjs::function::Func;
use rquickjs::{Ctx, Object, Value};
use rusqlite::config::DbConfig;
use rusqlite::types::Value as Cell;
use rusqlite::{CachedStatement, Connection, OpenFlags};
use serde::Deserialize;

use self::refusal::Refusal;
use self::values::{Rows, answer, cell, from_js, size_of_cell};
use super::text::Text;
use crate::engine::{State, throw};
use crate::shared::Shared;

/// How many databases are open at a time.
const MAX_DATABASES: usize = 64;
/// What one call returns at most, in bytes of its values.
const MAX_RESULT: usize = 64 << 20;
/// What databases use of memory, all together: those without a file grow in it.
const MAX_MEMORY: u64 = 256 << 20;
/// How many compiled statements a database keeps.
const CACHE: usize = 128;
/// How many steps of SQLite's machine pass until it asks whether to go on.
const STEPS: i32 = 10_000;

/// How to open a database.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Opening {
    path: String,
    is_read_only: bool,
    has_foreign_keys: bool,
    allows_double_quotes: bool,
    timeout_ms: u64,
}

/// How to use a statement.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Usage {
    /// The names of the parameters, in the order of their values; one without a name takes the next free place.
    names: Vec<Option<String>>,
    allows_bare_names: bool,
    allows_unknown_names: bool,
    /// Whether the first row is enough.
    is_one: bool,
}

/// The databases that are open, by the number JavaScript knows them by.
#[derive(Default)]
pub struct Databases {
    open: RefCell<HashMap<u32, Connection>>,
}

impl Databases {
    fn open(&self, number: u32, opening: &Opening) -> Result<(), Refusal> {
        let mut open = self.open.borrow_mut();
        if open.len() >= MAX_DATABASES {
            return Err(Refusal::TooMany);
        }
        let access = if opening.is_read_only {
            OpenFlags::SQLITE_OPEN_READ_ONLY
        } else {
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE
        };
        let database = Connection::open_with_flags(&opening.path, access | OpenFlags::SQLITE_OPEN_URI)
            .map_err(Refusal::without_path)?;
        database.busy_timeout(Duration::from_millis(opening.timeout_ms))?;
        database.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, opening.has_foreign_keys)?;
        database.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, opening.allows_double_quotes)?;
        database.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, opening.allows_double_quotes)?;
        database.query_row(&format!("PRAGMA hard_heap_limit = {MAX_MEMORY}"), [], |_| Ok(()))?;
        database.set_prepared_statement_cache_capacity(CACHE);
        open.insert(number, database);
        Ok(())
    }

    fn close(&self, number: u32) {
        self.open.borrow_mut().remove(&number);
    }

    /// Closes all of them.
    pub fn close_all(&self) {
        self.open.borrow_mut().clear();
    }

    /// Does something with a database that must come back within the time of a slice.
    fn with<T>(
        &self,
        state: &State,
        number: u32,
        act: impl FnOnce(&Connection) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let mut open = self.open.borrow_mut();
        let database = open.get_mut(&number).ok_or(Refusal::Closed)?;
        let (shared, until): (Arc<Shared>, _) = (state.shared.clone(), Instant::now() + state.limits.slice);
        database.progress_handler(STEPS, Some(move || shared.is_gone() || Instant::now() >= until))?;
        // It may wait for a lock of another program for as long as the extension has said.
        state.block(|| act(database))
    }
}

/// Returns a statement with its parameters bound.
fn bound<'db>(
    database: &'db Connection,
    sql: &str,
    usage: &Usage,
    values: Vec<Cell>,
) -> Result<CachedStatement<'db>, Refusal> {
    let mut statement = database.prepare_cached(sql)?;
    statement.clear_bindings();
    let mut place = 0;
    for (name, value) in usage.names.iter().zip(values) {
        let index = match name {
            Some(name) => match index_of(&statement, name, usage.allows_bare_names)? {
                Some(index) => index,
                None if usage.allows_unknown_names => continue,
                None => return Err(Refusal::UnknownName(name.clone())),
            },
            None => {
                place += 1;
                while statement.parameter_name(place).is_some_and(|name| !name.starts_with('?')) {
                    place += 1;
                }
                place
            }
        };
        statement.raw_bind_parameter(index, value)?;
    }
    Ok(statement)
}

/// Where a named parameter stands; a bare name has none of the signs that names have in SQL.
fn index_of(statement: &CachedStatement<'_>, name: &str, allows_bare: bool) -> Result<Option<usize>, Refusal> {
    if let Some(index) = statement.parameter_index(name)? {
        return Ok(Some(index));
    }
    for sign in if allows_bare { [":", "$", "@"].as_slice() } else { &[] } {
        if let Some(index) = statement.parameter_index(&format!("{sign}{name}"))? {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

fn query(database: &Connection, sql: &str, usage: &Usage, values: Vec<Cell>) -> Result<Rows, Refusal> {
    let mut statement = bound(database, sql, usage, values)?;
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let (mut rows, mut size) = (Vec::new(), 0);
    let mut found = statement.raw_query();
    while let Some(row) = found.next()? {
        let cells: Vec<Cell> = (0..columns.len()).map(|at| row.get_ref(at).map(cell)).collect::<Result<_, _>>()?;
        size += cells.iter().map(size_of_cell).sum::<usize>();
        if size > MAX_RESULT {
            return Err(Refusal::TooLarge);
        }
        rows.push(cells);
        if usage.is_one {
            break;
        }
    }
    drop(found);
    drop(statement);
    Ok(Rows { columns, rows, n_changes: database.changes(), last_row: database.last_insert_rowid() })
}

fn parse<T: for<'a> Deserialize<'a>>(ctx: &Ctx<'_>, text: &Text) -> rquickjs::Result<T> {
    crate::json::parse(&text.0).map_err(|why| throw(ctx, "ERR_INVALID_ARG_VALUE", &why))
}

pub(super) fn install<'js>(group: &Object<'js>, state: &Rc<State>) -> rquickjs::Result<()> {
    let here = state.clone();
    group.set(
        "open",
        Func::from(move |ctx: Ctx<'js>, number: u32, opening: Text| {
            let opening = parse(&ctx, &opening)?;
            here.databases.open(number, &opening).map_err(|refusal| refusal.throw(&ctx))
        }),
    )?;
    let here = state.clone();
    group.set("close", Func::from(move |number: u32| here.databases.close(number)))?;
    let here = state.clone();
    group.set(
        "exec",
        Func::from(move |ctx: Ctx<'js>, number: u32, sql: Text| {
            let done = here.databases.with(&here, number, |database| Ok(database.execute_batch(&sql.0)?));
            done.map_err(|refusal| refusal.throw(&ctx))
        }),
    )?;
    let here = state.clone();
    group.set(
        "isInTransaction",
        Func::from(move |number: u32| {
            here.databases.open.borrow().get(&number).is_some_and(|database| !database.is_autocommit())
        }),
    )?;
    let here = state.clone();
    group.set(
        "query",
        Func::from(
            move |ctx: Ctx<'js>, number: u32, sql: Text, usage: Text, values: Vec<Value<'js>>, reads_big: bool| {
                let usage: Usage = parse(&ctx, &usage)?;
                let values = values.into_iter().map(from_js).collect::<Result<_, _>>()?;
                let found = here.databases.with(&here, number, |database| query(database, &sql.0, &usage, values));
                answer(&ctx, found.map_err(|refusal| refusal.throw(&ctx))?, reads_big)
            },
        ),
    )?;
    let here = state.clone();
    group.set(
        "expand",
        Func::from(move |ctx: Ctx<'js>, number: u32, sql: Text, usage: Text, values: Vec<Value<'js>>| {
            let usage: Usage = parse(&ctx, &usage)?;
            let values = values.into_iter().map(from_js).collect::<Result<_, _>>()?;
            let expanded = here
                .databases
                .with(&here, number, |database| Ok(bound(database, &sql.0, &usage, values)?.expanded_sql()));
            expanded.map_err(|refusal| refusal.throw(&ctx))
        }),
    )?;
    let here = state.clone();
    group.set(
        "columns",
        Func::from(move |ctx: Ctx<'js>, number: u32, sql: Text| {
            let columns = here.databases.with(&here, number, |database| columns(database, &sql.0));
            columns.map_err(|refusal| refusal.throw(&ctx))
        }),
    )
}

/// What is known of each column, as JSON: its name, and where it comes from.
fn columns(database: &Connection, sql: &str) -> Result<String, Refusal> {
    let statement = database.prepare_cached(sql)?;
    let types: Vec<Option<String>> = statement.columns().map(|column| column.decl_type().map(str::to_owned)).collect();
    let described = statement.columns_with_metadata().zip(types).map(|(column, declared)| {
        serde_json::json!({
            "column": column.origin_name(), "database": column.database_name(), "name": column.name(),
            "table": column.table_name(), "type": declared,
        })
    });
    Ok(serde_json::Value::from_iter(described).to_string())
}
