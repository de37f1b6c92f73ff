//! Permissions: modes, verdicts, what silence means.

use serde::{Deserialize, Serialize};

macro_rules! words {
    ($($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $word:literal),* $(,)? })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum $name { $($(#[$variant_meta])* #[serde(rename = $word)] $variant),* }

        impl $name {
            /// Wire words and their meaning.
            pub const WORDS: &[(&str, $name)] = &[$(($word, $name::$variant)),*];

            /// Returns the wire word.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word),* }
            }

            /// Returns what a word means.
            pub fn parse(word: &str) -> Option<$name> {
                $name::WORDS.iter().find(|(known, _)| *known == word).map(|(_, meaning)| *meaning)
            }
        }
    )*};
}

words! {
    /// What becomes of calls that no rule is about: all run; reads and changes inside the workspace run; only reads
    /// run; none runs.
    #[derive(Default)]
    PermissionMode { #[default] Allow = "allow", Write = "write", Ask = "ask", Deny = "deny" }

    /// What becomes of a call, the strictest last.
    Verdict { Allow = "allow", Ask = "ask", Deny = "deny" }

    /// What silence means.
    #[derive(Default)]
    Unattended { #[default] Deny = "deny", Allow = "allow" }
}
