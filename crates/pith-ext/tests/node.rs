//! Node's built-in modules and the web's globals, as extensions use them.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use support::evaluate::check;

#[tokio::test]
async fn paths() {
    check(
        "",
        &[
            ("path.join('/a', '../b', './c/')", r#""/b/c/""#),
            ("path.resolve('/a/b', '../c', 'd')", r#""/a/c/d""#),
            ("path.relative('/a/b/c', '/a/d')", r#""../../d""#),
            ("[path.dirname('/a/b.ts'), path.dirname('a'), path.dirname('/')]", r#"["/a",".","/"]"#),
            (
                "[path.basename('/a/b.ts'), path.basename('/a/b.ts', '.ts'), path.basename('/a/')]",
                r#"["b.ts","b","a"]"#,
            ),
            ("[path.extname('x.tar.gz'), path.extname('.rc'), path.extname('a.')]", r#"[".gz","","."]"#),
            ("path.normalize('a//b/../c/.')", r#""a/c""#),
            (
                "path.parse('/home/x/file.txt')",
                r#"{"root":"/","dir":"/home/x","base":"file.txt","ext":".txt","name":"file"}"#,
            ),
            ("path.format({ dir: '/a', name: 'b', ext: '.c' })", r#""/a/b.c""#),
            (
                "[path.isAbsolute('/a'), path.isAbsolute('a'), path.sep, path.posix === path]",
                r#"[true,false,"/",true]"#,
            ),
            ("path.resolve('x') === process.cwd() + '/x'", "true"),
            ("fileURLToPath('file:///a%20b/c')", r#""/a b/c""#),
            ("pathToFileURL('/a b#?').href", r#""file:///a%20b%23%3F""#),
            ("await failure(() => path.join('/a', null))", r#""ERR_INVALID_ARG_TYPE""#),
        ],
    )
    .await;
}

#[tokio::test]
async fn files_synchronously() {
    check(
        "const f = path.join(dir, 'f.txt');",
        &[
            ("(fs.writeFileSync(f, 'héllo'), fs.readFileSync(f, 'utf8'))", r#""héllo""#),
            ("fs.readFileSync(f).length", "6"),
            ("(fs.appendFileSync(f, '!'), fs.readFileSync(f, { encoding: 'utf-8' }))", r#""héllo!""#),
            ("[fs.existsSync(f), fs.existsSync(f + 'x'), fs.statSync(f).isFile(), fs.statSync(dir).isDirectory(), fs.statSync(f).size]", "[true,false,true,true,7]"),
            ("fs.statSync(f).mtime instanceof Date && fs.statSync(f).mtimeMs > 1e12", "true"),
            ("fs.statSync(f + 'x', { throwIfNoEntry: false })", "undefined"),
            ("await failure(() => fs.readFileSync(f + 'x'))", r#""ENOENT""#),
            ("(() => { try { fs.readFileSync('/no/such'); } catch (e) { return e.message; } })()", r#""ENOENT: no such file or directory, open '/no/such'""#),
            ("await failure(() => fs.readFileSync(dir))", r#""EISDIR""#),
            ("(fs.mkdirSync(path.join(dir, 'a/b/c'), { recursive: true }), fs.readdirSync(dir))", r#"["a","f.txt"]"#),
            ("fs.readdirSync(dir, { withFileTypes: true }).map((e) => e.name + e.isDirectory())", r#"["atrue","f.txtfalse"]"#),
            ("fs.readdirSync(dir, { recursive: true })", r#"["a","a/b","a/b/c","f.txt"]"#),
            ("await failure(() => fs.mkdirSync(path.join(dir, 'a')))", r#""EEXIST""#),
            ("(fs.copyFileSync(f, f + '2'), fs.renameSync(f + '2', f + '3'), fs.unlinkSync(f + '3'), fs.existsSync(f + '3'))", "false"),
            ("(fs.symlinkSync(f, f + 'l'), [fs.readlinkSync(f + 'l') === f, fs.lstatSync(f + 'l').isSymbolicLink(), fs.realpathSync(f + 'l') === fs.realpathSync(f)])", "[true,true,true]"),
            ("(fs.chmodSync(f, 0o600), (fs.statSync(f).mode & 0o777).toString(8))", r#""600""#),
            ("(fs.utimesSync(f, 10, 20), fs.statSync(f).mtimeMs)", "20000"),
            ("await failure(() => fs.rmSync(path.join(dir, 'gone')))", r#""ENOENT""#),
            ("(fs.rmSync(path.join(dir, 'gone'), { force: true }), fs.rmSync(path.join(dir, 'a'), { recursive: true }), fs.existsSync(path.join(dir, 'a')))", "false"),
            ("await failure(() => fs.accessSync(f, fs.constants.X_OK + 64 - 64)) || 'x'", r#""EACCES""#),
            ("(() => { const fd = fs.openSync(f, 'r+'); const b = Buffer.alloc(4); const n = fs.readSync(fd, b, 0, 4, 0); fs.writeSync(fd, 'X', 0); fs.closeSync(fd); return [n, b.toString('utf8', 0, 3), fs.readFileSync(f, 'utf8')]; })()", r#"[4,"hé","Xéllo!"]"#),
            ("await failure(() => fs.closeSync(99))", r#""EBADF""#),
            ("(fs.writeFileSync(f, Buffer.from([0, 255, 10])), [...fs.readFileSync(f)])", "[0,255,10]"),
            ("(fs.writeFileSync(f, '68690a', 'hex'), fs.readFileSync(f, 'base64'))", r#""aGkK""#),
            ("fs.mkdtempSync(path.join(dir, 'p-')).slice(-8, -6)", r#""p-""#),
            ("(fs.cpSync(dir, dir + '-copy', { recursive: true }), fs.existsSync(dir + '-copy/f.txt'))", "true"),
            ("await failure(() => fs.writeFileSync('a\\0b', ''))", r#""ERR_INVALID_ARG_VALUE""#),
            ("fs.globSync('**/*.txt', { cwd: dir })", r#"["f.txt"]"#),
        ],
    )
    .await;
}

#[tokio::test]
async fn files_asynchronously() {
    check(
        "const f = path.join(dir, 'f.txt'); await fsp.writeFile(f, 'one\\ntwo\\nthree');",
        &[
            ("await fsp.readFile(f, 'utf8')", r#""one\ntwo\nthree""#),
            ("(await fsp.stat(f)).size", "13"),
            ("await failure(() => fsp.readFile(f + 'x'))", r#""ENOENT""#),
            ("await new Promise((done) => fs.readFile(f, 'utf8', (error, text) => done([error, text.length])))", "[null,13]"),
            ("await new Promise((done) => fs.stat(f + 'x', (error) => done(error.code)))", r#""ENOENT""#),
            ("await promisify(fs.readFile)(f, 'utf8').then((text) => text.length)", "13"),
            ("await (async () => { const h = await fsp.open(f); const { bytesRead, buffer } = await h.read(Buffer.alloc(3), 0, 3, 4); await h.close(); return [bytesRead, buffer.toString()]; })()", r#"[3,"two"]"#),
            ("await (async () => { let text = ''; for await (const chunk of fs.createReadStream(f, { encoding: 'utf8', start: 4 })) text += chunk; return text; })()", r#""two\nthree""#),
            ("await (async () => { const lines = []; for await (const line of readline.createInterface({ input: fs.createReadStream(f) })) lines.push(line); return lines; })()", r#"["one","two","three"]"#),
            ("await (async () => { const s = fs.createWriteStream(f + '2'); s.write('a'); s.end('b'); await once(s, 'finish'); return fs.readFileSync(f + '2', 'utf8'); })()", r#""ab""#),
            ("await pipe(fs.createReadStream(f), new Transform({ transform(c, e, d) { d(null, c.toString().toUpperCase()); } }), fs.createWriteStream(f + '3')).then(() => fs.readFileSync(f + '3', 'utf8'))", r#""ONE\nTWO\nTHREE""#),
            ("await failure(async () => { for await (const x of fs.createReadStream(f + 'gone')); })", r#""ENOENT""#),
            ("await fsp.mkdir(path.join(dir, 'd/e'), { recursive: true }).then(() => fsp.readdir(path.join(dir, 'd')))", r#"["e"]"#),
            ("await fsp.rm(path.join(dir, 'd'), { recursive: true }).then(() => fsp.access(path.join(dir, 'd')).catch((e) => e.code))", r#""ENOENT""#),
            ("await (async () => { const w = fs.watch(dir); const seen = once(w, 'change'); fs.writeFileSync(path.join(dir, 'new'), ''); const [kind, name] = await seen; w.close(); return [kind, name]; })()", r#"["rename","new"]"#),
            ("await failure(() => fs.watch('/no/such'))", r#""ENOENT""#),
        ],
    )
    .await;
}

#[tokio::test]
async fn child_processes() {
    check(
        "const collect = (child) => new Promise((done) => { let out = '', err = ''; child.stdout.on('data', (d) => out += d); child.stderr.on('data', (d) => err += d); child.on('close', (code, signal) => done({ out, err, code, signal })); });",
        &[
            ("await collect(cp.spawn('sh', ['-c', 'echo out; echo err >&2; exit 4']))", r#"{"out":"out\n","err":"err\n","code":4,"signal":null}"#),
            ("await collect(cp.spawn('echo $X; pwd', { shell: true, cwd: '/', env: { X: 'y', PATH: process.env.PATH } }))", r#"{"out":"y\n/\n","err":"","code":0,"signal":null}"#),
            ("await (async () => { const c = cp.spawn('cat'); const done = collect(c); c.stdin.write('a'); c.stdin.end('b'); return (await done).out; })()", r#""ab""#),
            ("await (async () => { const c = cp.spawn('sleep', ['30']); const done = collect(c); c.kill(); const r = await done; return [r.code, r.signal, c.killed, c.signalCode]; })()", r#"[null,"SIGTERM",true,"SIGTERM"]"#),
            ("await new Promise((done) => cp.spawn('/no/such').on('error', (e) => done([e.code, e.syscall])))", r#"["ENOENT","spawn /no/such"]"#),
            ("await new Promise((done) => { const c = cp.spawn('/no/such'); c.stdin.on('error', done); c.stdout.on('data', done); c.on('error', (e) => done(e.code)); c.stdin.end('x'); })", r#""ENOENT""#),
            ("await new Promise((done) => cp.exec('echo hi; exit 2', (error, stdout) => done([error.code, stdout])))", r#"[2,"hi\n"]"#),
            ("await promisify(cp.exec)('echo hi').then(({ stdout, stderr }) => [stdout, stderr])", r#"["hi\n",""]"#),
            ("await promisify(cp.execFile)('printf', ['%s', 'a b']).then(({ stdout }) => stdout)", r#""a b""#),
            ("await failure(() => cp.spawn('ls', [], { cwd: '/etc/passwd' }))", r#""ENOTDIR""#),
            ("(() => { try { cp.spawn('ls', [], { cwd: '/etc/passwd' }); } catch (e) { return [e.message, e.syscall]; } })()", r#"["spawn ENOTDIR","spawn"]"#),
            ("await promisify(cp.execFile)('/no/such').catch((e) => e.code)", r#""ENOENT""#),
            ("await promisify(cp.exec)('sleep 30', { timeout: 50 }).catch((e) => [e.killed, e.signal])", r#"[true,"SIGTERM"]"#),
            ("await new Promise((done) => cp.exec('printf abcdef', { maxBuffer: 4 }, (e, out) => done([e.code, out])))", r#"["ERR_CHILD_PROCESS_STDIO_MAXBUFFER","abcd"]"#),
            ("await new Promise((done) => cp.exec('yes', { maxBuffer: 9000 }, (e, out) => done([e.code, out.length])))", r#"["ERR_CHILD_PROCESS_STDIO_MAXBUFFER",9000]"#),
            ("(({ error, stdout }) => [error.code, String(stdout).slice(0, 3)])(cp.spawnSync('printf', ['abcdef'], { maxBuffer: 3 }))", r#"["ENOBUFS","abc"]"#),
            ("cp.execSync('echo sync', { encoding: 'utf8' })", r#""sync\n""#),
            ("cp.execSync('cat', { input: 'in' }).toString()", r#""in""#),
            ("(() => { try { cp.execSync('echo bad >&2; exit 7', { stdio: 'pipe' }); } catch (e) { return [e.status, String(e.stderr), e.message.split('\\n')[0]]; } })()", r#"[7,"bad\n","Command failed: echo bad >&2; exit 7"]"#),
            ("cp.execFileSync('printf', ['x y']).toString()", r#""x y""#),
            ("(({ status, stdout, signal, error }) => [status, stdout, signal, error])(cp.spawnSync('sh', ['-c', 'echo o; exit 3'], { encoding: 'utf8' }))", r#"[3,"o\n",null,null]"#),
            ("cp.spawnSync('/no/such').error.code", r#""ENOENT""#),
            ("cp.spawnSync('sleep', ['30'], { timeout: 50 }).error.code", r#""ETIMEDOUT""#),
            ("await (async () => { const c = new AbortController(); const p = cp.spawn('sleep', ['30'], { signal: c.signal }); const e = once(p, 'error').catch((x) => [x]); c.abort(); return (await e)[0].name; })()", r#""AbortError""#),
            ("await (async () => { const c = cp.spawn('true', { stdio: 'ignore' }); await once(c, 'exit'); return [c.stdout, c.exitCode]; })()", "[null,0]"),
        ],
    )
    .await;
}

#[tokio::test]
async fn text_and_bytes() {
    check(
        "",
        &[
            ("Buffer.from('héllo').toString('hex')", r#""68c3a96c6c6f""#),
            ("Buffer.from('aGk=', 'base64').toString()", r#""hi""#),
            ("Buffer.from('a-_w', 'base64url').toString('base64')", r#""a+/w""#),
            ("Buffer.concat([Buffer.from('a'), Buffer.from([98])]).toString('latin1')", r#""ab""#),
            ("[Buffer.byteLength('é'), Buffer.isBuffer(Buffer.alloc(1)), Buffer.alloc(3, 'ab').toString()]", r#"[2,true,"aba"]"#),
            ("Buffer.from('hello world').subarray(6).toString()", r#""world""#),
            ("[Buffer.from('abc').indexOf('c'), Buffer.from('abc').includes('x'), Buffer.compare(Buffer.from('a'), Buffer.from('b'))]", "[2,false,-1]"),
            ("(() => { const b = Buffer.alloc(8); b.writeUInt32BE(0xdeadbeef, 0); b.writeInt16LE(-2, 4); return [b.readUInt32BE(0).toString(16), b.readInt16LE(4), b.readUInt8(0)]; })()", r#"["deadbeef",-2,222]"#),
            ("JSON.stringify(Buffer.from('a'))", r#""{\"type\":\"Buffer\",\"data\":[97]}""#),
            ("Buffer.from('\\ud83d\\ude00').toString('utf16le') + Buffer.from('é', 'utf16le').length", r#""鿰肘2""#),
            ("[btoa('hi'), atob('aGk=')]", r#"["aGk=","hi"]"#),
            ("new TextDecoder().decode(new TextEncoder().encode('naïve'))", r#""naïve""#),
            ("(() => { const d = new TextDecoder(); return d.decode(new Uint8Array([0xc3]), { stream: true }) + d.decode(new Uint8Array([0xa9])); })()", r#""é""#),
            ("await failure(() => new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array([255])))", r#""ERR_ENCODING_INVALID_ENCODED_DATA""#),
            ("crypto.createHash('sha256').update('a').update('b').digest('hex').slice(0, 16)", r#""fb8e20fc2e4c3f24""#),
            ("[crypto.createHash('md5').update('').digest('hex').slice(0, 8), crypto.createHash('sha1').update('').digest('hex').slice(0, 8)]", r#"["d41d8cd9","da39a3ee"]"#),
            ("crypto.createHmac('sha256', 'key').update('data').digest('base64')", r#""UDH+PZicbRU3oBP6bnOdojRj/a7DtwE32Cjjas4iG9A=""#),
            ("[crypto.randomBytes(8).length, crypto.randomUUID().length, crypto.randomInt(5) < 5]", "[8,36,true]"),
            ("crypto.pbkdf2Sync('password', 'salt', 1, 20, 'sha1').toString('hex')", r#""0c60c80f961f0e71f3a9b524af6012062fe037a6""#),
            ("(() => { const key = crypto.randomBytes(32), iv = crypto.randomBytes(12); const c = crypto.createCipheriv('aes-256-gcm', key, iv); const e = Buffer.concat([c.update('secret', 'utf8'), c.final()]); const d = crypto.createDecipheriv('aes-256-gcm', key, iv); d.setAuthTag(c.getAuthTag()); return Buffer.concat([d.update(e), d.final()]).toString(); })()", r#""secret""#),
            ("crypto.timingSafeEqual(Buffer.from('a'), Buffer.from('a'))", "true"),
            ("Buffer.from(await globalThis.crypto.subtle.digest('SHA-256', new TextEncoder().encode('ab'))).toString('hex').slice(0, 8)", r#""fb8e20fc""#),
            ("await failure(() => crypto.createHash('whirlpool'))", r#""ERR_CRYPTO_INVALID_DIGEST""#),
        ],
    )
    .await;
}

#[tokio::test]
async fn stacks_begin_with_the_error() {
    let setup = "
        const first = (error) => error.stack.split('\\n')[0];
        const second = (error) => error.stack.split('\\n')[1].replace(/\\(.*\\//, '(');
        class Named extends Error { constructor(message) { super(message); this.name = 'Named'; } }
        class Captured extends Error { constructor(message) { super(message); Error.captureStackTrace(this, Captured); this.name = 'Captured'; } }
        const caught = (fn) => { try { fn(); } catch (error) { return error; } };
        function make() { return new Captured('c'); }";
    check(
        setup,
        &[
            ("[first(new Error('boom')), first(new Error()), first(new Named('n')), first(make())]", r#"["Error: boom","Error","Named: n","Captured: c"]"#),
            ("first(caught(() => null.x))", r#""TypeError: cannot read property 'x' of null""#),
            ("/^    at make \\(cases\\.ts:\\d+:\\d+\\)$/.test(second(make()))", "true"),
            ("new Error('a').stack.endsWith('\\n')", "false"),
            ("(() => { const o = {}; Error.captureStackTrace(o); return [first(o), o.stack.includes('traces')]; })()", r#"["Error",false]"#),
            ("(() => { const e = new Error('x'); e.stack = 'mine'; const seen = [e.stack, Object.keys(e)]; e.stack = undefined; return [...seen, e.stack]; })()", r#"["mine",[],null]"#),
            ("util.inspect(new Named('n')).split('\\n').slice(0, 2).map((line) => line.slice(0, 7))", r#"["Named: ","    at "]"#),
            ("(() => { const e = make(); return util.inspect(e).split('Captured: c').length; })()", "2"),
            ("(() => { Error.prepareStackTrace = (error, sites) => sites; const { stack } = new Error('x'); Error.prepareStackTrace = undefined; return Array.isArray(stack); })()", "true"),
        ],
    )
    .await;
}

#[tokio::test]
async fn urls_and_structures() {
    check(
        "",
        &[
            ("(({ href, origin, host, pathname, search, hash }) => [href, origin, host, pathname, search, hash])(new URL('../c?x=1#h', 'http://u:p@e.com:8080/a/b/'))", r##"["http://u:p@e.com:8080/a/c?x=1#h","http://e.com:8080","e.com:8080","/a/c","?x=1","#h"]"##),
            ("(() => { const u = new URL('http://e.com'); u.searchParams.set('q', 'a b&c'); u.pathname = '/p q'; u.port = '81'; return u.href; })()", r#""http://e.com:81/p%20q?q=a+b%26c""#),
            ("[...new URLSearchParams('a=1&b=2&a=3')].join('|') + new URLSearchParams({ x: 'ü' })", r#""a,1|b,2|a,3x=%C3%BC""#),
            ("[URL.canParse('nope'), await failure(() => new URL('nope'))]", r#"[false,"ERR_INVALID_URL"]"#),
            ("(() => { const c = structuredClone({ d: new Date(5), m: new Map([[1, new Set([2])]]), a: [1, , 3], u: new Uint8Array([7]) }); return [c.d.getTime(), c.m.get(1).has(2), c.a.length, c.u[0]]; })()", "[5,true,3,7]"),
            ("(() => { const a = {}; a.self = a; const c = structuredClone(a); return c.self === c && c !== a; })()", "true"),
            ("await failure(() => structuredClone(() => {}))", "25"),
            ("util.inspect({ a: [1, 'x', { b: null }], m: new Map([['k', 1]]), f() {}, [Symbol('s')]: 1 })", r#""{\n  a: [ 1, 'x', { b: null } ],\n  m: Map(1) { 'k' => 1 },\n  f: [Function: f],\n  [Symbol(s)]: 1\n}""#),
            ("util.format('%s is %d%% of %j', 'x', 5, { a: 1 }, 'extra')", r#""x is 5% of {\"a\":1} extra""#),
            ("util.inspect('it\\'s') + util.inspect(new Error('m')).split('\\n')[0]", r#""\"it's\"Error: m""#),
            ("util.isDeepStrictEqual({ a: [1] }, { a: [1] })", "true"),
            ("util.stripVTControlCharacters('\\u001b[31mred\\u001b[0m')", r#""red""#),
            ("(() => { const e = new EventEmitter(); const seen = []; e.on('x', (a) => seen.push(a)); e.once('x', (a) => seen.push('once' + a)); e.emit('x', 1); e.emit('x', 2); return [seen, e.listenerCount('x')]; })()", r#"[[1,"once1",2],1]"#),
            ("await failure(() => new EventEmitter().emit('error', new Error('boom')))", r#""boom""#),
            ("(() => { function Old() { EventEmitter.call(this); } util.inherits(Old, EventEmitter); const o = new Old(); let n = 0; o.on('a', () => n++); o.emit('a'); return [n, o instanceof EventEmitter]; })()", "[1,true]"),
            ("await (async () => { const r = Readable.from(['a', 'b']); return (await r.toArray()).join(); })()", r#""a,b""#),
            ("await (async () => { const p = new PassThrough(); p.end('xyz'); let t = ''; for await (const c of p) t += c; return t; })()", r#""xyz""#),
            ("await (async () => { const start = Date.now(); await sleep(15); return Date.now() - start >= 14; })()", "true"),
            ("(() => { const t = setTimeout(() => {}, 1); const seen = [t.hasRef(), t.unref().hasRef(), t.ref().hasRef()]; clearTimeout(t); return seen; })()", "[true,false,true]"),
            ("await new Promise((done) => { let n = 0; const t = setInterval(() => { if (++n === 3) { clearInterval(t); done(n); } }, 1); })", "3"),
            ("await new Promise((done) => { const order = []; setImmediate(() => { order.push('immediate'); done(order); }); process.nextTick(() => order.push('tick')); Promise.resolve().then(() => order.push('micro')); })", r#"["tick","micro","immediate"]"#),
            ("await (async () => { const c = new AbortController(); setTimeout(() => c.abort(), 1); return await sleep(5000, 0, { signal: c.signal }).catch((e) => e.name); })()", r#""AbortError""#),
            ("AbortSignal.any([AbortSignal.abort('r')]).reason", r#""r""#),
            ("await (async () => { const s = AbortSignal.timeout(5); await once(s, 'abort'); return s.reason.name; })()", r#""TimeoutError""#),
            ("(() => { try { assert.deepStrictEqual({ a: 1 }, { a: 2 }); } catch (e) { return e.code; } })()", r#""ERR_ASSERTION""#),
            ("createRequire(import.meta.url)('node:path') === path", "true"),
            ("typeof require('worker_threads').Worker + (await failure(() => require('dgram').createSocket('udp4')))", r#""functionERR_FEATURE_UNAVAILABLE_ON_PLATFORM""#),
            ("[process.platform, typeof process.pid, process.argv.slice(1), process.env.HOME === os.homedir(), process.stdout.isTTY, process.cwd() === process.cwd()]", r#"["linux","number",["/$bunfs/root/pi","--mode","rpc"],true,false,true]"#),
            ("(() => { const { constants } = require('http2'); return [constants.HTTP2_HEADER_PATH, constants.HTTP2_HEADER_CONTENT_TYPE, constants.NGHTTP2_CANCEL, constants.HTTP2_METHOD_GET, constants.HTTP_STATUS_OK]; })()", r#"[":path","content-type",8,"GET",200]"#),
            ("(() => { const threads = require('worker_threads'); try { new threads.Worker('x.js'); } catch (e) { return [e.message, threads.isMainThread, threads.parentPort]; } })()", r#"["worker_threads.Worker is not available in pith",true,null]"#),
            ("(() => { fs.writeFileSync(path.join(dir, 'addon.node'), ''); try { require(path.join(dir, 'addon.node')); } catch (e) { return [e.code, e.message.includes('native add-ons are not available in pith')]; } })()", r#"["ERR_DLOPEN_FAILED",true]"#),
            ("await failure(() => process.dlopen({}, 'x.node'))", r#""ERR_DLOPEN_FAILED""#),
            ("(process.env.NEW_ONE = 5, [process.env.NEW_ONE, process.env.MISSING])", r#"["5",null]"#),
            ("[os.EOL, os.tmpdir().length > 0, os.cpus().length > 0, os.platform(), typeof os.hostname()]", r#"["\n",true,true,"linux","string"]"#),
            ("await failure(() => process.chdir('/'))", r#""ERR_WORKER_UNSUPPORTED_OPERATION""#),
            ("[typeof process.hrtime.bigint(), process.memoryUsage().rss > 0, process.uptime() > 0]", r#"["bigint",true,true]"#),
        ],
    )
    .await;
}

#[tokio::test]
async fn http_through_the_agent() {
    check(
        "",
        &[
            ("await fetch('https://e.com/x').then(async (r) => [r.status, r.ok, r.headers.get('Content-Type'), (await r.json()).answer])", r#"[200,true,"application/json",42]"#),
            ("await fetch(new URL('https://e.com'), { method: 'post', headers: { A: 'b' }, body: JSON.stringify({}) }).then((r) => r.text())", r#""{\"answer\":42}""#),
            ("await (async () => { const r = await fetch('https://e.com'); let t = ''; for await (const c of r.body) t += new TextDecoder().decode(c); return t; })()", r#""{\"answer\":42}""#),
            ("await (async () => { const reader = (await fetch('https://e.com')).body.getReader(); const first = await reader.read(); return [first.done, first.value.length]; })()", "[false,10]"),
            ("await fetch('https://broken.com').catch((e) => [e.name, e.message, e.cause.message])", r#"["TypeError","fetch failed","connection refused"]"#),
            ("await fetch('https://e.com', { signal: AbortSignal.abort() }).catch((e) => e.name)", r#""AbortError""#),
            ("await fetch('data:text/plain;base64,aGk=').then((r) => r.text())", r#""hi""#),
            ("await fetch('not a url').catch((e) => e.code)", r#""ERR_INVALID_URL""#),
            ("[...new Headers([['b', '2'], ['A', '1'], ['a', '3']])]", r#"[["a","1, 3"],["b","2"]]"#),
            ("await new Response('x', { status: 404 }).clone().text()", r#""x""#),
            ("await new Promise((done) => require('https').get('https://e.com/y', (r) => { let t = ''; r.on('data', (d) => t += d); r.on('end', () => done([r.statusCode, t])); }))", r#"[200,"{\"answer\":42}"]"#),
            ("await new Promise((done) => { const r = require('http').request({ hostname: 'broken.com', path: '/' }); r.on('error', (e) => done(e.message)); r.end(); })", r#""connection refused""#),
        ],
    )
    .await;
}

#[tokio::test]
async fn locale_aware_formatting() {
    check(
        "const at = new Date(Date.UTC(2026, 0, 5, 15, 4, 9)); const utc = { timeZone: 'UTC' };",
        &[
            ("(1234567.891).toLocaleString()", r#""1,234,567.891""#),
            ("new Intl.NumberFormat('en-US', { style: 'currency', currency: 'USD' }).format(1234.5)", r#""$1,234.50""#),
            ("[new Intl.NumberFormat('en', { notation: 'compact' }).format(12345), (0.256).toLocaleString('en', { style: 'percent' }), (5).toLocaleString('en', { minimumIntegerDigits: 2 })]", r#"["12K","26%","05"]"#),
            ("at.toLocaleDateString('en-US', utc)", r#""1/5/2026""#),
            ("at.toLocaleTimeString('en-US', utc)", r#""3:04:09 PM""#),
            ("at.toLocaleString('en-US', utc)", r#""1/5/2026, 3:04:09 PM""#),
            ("at.toLocaleDateString('en-US', { weekday: 'short', month: 'long', day: 'numeric', year: 'numeric', ...utc })", r#""Mon, January 5, 2026""#),
            ("at.toLocaleTimeString('en-US', { hour: '2-digit', minute: '2-digit', hour12: false, ...utc })", r#""15:04""#),
            ("at.toLocaleDateString('en-GB', utc) + at.toLocaleDateString('sv-SE', utc)", r#""05/01/20262026-01-05""#),
            ("[...new Intl.Segmenter().segment('ae\\u0301👨‍👩‍👧!')].map((s) => s.segment.length)", "[1,2,8,1]"),
            ("[...new Intl.Segmenter('en', { granularity: 'word' }).segment('Hi there')].filter((s) => s.isWordLike).map((s) => s.segment)", r#"["Hi","there"]"#),
            ("new Intl.RelativeTimeFormat('en', { numeric: 'auto' }).format(-1, 'day') + new Intl.RelativeTimeFormat().format(3, 'hours')", r#""yesterdayin 3 hours""#),
            ("['b', 'a', 'C', 'A'].sort((x, y) => x.localeCompare(y))", r#"["a","A","b","C"]"#),
            (
                "['é'.localeCompare('f'), 'z'.localeCompare('é'), 'e'.localeCompare('é'), 'é'.localeCompare('e\\u0301'), 'é'.localeCompare('É')]",
                "[-1,1,-1,0,-1]",
            ),
            (
                "['z', 'ö', 'Öl', 'o', 'Zug', 'éa', 'eb', 'E', 'ß', 'st', 'Ø', 'p', 'æ', 'af', 'ł', 'm'].sort((a, b) => a.localeCompare(b))",
                r#"["æ","af","E","éa","eb","ł","m","o","ö","Ø","Öl","p","ß","st","z","Zug"]"#,
            ),
            (
                "['zoo', 'été', 'ete', 'étage', 'Ete', 'eta'].sort(new Intl.Collator().compare)",
                r#"["eta","étage","ete","Ete","été","zoo"]"#,
            ),
            ("['cote', 'côte', 'coté', 'côté'].sort(new Intl.Collator('fr').compare)", r#"["cote","coté","côte","côté"]"#),
            ("['é'.localeCompare('e', 'en', { sensitivity: 'base' }), 'a'.localeCompare('á', undefined, { sensitivity: 'accent' })]", "[0,-1]"),
            ("['a10', 'a9'].sort(new Intl.Collator('en', { numeric: true }).compare)", r#"["a9","a10"]"#),
            ("[new Intl.PluralRules('en').select(1), new Intl.ListFormat('en').format(['a', 'b', 'c'])]", r#"["one","a, b, and c"]"#),
            ("typeof Intl.DateTimeFormat().resolvedOptions().timeZone", r#""string""#),
            ("await failure(() => new Intl.DateTimeFormat('en', { timeZone: 'Mars/Olympus' }))", r#""Invalid time zone specified: Mars/Olympus""#),
        ],
    )
    .await;
}

#[tokio::test]
async fn terminal_text_helpers() {
    check(
        "const tui = await import('@earendil-works/pi-tui'); const red = '\\u001b[31mred\\u001b[0m';",
        &[
            ("[tui.visibleWidth('abc'), tui.visibleWidth(red), tui.visibleWidth('日本'), tui.visibleWidth('👍')]", "[3,3,4,2]"),
            ("[tui.truncateToWidth('hello world', 8), tui.truncateToWidth('hi', 5, '…', true), tui.truncateToWidth('日本語', 4, '…')]", r#"["hello...","hi   ","日…"]"#),
            ("tui.wrapTextWithAnsi('the quick brown fox', 10)", r#"["the quick","brown fox"]"#),
            ("tui.wrapTextWithAnsi('abcdefghij', 4)", r#"["abcd","efgh","ij"]"#),
            ("[tui.matchesKey('\\u001b', tui.Key.escape), tui.matchesKey('\\u0003', tui.Key.ctrl('c')), tui.matchesKey('\\u001b[A', 'up'), tui.matchesKey('\\r', 'enter'), tui.matchesKey('x', 'y')]", "[true,true,true,true,false]"),
            ("tui.fuzzyFilter(['readme', 'main', 'random'], 'rm', (x) => x)", r#"["readme","random"]"#),
            ("new tui.Text('hi', 1, 0).render(6)", r#"[" hi   "]"#),
            ("(() => { const c = new tui.Container(); c.addChild(new tui.Text('a', 0, 0)); c.addChild(new tui.Spacer(1)); return c.render(2); })()", r#"["a ",""]"#),
            ("new tui.Markdown('# T\\n- **b** `c`', 0, 0, {}).render(10).map((l) => l.trimEnd())", r#"["T","- b c"]"#),
            ("(() => { try { new tui.TUI(); } catch (e) { return e.message; } })()", r#""TUI needs a terminal""#),
            ("typeof class extends (await import('@mariozechner/pi-coding-agent')).CustomEditor {}", r#""function""#),
        ],
    )
    .await;
}
