//! From a source file to a function the engine can compile.

use std::path::{Path, PathBuf};

use oxc_allocator::Allocator;
use oxc_codegen::{Codegen, CodegenOptions, CodegenReturn, CommentOptions};
use oxc_parser::{ParseOptions, Parser};
use oxc_semantic::SemanticBuilder;
use oxc_span::SourceType;
use oxc_transformer::{Module, TransformOptions, Transformer};

use super::depth::with_room;
use super::rewrite::rewrite;

/// How a file is to be evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Module,
    CommonJs,
    /// Decided by whether the text has `import` or `export`.
    Unknown,
}

/// A source file made ready for the engine.
#[derive(Debug, PartialEq)]
pub struct Script {
    /// An expression that evaluates to the module's wrapper function.
    pub code: String,
    pub kind: Kind,
    /// Specifiers of static imports, in order.
    pub imports: Vec<String>,
    /// The module awaits at its top level.
    pub is_async: bool,
}

/// Why a file cannot be read, with the place.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("{message} ({line}:{column})")]
pub struct SyntaxError {
    pub message: String,
    pub line: usize,
    pub column: usize,
}

/// Makes a script of a file's text. `kind` is what its name and package say.
pub fn transpile(path: &Path, source: &str, kind: Kind) -> Result<Script, SyntaxError> {
    let source = source.strip_prefix('\u{feff}').unwrap_or(source);
    with_room(source, || match source_type(path) {
        Some(source_type) => rewrite(&without_types(path, source, source_type)?, kind),
        None => rewrite(source, kind),
    })
}

/// The dialect of files that need the compiler; `None` for plain JavaScript.
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

/// Which line of a TypeScript file a line of its JavaScript came from. Costs a compilation: for errors only.
pub fn original_place(path: &Path, line: u32, column: u32) -> Option<(u32, u32)> {
    let source = std::fs::read_to_string(path).ok()?;
    let source = source.strip_prefix('\u{feff}').unwrap_or(&source);
    let allocator = Allocator::default();
    let map = printed(&allocator, path, source, source_type(path)?, Some(path.to_owned())).ok()?.map?;
    let table = map.generate_lookup_table();
    let token = map.lookup_token_approx(&table, line.checked_sub(1)?, column.checked_sub(1)?)?;
    Some((token.get_src_line() + 1, token.get_src_col() + 1))
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
    let transformed = Transformer::new(allocator, path, &options).build_with_scoping(scoping, &mut program);
    if let Some(error) = first_error(source, transformed.diagnostics.iter()) {
        return Err(error);
    }
    let options = CodegenOptions { comments: CommentOptions::disabled(), source_map_path, ..CodegenOptions::default() };
    Ok(Codegen::new().with_options(options).build(&program))
}

/// The first diagnostic that is an error, placed by line and column.
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
