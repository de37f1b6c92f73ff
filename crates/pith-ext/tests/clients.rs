//! Clients that reach beyond `fetch`: WebSocket and undici.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use support::evaluate::check;

/// A server that sends back what it gets; `bye` makes it close, `/silent` is never answered.
const SERVER: &str = r#"
    const server = http.createServer();
    const frame = (op, data) => Buffer.concat([Buffer.from([0x80 | op, data.length]), data]);
    const silent = new Set();
    server.on("upgrade", (request, socket) => {
        socket.on("error", () => {});
        if (request.url === "/silent") return silent.add(socket);
        const accept = crypto.createHash("sha1").update(request.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest("base64");
        const protocol = request.headers["sec-websocket-protocol"] ? "Sec-WebSocket-Protocol: chat\r\n" : "";
        socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n${protocol}\r\n`);
        let rest = Buffer.alloc(0);
        let isOver = false;
        socket.on("data", (bytes) => {
            rest = Buffer.concat([rest, bytes]);
            while (rest.length >= 6 && rest.length >= 6 + (rest[1] & 127) && !isOver) {
                const [op, length, mask] = [rest[0] & 15, rest[1] & 127, rest.subarray(2, 6)];
                const data = Buffer.from(rest.subarray(6, 6 + length).map((byte, at) => byte ^ mask[at % 4]));
                rest = rest.subarray(6 + length);
                isOver = op === 8 || String(data) === "bye" || String(data) === "drop";
                if (String(data) === "bye") socket.end(frame(8, Buffer.concat([Buffer.from([0x0f, 0xa0]), data])));
                else if (String(data) === "drop") socket.destroy();
                else if (op === 8) socket.end(frame(8, data));
                else socket.write(frame(op, data));
            }
        });
    });
    await new Promise((done) => server.listen(0, "127.0.0.1", done));
    const url = `ws://127.0.0.1:${server.address().port}/x`;
    const played = (first, address = url, options = []) => new Promise((done) => {
        const seen = [];
        const ws = new WebSocket(address, options);
        ws.binaryType = "arraybuffer";
        ws.onopen = () => { seen.push("open"); first?.(ws); };
        ws.onmessage = ({ data }) => { seen.push(typeof data === "string" ? data : [...new Uint8Array(data)]); if (data === "last") ws.close(3001, "done"); };
        ws.onerror = () => seen.push("error");
        ws.onclose = ({ code, reason, wasClean }) => done([...seen, ws.protocol, code, reason, wasClean]);
    });"#;

#[tokio::test]
async fn websockets_speak_and_end_as_in_node() {
    check(
        SERVER,
        &[
            ("await played((ws) => { ws.send('hi'); ws.send(new Uint8Array([1, 2])); ws.send('last'); }, url, ['chat'])", r#"["open","hi",[1,2],"last","chat",3001,"done",true]"#),
            ("await played((ws) => ws.send('bye'))", r#"["open","",4000,"bye",true]"#),
            ("await played((ws) => ws.send('drop'))", r#"["open","error","",1006,"",false]"#),
            ("await played(null, 'ws://127.0.0.1:1/')", r#"["error","",1006,"",false]"#),
            ("await new Promise((done) => { const ws = new WebSocket(url); const seen = []; ws.onerror = () => seen.push('error'); ws.onclose = (event) => done([...seen, event.code]); ws.close(); })", r#"["error",1006]"#),
            ("await failure(() => new WebSocket('ftp://x'))", "12"),
            ("await failure(() => new WebSocket(url, ['a', 'a']))", "12"),
            ("await failure(() => { const ws = new WebSocket(url); try { ws.send('early'); } finally { ws.close(); } })", "11"),
            ("await played((ws) => { try { ws.close(1001); } catch (error) { ws.send(error.name.slice(0, 7)); } ws.send('last'); })", r#"["open","Invalid","last","",3001,"done",true]"#),
            ("await new Promise((done) => { const ws = new WebSocket(url); ws.onopen = () => { try { ws.send(new Uint8Array((64 << 20) + 1)); } catch (error) { ws.close(); done(error.code); } }; })", r#""ERR_BUFFER_TOO_LARGE""#),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_thousand_websockets_are_bounded_and_the_session_goes_on() {
    check(
        SERVER,
        &[
            (
                "await (async () => {
                    const all = [];
                    const codes = await new Promise((done) => {
                        const failed = [];
                        for (let n = 0; n < 1000; n++) {
                            const ws = new WebSocket(url.replace('/x', '/silent'));
                            all.push(ws);
                            ws.onerror = ({ error }) => { failed.push(error.code); if (failed.length >= 500) done(new Set(failed)); };
                        }
                    });
                    const open = all.filter((ws) => ws.readyState === 0).length;
                    for (const ws of all) ws.onerror = null;
                    await Promise.all(all.filter((ws) => ws.readyState === 0).map((ws) => { const end = once(ws, 'close'); ws.close(); return end; }));
                    for (const socket of silent) socket.destroy();
                    return [[...codes], open <= 500];
                })()",
                r#"[["EMFILE"],true]"#,
            ),
            ("await played((ws) => ws.send('last'))", r#"["open","last","",3001,"done",true]"#),
        ],
    )
    .await;
}

#[tokio::test]
async fn undici_sends_what_fetch_sends() {
    check(
        "const undici = require('undici'); const imported = await import('undici');",
        &[
            ("await undici.request('https://e.com/x').then(async ({ statusCode, headers, body }) => [statusCode, headers['content-type'], await body.json()])", r#"[200,"application/json",{"answer":42}]"#),
            ("await undici.request('https://e.com', { method: 'POST', headers: ['a', '1', 'b', '2'], body: '{}', query: { q: [1, 2] } }).then(({ body }) => body.text())", r#""{\"answer\":42}""#),
            ("await (async () => { const { body } = await undici.request('https://e.com'); let text = ''; for await (const part of body) text += part; return [text, body.bodyUsed]; })()", r#"["{\"answer\":42}",true]"#),
            ("await undici.fetch('https://e.com', { dispatcher: new undici.Agent({ connect: { timeout: 1 } }) }).then((response) => response.json())", r#"{"answer":42}"#),
            ("await new undici.Pool('https://e.com').request({ path: '/p', method: 'GET' }).then(({ body }) => body.json())", r#"{"answer":42}"#),
            ("await (async () => { const before = undici.getGlobalDispatcher(); const agent = new undici.Agent(); undici.setGlobalDispatcher(agent); const is = undici.getGlobalDispatcher() === agent; undici.setGlobalDispatcher(before); return is; })()", "true"),
            ("await failure(() => undici.request('https://broken.com'))", r#""UND_ERR_SOCKET""#),
            ("await failure(() => undici.request('https://e.com', { signal: AbortSignal.abort() }))", "20"),
            ("await (async () => { const agent = new undici.Agent(); await agent.close(); return [agent.closed, await failure(() => agent.request({ origin: 'https://e.com', path: '/' }))]; })()", r#"[true,"UND_ERR_CLOSED"]"#),
            ("await failure(() => undici.setGlobalDispatcher({}))", r#""UND_ERR_INVALID_ARG""#),
            // A proxy that is not used must not look as if it were.
            ("(() => { try { undici.setGlobalDispatcher(new undici.ProxyAgent('http://elsewhere.invalid:1')); } catch (error) { return [error.code, error.message.split(' is ')[0]]; } })()", r#"["ERR_FEATURE_UNAVAILABLE_ON_PLATFORM","undici.ProxyAgent for elsewhere.invalid:1"]"#),
            ("[imported.request === undici.request, undici.Headers === Headers, new undici.errors.BodyTimeoutError().code]", r#"[true,true,"UND_ERR_BODY_TIMEOUT"]"#),
        ],
    )
    .await;
}
