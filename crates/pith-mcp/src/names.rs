//! The names under which the model knows tools of servers.

use std::collections::HashMap;

use crate::digest;

/// The smallest limit among the providers.
const MAX: usize = 64;
/// What is left of a long name in front of its digest.
const KEPT: usize = 55;
const DIGITS: usize = 8;

/// Names tools: `mcp__<server>__<tool>`, the same for the same server and tool whatever else there is. Names that
/// would collide all get a digest.
pub fn name_all(tools: &[(&str, &str)]) -> Vec<String> {
    let plain: Vec<String> = tools.iter().map(|(server, tool)| plain(server, tool)).collect();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for name in &plain {
        *counts.entry(name).or_default() += 1;
    }
    let name = |(name, (server, tool)): (&String, &(&str, &str))| {
        if counts[name.as_str()] > 1 || name.len() > MAX { with_digest(name, server, tool) } else { name.clone() }
    };
    plain.iter().zip(tools).map(name).collect()
}

/// Whether a tool of a server can have a name: what is left of the server's own in names that were cut fits, too.
pub fn may_name(name: &str, server: &str) -> bool {
    let beginning = plain(server, "");
    name.starts_with(&beginning[..beginning.len().min(KEPT)])
}

fn plain(server: &str, tool: &str) -> String {
    let safe = |text: &str| -> String {
        text.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect()
    };
    format!("mcp__{}__{}", safe(server), safe(tool))
}

fn with_digest(name: &str, server: &str, tool: &str) -> String {
    let kept = &name[..name.len().min(KEPT)];
    format!("{kept}_{}", &digest::hex(&[server, tool])[..DIGITS])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_short_and_stable() {
        let long = "x".repeat(80);
        let names = name_all(&[("git", "git_status"), ("my server", "a.b/c"), ("s", &long)]);
        assert_eq!(names[0], "mcp__git__git_status");
        assert_eq!(names[1], "mcp__my_server__a_b_c");
        assert_eq!((names[2].len(), names[2].starts_with("mcp__s__xxx")), (64, true));
        assert_eq!(name_all(&[("s", &long)])[0], names[2]);
    }

    #[test]
    fn the_server_of_a_name_is_recognised() {
        let long = "s".repeat(64);
        for server in ["git", "my server", &long] {
            let name = name_all(&[(server, "a.b")]).remove(0);
            assert!(may_name(&name, server) && !may_name(&name, "other"), "{name}");
        }
    }

    #[test]
    fn names_that_collide_all_get_a_digest() {
        let names = name_all(&[("a", "x.y"), ("a", "x-y"), ("a", "z")]);
        assert!(names[0].starts_with("mcp__a__x_y_") && names[1].starts_with("mcp__a__x_y_"), "{names:?}");
        assert_ne!(names[0], names[1]);
        assert_eq!(names[2], "mcp__a__z");
        let turned = name_all(&[("a", "x-y"), ("a", "x.y")]);
        assert_eq!((&turned[1], &turned[0]), (&names[0], &names[1]));
    }
}
