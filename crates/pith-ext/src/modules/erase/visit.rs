//! Visits the places in a program where types can be.

use oxc_ast::ast::{
    ArrowFunctionExpression, BinaryExpression, Class, ClassElement, Decorator, Expression, FormalParameter, Function,
    ImportDeclarationSpecifier, MethodDefinition, MethodDefinitionType, PropertyDefinition, PropertyDefinitionType,
    Statement, TSAsExpression, TSClassImplements, TSInstantiationExpression, TSNonNullExpression,
    TSSatisfiesExpression, TSThisParameter, TSTypeAnnotation, TSTypeAssertion, TSTypeParameterDeclaration,
    TSTypeParameterInstantiation, VariableDeclarator,
};
use oxc_ast_visit::{Visit, walk};
use oxc_semantic::ScopeFlags;
use oxc_span::{GetSpan, Span};

use super::{Eraser, Treatment, exported};

impl<'a> Visit<'a> for Eraser<'_> {
    fn visit_statement(&mut self, statement: &Statement<'a>) {
        match self.treatment(statement) {
            Treatment::Erase => return self.drop_whole(statement.span()),
            Treatment::Compile => return self.give_up(),
            Treatment::Keep => {}
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

    // `<T>{}` could become a block, and `f<T>` the start of a call.
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
            // Blanks everything up to the closing parenthesis: there may be a comma.
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
            // The engine does not support these; the compiler may.
            ClassElement::AccessorProperty(_) => return self.give_up(),
            ClassElement::StaticBlock(_) => false,
        };
        if is_type { self.drop_whole(element.span()) } else { walk::walk_class_element(self, element) }
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
        // A field called `get` must not become an accessor of the next member.
        if let (Some(annotation), None) = (&property.type_annotation, &property.value) {
            self.put(annotation.span.start, b';');
        }
    }
}
