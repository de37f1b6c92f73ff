//! Turns an ES module into a function body.
//!
//! pi evaluates extensions through a transpiler that makes CommonJS of them, and published extensions depend on that: a
//! named import that the target does not export is `undefined`, cycles see half-filled modules, and `require` works
//! next to `import`. The engine's own modules link strictly, so pith does what pi does: every use of an imported name
//! becomes a property read on the imported module. The text is edited in place, so that the line numbers of plain
//! JavaScript files stay valid.

mod visit;

use std::fmt::Write;

use oxc_allocator::Allocator;
use oxc_ast::ast::{
    BindingIdentifier, Declaration, ExportDefaultDeclarationKind, IdentifierReference, ImportDeclaration,
    ImportDeclarationSpecifier, ModuleExportName, Program, Statement, VariableDeclaration,
};
use oxc_ast_visit::Visit;
use oxc_parser::{ParseOptions, Parser};
use oxc_semantic::{Scoping, SemanticBuilder, SymbolId};
use oxc_span::{GetSpan, SourceType, Span};

use super::transpile::{ModuleKind, Script, SyntaxError, first_error};

/// The name of an anonymous default export inside its module function.
const DEFAULT: &str = "__pith_default";

/// What happens to imports whose names are not used.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Unused {
    Kept,
    /// They were imported for types, so their modules are not loaded either.
    Dropped,
}

/// Rewrites JavaScript; `kind` is used where the text itself does not tell which kind of module it is.
pub fn rewrite(source: &str, kind: ModuleKind, unused: Unused) -> Result<Script, SyntaxError> {
    if kind == ModuleKind::CommonJs && !source.contains("import") {
        return Ok(Script { code: wrap_commonjs(source), kind, imports: Vec::new(), is_async: false });
    }
    let allocator = Allocator::default();
    let source_type = match kind {
        ModuleKind::Module => SourceType::mjs(),
        ModuleKind::CommonJs => SourceType::script(),
        ModuleKind::Unknown => SourceType::unambiguous(),
    };
    let options = ParseOptions { allow_return_outside_function: kind != ModuleKind::Module, ..ParseOptions::default() };
    let parsed = Parser::new(&allocator, source, source_type).with_options(options).parse();
    if let Some(error) = first_error(source, parsed.diagnostics.iter()) {
        return Err(error);
    }
    let program = parsed.program;
    let is_module =
        kind == ModuleKind::Module || (kind == ModuleKind::Unknown && parsed.module_record.has_module_syntax);
    let scoping = SemanticBuilder::new().build(&program).semantic.into_scoping();
    let mut rewriter = Rewriter::new(source, &scoping, unused);
    if is_module {
        rewriter.declarations(&program);
    }
    rewriter.visit_program(&program);
    Ok(rewriter.finish(is_module))
}

struct Rewriter<'s> {
    source: &'s str,
    scoping: &'s Scoping,
    unused: Unused,
    /// Replacements, in any order, never overlapping.
    edits: Vec<(Span, String)>,
    imports: Vec<String>,
    /// The expression that reads each imported symbol.
    imported: Vec<(SymbolId, String)>,
    /// The name of each export and the expression that reads it.
    exports: Vec<(String, String)>,
    /// Dependencies that are re-exported as a whole.
    stars: Vec<usize>,
    depth: usize,
    is_async: bool,
}

impl<'s> Rewriter<'s> {
    fn new(source: &'s str, scoping: &'s Scoping, unused: Unused) -> Self {
        Rewriter {
            source,
            scoping,
            unused,
            edits: Vec::new(),
            imports: Vec::new(),
            imported: Vec::new(),
            exports: Vec::new(),
            stars: Vec::new(),
            depth: 0,
            is_async: false,
        }
    }

    fn import(&mut self, specifier: &str) -> usize {
        match self.imports.iter().position(|known| known == specifier) {
            Some(index) => index,
            None => {
                self.imports.push(specifier.to_owned());
                self.imports.len() - 1
            }
        }
    }

    /// Processes imports first: exports may name something that a later line imports.
    fn declarations(&mut self, program: &Program) {
        for statement in &program.body {
            self.import_statement(statement);
        }
        for statement in &program.body {
            self.export_statement(statement);
        }
    }

