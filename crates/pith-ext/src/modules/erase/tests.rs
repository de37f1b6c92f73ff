use super::*;

fn check(source: &str, expected: &str) {
    let erased = erase(&format!("export {{}};{source}"));
    let text = erased.unwrap_or_else(|| panic!("left to the compiler: {source}"));
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(text.len(), source.len() + "export {};".len(), "nothing moves");
    assert_eq!(squeezed(&text["export {};".len()..]), squeezed(expected), "{source}");
}

#[test]
fn types_become_spaces() {
    check("let a: number = 1, b!: string;", "let a = 1, b ;");
    check(
        "function f<T>(this: X, a?: T, ...b: T[]): a is T { return a!.b as T }",
        "function f ( a , ...b ) { return a .b }",
    );
    check("function f(this: X) {}", "function f( ) {}");
    check("function f(a: string): void; function f(a) {}", "; function f(a) {}");
    check("try {} catch (e: unknown) {}", "try {} catch (e ) {}");
    check("f<T>(x); new Map<K, V>(); a?.<T>(); t<T>`x`;", "f (x); new Map (); a?. (); t `x`;");
    check("const x = { a: 1 } satisfies X as const;", "const x = { a: 1 } ;");
    check("interface A { b: C } type D = E; declare const g: H;", "; ; ;");
    check("export interface A {} export type B = C; export declare class D {}", "; ; ;");
}

#[test]
fn lines_stay_whole() {
    check("const f = (a): Promise<{\n  b: c;\n}> => a;", "const f = (a ) => a;");
    check("let a = 1\ninterface B {}\n(c)()", "let a = 1 ; (c)()");
    assert_eq!(erase("export let a = b as C\n(d)()"), None);
    assert_eq!(erase("export let a = b as C // why\n[d].e"), None);
    assert_eq!(erase("export let a = b + c as D * e"), None);
    assert_eq!(erase("export let a = <\nT\n>(b: T) => b"), None);
}

#[test]
fn members_of_classes_lose_their_modifiers() {
    check(
        "abstract class A<T> extends B<T> implements C, D<T> { e = 1\n private static readonly [f]: g = 2; declare h: i; \
         abstract j(): k; protected l?: m; [n: string]: o; get: p\n q() {} constructor(r: s); constructor(r) {} }",
        "class A extends B { e = 1 ; static [f] = 2; ; ; ; l ; ; ; get; q() {} ; constructor(r) {} }",
    );
}

#[test]
fn imports_and_exports_of_types_go() {
    check(
        "import type { A } from 'a'; import { type B, c, type D } from 'b'; import { type E, } from 'e';",
        "; import { c, } from 'b'; ;",
    );
    check(
        "import f, { type G, } from 'g'; export { type H, i } from 'h'; export { type J, };",
        "import f, { } from 'g'; export { i } from 'h'; export { };",
    );
    check("export type { K } from 'k'; export type * from 'l';", "; ;");
}

#[test]
fn what_runs_is_left_to_the_compiler() {
    for source in [
        "enum A { B }",
        "namespace A { export const b = 1 }",
        "class A { constructor(private b: C) {} }",
        "@a class B {}",
        "import a = require('a');",
        "export = a;",
        "let a = <B>c;",
        "let a = b<C>;",
        "interface A {} export default A;",
        "class A { accessor b: C = 1 }",
        "let a: = 1;",
    ] {
        assert_eq!(erase(&format!("export {{}};{source}")), None, "{source}");
    }
    assert_eq!(erase("let a: number = 1;"), None, "no module");
}
