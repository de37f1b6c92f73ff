//! Removing types from TypeScript by writing spaces over them.
//!
//! Most extensions use types and nothing else of TypeScript. What remains when
//! those are blanked out is JavaScript in which every line and column is where
//! its author put it, at the price of one walk over the syntax tree; the
//! compiler, its code and its memory are left alone. Whatever has a meaning at
//! run time (enums, namespaces, parameter properties, decorators) or could be
//! read differently without its types is left to the compiler.

use oxc_allocator::Allocator;
use oxc_ast::ast::{
    ArrowFunctionExpression, BinaryExpression, Class, ClassElement, Declaration, Decorator,
    ExportDefaultDeclarationKind, ExportSpecifier, Expression, FormalParameter, Function, ImportDeclaration,
    ImportDeclarationSpecifier, MethodDefinition, MethodDefinitionType, PropertyDefinition, PropertyDefinitionType,
    Statement, TSAsExpression, TSClassImplements, TSInstantiationExpression, TSNonNullExpression,
    TSSatisfiesExpression, TSThisParameter, TSTypeAnnotation, TSTypeAssertion, TSTypeParameterDeclaration,
    TSTypeParameterInstantiation, VariableDeclarator,
};
use oxc_ast_visit::{Visit, walk};
use oxc_parser::Parser;
use oxc_semantic::ScopeFlags;
use oxc_span::{GetSpan, SourceType, Span};

/// Words that only TypeScript knows before the name of a class member.
const MODIFIERS: &[&[u8]] = &[b"public", b"private", b"protected", b"readonly", b"override"];

/// The module without its types; `None` for what the compiler must see, errors included.
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
    /// Nothing was met that the compiler must see.
    is_plain: bool,
}

/// What becomes of a statement.
enum Fate {
    Stays,
    Goes,
    Compiler,
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

    /// Blanks what stands before the name of a member and is no JavaScript.
    fn drop_modifiers(&mut self, member: Span, key: Span) {
        let source = self.source;
        let prefix = &source.as_bytes()[member.start as usize..key.start as usize];
        let mut start = member.start;
        for word in prefix.split(|byte| !byte.is_ascii_alphanumeric()) {
            let end = start + word.len() as u32;
            if MODIFIERS.contains(&word) {
                self.blank(start, end);
                // Without the word, the line before could go on here.
                if start == member.start {
                    self.put(start, b';');
                }
            }
            start = end + 1;
        }
    }

