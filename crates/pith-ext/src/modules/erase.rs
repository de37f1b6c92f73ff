//! Removes types from TypeScript by overwriting them with spaces.
//!
//! Most extensions use no TypeScript but types. What remains without them is JavaScript in which every line and column
//! is where its author put it, at the cost of one walk over the syntax tree; the compiler is not needed. Syntax that
//! has a meaning at run time (enums, namespaces, parameter properties, decorators), or that could be parsed differently
//! without its types, is left to the compiler.

mod visit;

use oxc_allocator::Allocator;
use oxc_ast::ast::{
    Class, Declaration, ExportDefaultDeclarationKind, ExportSpecifier, Expression, ImportDeclaration,
    ImportDeclarationSpecifier, Statement,
};
use oxc_ast_visit::Visit;
use oxc_parser::Parser;
use oxc_span::{GetSpan, SourceType, Span};

/// Keywords before the name of a class member that only TypeScript has.
const MODIFIERS: &[&[u8]] = &[b"public", b"private", b"protected", b"readonly", b"override"];

/// Returns the module without its types; `None` if it needs the compiler or has errors.
pub fn erase(source: &str) -> Option<String> {
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, source, SourceType::ts()).parse();
    if !parsed.diagnostics.is_empty() || !parsed.module_record.has_module_syntax {
        return None;
    }
    let text = source.as_bytes().to_vec();
    let mut eraser = Eraser { source, text, types: Vec::new(), default: None, is_plain: true };
    eraser.visit_program(&parsed.program);
    let is_default_type = eraser.default.is_some_and(|name| eraser.types.contains(&name));
    if !eraser.is_plain || is_default_type {
        return None;
    }
    String::from_utf8(eraser.text).ok()
}

struct Eraser<'s> {
    source: &'s str,
    /// The source with spaces where types were.
    text: Vec<u8>,
    /// Names that were declared in erased statements.
    types: Vec<String>,
    /// The name that is the default export.
    default: Option<String>,
    /// Whether nothing was found that needs the compiler.
    is_plain: bool,
}

/// What happens to a statement.
enum Treatment {
    Keep,
    Erase,
    Compile,
}

