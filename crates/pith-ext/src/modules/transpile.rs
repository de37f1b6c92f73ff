//! Turns a source file into a function that the engine can compile.

use std::path::{Path, PathBuf};

use oxc_allocator::Allocator;
use oxc_codegen::{Codegen, CodegenOptions, CodegenReturn, CommentOptions};
use oxc_parser::{ParseOptions, Parser};
use oxc_semantic::SemanticBuilder;
use oxc_span::SourceType;
use oxc_transformer::{HelperLoaderMode, Module, TransformOptions, Transformer};

use super::depth::with_room;
use super::erase::erase;
use super::rewrite::{Unused, rewrite};

/// How a file is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModuleKind {
    Module,
    CommonJs,
    /// Decided by whether the text has `import` or `export`.
    Unknown,
}

/// A source file prepared for the engine.
#[derive(Debug, PartialEq)]
pub struct Script {
    /// An expression that evaluates to the module's wrapper function.
    pub code: String,
    pub kind: ModuleKind,
    /// Specifiers of static imports, in order.
    pub imports: Vec<String>,
    /// Whether the module awaits at its top level.
    pub is_async: bool,
}

/// A syntax error and its place.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("{message} ({line}:{column})")]
pub struct SyntaxError {
    pub message: String,
    pub line: usize,
    pub column: usize,
}

/// Makes a script from a file's text. `kind` is what its name and package imply.
pub fn transpile(path: &Path, source: &str, kind: ModuleKind) -> Result<Script, SyntaxError> {
    let source = source.strip_prefix('\u{feff}').unwrap_or(source);
    with_room(source, || match source_type(path) {
        None => rewrite(source, kind, Unused::Kept),
        Some(source_type) => match erased(source, source_type, kind) {
            Some(script) => Ok(script),
            None => compiled(path, source, source_type, kind),
        },
    })
}

/// Handles files that are JavaScript except for their types, as most are.
fn erased(source: &str, source_type: SourceType, kind: ModuleKind) -> Option<Script> {
    if kind == ModuleKind::CommonJs || source_type.is_jsx() {
        return None;
    }
    // If the result does not parse, the compiler gets the original.
    rewrite(&erase(source)?, ModuleKind::Module, Unused::Dropped).ok()
}

fn compiled(path: &Path, source: &str, source_type: SourceType, kind: ModuleKind) -> Result<Script, SyntaxError> {
    rewrite(&without_types(path, source, source_type)?, kind, Unused::Kept)
}

/// The source type of files that need the compiler; `None` for plain JavaScript.
fn source_type(path: &Path) -> Option<SourceType> {
    match path.extension()?.to_str()? {
        "ts" | "mts" | "cts" => Some(SourceType::ts()),
        "tsx" => Some(SourceType::tsx()),
        "jsx" => Some(SourceType::jsx()),
        _ => None,
    }
}

fn without_types(path: &Path, source: &str, source_type: SourceType) -> Result<String, SyntaxError> {
    printed(&Allocator::default(), path, source, source_type, None).map(|printed| printed.code)
}

/// Returns the place in a TypeScript file that a place in its JavaScript came from. Compiles the file: for errors only.
pub fn original_place(path: &Path, line: u32, column: u32) -> Option<(u32, u32)> {
    let source = std::fs::read_to_string(path).ok()?;
    let source = source.strip_prefix('\u{feff}').unwrap_or(&source);
    let source_type = source_type(path)?;
    let is_in_place = with_room(source, || Ok(!source_type.is_jsx() && erase(source).is_some())).ok()?;
    if is_in_place {
        return Some((line, column));
    }
    let place = with_room(source, || {
        let allocator = Allocator::default();
        let map = printed(&allocator, path, source, source_type, Some(path.to_owned()))?.map;
        Ok(map.and_then(|map| {
            let table = map.generate_lookup_table();
            let token = map.lookup_token_approx(&table, line.checked_sub(1)?, column.checked_sub(1)?)?;
            Some((token.get_src_line() + 1, token.get_src_col() + 1))
        }))
    });
    place.ok()?
}

fn printed<'a>(
    allocator: &'a Allocator,
    path: &Path,
    source: &'a str,
    source_type: SourceType,
    source_map_path: Option<PathBuf>,
) -> Result<CodegenReturn<'a>, SyntaxError> {
    let options = ParseOptions { allow_return_outside_function: true, ..ParseOptions::default() };
    let parsed = Parser::new(allocator, source, source_type).with_options(options).parse();
    if let Some(error) = first_error(source, parsed.diagnostics.iter()) {
        return Err(error);
    }
    let mut program = parsed.program;
    let scoping =
        SemanticBuilder::new().with_excess_capacity(2.0).with_enum_eval(true).build(&program).semantic.into_scoping();
    let mut options = TransformOptions::default();
    // `import x = require()` and `export =` become CommonJS; ES syntax is left to the rewriter.
    options.env.module = Module::CommonJS;
    options.decorator.legacy = true;
    // The helper functions of compiled decorators are globals here.
    options.helper_loader.mode = HelperLoaderMode::External;
    let transformed = Transformer::new(allocator, path, &options).build_with_scoping(scoping, &mut program);
    if let Some(error) = first_error(source, transformed.diagnostics.iter()) {
        return Err(error);
    }
    let options = CodegenOptions { comments: CommentOptions::disabled(), source_map_path, ..CodegenOptions::default() };
    Ok(Codegen::new().with_options(options).build(&program))
}

