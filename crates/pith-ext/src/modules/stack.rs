//! Stack traces that name the lines people wrote.

use std::path::Path;

use super::transpile::original_place;

/// A stack trace with every place in a TypeScript file moved to the line it was compiled from.
pub fn mapped(stack: &str) -> String {
    let lines: Vec<String> = stack.lines().map(|line| mapped_line(line).unwrap_or_else(|| line.to_owned())).collect();
    lines.join("\n")
}

/// `    at name (/path/file.ts:12:34)`.
fn mapped_line(line: &str) -> Option<String> {
    let (before, place) = line.rsplit_once('(')?;
    let mut parts = place.strip_suffix(')')?.rsplitn(3, ':');
    let (column, number, file) = (parts.next()?, parts.next()?, parts.next()?);
    // A second copy of a file carries its number.
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
    fn places_in_typescript_files_are_those_of_the_source() {
        let types = "interface Gone {\n  a: string;\n}\n\nexport function fail(): never {\n  throw new Error();\n}\n";
        check(types, "6:9", "6:9");
        // The output has no interface but a "use strict", so the throw is on its third line.
        check(&format!("{types}enum Compiled {{}}\n"), "3:8", "6:9");
    }
}