    fn declaration(&mut self, declaration: &Declaration) -> Fate {
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
            | Declaration::TSImportEqualsDeclaration(_) => return Fate::Compiler,
        };
        if !is_type {
            return Fate::Stays;
        }
        self.types.extend(declaration.id().map(|id| id.name.to_string()));
        Fate::Goes
    }

    fn fate(&mut self, statement: &Statement) -> Fate {
        let goes = |is_type: bool| if is_type { Fate::Goes } else { Fate::Stays };
        match statement {
            Statement::ExportDeclaration(export) => self.declaration(&export.declaration),
            Statement::ExportDefaultDeclaration(default) => match &default.declaration {
                ExportDefaultDeclarationKind::TSInterfaceDeclaration(_) => Fate::Goes,
                ExportDefaultDeclarationKind::FunctionDeclaration(function) => goes(function.body.is_none()),
                ExportDefaultDeclarationKind::Identifier(name) => {
                    self.default = Some(name.name.to_string());
                    Fate::Stays
                }
                _ => Fate::Stays,
            },
            Statement::ImportDeclaration(import) => goes(is_type_import(import)),
            Statement::ExportNamedDeclaration(export) if export.export_kind.is_type() => Fate::Goes,
            Statement::ExportFromDeclaration(export) => {
                let types = export.specifiers.iter().filter(|specifier| specifier.export_kind.is_type()).count();
                goes(export.export_kind.is_type() || (types > 0 && types == export.specifiers.len()))
            }
            Statement::ExportAllDeclaration(all) => goes(all.export_kind.is_type()),
            Statement::TSExportAssignment(_) | Statement::TSNamespaceExportDeclaration(_) => Fate::Compiler,
            other => other.as_declaration().map_or(Fate::Stays, |declaration| self.declaration(declaration)),
        }
    }

    /// `{ type A, b }`: the type and the comma behind it.
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
            match self.source[class.span.start as usize..].starts_with("abstract") {
                true => self.blank(class.span.start, class.span.start + "abstract".len() as u32),
                false => self.give_up(),
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

impl<'a> Visit<'a> for Eraser<'_> {
    fn visit_statement(&mut self, statement: &Statement<'a>) {
        match self.fate(statement) {
            Fate::Goes => return self.drop_whole(statement.span()),
            Fate::Compiler => return self.give_up(),
            Fate::Stays => {}
        }
        match statement {
            Statement::ImportDeclaration(import) => {
                let specifiers = import.specifiers.iter().flatten().filter_map(|specifier| match specifier {
                    ImportDeclarationSpecifier::ImportSpecifier(named) => {
                        Some((named.span, named.import_kind.is_type()))
                    }
                    _ => None,
                });
                let specifiers: Vec<_> = specifiers.collect();
                self.drop_type_specifiers(&specifiers);
            }
            Statement::ExportNamedDeclaration(export) => self.drop_type_specifiers(&exported(&export.specifiers)),
            Statement::ExportFromDeclaration(export) => self.drop_type_specifiers(&exported(&export.specifiers)),
            _ => walk::walk_statement(self, statement),
        }
    }

    fn visit_ts_type_annotation(&mut self, annotation: &TSTypeAnnotation<'a>) {
        self.blank_span(annotation.span);
    }

    fn visit_ts_type_parameter_declaration(&mut self, parameters: &TSTypeParameterDeclaration<'a>) {
        self.blank_span(parameters.span);
    }

    fn visit_ts_type_parameter_instantiation(&mut self, arguments: &TSTypeParameterInstantiation<'a>) {
        self.blank_span(arguments.span);
    }

    fn visit_ts_as_expression(&mut self, cast: &TSAsExpression<'a>) {
        self.visit_expression(&cast.expression);
        self.drop_tail(cast.span, &cast.expression);
    }

    fn visit_ts_satisfies_expression(&mut self, check: &TSSatisfiesExpression<'a>) {
        self.visit_expression(&check.expression);
        self.drop_tail(check.span, &check.expression);
    }

    fn visit_ts_non_null_expression(&mut self, checked: &TSNonNullExpression<'a>) {
        self.visit_expression(&checked.expression);
        self.blank(checked.expression.span().end, checked.span.end);
    }

    // `<T>{}` could become a block, `f<T>` the start of a call.
    fn visit_ts_type_assertion(&mut self, _: &TSTypeAssertion<'a>) {
        self.give_up();
    }

    fn visit_ts_instantiation_expression(&mut self, _: &TSInstantiationExpression<'a>) {
        self.give_up();
    }

    // `a + b as T * c` groups differently without its cast.
    fn visit_binary_expression(&mut self, binary: &BinaryExpression<'a>) {
        let cast = match &binary.left {
            Expression::TSAsExpression(cast) => Some(&cast.expression),
            Expression::TSSatisfiesExpression(check) => Some(&check.expression),
            _ => None,
        };
        if matches!(cast, Some(Expression::BinaryExpression(_))) {
            self.give_up();
        }
        walk::walk_binary_expression(self, binary);
    }

    fn visit_decorator(&mut self, _: &Decorator<'a>) {
        self.give_up();
    }

    fn visit_variable_declarator(&mut self, declarator: &VariableDeclarator<'a>) {
        if let (true, Some(annotation)) = (declarator.definite, &declarator.type_annotation) {
            self.blank(declarator.id.span().end, annotation.span.start);
        }
        walk::walk_variable_declarator(self, declarator);
    }

    fn visit_formal_parameter(&mut self, parameter: &FormalParameter<'a>) {
        if parameter.accessibility.is_some() || parameter.readonly || parameter.r#override {
            self.give_up();
        }
        if parameter.optional {
            let end = parameter.type_annotation.as_ref().map_or(parameter.span.end, |annotation| annotation.span.start);
            self.blank(parameter.pattern.span().end, end);
        }
        walk::walk_formal_parameter(self, parameter);
    }

    fn visit_ts_this_parameter(&mut self, _: &TSThisParameter<'a>) {}

    fn visit_function(&mut self, function: &Function<'a>, flags: ScopeFlags) {
        if let Some(this) = &function.this_param {
            let rest = function.params.rest.as_ref().map(|rest| rest.span.start);
            let next = function.params.items.first().map(|parameter| parameter.span.start).or(rest);
            // All up to the closing parenthesis: there may be a comma.
            self.blank(this.span.start, next.unwrap_or(function.params.span.end - 1));
        }
        walk::walk_function(self, function, flags);
    }

    fn visit_arrow_function_expression(&mut self, arrow: &ArrowFunctionExpression<'a>) {
        // A line break must not come between `async` or `return` and the parameters, nor before the arrow.
        if arrow.type_parameters.as_ref().is_some_and(|parameters| self.has_line_break(parameters.span)) {
            self.give_up();
        }
        walk::walk_arrow_function_expression(self, arrow);
        if let Some(result) = &arrow.return_type
            && self.has_line_break(Span::new(arrow.params.span.end, result.span.end))
        {
            self.put(arrow.params.span.end - 1, b' ');
            self.put(result.span.end - 1, b')');
        }
    }

    fn visit_class(&mut self, class: &Class<'a>) {
        self.class_head(class);
        walk::walk_class(self, class);
    }

    fn visit_ts_class_implements(&mut self, _: &TSClassImplements<'a>) {}

    fn visit_class_element(&mut self, element: &ClassElement<'a>) {
        let is_type = match element {
            ClassElement::TSIndexSignature(_) => true,
            ClassElement::MethodDefinition(method) => {
                method.r#type == MethodDefinitionType::TSAbstractMethodDefinition || method.value.is_typescript_syntax()
            }
            ClassElement::PropertyDefinition(property) => {
                property.declare || property.r#type == PropertyDefinitionType::TSAbstractPropertyDefinition
            }
            // The engine does not know these; the compiler may.
            ClassElement::AccessorProperty(_) => return self.give_up(),
            ClassElement::StaticBlock(_) => false,
        };
        match is_type {
            true => self.drop_whole(element.span()),
            false => walk::walk_class_element(self, element),
        }
    }

    fn visit_method_definition(&mut self, method: &MethodDefinition<'a>) {
        if method.optional {
            self.give_up();
        }
        self.drop_modifiers(method.span, method.key.span());
        walk::walk_method_definition(self, method);
    }

    fn visit_property_definition(&mut self, property: &PropertyDefinition<'a>) {
        self.drop_modifiers(property.span, property.key.span());
        let is_marked = property.optional || property.definite;
        match &property.type_annotation {
            Some(annotation) if is_marked && !property.computed => {
                self.blank(property.key.span().end, annotation.span.start);
            }
            _ if is_marked => self.give_up(),
            _ => {}
        }
        walk::walk_property_definition(self, property);
        // A field called `get` must not take the next member for its own.
        if let (Some(annotation), None) = (&property.type_annotation, &property.value) {
            self.put(annotation.span.start, b';');
        }
    }
}

/// Places of export specifiers, and whether each is a type by its own words.
fn exported(specifiers: &[ExportSpecifier]) -> Vec<(Span, bool)> {
    specifiers.iter().map(|found| (found.span, found.export_kind.is_type())).collect()
}

/// Nothing of the import is left at run time, by its own words.
fn is_type_import(import: &ImportDeclaration) -> bool {
    let is_type = |specifier: &ImportDeclarationSpecifier| match specifier {
        ImportDeclarationSpecifier::ImportSpecifier(named) => named.import_kind.is_type(),
        _ => false,
    };
    let specifiers = import.specifiers.as_ref();
    import.import_kind.is_type() || specifiers.is_some_and(|all| !all.is_empty() && all.iter().all(is_type))
}

/// Whether a line that ended here for TypeScript goes on in the next one for JavaScript.
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
mod tests {
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
}