/// The first diagnostic that is an error, with line and column.
pub(super) fn first_error<'d>(
    source: &str,
    diagnostics: impl Iterator<Item = &'d oxc_diagnostics::OxcDiagnostic>,
) -> Option<SyntaxError> {
    let diagnostic = diagnostics.into_iter().find(|found| found.severity == oxc_diagnostics::Severity::Error)?;
    let offset = diagnostic.labels.first().map_or(0, |label| label.offset() as usize);
    let before = &source[..source.floor_char_boundary(offset)];
    let line = before.matches('\n').count() + 1;
    let column = before.len() - before.rfind('\n').map_or(0, |at| at + 1) + 1;
    Some(SyntaxError { message: diagnostic.message.to_string(), line, column })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::fs;

    use super::*;

    /// The script as a compiler prints it, so that formatting does not matter.
    fn normalized(script: &Script) -> String {
        let allocator = Allocator::default();
        let options = ParseOptions { preserve_parens: false, ..ParseOptions::default() };
        let parsed = Parser::new(&allocator, &script.code, SourceType::script()).with_options(options).parse();
        assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
        let options = CodegenOptions { comments: CommentOptions::disabled(), ..CodegenOptions::default() };
        let printed = Codegen::new().with_options(options).build(&parsed.program).code;
        let lines = printed.lines().map(str::trim).filter(|line| !matches!(*line, ";" | "\"use strict\";"));
        let lines = lines.collect::<Vec<_>>().join("\n").replace("{\n}", "{}");
        format!("{:?} {} {lines}", script.imports, script.is_async)
    }

    /// Checks that erasing and compiling a file give the same result; returns whether it could be erased.
    fn check(path: &Path, source: &str) -> bool {
        let Ok(compiled) = compiled(path, source, SourceType::ts(), ModuleKind::Unknown) else { return false };
        let Some(erased) = erased(source, SourceType::ts(), ModuleKind::Unknown) else { return false };
        let (erased, compiled) = (normalized(&erased), normalized(&compiled));
        let difference = erased.lines().zip(compiled.lines()).find(|(one, other)| one != other);
        assert_eq!(difference, None, "{}", path.display());
        assert_eq!(erased.len(), compiled.len(), "{}", path.display());
        true
    }

    #[test]
    fn erasing_types_gives_what_compiling_gives() {
        let source = r#"
            import type { A } from "a";
            import { B, type C, d } from "b";
            import E, { F } from "e";
            import * as g from "g";
            import "side-effect";
            import { H } from "h";
            interface Local { a: string }
            export { d as renamed, Local, H };
            export * from "star";
            const typed = (value?: B): Promise<{
                a: string;
            }> => value!.then((it: unknown) => it as { a: string });
            export class Thing<T> extends g.Base<T> implements A {
                private readonly map = new Map<string, T[]>();
                optional?: number;
                constructor(public: string) { super(public) }
                protected static async of<U>(this: void, one: U, ...more: U[]): Promise<U> { return one }
            }
            export const over = { typed, d } satisfies Record<string, unknown>;
            export function many(a: string): void;
            export function many(a: number): void;
            export function many(a: any) { for (const b of a as string[]) d(b!, <T,>(c: T) => c) }
            export default async function <T>(pi: E<T>) { await import("later"); return import.meta.url }
        "#;
        assert!(check(Path::new("x.ts"), source));
    }

    #[test]
    fn erasing_packages_gives_what_compiling_gives() {
        let Some(directory) = std::env::var_os("PITH_EXT_PACKAGES") else { return };
        let (mut erased, mut n_files, mut seen) = (0, 0, HashSet::new());
        for entry in ignore::WalkBuilder::new(directory).standard_filters(false).build().flatten() {
            let path = entry.path();
            let is_source = path.extension().is_some_and(|extension| extension == "ts" || extension == "mts");
            if !is_source || path.to_string_lossy().contains(".d.") || path.is_dir() {
                continue;
            }
            let source = fs::read_to_string(path).unwrap();
            if !seen.insert(source.clone()) {
                continue;
            }
            n_files += 1;
            erased += usize::from(with_room(&source, || Ok(check(path, &source))).unwrap());
        }
        assert!(erased * 2 > n_files, "only {erased} of {n_files} files could be erased");
    }
}
