//! What a script of `node:vm` declares and assigns, so that its names are found in its context.

use oxc_allocator::Allocator;
use oxc_ast::ast::Statement;
use oxc_parser::Parser;
use oxc_semantic::SemanticBuilder;
use oxc_span::SourceType;

use super::depth::with_room;
use super::transpile::{SyntaxError, first_error};

/// A script whose functions are assigned to their names before anything else runs.
#[derive(Debug, PartialEq)]
pub struct Scoped {
    pub code: String,
    /// Names that `var` and functions declare.
    pub declared: Vec<String>,
    /// Names that are assigned and declared nowhere.
    pub assigned: Vec<String>,
}

/// Reads a script.
pub fn scoped(source: &str) -> Result<Scoped, SyntaxError> {
    with_room(source, || {
        let allocator = Allocator::default();
        let parsed = Parser::new(&allocator, source, SourceType::script()).parse();
        if let Some(error) = first_error(source, parsed.diagnostics.iter()) {
            return Err(error);
        }
        let program = parsed.program;
        let scoping = SemanticBuilder::new().build(&program).semantic.into_scoping();
        let bindings = scoping.get_bindings(scoping.root_scope_id()).iter();
        let declared = bindings.filter(|(_, symbol)| {
            let flags = scoping.symbol_flags(**symbol);
            flags.is_function_scoped_declaration() || flags.is_function()
        });
        let assigned = scoping
            .root_unresolved_references()
            .iter()
            .filter(|(_, references)| references.iter().any(|reference| scoping.get_reference(*reference).is_write()));
        let mut declared: Vec<String> = declared.map(|(name, _)| name.to_string()).collect();
        let mut assigned: Vec<String> = assigned.map(|(name, _)| name.to_string()).collect();
        declared.sort();
        assigned.sort();
        Ok(Scoped { code: hoisted(source, &program.body), declared, assigned })
    })
}

/// Moves functions to the beginning, as assignments.
fn hoisted(source: &str, statements: &[Statement<'_>]) -> String {
    let mut before = String::new();
    let mut rest = source.to_owned();
    for statement in statements {
        let Statement::FunctionDeclaration(function) = statement else { continue };
        let Some(id) = &function.id else { continue };
        let range = function.span.start as usize..function.span.end as usize;
        // Its own line breaks stay: without them a comment would swallow what follows.
        before.push_str(&format!("{}={};", id.name, &source[range.clone()]));
        let blank: String = source[range.clone()]
            .chars()
            .map(|character| if character == '\n' { "\n".into() } else { " ".repeat(character.len_utf8()) })
            .collect();
        rest.replace_range(range, &blank);
    }
    before + &rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_and_assignments_are_found() {
        let found = scoped("var a = 1; let b; c = function () { d = 1; var e; };\nfunction f() {}").unwrap();
        assert_eq!((found.declared.join(","), found.assigned.join(",")), ("a,f".to_owned(), "c,d".to_owned()));
        assert!(found.code.starts_with("f=function f() {};var a = 1;"));
        assert!(scoped("var = 1").is_err());
    }
}
