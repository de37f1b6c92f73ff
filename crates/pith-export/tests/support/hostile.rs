//! A session in which every string tries to get out of its place.

use serde_json::{Value, json};

use super::{entry, message};

/// The entries of an attack. Whatever runs sets an attribute whose name appears nowhere
/// in the session, and whatever is loaded is loaded from `server`.
pub fn hostile_session(server: &str) -> Vec<Value> {
    let run = "document.body.setAttribute('data-'+'owned',1)";
    let x = format!(
        "</script></style></title></template></noscript></pre></textarea>--><script>{run}</script><img src=x onerror=\"{run}\">\
         <svg onload=\"{run}\"></svg>\" onmouseover=\"{run}\" x='{{{{\u{2028}\u{2029}\u{1b}[31m\0"
    );
    let markdown = markdown(server, run, &x);
    let id = |n: u32| format!("{n}\"><script>{run}</script>' #");
    let usage = json!({"input":1,"output":1,"totalTokens":2,"cost":{"total":0.1}});
    let image = |mime: &str, data: &str| json!({"type":"image","mimeType":mime,"data":data});
    let script = base64(format!("<svg xmlns='http://www.w3.org/2000/svg' onload=\"{run}\"/>").as_bytes());
    let mut session = vec![
        json!({"type":"session","version":3,"id":x,"timestamp":"2026-11-15T06:52:54.872Z","cwd":x,"parentSession":x}),
        entry("model_change", &id(0), None, json!({"provider":x,"modelId":x})),
        entry("thinking_level_change", &id(1), Some(&id(0)), json!({"thinkingLevel":x})),
        message(
            &id(2),
            Some(&id(1)),
            json!({"role":"user","timestamp":1,"attribution":x,"content":[
                {"type":"text","text":format!("{x}\n```{x}\n{x}\n```\n{markdown}")},
                image("image/svg+xml", &script), image(&x, "AAAA"), image("image/png", &x), image("image/png", &script),
                image("image/png", "\"onerror=\"x"), image("text/html", &script), {"type":x,"text":x},
            ]}),
        ),
        message(
            &id(3),
            Some(&id(2)),
            json!({"role":"assistant","api":x,"provider":x,"model":x,"usage":usage,"stopReason":"toolUse",
                "timestamp":1,"responseId":x,"content":[
                {"type":"thinking","thinking":markdown,"thinkingSignature":x}, {"type":"text","text":markdown,"textSignature":x},
                call("bash", "c0", json!({"command":x})), call("read", "c1", json!({"path":x})), call("read", "c2", json!({"path":"a.html"})),
                call("write", "c3", json!({"path":"a.rs","content":x})), call("edit", "c4", json!({"path":x,"edits":[{"oldText":x,"newText":x}]})),
                call(&x, "c5", json!({&x:x,"n":{&x:[x]}})), call("edit", "c6", json!({"path":"x"})), call("grep", "c7", json!({"pattern":x,"path":x})),
                call("bash", &x, json!({"command":format!("a\n{x}")})), call(&x, "unanswered", json!({&x:x})),
            ]}),
        ),
        entry("label", &id(40), Some(&id(20)), json!({"targetId":id(3),"label":x})),
        entry("session_info", &id(41), Some(&id(40)), json!({"name":x})),
        entry("custom", &id(42), Some(&id(41)), json!({"customType":x,"data":{&x:x}})),
        entry(
            "custom_message",
            &id(43),
            Some(&id(42)),
            json!({"customType":x,"content":markdown,"display":true,"details":{&x:x}}),
        ),
        entry("custom_message", &id(44), Some(&id(43)), json!({"customType":x,"content":x,"display":false})),
        entry("context_edit", &id(45), Some(&id(44)), json!({"targetId":id(3),"replacement":{"content":x}})),
        entry(
            "compaction",
            &id(46),
            Some(&id(45)),
            json!({"summary":markdown,"firstKeptEntryId":x,"tokensBefore":1,"details":{&x:x}}),
        ),
        entry("branch_summary", &id(47), Some(&id(46)), json!({"fromId":x,"summary":markdown})),
        entry(&x, &id(48), Some(&id(47)), json!({&x:x})),
        message(&id(49), Some(&id(48)), json!({"role":"system","content":x,"sections":[x]})),
        message(&id(50), Some(&id(49)), json!({"role":x,"content":x})),
        message(
            &id(51),
            Some(&id(50)),
            json!({"role":"bashExecution","command":x,"output":x,"exitCode":1,"cancelled":false,
            "truncated":true,"fullOutputPath":x,"timestamp":1}),
        ),
        message(
            &id(52),
            Some(&id(51)),
            json!({"role":"assistant","content":[],"provider":x,"model":x,"api":x,"usage":usage,
            "stopReason":"error","errorMessage":x,"timestamp":1}),
        ),
        entry("usage", &id(53), Some(&id(52)), json!({"kind":x,"provider":x,"model":x,"usage":usage,"note":x})),
    ];
    // Another branch, which only the script shows.
    session.insert(
        5,
        message(&id(30), Some(&id(3)), json!({"role":"user","content":format!("elsewhere {x}"),"timestamp":1})),
    );
    let results = [
        ("bash", "c0", json!(null)),
        ("read", "c1", json!(null)),
        ("read", "c2", json!(null)),
        ("write", "c3", json!(null)),
        ("edit", "c4", json!({"diff":format!("-1 {x}\n+1 {x}")})),
        (&*x, "c5", json!({&x:x,"diff":"","html":x})),
        ("edit", "c6", json!({"patch":format!("--- {x}\n+++ {x}\n@@ -1 +1 @@ {x}\n-{x}\n+{x}")})),
        ("grep", "c7", json!(null)),
        ("bash", &*x, json!({&x:x})),
        (&*x, "nobody asked", json!(x)),
    ];
    for (n, (tool, call, details)) in results.into_iter().enumerate() {
        let parent = if n == 0 { id(3) } else { id(10 + n as u32) };
        let own = if n == 9 { id(20) } else { id(11 + n as u32) };
        let result = json!({"role":"toolResult","toolCallId":call,"toolName":tool,"isError":n % 2 == 1,"timestamp":1,"details":details,
            "content":[{"type":"text","text":x}, image("image/svg+xml", &script)]});
        session.insert(6 + n, message(&own, Some(&parent), result));
    }
    session
}

