//! Describes a file that is not text.

use crate::truncate::size;

/// Reports size and type of a binary file, given its beginning.
pub(super) fn report(head: &[u8], bytes: u64) -> String {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    format!("[Binary file, contents not shown: {}, {}]", kind(head), size(bytes))
}

fn kind(head: &[u8]) -> &'static str {
    const BEGINNINGS: &[(&[u8], &str)] = &[
        (b"\x7fELF", "ELF executable or library"),
        (b"MZ", "Windows executable"),
        (b"\xcf\xfa\xed\xfe", "Mach-O executable"),
        (b"\xca\xfe\xba\xbe", "Java class or universal Mach-O"),
        (b"\0asm", "WebAssembly module"),
        (b"%PDF-", "PDF document"),
        (b"PK\x03\x04", "ZIP archive"),
        (b"\x1f\x8b", "gzip data"),
        (b"BZh", "bzip2 data"),
        (b"\xfd7zXZ\0", "xz data"),
        (b"\x28\xb5\x2f\xfd", "Zstandard data"),
        (b"7z\xbc\xaf\x27\x1c", "7-Zip archive"),
        (b"SQLite format 3\0", "SQLite database"),
        (b"\xff\xfe", "UTF-16 text"),
        (b"\xfe\xff", "UTF-16 text"),
        (b"\0\0\0", "data"),
    ];
    let known = BEGINNINGS.iter().find(|(beginning, _)| head.starts_with(beginning)).map(|(_, name)| *name);
    match known {
        Some(name) => name,
        None if head.get(257..262) == Some(b"ustar") => "tar archive",
        None => "data",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_and_size_are_told() {
        assert_eq!(
            report(b"\x7fELF\x02\0", 2048),
            "[Binary file, contents not shown: ELF executable or library, 2.0KB]"
        );
        assert_eq!(report(b"a\0b", 3), "[Binary file, contents not shown: data, 3B]");
    }
}