impl Eraser<'_> {
    fn blank(&mut self, from: u32, to: u32) {
        for byte in &mut self.text[from as usize..to as usize] {
            if !matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
    }

    fn blank_span(&mut self, span: Span) {
        self.blank(span.start, span.end);
    }

    /// Blanks a whole statement or member; the semicolon keeps its neighbours apart.
    fn drop_whole(&mut self, span: Span) {
        self.blank_span(span);
        self.put(span.start, b';');
    }

    fn put(&mut self, at: u32, byte: u8) {
        self.text[at as usize] = byte;
    }

    fn give_up(&mut self) {
        self.is_plain = false;
    }

    fn has_line_break(&self, span: Span) -> bool {
        self.source[span.start as usize..span.end as usize].contains('\n')
    }

    /// Blanks the type of `expression as T`.
    fn drop_tail(&mut self, whole: Span, expression: &Expression) {
        self.blank(expression.span().end, whole.end);
        if continues(&self.source[whole.end as usize..]) {
            self.give_up();
        }
    }

    /// Blanks keywords before the name of a member that are not JavaScript.
    fn drop_modifiers(&mut self, member: Span, key: Span) {
        let source = self.source;
        let prefix = &source.as_bytes()[member.start as usize..key.start as usize];
        let mut start = member.start;
        for word in prefix.split(|byte| !byte.is_ascii_alphanumeric()) {
            let end = start + word.len() as u32;
            if MODIFIERS.contains(&word) {
                self.blank(start, end);
                // Without the keyword, the previous line could continue here.
                if start == member.start {
                    self.put(start, b';');
                }
            }
            start = end + 1;
        }
    }

    fn declaration(&mut self, declaration: &Declaration) -> Treatment {
        let is_type = match declaration {
            Declaration::TSTypeAliasDeclaration(_)
            | Declaration::TSInterfaceDeclaration(_)
            | Declaration::TSGlobalDeclaration(_)
            | Declaration::TSExternalModuleDeclaration(_) => true,
            Declaration::VariableDeclaration(variables) => variables.declare,
            Declaration::FunctionDeclaration(function) => function.is_typescript_syntax(),
            Declaration::ClassDeclaration(class) => class.declare,
            Declaration::TSEnumDeclaration(found) if found.declare => true,
            Declaration::TSNamespaceDeclaration(found) if found.declare => true,
            Declaration::TSEnumDeclaration(_)
            | Declaration::TSNamespaceDeclaration(_)
            | Declaration::TSImportEqualsDeclaration(_) => return Treatment::Compile,
        };
        if !is_type {
            return Treatment::Keep;
        }
        self.types.extend(declaration.id().map(|id| id.name.to_string()));
        Treatment::Erase
    }

    fn treatment(&mut self, statement: &Statement) -> Treatment {
        let erase_if = |is_type: bool| if is_type { Treatment::Erase } else { Treatment::Keep };
        match statement {
            Statement::ExportDeclaration(export) => self.declaration(&export.declaration),
            Statement::ExportDefaultDeclaration(default) => match &default.declaration {
                ExportDefaultDeclarationKind::TSInterfaceDeclaration(_) => Treatment::Erase,
                ExportDefaultDeclarationKind::FunctionDeclaration(function) => erase_if(function.body.is_none()),
                ExportDefaultDeclarationKind::Identifier(name) => {
                    self.default = Some(name.name.to_string());
                    Treatment::Keep
                }
                _ => Treatment::Keep,
            },
            Statement::ImportDeclaration(import) => erase_if(is_type_import(import)),
            Statement::ExportNamedDeclaration(export) if export.export_kind.is_type() => Treatment::Erase,
            Statement::ExportFromDeclaration(export) => {
                let types = export.specifiers.iter().filter(|specifier| specifier.export_kind.is_type()).count();
                erase_if(export.export_kind.is_type() || (types > 0 && types == export.specifiers.len()))
            }
            Statement::ExportAllDeclaration(all) => erase_if(all.export_kind.is_type()),
            Statement::TSExportAssignment(_) | Statement::TSNamespaceExportDeclaration(_) => Treatment::Compile,
            other => other.as_declaration().map_or(Treatment::Keep, |declaration| self.declaration(declaration)),
        }
    }

    /// Blanks the types of `{ type A, b }` and the commas after them.
    fn drop_type_specifiers(&mut self, specifiers: &[(Span, bool)]) {
        for (index, (span, is_type)) in specifiers.iter().enumerate() {
            if !is_type {
                continue;
            }
            let end = match specifiers.get(index + 1) {
                Some((next, _)) => next.start,
                None => match self.source[span.end as usize..].trim_start() {
                    rest if rest.starts_with(',') => (self.source.len() - rest.len() + 1) as u32,
                    rest if rest.starts_with('/') => return self.give_up(),
                    _ => span.end,
                },
            };
            self.blank(span.start, end);
        }
    }

    fn class_head(&mut self, class: &Class) {
        if class.r#abstract {
            if self.source[class.span.start as usize..].starts_with("abstract") {
                self.blank(class.span.start, class.span.start + "abstract".len() as u32)
            } else {
                self.give_up()
            }
        }
        if class.implements.is_empty() {
            return;
        }
        let before = class.heritage.as_ref().map(GetSpan::span);
        let before = before.or_else(|| class.type_parameters.as_ref().map(|parameters| parameters.span));
        match before.or_else(|| class.id.as_ref().map(|id| id.span)) {
            Some(before) => self.blank(before.end, class.body.span.start),
            None => self.give_up(),
        }
    }
}

/// The spans of export specifiers, and whether each is marked as a type.
fn exported(specifiers: &[ExportSpecifier]) -> Vec<(Span, bool)> {
    specifiers.iter().map(|found| (found.span, found.export_kind.is_type())).collect()
}

/// Whether an import is only of types, by its own keywords.
fn is_type_import(import: &ImportDeclaration) -> bool {
    let is_type = |specifier: &ImportDeclarationSpecifier| match specifier {
        ImportDeclarationSpecifier::ImportSpecifier(named) => named.import_kind.is_type(),
        _ => false,
    };
    let specifiers = import.specifiers.as_ref();
    import.import_kind.is_type() || specifiers.is_some_and(|all| !all.is_empty() && all.iter().all(is_type))
}

/// Whether a statement that ends here in TypeScript would continue in the next line in JavaScript.
fn continues(rest: &str) -> bool {
    let mut rest = rest;
    let mut is_next_line = false;
    loop {
        let trimmed = rest.trim_start();
        is_next_line |= rest[..rest.len() - trimmed.len()].contains('\n');
        rest = match trimmed {
            comment if comment.starts_with("//") => comment.find('\n').map_or("", |at| &comment[at..]),
            comment if comment.starts_with("/*") => comment.find("*/").map_or("", |at| &comment[at + 2..]),
            other => return is_next_line && other.starts_with(['(', '[', '`', '+', '-', '/', '*', '<']),
        };
    }
}

#[cfg(test)]
mod tests;
