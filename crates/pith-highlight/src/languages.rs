//! What the highlighter knows of programming languages: a table, nothing more.

/// The lexical shape of a language.
#[derive(Debug)]
pub struct Language {
    /// Names in code fences and file extensions, lower case.
    pub(crate) names: &'static [&'static str],
    pub(crate) line_comments: &'static [&'static str],
    pub(crate) block_comment: Option<(&'static str, &'static str)>,
    /// Quotes of strings; longer ones first.
    pub(crate) quotes: &'static [Quote],
    /// Separated by blanks.
    pub(crate) keywords: &'static str,
    /// Characters that make a name special: variables, decorators, directives.
    pub(crate) sigils: &'static str,
    /// The character behind the name of a member.
    pub(crate) member_mark: Option<char>,
    /// What the rest of the syntax is like.
    pub(crate) family: Family,
}

/// How the text of a string is delimited.
#[derive(Debug)]
pub(crate) struct Quote {
    pub mark: &'static str,
    pub spans_lines: bool,
}

/// Rules beyond the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Family {
    Code,
    /// Quotes also start lifetimes and labels.
    Rust,
    /// Keywords in any case.
    Sql,
    /// Text with tags.
    Markup,
    /// Names contain dashes.
    Dashed,
}

/// Returns the language of a code fence or file extension.
pub fn by_name(name: &str) -> Option<&'static Language> {
    let name = name.to_ascii_lowercase();
    LANGUAGES.iter().find(|language| language.names.contains(&name.as_str()))
}

/// Returns the language of a file.
pub fn by_path(path: &str) -> Option<&'static Language> {
    let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
    match file.rsplit_once('.') {
        Some((_, extension)) => by_name(extension),
        None => by_name(file),
    }
}

const fn line(mark: &'static str) -> Quote {
    Quote { mark, spans_lines: false }
}

const fn lines(mark: &'static str) -> Quote {
    Quote { mark, spans_lines: true }
}

const DOUBLE: &[Quote] = &[line("\"")];
const BOTH: &[Quote] = &[line("\""), line("'")];
const SCRIPT: &[Quote] = &[line("\""), line("'"), lines("`")];
const SHELL: &[Quote] = &[lines("\""), lines("'")];
const TRIPLE: &[Quote] = &[lines("\"\"\""), lines("'''"), line("\""), line("'")];
const C_COMMENT: Option<(&str, &str)> = Some(("/*", "*/"));

const PLAIN: Language = Language {
    names: &[],
    line_comments: &[],
    block_comment: None,
    quotes: BOTH,
    keywords: "",
    sigils: "",
    member_mark: None,
    family: Family::Code,
};

