//! Sockets, servers and packed data of extensions, and what bounds them.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use support::evaluate::check;
use support::{Harness, TIMEOUT};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A server in JavaScript that is listening, and the text a connection to it yields.
const HELPERS: &str = r"
    const listening = async (server, ...where) => { server.listen(...where); await once(server, 'listening'); return server; };
    const text = async (stream) => { let all = ''; for await (const chunk of stream) all += chunk; return all; };
    // Sends a request as bytes and returns the whole answer.
    const raw = async (port, request) => { const socket = net.connect(port, '127.0.0.1'); socket.write(request); const all = await text(socket); return all; };
    const body = (answer) => answer.slice(answer.indexOf('\r\n\r\n') + 4);
    const close = (server) => new Promise((resolve) => server.close(resolve));
";

#[tokio::test]
async fn sockets_carry_bytes_both_ways() {
    check(
        HELPERS,
        &[
            (
                "await (async () => { const server = await listening(net.createServer((socket) => socket.pipe(socket)), 0);
                    const { port } = server.address(); const socket = net.connect(port); socket.end('hello'); const said = await text(socket);
                    await close(server); return [said, server.listening, socket.destroyed]; })()",
                r#"["hello",false,true]"#,
            ),
            // Without a host a server is there for this machine only.
            (
                "await (async () => { const server = await listening(net.createServer(), { port: 0 }); const { address, family } = server.address(); await close(server); return [address, family]; })()",
                r#"["127.0.0.1","IPv4"]"#,
            ),
            (
                "await (async () => { const server = await listening(net.createServer(), 0, '0.0.0.0'); const { address } = server.address(); await close(server); return address; })()",
                r#""0.0.0.0""#,
            ),
            // A megabyte, in whatever pieces it comes.
            (
                "await (async () => { const server = await listening(net.createServer((socket) => socket.pipe(socket)), 0);
                    const socket = net.connect(server.address().port, () => { socket.write(Buffer.alloc(1 << 20, 97)); socket.end(); });
                    let size = 0; for await (const chunk of socket) size += chunk.length; server.close(); return size; })()",
                "1048576",
            ),
            // A socket in the file system; its file ends with the server.
            (
                "await (async () => { const file = path.join(dir, 's'); const server = await listening(net.createServer((socket) => socket.end('unix')), file);
                    const said = await text(net.createConnection({ path: file })); await close(server); return [said, server.address(), fs.existsSync(file)]; })()",
                r#"["unix",null,false]"#,
            ),
            (
                "await (async () => { const server = await listening(net.createServer(), 0); const { port } = server.address(); await close(server);
                    const [error] = await once(net.connect(port, '127.0.0.1').on('error', () => {}), 'error'); return [error.code, error.syscall, error.port === port, error.message.startsWith('connect ECONNREFUSED 127.0.0.1:')]; })()",
                r#"["ECONNREFUSED","connect",true,true]"#,
            ),
            (
                "await (async () => { const first = await listening(net.createServer(), 0); const second = net.createServer(); const failed = once(second, 'error'); second.listen(first.address().port);
                    const [error] = await failed; await close(first); return [error.code, error.syscall]; })()",
                r#"["EADDRINUSE","listen"]"#,
            ),
            ("await failure(() => net.createServer().listen(70000))", r#""ERR_SOCKET_BAD_PORT""#),
            ("await new Promise((resolve) => net.createServer().close((error) => resolve(error.code)))", r#""ERR_SERVER_NOT_RUNNING""#),
            // The other side is told when one is destroyed.
            (
                "await (async () => { const server = await listening(net.createServer((socket) => socket.destroy()), 0); const socket = net.connect(server.address().port); socket.resume(); await once(socket, 'close'); server.close(); return socket.destroyed; })()",
                "true",
            ),
            (
                "await (async () => { const server = await listening(net.createServer(() => {}), 0); const socket = net.connect(server.address().port); socket.setTimeout(1); await once(socket, 'timeout'); socket.destroy(); server.close(); return socket.readyState; })()",
                r#""closed""#,
            ),
            ("[net.isIP('1.2.3.4'), net.isIP('::1'), net.isIP('fe80::1%eth0'), net.isIP('1.2.3'), net.isIPv4('256.1.1.1')]", "[4,6,6,0,false]"),
            (
                "(() => { const list = new net.BlockList(); list.addAddress('10.0.0.1'); list.addRange('10.1.0.0', '10.1.0.9'); list.addSubnet('8592:757c:efae::', 48, 'ipv6');
                    return [list.check('10.0.0.1'), list.check('10.1.0.5'), list.check('10.1.0.10'), list.check('::ffff:10.0.0.1', 'ipv6'), list.check('8592:757c:efae:1::', 'ipv6'), list.check('x'), list.rules[2]]; })()",
                r#"[true,true,false,true,true,false,"Address: IPv4 10.0.0.1"]"#,
            ),
            ("await failure(() => new net.BlockList().addAddress('x'))", r#""ERR_INVALID_ADDRESS""#),
            ("(await dns.promises.lookup('localhost', { all: true })).length > 0", "true"),
            ("await new Promise((resolve) => dns.lookup('127.0.0.1', (error, address, family) => resolve([error, address, family])))", r#"[null,"127.0.0.1",4]"#),
            ("await failure(() => dns.promises.resolveMx('localhost'))", r#""ERR_FEATURE_UNAVAILABLE_ON_PLATFORM""#),
        ],
    )
    .await;
}