    fn import_statement(&mut self, statement: &Statement) {
        let Statement::ImportDeclaration(declaration) = statement else { return };
        self.blank(declaration.span);
        if self.unused == Unused::Dropped && self.is_unused(declaration) {
            return;
        }
        let index = self.import(&declaration.source.value);
        for specifier in declaration.specifiers.iter().flatten() {
            let (local, read): (&BindingIdentifier, String) = match specifier {
                ImportDeclarationSpecifier::ImportSpecifier(named) => {
                    (&named.local, member(index, &name(&named.imported)))
                }
                ImportDeclarationSpecifier::ImportDefaultSpecifier(default) => {
                    (&default.local, member(index, "default"))
                }
                ImportDeclarationSpecifier::ImportNamespaceSpecifier(all) => (&all.local, namespace(index)),
            };
            if let Some(symbol) = local.symbol_id.get() {
                self.imported.push((symbol, read));
            }
        }
    }

    /// Whether names are imported and none of them is used.
    fn is_unused(&self, declaration: &ImportDeclaration) -> bool {
        let is_read = |specifier: &ImportDeclarationSpecifier| {
            let symbol = specifier.local().symbol_id.get();
            symbol.is_none_or(|symbol| !self.scoping.get_resolved_reference_ids(symbol).is_empty())
        };
        let specifiers = declaration.specifiers.as_ref();
        specifiers.is_some_and(|all| !all.is_empty() && !all.iter().any(is_read))
    }

    /// Whether an exported name is that of an erased type.
    fn is_erased(&self, local: &ModuleExportName) -> bool {
        let ModuleExportName::IdentifierReference(name) = local else { return false };
        let reference = name.reference_id.get().map(|id| self.scoping.get_reference(id));
        self.unused == Unused::Dropped && reference.is_some_and(|reference| reference.symbol_id().is_none())
    }

    fn export_statement(&mut self, statement: &Statement) {
        match statement {
            Statement::ExportAllDeclaration(all) => {
                self.blank(all.span);
                let index = self.import(&all.source.value);
                match &all.exported {
                    Some(exported) => self.exports.push((name(exported), namespace(index))),
                    None => self.stars.push(index),
                }
            }
            Statement::ExportFromDeclaration(from) => {
                self.blank(from.span);
                let index = self.import(&from.source.value);
                for specifier in &from.specifiers {
                    self.exports.push((name(&specifier.exported), member(index, &name(&specifier.local))));
                }
            }
            Statement::ExportNamedDeclaration(named) => {
                self.blank(named.span);
                for specifier in &named.specifiers {
                    if self.is_erased(&specifier.local) {
                        continue;
                    }
                    let read = match &specifier.local {
                        ModuleExportName::IdentifierReference(reference) => {
                            self.imported_as(reference).unwrap_or_else(|| reference.name.to_string())
                        }
                        other => name(other),
                    };
                    self.exports.push((name(&specifier.exported), read));
                }
            }
            Statement::ExportDeclaration(export) => {
                self.drop_prefix(export.span, export.declaration.span());
                self.export_declaration(&export.declaration);
            }
            Statement::ExportDefaultDeclaration(default) => self.export_default(default.span, &default.declaration),
            _ => {}
        }
    }

    fn export_declaration(&mut self, declaration: &Declaration) {
        let mut names = Vec::new();
        match declaration {
            Declaration::VariableDeclaration(variables) => bound_names(variables, &mut names),
            Declaration::FunctionDeclaration(function) => {
                names.extend(function.id.as_ref().map(|id| id.name.to_string()));
            }
            Declaration::ClassDeclaration(class) => names.extend(class.id.as_ref().map(|id| id.name.to_string())),
            // Types were erased before.
            _ => {}
        }
        self.exports.extend(names.into_iter().map(|name| (name.clone(), name)));
    }

