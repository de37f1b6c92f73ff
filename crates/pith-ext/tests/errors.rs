//! What users read when extension code fails.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use support::Harness;

#[tokio::test]
async fn errors_name_what_was_called_and_where() {
    for (body, expected) in [
        ("const x: any = { y: {} }; x.y.z(1);", "x.y.z is not a function"),
        ("const f: any = 3; f();", "f is not a function"),
        ("const C: any = 3; new C();", "C is not a function"),
        ("const x: any = {}; await x.run(1).then();", "x.run is not a function"),
        ("const x: any = {}; (x as any).run<number>(1);", "run is not a function"),
        ("const x: any = {}; x['a b'](1);", "is not a function"),
        ("const x: any = undefined; x.a;", "'a' of undefined"),
    ] {
        // With and without something that must be compiled instead of erased.
        for fourth_line in ["enum Compiled { A }", ""] {
            let harness = Harness::start();
            let text = format!(
                "interface Gone {{\n  a: string;\n}}\n{fourth_line}\nexport default (pi: any) => pi.registerCommand('go', {{\n  \
                 handler: async () => {{\n    {body}\n  }},\n}});"
            );
            harness.run(&[("bad.ts", &text)]).await;
            harness.command("go", "").await;
            let error = harness.error("command").await;
            assert!(error.error.contains(expected), "{body}: {}", error.error);
            let stack = error.stack.unwrap_or_default();
            assert!(stack.lines().next().is_some_and(|line| line.contains("bad.ts:7:")), "{body}: {stack}");
        }
    }
}