static LANGUAGES: &[Language] = &[
    Language {
        names: &["rust", "rs"],
        line_comments: &["//"],
        block_comment: C_COMMENT,
        quotes: &[lines("\"")],
        keywords: "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match \
                   mod move mut pub ref return self Self static struct super trait true type unsafe use where while",
        family: Family::Rust,
        ..PLAIN
    },
    Language {
        names: &["javascript", "js", "mjs", "cjs", "jsx", "typescript", "ts", "mts", "cts", "tsx"],
        line_comments: &["//"],
        block_comment: C_COMMENT,
        quotes: SCRIPT,
        keywords: "abstract any as async await boolean break case catch class const continue declare default delete do else \
                   enum export extends false finally for from function get if implements import in instanceof interface is \
                   keyof let namespace never new null number of private protected public readonly return satisfies set static \
                   string super switch this throw true try type typeof undefined unknown var void while yield",
        sigils: "@",
        ..PLAIN
    },
    Language {
        names: &["python", "py", "pyi", "starlark", "bzl"],
        line_comments: &["#"],
        quotes: TRIPLE,
        keywords: "False None True and as assert async await break case class continue def del elif else except finally for \
                   from global if import in is lambda match nonlocal not or pass raise return self try while with yield",
        sigils: "@",
        ..PLAIN
    },
    Language {
        names: &["go"],
        line_comments: &["//"],
        block_comment: C_COMMENT,
        quotes: SCRIPT,
        keywords: "any bool break byte case chan const continue default defer else error fallthrough false for func go goto if \
                   import int interface map nil package range return rune select string struct switch true type uint var",
        ..PLAIN
    },
    Language {
        names: &["c", "h", "cpp", "cc", "cxx", "hpp", "hh", "c++", "m", "mm", "ino", "cu"],
        line_comments: &["//"],
        block_comment: C_COMMENT,
        quotes: BOTH,
        keywords: "alignas auto bool break case catch char class concept const constexpr continue default delete do double else \
                   enum explicit export extern false final float for friend goto if inline int long mutable namespace new \
                   noexcept nullptr operator override private protected public register requires return short signed sizeof \
                   static struct switch template this throw true try typedef typename union unsigned using virtual void \
                   volatile while",
        sigils: "#",
        ..PLAIN
    },
    Language {
        names: &["java", "kotlin", "kt", "kts", "scala", "csharp", "cs", "c#", "swift", "dart", "groovy", "gradle"],
        line_comments: &["//"],
        block_comment: C_COMMENT,
        quotes: TRIPLE,
        keywords: "abstract as async await base boolean break byte case catch char class companion const continue data def \
                   default defer do double else enum extends extension false final finally float for foreach fun func guard if \
                   implements import in init inner instanceof int interface internal is lateinit let long match module \
                   namespace new nil null object open operator out override package private protected public readonly record \
                   return sealed self short static string struct super switch synchronized this throw throws trait true try \
                   typealias using val var virtual void volatile when where while with yield",
        sigils: "@#",
        ..PLAIN
    },
    Language {
        names: &[
            "bash",
            "sh",
            "zsh",
            "shell",
            "console",
            "fish",
            "ksh",
            "dockerfile",
            "makefile",
            "mk",
            "justfile",
            "env",
        ],
        line_comments: &["#"],
        quotes: SHELL,
        keywords: "ADD ARG CMD COPY ENTRYPOINT ENV EXPOSE FROM RUN USER VOLUME WORKDIR alias break case cd continue do done echo \
                   elif else esac eval exec exit export fi for function if in local read return set shift source sudo test \
                   then trap unset until while",
        sigils: "$",
        family: Family::Dashed,
        ..PLAIN
    },
    Language {
        names: &["json", "jsonc", "json5", "jsonl", "ndjson", "webmanifest"],
        line_comments: &["//"],
        quotes: DOUBLE,
        keywords: "true false null",
        member_mark: Some(':'),
        ..PLAIN
    },
    Language {
        names: &["yaml", "yml"],
        line_comments: &["#"],
        quotes: BOTH,
        keywords: "true false null yes no on off",
        member_mark: Some(':'),
        family: Family::Dashed,
        ..PLAIN
    },
    Language {
        names: &["toml", "ini", "cfg", "conf", "properties", "lock", "editorconfig"],
        line_comments: &["#", ";"],
        quotes: TRIPLE,
        keywords: "true false",
        member_mark: Some('='),
        family: Family::Dashed,
        ..PLAIN
    },
    Language {
        names: &["html", "htm", "xml", "svg", "xhtml", "vue", "svelte", "plist", "csproj"],
        block_comment: Some(("<!--", "-->")),
        family: Family::Markup,
        ..PLAIN
    },
    Language {
        names: &["css", "scss", "less", "sass"],
        line_comments: &["//"],
        block_comment: C_COMMENT,
        keywords: "important inherit initial none auto unset var calc",
        sigils: "@#$",
        member_mark: Some(':'),
        family: Family::Dashed,
        ..PLAIN
    },
    Language {
        names: &["sql", "pgsql", "mysql", "sqlite"],
        line_comments: &["--"],
        block_comment: C_COMMENT,
        quotes: &[lines("'"), line("\"")],
        keywords: "add all alter and as asc begin between by case check column commit constraint create cross database default \
                   delete desc distinct drop else end exists foreign from full group having if in index inner insert into is \
                   join key left like limit not null offset on or order outer primary references returning right rollback \
                   select set table then transaction trigger union unique update using values view when where with",
        family: Family::Sql,
        ..PLAIN
    },
    Language {
        names: &["ruby", "rb", "rake", "gemspec", "elixir", "ex", "exs", "crystal", "cr"],
        line_comments: &["#"],
        quotes: BOTH,
        keywords: "alias and begin break case class def defmodule defp do else elsif end ensure false fn for if import in module \
                   next nil not or private raise redo require rescue retry return self super then true undef unless until use \
                   when while yield",
        sigils: "@:",
        ..PLAIN
    },
    Language {
        names: &["php"],
        line_comments: &["//", "#"],
        block_comment: C_COMMENT,
        keywords: "abstract and array as bool break case catch class const continue declare default do echo else elseif enum \
                   extends false final finally fn for foreach function global if implements include instanceof int interface \
                   match namespace new null or private protected public readonly require return self static string switch this \
                   throw trait true try use var void while yield",
        sigils: "$",
        ..PLAIN
    },
    Language {
        names: &["lua", "haskell", "hs", "elm", "ada"],
        line_comments: &["--"],
        quotes: DOUBLE,
        keywords: "and as break case class data deriving do else elseif end false for function goto if import in instance let \
                   local module newtype nil not of or qualified repeat return then true type until where while",
        ..PLAIN
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_found_by_fence_and_by_path() {
        let name = |language: Option<&Language>| language.map(|language| language.names[0]);
        for (path, expected) in [
            ("src/main.rs", Some("rust")),
            ("C:\\x\\App.TSX", Some("javascript")),
            ("/app/Dockerfile", Some("bash")),
            ("Makefile", Some("bash")),
            ("notes.txt", None),
            ("", None),
            ("a.b/c", Some("c")),
        ] {
            assert_eq!(name(by_path(path)), expected, "{path}");
        }
        assert_eq!((name(by_name("Rust")), name(by_name("nope")), name(by_name(""))), (Some("rust"), None, None));
    }

    #[test]
    fn no_name_is_claimed_twice() {
        let mut names: Vec<_> = LANGUAGES.iter().flat_map(|language| language.names).collect();
        let n_names = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), n_names);
    }
}