fn call(name: &str, id: &str, arguments: Value) -> Value {
    json!({"type":"toolCall","id":id,"name":name,"arguments":arguments,"thoughtSignature":name})
}

fn markdown(server: &str, run: &str, x: &str) -> String {
    format!(
        "# {x}\n\n[a](javascript:{run}) [b](JaVaScRiPt:{run}) [c](java&#9;script:{run}) [d](data:text/html,<script>{run}</script>)\n\n\
         [e]( &#1;javascript:{run}) <javascript:{run}> [f][1] [g](<{server}/\"onclick=\"{run}>)\n\n[1]: javascript:{run}\n\n\
         ![i]({server}/image) ![j](data:image/svg+xml,<svg onload={run}>) ![k\"onerror=\"{run}](data:image/png;base64,AA\"AA)\n\n\
         <img src=\"{server}/img\"> <iframe src=\"{server}/frame\"></iframe> <link rel=stylesheet href=\"{server}/css\">\n\n\
         <base href=\"{server}/\"> <meta http-equiv=refresh content=\"0;url={server}/meta\"> <object data=\"{server}/object\">\n\n\
         <style>@import '{server}/import'; body{{background:url({server}/url)}}</style>\n\n\
         <form action=\"{server}/form\"><button autofocus onfocus=\"{run}\"></form> <video poster=\"{server}/poster\">\n\n\
         ```html\n{x}\n```\n\n```{x}\n{x}\n```\n\n| {x} | b |\n|---|---|\n| {x} | ![]({server}/cell) |\n\n- {x}\n\n> {x}\n\n`{x}`\n"
    )
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().fold(0u32, |group, &byte| group << 8 | u32::from(byte)) << (8 * (3 - chunk.len()));
        for at in 0..4 {
            let digit = DIGITS[(group >> (18 - 6 * at) & 63) as usize];
            out.push(if at <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    out
}