#[tokio::test]
async fn http_servers_answer() {
    let serve = r"
        const serving = (handler) => listening(http.createServer(handler), 0);
        const ask = async (handler, request) => { const server = await serving(handler); const answer = await raw(server.address().port, request); await close(server); return answer; };
        const get = 'GET /a?b=c HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n';
    ";
    check(
        &format!("{HELPERS}{serve}"),
        &[
            (
                "await (async () => { const answer = await ask((req, res) => { res.setHeader('X-One', ['1', '2']); res.end(`${req.method} ${req.url} ${req.headers.host} ${req.socket.remoteAddress}`); }, get);
                    return [answer.split('\\r\\n')[0], (answer.match(/x-one/gi) ?? []).length, /content-length: 22/i.test(answer), body(answer)]; })()",
                r#"["HTTP/1.1 200 OK",2,true,"GET /a?b=c x 127.0.0.1"]"#,
            ),
            // What is sent is read, and the head can be written in one go.
            (
                "await (async () => { const answer = await ask(async (req, res) => { const sent = await text(req); res.writeHead(201, 'Made', { 'content-type': 'text/plain' }).end(sent.toUpperCase()); },
                    'POST / HTTP/1.1\\r\\nhost: x\\r\\nconnection: close\\r\\ncontent-length: 5\\r\\n\\r\\nhello'); return [answer.slice(0, 12), body(answer)]; })()",
                r#"["HTTP/1.1 201","HELLO"]"#,
            ),
            // A response in pieces has no length.
            (
                "await (async () => { const answer = await ask((req, res) => { res.write('one'); setTimeout(() => res.end('two'), 1); }, get); return [/transfer-encoding: chunked/i.test(answer), body(answer)]; })()",
                r#"[true,"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"]"#,
            ),
            ("body(await ask((req, res) => { res.statusCode = 204; res.end(); }, get))", r#""""#),
            ("body(await ask((req, res) => res.end('not for you'), get.replace('GET', 'HEAD')))", r#""""#),
            // Two requests on one connection.
            (
                "(await ask((req, res) => res.end(req.url), get.replace('connection: close\\r\\n', '') + get)).split('HTTP/1.1 200').length",
                "3",
            ),
            // A client that goes is noticed.
            (
                "await (async () => { const server = http.createServer(); await listening(server, 0); const socket = net.connect(server.address().port); socket.write(get);
                    const [req, res] = await once(server, 'request'); const closed = once(res, 'close'); res.write('a'); await once(socket, 'data'); socket.destroy(); await closed; server.close(); return [res.destroyed, req.url]; })()",
                r#"[true,"/a?b=c"]"#,
            ),
            // The connection of an upgrade belongs to both ends.
            (
                "await (async () => { const server = http.createServer(); server.on('upgrade', (req, socket) => { socket.write('HTTP/1.1 101 Switching Protocols\\r\\nupgrade: echo\\r\\nconnection: upgrade\\r\\n\\r\\n'); socket.pipe(socket); });
                    await listening(server, 0); const socket = net.connect(server.address().port); socket.write('GET / HTTP/1.1\\r\\nhost: x\\r\\nupgrade: echo\\r\\nconnection: upgrade\\r\\n\\r\\n');
                    let all = ''; for await (const chunk of socket) { all += chunk; if (all.endsWith('\\r\\n\\r\\n')) socket.end('ping'); } server.close(); return [all.slice(0, 12), body(all)]; })()",
                r#"["HTTP/1.1 101","ping"]"#,
            ),
            ("await (async () => { const answer = await ask((req, res) => { try { res.setHeader('a'); } catch (error) { res.end(error.code); } }, get); return body(answer); })()", r#""ERR_HTTP_INVALID_HEADER_VALUE""#),
            ("(await ask((req, res) => res.end(), 'nonsense\\r\\n\\r\\n')).slice(0, 12)", r#""HTTP/1.1 400""#),
            ("await failure(() => require('node:https').createServer({}))", r#""ERR_FEATURE_UNAVAILABLE_ON_PLATFORM""#),
            ("await failure(() => require('node:http2').createServer())", r#""ERR_FEATURE_UNAVAILABLE_ON_PLATFORM""#),
            ("[require('node:http2').constants.HTTP2_HEADER_PATH, http.STATUS_CODES[418]]", r#"[":path","I'm a Teapot"]"#),
        ],
    )
    .await;
}

#[tokio::test]
async fn data_is_packed_and_unpacked() {
    check(
        "const text = 'hello hello hello hello '.repeat(50);
         const streamed = async (stream, bytes) => { const parts = []; stream.on('data', (part) => parts.push(part)); const end = once(stream, 'end'); for (const byte of bytes) stream.write(Buffer.from([byte])); stream.end(); await end; return Buffer.concat(parts); };",
        &[
            ("['gzip', 'deflate', 'deflateRaw', 'brotliCompress'].map((kind) => zlib[`${kind}Sync`](text).length < 100)", "[true,true,true,true]"),
            ("[zlib.gunzipSync(zlib.gzipSync(text)), zlib.inflateSync(zlib.deflateSync(text)), zlib.inflateRawSync(zlib.deflateRawSync(text)), zlib.brotliDecompressSync(zlib.brotliCompressSync(text)), zlib.unzipSync(zlib.deflateSync(text)), zlib.unzipSync(zlib.gzipSync(text))].every((bytes) => String(bytes) === text)", "true"),
            ("String(zlib.gunzipSync(Buffer.from('H4sIAAAAAAAAA8tIzcnJVyjPL8pJAQCFEUoNCwAAAA==', 'base64')))", r#""hello world""#),
            ("String(await promisify(zlib.gunzip)(await promisify(zlib.gzip)(text))) === text", "true"),
            // One byte at a time, through a stream of each kind.
            ("String(await streamed(zlib.createGunzip(), zlib.gzipSync(text))) === text", "true"),
            ("String(await streamed(zlib.createBrotliDecompress(), zlib.brotliCompressSync(text))) === text", "true"),
            ("String(zlib.inflateSync(await streamed(zlib.createDeflate({ level: 9 }), Buffer.from(text)))) === text", "true"),
            ("String(zlib.gunzipSync(await streamed(zlib.createGzip(), Buffer.from(text)))) === text", "true"),
            ("String(zlib.brotliDecompressSync(await streamed(zlib.createBrotliCompress(), Buffer.from(text)))) === text", "true"),
            ("String(zlib.gunzipSync(await streamed(zlib.createGzip(), []))) === ''", "true"),
            ("await (async () => { fs.writeFileSync(path.join(dir, 'a'), text); await pipe(fs.createReadStream(path.join(dir, 'a')), zlib.createGzip(), fs.createWriteStream(path.join(dir, 'a.gz'))); return String(zlib.gunzipSync(fs.readFileSync(path.join(dir, 'a.gz')))) === text; })()", "true"),
            ("await failure(() => zlib.gunzipSync('nonsense nonsense'))", r#""Z_DATA_ERROR""#),
            ("await failure(() => zlib.gunzipSync(zlib.gzipSync(text).subarray(0, 20)))", r#""Z_BUF_ERROR""#),
            ("await failure(() => promisify(zlib.inflate)('nonsense nonsense'))", r#""Z_DATA_ERROR""#),
            ("await failure(() => streamed(zlib.createGunzip(), Buffer.from('nonsense nonsense')))", r#""Z_DATA_ERROR""#),
            ("await failure(() => zlib.gunzipSync(3))", r#""ERR_INVALID_ARG_TYPE""#),
            ("[zlib.crc32('hello'), zlib.crc32(' world', zlib.crc32('hello')) === zlib.crc32('hello world'), zlib.constants.Z_BEST_SPEED]", "[907060870,true,1]"),
            ("await failure(() => zlib.zstdCompressSync(''))", r#""ERR_FEATURE_UNAVAILABLE_ON_PLATFORM""#),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_few_bytes_that_stand_for_many_do_not_fill_the_memory() {
    check(
        // Seventy members of a megabyte each: 70 kB that become 70 MB.
        "const bomb = Buffer.concat(Array(70).fill(zlib.gzipSync(Buffer.alloc(1 << 20))));",
        &[
            ("bomb.length < 100000", "true"),
            ("await failure(() => zlib.gunzipSync(bomb))", r#""ERR_BUFFER_TOO_LARGE""#),
            ("await failure(() => promisify(zlib.gunzip)(bomb))", r#""ERR_BUFFER_TOO_LARGE""#),
            ("await failure(() => zlib.gunzipSync(bomb, { maxOutputLength: 10 }))", r#""ERR_BUFFER_TOO_LARGE""#),
            // A stream that nobody reads stops at what it may keep.
            (
                "await (async () => { const stream = zlib.createGunzip(); stream.end(bomb); stream.read(0); while (stream.readableLength === 0) await sleep(1); await sleep(1); const kept = stream.readableLength; stream.destroy(); return kept <= 1 << 20; })()",
                "true",
            ),
            // One that is read gets through all of it.
            ("await (async () => { const stream = zlib.createGunzip(); stream.end(bomb.subarray(0, bomb.length / 10)); let size = 0; for await (const part of stream) size += part.length; return size; })()", "7340032"),
        ],
    )
    .await;
}

#[tokio::test]
async fn what_pith_does_not_have_says_so_when_it_is_used() {
    check(
        "const message = async (fn) => { try { await fn(); return 'nothing'; } catch (error) { return error.message; } };",
        &[
            ("await message(() => new (require('worker_threads').Worker)('x.js'))", r#""worker_threads.Worker is not available in pith""#),
            ("[require('worker_threads').isMainThread, require('worker_threads').parentPort]", "[true,null]"),
            ("await message(() => WebAssembly.instantiate(new Uint8Array()))", r#""WebAssembly is not available in pith""#),
            ("await message(() => new WebAssembly.Module(new Uint8Array()))", r#""WebAssembly is not available in pith""#),
            ("await message(() => require('tls').connect(443))", r#""tls.connect is not available in pith""#),
            ("await message(() => http.request({ socketPath: '/var/run/x.sock' }))", r#""http.request with socketPath is not available in pith""#),
            ("(() => { const channel = require('diagnostics_channel').channel('c'); const seen = []; channel.subscribe((message, name) => seen.push([message, name])); channel.publish(1); return seen; })()", r#"[[1,"c"]]"#),
        ],
    )
    .await;
}

/// An extension with a server that it leaves open; it announces the port.
const SERVER: &str = "import http from 'http';
    export default (pi) => pi.registerCommand('serve', { handler: async (_, ctx) => {
        const server = http.createServer((req, res) => res.end('here'));
        server.listen(0, () => ctx.ui.notify('port ' + server.address().port));
    } });";

/// A command that shows that the engine works.
const NEIGHBOUR: (&str, &str) = (
    "neighbour.ts",
    "export default (pi) => pi.registerCommand('alive', { handler: async (_, ctx) => ctx.ui.notify('alive') });",
);

async fn port(harness: &Harness) -> u16 {
    harness
        .wait_for("a port", |seen| {
            seen.displays
                .iter()
                .find_map(|shown| format!("{shown:?}").split("port ").nth(1)?.split('"').next()?.parse().ok())
        })
        .await
}

#[tokio::test]
async fn a_server_that_is_left_open_ends_with_the_session() {
    let harness = Harness::patient();
    harness.run(&[("server.ts", SERVER)]).await;
    harness.command("serve", "").await;
    let port = port(&harness).await;
    let mut socket = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    socket.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut answer = [0; 12];
    socket.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");

    drop(harness);
    // The open connection ends, and nobody listens any more.
    let mut rest = Vec::new();
    let _ = tokio::time::timeout(TIMEOUT, socket.read_to_end(&mut rest)).await.unwrap();
    while TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_handler_of_a_server_that_throws_is_reported_and_its_client_is_not_left_waiting() {
    let harness = Harness::patient();
    let server =
        SERVER.replace("res.end('here')", "{ if (req.url === '/bad') throw new Error('oh'); res.end('here'); }");
    harness.run(&[("server.ts", &server)]).await;
    harness.command("serve", "").await;
    let port = port(&harness).await;
    for (path, expected) in [("/bad", ""), ("/good", "HTTP/1.1 200")] {
        let mut socket = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        tokio::time::timeout(TIMEOUT, socket.read_to_string(&mut answer)).await.unwrap().unwrap();
        assert!(answer.starts_with(expected) && answer.is_empty() == expected.is_empty(), "{path}: {answer}");
    }
    let error = harness.error("net").await;
    assert_eq!(error.error, "oh");
    assert!(error.path.ends_with("server.ts"), "{}", error.path);
}

#[tokio::test]
async fn ten_thousand_sockets_are_bounded_and_the_engine_goes_on() {
    let harness = Harness::patient();
    let flood = "import net from 'net';
        export default (pi) => pi.registerCommand('flood', { handler: async (_, ctx) => {
            const server = net.createServer(() => {}).listen(0, '127.0.0.1');
            await new Promise((resolve) => server.once('listening', resolve));
            let open = 0, refused = 0;
            const heard = () => open + refused === 10000 && ctx.ui.notify(JSON.stringify([open > 0, open <= 1000]));
            for (let at = 0; at < 10000; at++) {
                if (at % 50 === 0) await new Promise((resolve) => setImmediate(resolve));
                const socket = net.connect(server.address().port, '127.0.0.1');
                socket.once('connect', () => { open++; heard(); });
                socket.once('error', (error) => { if (error.code === 'EMFILE') refused++; heard(); });
            }
        } });";
    harness.run(&[("flood.ts", flood), NEIGHBOUR]).await;
    harness.command("flood", "").await;
    harness.notified("[true,true]").await;
    harness.command("alive", "").await;
    harness.notified("alive").await;
    assert_eq!(harness.errors(), []);
}

#[tokio::test]
async fn a_tree_that_is_too_large_is_not_watched() {
    let harness = Harness::patient();
    let tree = harness.surroundings.cwd.join("tree");
    for outer in 0..91 {
        for inner in 0..91 {
            std::fs::create_dir_all(tree.join(format!("{outer}/{inner}"))).unwrap();
        }
    }
    let watch = "import fs from 'fs';
        export default (pi) => pi.registerCommand('watch', { handler: async (_, ctx) => {
            try { fs.watch('tree', { recursive: true }); ctx.ui.notify('watched'); } catch (error) { ctx.ui.notify(error.code); }
            const watcher = fs.watch('tree/1', { recursive: true }, (kind, name) => { watcher.close(); ctx.ui.notify(kind + ' ' + name); });
            fs.writeFileSync('tree/1/2/new', '');
        } });";
    harness.run(&[("watch.ts", watch), NEIGHBOUR]).await;
    harness.command("watch", "").await;
    harness.notified("ENOSPC").await;
    harness.notified("rename 2/new").await;
    harness.command("alive", "").await;
    harness.notified("alive").await;
}
