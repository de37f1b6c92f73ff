//! Suggestions for mistyped names.

/// Returns the known name that is closest to a mistyped one, if one is close enough to be a slip.
pub fn near<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    // A third of the letters: `raed` is `read`, and `deploy` is nothing that ends in `y`.
    let limit = (name.chars().count() / 3).max(1);
    let distances = known.into_iter().map(|known| (strsim::osa_distance(&name, &known.to_lowercase()), known));
    distances.filter(|(distance, _)| *distance <= limit).min_by_key(|(distance, _)| *distance).map(|(_, known)| known)
}

/// Returns `; did you mean "read"?`, or nothing.
pub fn suggestion<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    near(name, known).map_or_else(String::new, |near| format!("; did you mean \"{near}\"?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_told_from_other_names() {
        let tools = ["read", "bash", "edit", "write", "grep", "find", "ls"];
        let check = |name: &str, expected: Option<&str>| assert_eq!(near(name, tools), expected, "{name}");
        check("raed", Some("read"));
        check("Bash", Some("bash"));
        check("wirte", Some("write"));
        check("deploy", None);
        check("", None);
        assert_eq!(suggestion("gerp", tools), "; did you mean \"grep\"?");
        assert_eq!(suggestion("deploy", tools), "");
    }
}
