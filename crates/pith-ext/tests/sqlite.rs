//! `node:sqlite`: what Node 22 answers is what pith answers.

mod support;

use support::Harness;
use support::evaluate::evaluate;
use tokio::sync::Mutex;

/// All databases of a process share the memory that SQLite may use, and one test uses it up.
static MEMORY: Mutex<()> = Mutex::const_new(());

const IMPORTS: &str = "import { DatabaseSync, StatementSync } from 'node:sqlite'; import * as fs from 'node:fs'; import path from 'path';";

const SETUP: &str = "
    const dir = fs.mkdtempSync(path.join(process.cwd(), 'work-'));
    const failure = (fn) => { try { fn(); return 'no failure'; } catch (error) { return [error.code, error.errcode, error.errstr, error.message]; } };
    const db = new DatabaseSync(':memory:');
    db.exec('CREATE TABLE notes (id INTEGER PRIMARY KEY, title TEXT NOT NULL, weight REAL, data BLOB); CREATE UNIQUE INDEX by_title ON notes(title)');
    const add = db.prepare('INSERT INTO notes (title, weight, data) VALUES (?, ?, ?)');
    const of = (title) => db.prepare('SELECT * FROM notes WHERE title = ?').get(title);";

#[tokio::test]
async fn rows_go_in_and_come_out() {
    let _memory = MEMORY.lock().await;
    let cases = [
        ("add.run('one', 1.5, new Uint8Array([1, 2, 255]))", r#"{"lastInsertRowid":1,"changes":1}"#),
        ("add.run('two', null, null)", r#"{"lastInsertRowid":2,"changes":1}"#),
        ("of('one')", r#"{"id":1,"title":"one","weight":1.5,"data":{"0":1,"1":2,"2":255}}"#),
        ("Object.getPrototypeOf(of('one'))", "null"),
        ("of('none')", "undefined"),
        (
            "db.prepare('SELECT id, title FROM notes ORDER BY id').all()",
            r#"[{"id":1,"title":"one"},{"id":2,"title":"two"}]"#,
        ),
        ("[...db.prepare('SELECT id FROM notes').iterate()].map((row) => row.id)", "[1,2]"),
        (
            "db.prepare('SELECT ? AS a, typeof(?) AS b, ? AS c').get('grün 🦀', 3, 2n ** 40n)",
            r#"{"a":"grün 🦀","b":"real","c":1099511627776}"#,
        ),
        (
            "db.prepare('UPDATE notes SET weight = :w WHERE title = $t').run({ w: 2, $t: 'two' })",
            r#"{"lastInsertRowid":2,"changes":1}"#,
        ),
        ("db.prepare('SELECT :a + ?').get({ ':a': 1 }, 2)", r#"{":a + ?":3}"#),
        ("db.prepare('SELECT ?2 AS b, ?1 AS a').get('first', 'second')", r#"{"b":"second","a":"first"}"#),
        (
            "(() => { const s = db.prepare('SELECT ? AS a'); s.get(5); return [s.get(), s.sourceSQL, s.expandedSQL]; })()",
            r#"[{"a":null},"SELECT ? AS a","SELECT NULL AS a"]"#,
        ),
        (
            "(() => { const s = db.prepare('SELECT 9007199254740993 AS a'); s.setReadBigInts(true); return typeof s.get().a + s.get().a; })()",
            r#""bigint9007199254740993""#,
        ),
        (
            "(() => { const s = db.prepare('SELECT 1 AS a, 2 AS a'); s.setReturnArrays(true); return s.all(); })()",
            "[[1,2]]",
        ),
        (
            "db.prepare('SELECT title AS t, 1 FROM notes').columns()",
            r#"[{"column":"title","database":"main","name":"t","table":"notes","type":"TEXT"},{"column":null,"database":null,"name":"1","table":null,"type":null}]"#,
        ),
        ("db.prepare(\"INSERT INTO notes (title) VALUES ('three') RETURNING id\").get()", r#"{"id":3}"#),
        ("db.prepare('SELECT count(*) AS n FROM notes').get().n", "3"),
        ("db.prepare('SELECT 1').constructor === StatementSync", "true"),
    ];
    evaluate(IMPORTS, SETUP, &cases).await;
}

#[tokio::test]
async fn errors_are_those_of_node() {
    let _memory = MEMORY.lock().await;
    let cases = [
        (
            "failure(() => db.exec('SELEC 1'))",
            r#"["ERR_SQLITE_ERROR",1,"SQL logic error","near \"SELEC\": syntax error"]"#,
        ),
        (
            "failure(() => db.prepare('SELECT absent FROM notes'))",
            r#"["ERR_SQLITE_ERROR",1,"SQL logic error","no such column: absent"]"#,
        ),
        (
            "[add.run('a', 1, null).changes, failure(() => add.run('a', 1, null))]",
            r#"[1,["ERR_SQLITE_ERROR",2067,"constraint failed","UNIQUE constraint failed: notes.title"]]"#,
        ),
        ("failure(() => add.run('b', true, null))[3]", r#""Provided value cannot be bound to SQLite parameter 2.""#),
        ("failure(() => add.run('b', undefined, null))[0]", r#""ERR_INVALID_ARG_TYPE""#),
        (
            "failure(() => add.run('b', 1, null, 4))",
            r#"["ERR_SQLITE_ERROR",25,"column index out of range","column index out of range"]"#,
        ),
        ("failure(() => db.prepare('SELECT :a').get({ b: 1 })).slice(0, 1)", r#"["ERR_INVALID_STATE"]"#),
        ("failure(() => db.prepare('SELECT 9007199254740993').get())[0]", r#""ERR_OUT_OF_RANGE""#),
        (
            "failure(() => new DatabaseSync(dir + '/none/x.db'))",
            r#"["ERR_SQLITE_ERROR",14,"unable to open database file","unable to open database file"]"#,
        ),
        ("failure(() => new DatabaseSync(5))[0]", r#""ERR_INVALID_ARG_TYPE""#),
        ("failure(() => new StatementSync())[0]", r#""ERR_ILLEGAL_CONSTRUCTOR""#),
        (
            "(() => { fs.writeFileSync(dir + '/text', 'x'.repeat(5000)); return failure(() => new DatabaseSync(dir + '/text').exec('SELECT * FROM sqlite_master'))[2]; })()",
            r#""file is not a database""#,
        ),
        (
            "(() => { const s = db.prepare('SELECT 1'); db.close(); return [failure(() => s.get())[0], failure(() => db.exec('SELECT 1'))[3], failure(() => db.close())[0], db.isOpen]; })()",
            r#"["ERR_INVALID_STATE","database is not open","ERR_INVALID_STATE",false]"#,
        ),
    ];
    evaluate(IMPORTS, SETUP, &cases).await;
}

#[tokio::test]
async fn files_transactions_and_search() {
    let _memory = MEMORY.lock().await;
    let cases = [
        (
            "(() => { const file = new DatabaseSync(dir + '/a.db'); file.exec(\"PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1)\"); const at = file.location(); file.close(); return [at === fs.realpathSync(dir) + '/a.db', fs.existsSync(dir + '/a.db-wal')]; })()",
            "[true,false]",
        ),
        (
            "(() => { const file = new DatabaseSync(dir + '/a.db', { readOnly: true }); const found = file.prepare('SELECT a FROM t').all(); const refused = failure(() => file.exec('DELETE FROM t')); file.close(); return [found, refused[2]]; })()",
            r#"[[{"a":1}],"attempt to write a readonly database"]"#,
        ),
        (
            "(() => { const later = new DatabaseSync(':memory:', { open: false }); const before = later.isOpen; later.open(); return [before, later.isOpen, failure(() => later.open())[0]]; })()",
            r#"[false,true,"ERR_INVALID_STATE"]"#,
        ),
        (
            "(() => { db.exec('BEGIN'); add.run('gone', 1, null); const inside = db.isTransaction; db.exec('ROLLBACK'); return [inside, db.isTransaction, of('gone') === undefined]; })()",
            "[true,false,true]",
        ),
        (
            "(() => { db.exec('CREATE VIRTUAL TABLE words USING fts5(text)'); db.prepare('INSERT INTO words VALUES (?)').run('a brown fox'); return db.prepare(\"SELECT snippet(words, 0, '[', ']', '', 8) AS s, bm25(words) < 0 AS ranked FROM words WHERE words MATCH ?\").all('fox'); })()",
            r#"[{"s":"a brown [fox]","ranked":1}]"#,
        ),
        ("db.prepare(\"SELECT json_extract('{\\\"a\\\":[1,2]}', '$.a[1]') AS j\").get()", r#"{"j":2}"#),
    ];
    evaluate(IMPORTS, SETUP, &cases).await;
}

#[tokio::test]
async fn what_does_not_fit_is_refused() {
    let _memory = MEMORY.lock().await;
    let cases = [
        (
            "failure(() => db.prepare('WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 200) SELECT zeroblob(1000000) FROM n').all())[0]",
            r#""ERR_BUFFER_TOO_LARGE""#,
        ),
        ("db.prepare('SELECT 1 AS a').get()", r#"{"a":1}"#),
        (
            "failure(() => db.exec('CREATE TABLE big (a); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 400) INSERT INTO big SELECT zeroblob(1000000) FROM n'))[2]",
            r#""out of memory""#,
        ),
        (
            "(() => { const open = []; const why = failure(() => { for (let i = 0; i < 70; i++) open.push(new DatabaseSync(':memory:')); }); for (const one of open) one.close(); return [why[3], open.length]; })()",
            r#"["more than 64 databases are open",63]"#,
        ),
        ("failure(() => db.function('f', () => 1))[3]", r#""sqlite.DatabaseSync.function is not available in pith""#),
    ];
    evaluate(IMPORTS, SETUP, &cases).await;
}

#[tokio::test]
async fn a_statement_without_end_is_interrupted() {
    let _memory = MEMORY.lock().await;
    let harness = Harness::start();
    let text = "import { DatabaseSync } from 'node:sqlite';
        export default (pi) => pi.registerCommand('go', { handler: (args, ctx) => {
            const db = new DatabaseSync(':memory:');
            const endless = db.prepare('WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n');
            try { endless.get(); } catch (error) { ctx.ui.notify(`${error.code} ${error.errcode} ${error.message}`); }
            ctx.ui.notify(String(db.prepare('SELECT 7 AS a').get().a));
        } });";
    harness.run(&[("endless.ts", text)]).await;
    harness.command("go", "").await;
    assert_eq!(harness.errors(), []);
    assert_eq!(harness.notifications(), ["ERR_SQLITE_ERROR 9 interrupted", "7"]);
}
