//! What Node has gained up to version 24, and what few extensions use; expected values are what Node 24 itself says.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use support::evaluate::check;

#[tokio::test]
async fn streams_have_the_helpers_of_iterators() {
    check(
        "const R = () => Readable.from([1, 2, 3, 4]);",
        &[
            ("await R().map(async (x) => x * 2, { concurrency: 3 }).toArray()", "[2,4,6,8]"),
            ("await R().filter((x) => x % 2).toArray()", "[1,3]"),
            ("await R().flatMap((x) => [x, x]).take(3).toArray()", "[1,1,2]"),
            ("await R().drop(2).toArray()", "[3,4]"),
            (
                "[await R().some((x) => x > 3), await R().every((x) => x > 3), await R().find((x) => x > 2)]",
                "[true,false,3]",
            ),
            ("[await R().reduce((a, b) => a + b), await R().reduce((a, b) => a + b, 10)]", "[10,20]"),
            ("await failure(() => Readable.from([]).reduce((a, b) => a))", r#""ERR_MISSING_ARGS""#),
            ("await failure(() => R().map(3))", r#""ERR_INVALID_ARG_TYPE""#),
            ("await failure(() => R().take(-1))", r#""ERR_OUT_OF_RANGE""#),
            ("await failure(() => R().map(() => { throw new Error('x'); }).toArray())", r#""x""#),
            ("await failure(() => R().toArray({ signal: AbortSignal.abort() }))", r#""ABORT_ERR""#),
        ],
    )
    .await;
}

#[tokio::test]
async fn streams_are_composed_and_paired() {
    check(
        "const stream = require('stream'); const { Duplex } = stream; const { text } = require('stream/consumers');
         const loud = async function* (source) { for await (const part of source) yield String(part).toUpperCase(); };",
        &[
            ("await (async () => { const c = stream.compose(loud, new PassThrough()); c.end('abc'); return text(c); })()", r#""ABC""#),
            ("(await Readable.from(['a', 'b']).compose(loud).toArray()).join('')", r#""AB""#),
            ("await failure(async () => { const c = stream.compose(async function* (s) { for await (const x of s) throw new Error('bad'); }, new PassThrough()); c.end('x'); await text(c); })", r#""bad""#),
            ("await (async () => { const [a, b] = stream.duplexPair(); a.end('hello'); b.end('back'); return [await text(b), await text(a)]; })()", r#"["hello","back"]"#),
            ("await (async () => { const d = Duplex.from(loud); d.end('ab'); return text(d); })()", r#""AB""#),
            ("[await text(Duplex.from(Promise.resolve('v'))), (await Duplex.from(['x', 'y']).toArray()).join()]", r#"["v","x,y"]"#),
            ("await (async () => { const got = []; const w = Writable.toWeb(new Writable({ write(c, e, d) { got.push(String(c)); d(); } })).getWriter(); await w.write('a'); await w.close(); return got; })()", r#"["a"]"#),
            ("await (async () => { const got = []; const w = Writable.fromWeb(new WritableStream({ write(c) { got.push(String(c)); } })); w.end('q'); await stream.promises.finished(w); return got; })()", r#"["q"]"#),
            ("await (async () => { const c = require('stream/consumers'); const f = () => Readable.from([Buffer.from('{\"a\":'), Buffer.from('1}')]); return [await c.json(f()), (await c.buffer(f())).length, (await c.arrayBuffer(f())).byteLength, (await c.blob(f())).size, (await c.bytes(f())).length]; })()", r#"[{"a":1},7,7,7,7]"#),
            ("await (async () => { const r = Readable.from([1]); const before = stream.isDisturbed(r); await r.toArray(); return [before, stream.isDisturbed(r), stream.isWritable(new PassThrough()), stream.isDestroyed(r)]; })()", "[false,true,true,true]"),
        ],
    )
    .await;
}

#[tokio::test]
async fn buffers_read_and_write_integers_of_any_width() {
    check(
        "const b = Buffer.alloc(6); const range = (fn) => { try { fn(); } catch (e) { return e.code + ' ' + e.message.split('must be ').at(-1); } };",
        &[
            ("(b.writeIntBE(-5, 0, 3), b.writeUIntLE(0x123456789a, 1, 5), [b.toString('hex'), b.readUintLE(1, 5), Buffer.from('fffffb', 'hex').readIntBE(0, 3)])", r#"["ff9a78563412",78187493530,-5]"#),
            ("range(() => b.writeIntBE(1, 0, 7))", r#""ERR_OUT_OF_RANGE >= 1 and <= 6. Received 7""#),
            ("range(() => b.readIntBE(5, 3))", r#""ERR_OUT_OF_RANGE >= 0 and <= 3. Received 5""#),
            ("range(() => b.readUIntLE(0))", r#""ERR_INVALID_ARG_TYPE of type number. Received undefined""#),
            ("range(() => b.writeIntLE(8388608, 0, 3))", r#""ERR_OUT_OF_RANGE >= -8388608 and <= 8388607. Received 8388608""#),
            ("range(() => b.readUIntBE(1.5, 2))", r#""ERR_OUT_OF_RANGE an integer. Received 1.5""#),
            ("range(() => b.readUInt16LE(9))", r#""ERR_OUT_OF_RANGE >= 0 and <= 4. Received 9""#),
            ("range(() => b.writeUInt8(300))", r#""ERR_OUT_OF_RANGE >= 0 and <= 255. Received 300""#),
            ("[16, 32, 64].map((width) => Buffer.from('0102030405060708', 'hex')[`swap${width}`]().toString('hex'))", r#"["0201040306050807","0403020108070605","0807060504030201"]"#),
            ("await failure(() => Buffer.alloc(3).swap32())", r#""ERR_INVALID_BUFFER_SIZE""#),
        ],
    )
    .await;
}

#[tokio::test]
async fn files_are_read_and_written_in_several_buffers() {
    check(
        "const f = path.join(dir, 'v'); const fd = fs.openSync(f, 'w+'); const two = () => [Buffer.alloc(3), Buffer.alloc(3)];",
        &[
            ("fs.writevSync(fd, [Buffer.from('ab'), Buffer.from('cd')], 0)", "4"),
            ("await (async () => { const buffers = two(); const { bytesRead } = await promisify(fs.readv)(fd, buffers, 0); return [bytesRead, String(buffers[0])]; })()", r#"[4,"abc"]"#),
            ("await new Promise((done) => fs.readv(fd, two(), 1, (error, count, buffers) => done([error, count, buffers.length])))", "[null,3,2]"),
            ("await (async () => { const h = await fsp.open(f, 'r+'); const { bytesWritten } = await h.writev([Buffer.from('xy')], 0); await h.close(); return [bytesWritten, fs.readFileSync(f, 'utf8')]; })()", r#"[2,"xycd"]"#),
            ("(fs.symlinkSync(f, f + 'l'), fs.lutimesSync(f + 'l', 10, 20), [fs.lstatSync(f + 'l').mtimeMs, fs.statSync(f).mtimeMs > 20000])", "[20000,true]"),
            ("[Object.keys(fs.statfsSync('/')).join(), fs.statfsSync('/').bsize > 0, typeof fs.statfsSync('/', { bigint: true }).blocks, typeof (await fsp.statfs('/')).files]", r#"["type,bsize,frsize,blocks,bfree,bavail,files,ffree",true,"bigint","number"]"#),
            ("await failure(() => fs.statfsSync('/no/such'))", r#""ENOENT""#),
            ("(fs.fchownSync(fd, process.getuid(), process.getgid()), fs.lchownSync(f + 'l', process.getuid(), process.getgid()), await failure(() => fs.fchownSync(9999, 0, 0)))", r#""EBADF""#),
            ("(() => { const made = fs.mkdtempDisposableSync(path.join(dir, 'd-')); const was = fs.existsSync(made.path); made.remove(); return [was, fs.existsSync(made.path)]; })()", "[true,false]"),
            ("await fs.openAsBlob(f).then((blob) => blob.text())", r#""xycd""#),
        ],
    )
    .await;
}

#[tokio::test]
async fn small_tools_of_node() {
    check(
        "const types = util.types;",
        &[
            ("[types.isUint8Array(Buffer.alloc(1)), types.isFloat64Array(new Float64Array(1)), types.isFloat64Array(new Float32Array(1)), types.isMapIterator(new Map().keys()), types.isArgumentsObject((function () { return arguments; })())]", "[true,true,false,true,true]"),
            ("[types.isSymbolObject(Symbol('x')), types.isSymbolObject(Object(Symbol('x'))), types.isGeneratorFunction(function* () {}), types.isAsyncFunction(async () => {}), types === require('util/types')]", "[false,true,true,true,true]"),
            ("util.parseEnv('A=1\\nexport B = \"x y\" # c\\nC=`a\\nb`\\n#D=1\\nE=\\nF=a#b\\nG=\"a\\\\nb\"')", r#"{"A":"1","B":"x y","C":"a\nb","E":"","F":"a","G":"a\nb"}"#),
            ("(() => { const m = new util.MIMEType('text/html; charset=utf-8;q=\"a b\"'); return [String(m), m.essence, m.params.get('charset')]; })()", r#"["text/html;charset=utf-8;q=\"a b\"","text/html","utf-8"]"#),
            ("await failure(() => new util.MIMEType('x'))", r#""ERR_INVALID_MIME_SYNTAX""#),
            ("[util.getSystemErrorName(-2), util.getSystemErrorMessage(-13), util.getSystemErrorMap().get(-98)[0], await failure(() => util.getSystemErrorName(2))]", r#"["ENOENT","permission denied","EADDRINUSE","ERR_OUT_OF_RANGE"]"#),
            ("await new Promise((done) => crypto.hkdf('sha512', 'key', 'salt', 'info', 64, (error, key) => done(Buffer.from(key).toString('hex').slice(0, 16))))", r#""24156e2c35525baa""#),
            ("await failure(() => crypto.hkdfSync('sha256', 'key', 'salt', 'info', 255 * 32 + 1))", r#""ERR_CRYPTO_INVALID_KEYLEN""#),
            ("await (async () => { const c = cp.spawn('cat'); for (const held of [c, c.stdin, c.stdout, c.stderr]) { held.unref(); held.ref(); } c.stdin.end('x'); return require('stream/consumers').text(c.stdout); })()", r#""x""#),
            ("[process.stdin, process.stdout, process.stderr].every((stream) => stream.unref().ref() === stream)", "true"),
            ("(() => { let calls = 0; process.unref({ unref() { calls++; } }); process.ref(setTimeout(() => {}, 1)); return calls; })()", "1"),
            ("(() => { const before = process.cpuUsage(); for (const end = Date.now() + 60; Date.now() < end; ); const { user, system } = process.cpuUsage(before); return user + system > 0; })()", "true"),
            ("(() => { fs.writeFileSync(path.join(dir, '.env'), 'NEW_VARIABLE=1\\nHOME=no'); process.loadEnvFile(path.join(dir, '.env')); return [process.env.NEW_VARIABLE, process.env.HOME === 'no']; })()", r#"["1",false]"#),
            ("[os.constants.errno.EADDRINUSE, os.constants.signals.SIGSYS, fs.constants.O_DIRECTORY, dns.TIMEOUT]", r#"[98,31,65536,"ETIMEOUT"]"#),
        ],
    )
    .await;
}

#[tokio::test]
async fn scripts_run_in_contexts_of_their_own() {
    check(
        "const vm = require('vm'); const c = vm.createContext({ a: 1 }); const run = (code, context = c) => vm.runInContext(code, context);",
        &[
            ("[run('var b = a + 1; c = 5; function f(x) { // doubled\\n return x * 2 } f(b)'), c.b, c.c, typeof c.f]", r#"[4,2,5,"function"]"#),
            ("run('f(10) + c')", "25"),
            ("run('[typeof process, typeof require, typeof nope, typeof Array, globalThis === this]')", r#"["undefined","undefined","undefined","function",true]"#),
            ("await failure(() => run('nope'))", r#""nope is not defined""#),
            ("run('(() => { undeclared = 7 })(); undeclared') + typeof globalThis.undeclared", r#""7undefined""#),
            ("run('if (true) { var q = 1 } for (var i = 0; i < 3; i++); q + i')", "4"),
            ("(() => { const s = new vm.Script('n++; n'); const k = vm.createContext({ n: 0 }); s.runInContext(k); return [s.runInContext(k), s.runInNewContext({ n: 5 })]; })()", "[2,6]"),
            ("[vm.runInNewContext('x + y', { x: 1, y: 2 }), vm.compileFunction('return a + b', ['a', 'b'])(1, 2), vm.runInThisContext('typeof process')]", r#"[3,3,"object"]"#),
            ("[vm.isContext(c), vm.isContext({}), await failure(() => run('1', {}))]", r#"[true,false,"ERR_INVALID_ARG_TYPE"]"#),
            ("(() => { try { new vm.Script('var = 1'); } catch (error) { return error.name; } })()", r#""SyntaxError""#),
            ("await failure(() => run('throw new TypeError(\"in\")'))", r#""in""#),
            ("[await failure(() => new vm.Script('1;'.repeat(5 << 20))), run('a')]", r#"["ERR_OUT_OF_RANGE",1]"#),
        ],
    )
    .await;
}
