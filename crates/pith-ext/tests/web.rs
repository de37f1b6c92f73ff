//! Globals of the web; expected values are what Node 24 says.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use support::evaluate::check;

#[tokio::test]
async fn messages_go_through_channels() {
    check(
        "const { receiveMessageOnPort } = require('worker_threads'); const next = (port) => new Promise((done) => port.once('message', done));",
        &[
            ("await (async () => { const { port1, port2 } = new MessageChannel(); const got = next(port2); port1.postMessage({ a: new Map([[1, 2]]) }); const { a } = await got; port1.close(); return a.get(1); })()", "2"),
            ("await (async () => { const { port1, port2 } = new MessageChannel(); const got = new Promise((done) => { port1.onmessage = done; }); port2.postMessage(5); const event = await got; port2.close(); return [event.constructor.name, event.data, event.ports]; })()", r#"["MessageEvent",5,[]]"#),
            ("await (async () => { const { port1, port2 } = new MessageChannel(); const closed = once(port2, 'close'); port1.close(); await closed; return 'closed'; })()", r#""closed""#),
            ("(() => { const c = new MessageChannel(); c.port1.postMessage(1); return [receiveMessageOnPort(c.port2), receiveMessageOnPort(c.port2)]; })()", r#"[{"message":1},null]"#),
            ("await (async () => { const a = new MessageChannel(), b = new MessageChannel(); const got = next(a.port2); a.port1.postMessage(b.port1, [b.port1]); const back = next(b.port2); (await got).postMessage('through'); return back; })()", r#""through""#),
            ("(() => { const bytes = new Uint8Array(4).buffer; const copy = structuredClone(bytes, { transfer: [bytes] }); return [bytes.byteLength, copy.byteLength]; })()", "[0,4]"),
            ("await failure(() => new MessageChannel().port1.postMessage(() => {}))", "25"),
            ("await failure(() => new MessagePort())", r#""ERR_CONSTRUCT_CALL_INVALID""#),
            ("await (async () => { const [a, b] = [new BroadcastChannel('n'), new BroadcastChannel('n')]; const got = once(b, 'message'); a.postMessage({ x: 1 }); const [event] = await got; a.close(); b.close(); return [event.data, await failure(() => a.postMessage(1))]; })()", r#"[{"x":1},11]"#),
            ("[new MessageEvent('m', { data: 1 }).origin, new CloseEvent('close', { code: 1000, reason: 'r', wasClean: true }).reason]", r#"["","r"]"#),
            // More than anybody needs: what they hold is the extension's own memory.
            ("(() => { const made = Array.from({ length: 1000 }, () => new MessageChannel()); for (const { port1 } of made) port1.postMessage(1); return made.filter(({ port2 }) => receiveMessageOnPort(port2)).length; })()", "1000"),
        ],
    )
    .await;
}

#[tokio::test]
async fn patterns_of_addresses() {
    check(
        "const groups = (pattern, base, url) => { const found = (base ? new URLPattern(pattern, base) : new URLPattern(pattern)).exec(url); return found && [found.protocol.groups, found.hostname.groups, found.pathname.groups, found.search.groups]; };",
        &[
            ("(() => { const u = new URLPattern({ pathname: '/books/:id' }); return [u.test('https://e.com/books/5'), u.exec('https://e.com/books/5').pathname.groups, u.hostname, u.pathname, u.hasRegExpGroups]; })()", r#"[true,{"id":"5"},"*","/books/:id",false]"#),
            ("[groups('/a/*', 'https://e.com', 'https://e.com/a/b/c'), groups('/a/*', 'https://e.com', 'https://e.com/b')]", r#"[[{},{},{"0":"b/c"},{"0":""}],null]"#),
            ("['/12', '/', '/ab'].map((path) => groups('https://*.e.com/:x(\\\\d+)?', undefined, 'https://q.e.com' + path))", r#"[[{},{"0":"q"},{"x":"12"},{"0":""}],null,null]"#),
            ("['http://e.com/p', 'https://e.com/en/p'].map((url) => groups('http{s}?://e.com/{:lang/}?p', undefined, url))", r#"[[{},{},{},{"0":""}],[{},{},{"lang":"en"},{"0":""}]]"#),
            ("groups({ search: 'q=:q' }, undefined, 'https://x.y/?q=1&z')[3]", r#"{"q":"1&z"}"#),
            ("groups('/f/:name.:ext', 'https://e.com', 'https://e.com/f/a.txt')[2]", r#"{"name":"a","ext":"txt"}"#),
            ("['/r/a/b', '/r/'].map((path) => groups('/r/:rest+', 'https://e.com', 'https://e.com' + path)?.[2])", r#"[{"rest":"a/b"},null]"#),
            ("[await failure(() => new URLPattern('((')), await failure(() => new URLPattern('/x')), require('url').URLPattern === URLPattern]", r#"["ERR_INVALID_URL_PATTERN","ERR_INVALID_URL_PATTERN",true]"#),
        ],
    )
    .await;
}

#[tokio::test]
async fn web_streams_wait_for_each_other() {
    check(
        "const tick = () => sleep(1); const reader = (source, ...rest) => new ReadableStream(source, ...rest).getReader();",
        &[
            ("await (async () => { const r = reader({ pull(c) { c.enqueue(1); c.close(); } }); const seen = [await r.read(), await r.read(), await r.closed]; r.releaseLock(); return [r instanceof ReadableStreamDefaultReader, ...seen, await failure(() => r.read())]; })()", r#"[true,{"value":1,"done":false},{"done":true},null,"ERR_INVALID_STATE"]"#),
            ("await (async () => { let n = 0; new ReadableStream({ pull(c) { c.enqueue(n++); } }, new CountQueuingStrategy({ highWaterMark: 3 })); await tick(); return n; })()", "3"),
            ("await (async () => { const r = new ReadableStream({ type: 'bytes', start(c) { c.enqueue(new Uint8Array([1, 2, 3])); c.close(); } }).getReader({ mode: 'byob' }); const seen = []; for (;;) { const { value, done } = await r.read(new Uint8Array(2)); if (done) return seen; seen.push([...value]); } })()", "[[1,2],[3]]"),
            ("await (async () => { const r = new ReadableStream({ type: 'bytes', pull(c) { c.byobRequest.view[0] = 7; c.byobRequest.respond(1); } }).getReader({ mode: 'byob' }); return [...(await r.read(new Uint8Array(2))).value]; })()", "[7]"),
            ("await (async () => { const w = new WritableStream({ write: () => tick() }, { highWaterMark: 2 }).getWriter(); const seen = [w.desiredSize]; w.write(1); w.write(2); seen.push(w.desiredSize); await w.ready; seen.push(w.desiredSize); await w.close(); return [...seen, await failure(() => w.write(1))]; })()", r#"[2,0,1,"ERR_INVALID_STATE"]"#),
            ("await (async () => { const w = new WritableStream({ write() { throw new Error('bad'); } }).getWriter(); return [await failure(() => w.write(1)), await failure(() => w.write(2)), await failure(() => w.closed)]; })()", r#"["bad","bad","bad"]"#),
            ("await (async () => { const t = new TransformStream({ transform(c, to) { to.enqueue(c * 2); }, flush(to) { to.enqueue('end'); } }); return Array.fromAsync(ReadableStream.from([1, 2]).pipeThrough(t)); })()", r#"[2,4,"end"]"#),
            ("await (async () => { const t = new TransformStream({ transform() { throw new Error('bad'); } }); return failure(() => Array.fromAsync(ReadableStream.from([1]).pipeThrough(t))); })()", r#""bad""#),
            ("await (async () => { let cancelled; const source = new ReadableStream({ pull(c) { c.enqueue(1); }, cancel(why) { cancelled = why.message; } }); return [await failure(() => source.pipeTo(new WritableStream({ write() { throw new Error('full'); } }))), cancelled]; })()", r#"["full","full"]"#),
            ("await (async () => { const [a, b] = ReadableStream.from([1, 2]).tee(); return [await Array.fromAsync(a), await Array.fromAsync(b)]; })()", "[[1,2],[1,2]]"),
            ("await (async () => { let why = 'nothing'; const s = new ReadableStream({ pull(c) { c.enqueue(1); }, cancel() { why = 'cancelled'; } }); for await (const _ of s) break; return [why, s.locked]; })()", r#"["cancelled",false]"#),
            ("await (async () => { const c = new AbortController(); const p = new ReadableStream().pipeTo(new WritableStream(), { signal: c.signal }); c.abort(new Error('stop')); return failure(() => p); })()", r#""stop""#),
            ("await (async () => { const s = new CompressionStream('gzip'); const w = s.writable.getWriter(); w.write(new TextEncoder().encode('hello')); w.close(); return new Response(s.readable.pipeThrough(new DecompressionStream('gzip'))).text(); })()", r#""hello""#),
            ("await failure(async () => { const s = new DecompressionStream('gzip'); const w = s.writable.getWriter(); w.write(new Uint8Array(20)).catch(() => {}); w.close().catch(() => {}); await Array.fromAsync(s.readable); })", r#""Z_DATA_ERROR""#),
            ("[await failure(() => new CompressionStream('x')), await failure(() => new ReadableStreamDefaultController())]", r#"["ERR_INVALID_ARG_VALUE","ERR_ILLEGAL_CONSTRUCTOR"]"#),
        ],
    )
    .await;
}

#[tokio::test]
async fn marks_measures_and_classes_of_globals() {
    check(
        "const { PerformanceObserver } = require('perf_hooks');",
        &[
            ("(() => { const mark = performance.mark('a', { detail: 1 }); const { entryType, startTime, duration } = performance.measure('m', 'a'); return [mark instanceof PerformanceMark, mark.detail, entryType, startTime === mark.startTime, duration >= 0]; })()", r#"[true,1,"measure",true,true]"#),
            ("[performance.getEntries().length, performance.getEntriesByName('a').length, (performance.clearMarks(), performance.getEntriesByType('mark').length)]", "[2,1,0]"),
            ("await failure(() => performance.measure('q', 'nope'))", "12"),
            ("await new Promise((done) => { const o = new PerformanceObserver((list) => { o.disconnect(); done(list.getEntries().map((entry) => entry.name)); }); o.observe({ entryTypes: ['mark'] }); performance.mark('x'); performance.mark('y'); })", r#"["x","y"]"#),
            ("(() => { for (let n = 0; n < 10100; n++) performance.mark('many'); return performance.getEntriesByName('many').length; })()", "10000"),
            ("[navigator instanceof Navigator, globalThis.crypto instanceof Crypto, globalThis.crypto.subtle instanceof SubtleCrypto, performance instanceof Performance]", "[true,true,true,true]"),
            ("[await failure(() => new Navigator()), await failure(() => new Crypto()), await failure(() => new CryptoKey()), await failure(() => new Performance())]", r#"["ERR_ILLEGAL_CONSTRUCTOR","ERR_ILLEGAL_CONSTRUCTOR","ERR_ILLEGAL_CONSTRUCTOR","ERR_ILLEGAL_CONSTRUCTOR"]"#),
            ("await (async () => { const key = await globalThis.crypto.subtle.importKey('raw', new Uint8Array(4), { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']); return [key instanceof CryptoKey, key.usages, util.types.isCryptoKey(key), crypto.KeyObject.from(key).symmetricKeySize]; })()", r#"[true,["sign"],true,4]"#),
        ],
    )
    .await;
}
