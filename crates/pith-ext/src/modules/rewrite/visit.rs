//! Rewrites expressions of a module, wherever they are.

use oxc_ast::ast::{
    ArrowFunctionExpression, AwaitExpression, Expression, ForOfStatement, Function, IdentifierReference,
    ImportExpression, ImportMeta, ObjectProperty, StaticBlock, VariableDeclaration,
};
use oxc_ast_visit::{Visit, walk};
use oxc_semantic::ScopeFlags;
use oxc_span::Span;

use super::Rewriter;

impl<'a> Visit<'a> for Rewriter<'_> {
    fn visit_identifier_reference(&mut self, reference: &IdentifierReference<'a>) {
        if let Some(read) = self.imported_as(reference) {
            self.edits.push((reference.span, read));
        }
    }

    fn visit_object_property(&mut self, property: &ObjectProperty<'a>) {
        if property.shorthand
            && let Expression::Identifier(reference) = &property.value
        {
            if let Some(read) = self.imported_as(reference) {
                self.edits.push((property.span, format!("{}: {read}", reference.name)));
            }
            return;
        }
        walk::walk_object_property(self, property);
    }

    fn visit_export_named_declaration(&mut self, _: &oxc_ast::ast::ExportNamedDeclaration<'a>) {}

    fn visit_import_expression(&mut self, import: &ImportExpression<'a>) {
        let keyword = Span::new(import.span.start, import.span.start + "import".len() as u32);
        self.edits.push((keyword, "__pith.import".to_owned()));
        walk::walk_import_expression(self, import);
    }

    fn visit_import_meta(&mut self, meta: &ImportMeta) {
        self.edits.push((meta.span, "__pith.meta".to_owned()));
    }

    fn visit_function(&mut self, function: &Function<'a>, flags: ScopeFlags) {
        self.depth += 1;
        walk::walk_function(self, function, flags);
        self.depth -= 1;
    }

    fn visit_arrow_function_expression(&mut self, arrow: &ArrowFunctionExpression<'a>) {
        self.depth += 1;
        walk::walk_arrow_function_expression(self, arrow);
        self.depth -= 1;
    }

    fn visit_static_block(&mut self, block: &StaticBlock<'a>) {
        self.depth += 1;
        walk::walk_static_block(self, block);
        self.depth -= 1;
    }

    fn visit_await_expression(&mut self, expression: &AwaitExpression<'a>) {
        self.is_async |= self.depth == 0;
        walk::walk_await_expression(self, expression);
    }

    fn visit_for_of_statement(&mut self, statement: &ForOfStatement<'a>) {
        self.is_async |= statement.r#await && self.depth == 0;
        walk::walk_for_of_statement(self, statement);
    }

    fn visit_variable_declaration(&mut self, variables: &VariableDeclaration<'a>) {
        self.is_async |= variables.kind.is_await() && self.depth == 0;
        walk::walk_variable_declaration(self, variables);
    }
}
