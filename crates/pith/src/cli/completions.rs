//! Shell completions, generated from the flag table.

use super::flags::{self, Takes};
use super::subcommand::{SUBCOMMANDS, Shell};

/// Returns the script for a shell.
pub fn completions(shell: Shell) -> String {
    match shell {
        Shell::Bash => bash(),
        Shell::Zsh => zsh(),
        Shell::Fish => fish(),
    }
}

fn bash() -> String {
    let mut values = String::new();
    for flag in flags::all().filter(|flag| matches!(flag.takes, Takes::Value(_))) {
        let names = flag.short.map_or_else(|| flag.long.to_owned(), |short| format!("{short}|{}", flag.long));
        let action = match flag.choices() {
            choices if !choices.is_empty() => format!("COMPREPLY=($(compgen -W '{}' -- \"$word\"))", choices.join(" ")),
            _ if flag.takes_path() => "COMPREPLY=($(compgen -f -- \"$word\"))".to_owned(),
            _ => "COMPREPLY=()".to_owned(),
        };
        values.push_str(&format!("        {names}) {action}; return ;;\n"));
    }
    for subcommand in SUBCOMMANDS.iter().filter(|subcommand| !subcommand.words.is_empty()) {
        let words = subcommand.words.join(" ");
        values.push_str(&format!(
            "        {}) [ \"$COMP_CWORD\" -eq 2 ] && COMPREPLY=($(compgen -W '{words}' -- \"$word\")) && return ;;\n",
            subcommand.name
        ));
    }
    let longs = flags::all().map(|flag| flag.long).collect::<Vec<_>>().join(" ");
    let subcommands = SUBCOMMANDS.iter().map(|subcommand| subcommand.name).collect::<Vec<_>>().join(" ");
    format!(
        "# bash completion for pith: eval \"$(pith completions bash)\"\n\
         _pith() {{\n    \
             local word=\"${{COMP_WORDS[COMP_CWORD]}}\" previous=\"${{COMP_WORDS[COMP_CWORD-1]}}\"\n    \
             case \"$previous\" in\n{values}    esac\n    \
             case \"$word\" in\n        \
                 -*) COMPREPLY=($(compgen -W '{longs}' -- \"$word\")) ;;\n        \
                 @*) COMPREPLY=($(compgen -f -P @ -- \"${{word#@}}\")) ;;\n        \
                 *) [ \"$COMP_CWORD\" -eq 1 ] && COMPREPLY=($(compgen -W '{subcommands}' -- \"$word\")) ;;\n    \
             esac\n}}\n\
         complete -o default -F _pith pith\n"
    )
}

fn zsh() -> String {
    let mut arguments = String::new();
    for flag in flags::all() {
        let action = match (flag.takes, flag.choices()) {
            (Takes::Nothing, _) => String::new(),
            (Takes::Optional(value), _) => format!("::{}:", value.to_lowercase()),
            (Takes::Value(_), choices) if !choices.is_empty() => format!(":value:({})", choices.join(" ")),
            (Takes::Value(_), _) if flag.takes_path() => ":path:_files".to_owned(),
            (Takes::Value(value), _) => format!(":{}:", value.to_lowercase()),
        };
        let help = zsh_text(flag.help);
        for name in flag.short.into_iter().chain([flag.long]) {
            arguments.push_str(&format!("        '*{name}[{help}]{action}' \\\n"));
        }
    }
    let subcommands: Vec<_> = SUBCOMMANDS.iter().map(|one| format!("'{}:{}'", one.name, zsh_text(one.help))).collect();
    let words = SUBCOMMANDS.iter().filter(|one| !one.words.is_empty());
    let words: String =
        words.map(|one| format!("        {}) compadd -- {}; return ;;\n", one.name, one.words.join(" "))).collect();
    format!(
        "#compdef pith\n\
         # zsh completion for pith: pith completions zsh > a directory of $fpath/_pith\n\
         _pith() {{\n    \
             local -a subcommands\n    \
             subcommands=({})\n    \
             if (( CURRENT == 3 )); then\n        \
                 case \"$words[2]\" in\n{words}        esac\n    \
             fi\n    \
             if (( CURRENT == 2 )) && [[ \"$PREFIX\" != -* ]]; then\n        \
                 _describe subcommand subcommands\n    \
             fi\n    \
             _arguments \\\n{arguments}        '*:file:_files'\n}}\n\
         if [ \"$funcstack[1]\" = _pith ]; then _pith \"$@\"; else compdef _pith pith; fi\n",
        subcommands.join(" ")
    )
}

/// Escapes quotes, brackets and colons, which are special in zsh.
fn zsh_text(text: &str) -> String {
    text.replace('\'', "'\\''").replace('[', "\\[").replace(']', "\\]").replace(':', "\\:")
}

fn fish() -> String {
    let mut text =
        "# fish completion for pith: pith completions fish > ~/.config/fish/completions/pith.fish\n".to_owned();
    let quote = |words: &str| words.replace('\\', "\\\\").replace('\'', "\\'");
    for one in SUBCOMMANDS {
        text.push_str(&format!("complete -c pith -n __fish_use_subcommand -a {} -d '{}'\n", one.name, quote(one.help)));
        if !one.words.is_empty() {
            let (name, words) = (one.name, one.words.join(" "));
            text.push_str(&format!("complete -c pith -f -n '__fish_seen_subcommand_from {name}' -a '{words}'\n"));
        }
    }
    for flag in flags::all() {
        text.push_str(&format!("complete -c pith -l {}", flag.long.trim_start_matches('-')));
        if let Some(short) = flag.short.map(|short| short.trim_start_matches('-')) {
            // fish calls longer short forms "old style" options.
            text.push_str(&format!(" -{} {short}", if short.len() == 1 { 's' } else { 'o' }));
        }
        let choices = flag.choices();
        match flag.takes {
            Takes::Nothing | Takes::Optional(_) => {}
            Takes::Value(_) if !choices.is_empty() => text.push_str(&format!(" -x -a '{}'", choices.join(" "))),
            Takes::Value(_) if flag.takes_path() => text.push_str(" -r"),
            Takes::Value(_) => text.push_str(" -x"),
        }
        text.push_str(&format!(" -d '{}'\n", quote(flag.help)));
    }
    text
}