    fn export_default(&mut self, span: Span, declaration: &ExportDefaultDeclarationKind) {
        let inner = declaration.span();
        let read = match declaration {
            ExportDefaultDeclarationKind::FunctionDeclaration(function) => {
                self.drop_prefix(span, inner);
                match &function.id {
                    Some(id) => id.name.to_string(),
                    None => {
                        let at = function.params.span.start;
                        self.edits.push((Span::empty(at), format!(" {DEFAULT}")));
                        DEFAULT.to_owned()
                    }
                }
            }
            ExportDefaultDeclarationKind::ClassDeclaration(class) => {
                self.drop_prefix(span, inner);
                match &class.id {
                    Some(id) => id.name.to_string(),
                    None => {
                        let at = class.span.start + "class".len() as u32;
                        self.edits.push((Span::empty(at), format!(" {DEFAULT}")));
                        DEFAULT.to_owned()
                    }
                }
            }
            _ => {
                // The span of `export default (a, b)` excludes the parentheses; keep everything after the keywords.
                let at = self.after_default_keyword(span);
                self.edits.push((Span::new(span.start, at), format!("const {DEFAULT} =")));
                DEFAULT.to_owned()
            }
        };
        self.exports.push(("default".to_owned(), read));
    }

    fn after_default_keyword(&self, span: Span) -> u32 {
        let text = &self.source[span.start as usize..span.end as usize];
        let offset = text.find("default").map_or(0, |at| at + "default".len());
        span.start + offset as u32
    }

    fn imported_as(&self, reference: &IdentifierReference) -> Option<String> {
        let symbol = self.scoping.get_reference(reference.reference_id.get()?).symbol_id()?;
        self.imported.iter().find(|(known, _)| *known == symbol).map(|(_, read)| read.clone())
    }

    /// Removes a statement but keeps its line breaks.
    fn blank(&mut self, span: Span) {
        let lines = self.source[span.start as usize..span.end as usize].matches('\n').count();
        self.edits.push((span, format!(";{}", "\n".repeat(lines))));
    }

    fn drop_prefix(&mut self, whole: Span, inner: Span) {
        self.edits.push((Span::new(whole.start, inner.start), String::new()));
    }

    fn finish(mut self, is_module: bool) -> Script {
        self.edits.sort_by_key(|(span, _)| span.start);
        let mut body = String::with_capacity(self.source.len() + 256);
        let mut at = 0;
        for (span, text) in &self.edits {
            body.push_str(&self.source[at..span.start as usize]);
            body.push_str(text);
            at = span.end as usize;
        }
        body.push_str(&self.source[at..]);
        if !is_module {
            let code = wrap_commonjs(&body);
            return Script { code, kind: ModuleKind::CommonJs, imports: Vec::new(), is_async: false };
        }
        let mut code = String::with_capacity(body.len() + 256);
        code.push_str("(function(exports,require,module,__filename,__dirname,__pith){\"use strict\";return ");
        code.push_str(if self.is_async { "async function(){" } else { "function(){" });
        for index in 0..self.imports.len() {
            let _ = write!(code, "const {}=__pith.use({index});", namespace(index));
        }
        if !self.exports.is_empty() {
            code.push_str("__pith.exports({");
            for (name, read) in &self.exports {
                let key = serde_json::to_string(name).expect("strings serialize");
                let _ = write!(code, "{key}:()=>{read},");
            }
            code.push_str("});");
        }
        for index in &self.stars {
            let _ = write!(code, "__pith.star({index});");
        }
        code.push_str(&without_hashbang(&body));
        code.push_str("\n}})");
        Script { code, kind: ModuleKind::Module, imports: self.imports, is_async: self.is_async }
    }
}

fn bound_names(variables: &VariableDeclaration, names: &mut Vec<String>) {
    for declarator in &variables.declarations {
        let identifiers = declarator.id.get_binding_identifiers();
        names.extend(identifiers.iter().map(|identifier| identifier.name.to_string()));
    }
}

fn name(name: &ModuleExportName) -> String {
    name.name().to_string()
}

fn namespace(index: usize) -> String {
    format!("__pith{index}")
}

fn member(index: usize, name: &str) -> String {
    let is_plain =
        name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_' || character == '$')
            && !name.starts_with(|first: char| first.is_ascii_digit());
    if is_plain {
        format!("__pith{index}.{name}")
    } else {
        format!("__pith{index}[{}]", serde_json::to_string(name).expect("strings serialize"))
    }
}

/// Wraps CommonJS as Node does.
fn wrap_commonjs(body: &str) -> String {
    let body = without_hashbang(body);
    format!("(function(exports,require,module,__filename,__dirname,__pith){{{body}\n}})")
}

fn without_hashbang(source: &str) -> String {
    match source.strip_prefix("#!") {
        Some(rest) => format!("//{rest}"),
        None => source.to_owned(),
    }
}
