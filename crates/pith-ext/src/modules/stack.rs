//! Maps stack traces to the lines of the source.

use std::path::Path;

use super::transpile::original_place;

/// Maps every place in a TypeScript file to the line it was compiled from.
pub fn mapped(stack: &str) -> String {
    let lines: Vec<String> = stack.lines().map(|line| mapped_line(line).unwrap_or_else(|| line.to_owned())).collect();
    lines.join("\n")
}

/// Adds the name from the source to the engine's message about something that cannot be called. `None` if the innermost
/// call of the stack is not in a file, or there is no name at that place.
pub fn named(message: &str, stack: &str) -> Option<String> {
    let first = mapped_line(stack.lines().next()?)?;
    let mut parts = first.strip_suffix(')')?.rsplitn(3, ':');
    let (column, number, rest) = (parts.next()?, parts.next()?, parts.next()?);
    let (_, path) = rest.rsplit_once('(')?;
    let source = std::fs::read_to_string(path).ok()?;
    let line = source.lines().nth(number.parse::<usize>().ok()?.checked_sub(1)?)?;
    Some(format!("{} is {message}", callee(line, column.parse::<usize>().ok()?.checked_sub(1)?)?))
}

/// The name at a column of a line, with the objects it is a member of: `a.b.c` for any column of it.
fn callee(line: &str, column: usize) -> Option<String> {
    let characters: Vec<char> = line.chars().collect();
    let is_part = |character: char| character.is_alphanumeric() || "_$#.?!".contains(character);
    let is_name = |character: char| is_part(character) && !".?!".contains(character);
    // `new C` is reported at its beginning.
    let rest = |at: usize| characters.get(at..).unwrap_or_default().iter();
    let is_new = rest(column).take(4).eq(['n', 'e', 'w', ' '].iter());
    let from = if is_new { column + 4 } else { column };
    let dots = rest(from).take_while(|character| ".?!".contains(**character)).count();
    let end = if is_new {
        from + rest(from).take_while(|character| is_part(**character)).count()
    } else {
        from + dots + rest(from + dots).take_while(|character| is_name(**character)).count()
    };
    // The engine reports some calls at their last argument.
    let follows = rest(end).find(|character| !character.is_whitespace());
    let end = if matches!(follows, Some(')' | ',')) { opening(characters.get(..end)?)? } else { end };
    let before = without_type_arguments(characters.get(..end)?);
    let start = before.iter().rposition(|character| !is_part(*character)).map_or(0, |at| at + 1);
    let name: String = before[start..].iter().filter(|character| **character != '!').collect();
    let name = name.trim_start_matches(['.', '?']);
    name.starts_with(|first: char| is_name(first) && !first.is_ascii_digit()).then(|| name.to_owned())
}

/// The place of the parenthesis that is open at the end.
fn opening(characters: &[char]) -> Option<usize> {
    let mut closed = 0usize;
    for (at, character) in characters.iter().enumerate().rev() {
        match character {
            ')' => closed += 1,
            '(' if closed == 0 => return Some(at),
            '(' => closed -= 1,
            _ => {}
        }
    }
    None
}

/// `f<A>` without its `<A>`.
fn without_type_arguments(characters: &[char]) -> &[char] {
    if characters.last() != Some(&'>') {
        return characters;
    }
    let mut open = 0usize;
    for (at, character) in characters.iter().enumerate().rev() {
        match character {
            '>' => open += 1,
            '<' if open == 1 => return &characters[..at],
            '<' => open -= 1,
            _ => {}
        }
    }
    characters
}

/// Maps a line of the form `    at name (/path/file.ts:12:34)`.
fn mapped_line(line: &str) -> Option<String> {
    let (before, place) = line.rsplit_once('(')?;
    let mut parts = place.strip_suffix(')')?.rsplitn(3, ':');
    let (column, number, file) = (parts.next()?, parts.next()?, parts.next()?);
    // The name of a second copy of a file ends in its number.
    let path = match file.rsplit_once('#') {
        Some((path, copy)) if copy.chars().all(|digit| digit.is_ascii_digit()) => path,
        _ => file,
    };
    let (line, column) = original_place(Path::new(path), number.parse().ok()?, column.parse().ok()?)?;
    Some(format!("{before}({path}:{line}:{column})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, compiled: &str, original: &str) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.ts");
        std::fs::write(&path, source).unwrap();
        let name = path.display();
        let stack = format!("    at fail ({name}#2:{compiled})\n    at <anonymous> (pith:fs:1:2)\nplain");
        let expected = format!("    at fail ({name}:{original})\n    at <anonymous> (pith:fs:1:2)\nplain");
        assert_eq!(mapped(&stack), expected);
    }

    #[test]
    fn a_callee_is_found_at_any_column_of_its_name() {
        let check = |line: &str, column: usize, name: Option<&str>| {
            assert_eq!(callee(line, column).as_deref(), name, "{line} {column}");
        };
        for column in 5..=6 {
            check("if (a.b(c))", column, Some("a.b"));
            check("if (f1(c.d))", column, Some("f1"));
        }
        check("  x?.y!.z(1)", 8, Some("x?.y.z"));
        check("new A.C(1)", 0, Some("A.C"));
        check("(a as B).c<D<E>>(1)", 16, Some("c"));
        check("(1)(2)", 3, None);
        check("f().g()", 5, Some("g"));
        check("await a.b(NAME)", 10, Some("a.b"));
        check("await a.b(c(1), NAME, 2)", 16, Some("a.b"));
        check("a, b", 0, None);
        check("", 7, None);
    }

    #[test]
    fn places_in_typescript_files_are_those_of_the_source() {
        let types = "interface Gone {\n  a: string;\n}\n\nexport function fail(): never {\n  throw new Error();\n}\n";
        check(types, "6:9", "6:9");
        // The output has a "use strict" instead of the interface, so the throw is on its third line.
        check(&format!("{types}enum Compiled {{}}\n"), "3:8", "6:9");
    }
}
