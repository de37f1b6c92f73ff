use super::*;

/// What there is: built-in tools, one that nobody lists unasked, one of an extension, one of the host, two of servers
/// and the search for those.
const TOOLS: [(&str, Source, bool); 11] = [
    ("read", Source::Known, false),
    ("bash", Source::Known, false),
    ("edit", Source::Known, false),
    ("write", Source::Known, false),
    ("grep", Source::Known, false),
    ("ls", Source::Known, false),
    ("greet", Source::Extension, true),
    ("host", Source::Host, true),
    ("mcp__git__log", Source::Server, true),
    ("mcp__git__push", Source::Server, true),
    ("tool_search", Source::Server, true),
];
const ALL: &str = "read bash edit write greet host mcp__git__log mcp__git__push tool_search";

/// Selects with flags, the setting, and what a session file or an extension says: active tools, a bar, others.
fn selected(flags: &str, setting: Option<&str>, chosen: Option<&str>) -> String {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let listed = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
    let mut read = ToolFlags::default();
    let mut flags = flags.split_whitespace();
    while let Some(flag) = flags.next() {
        match flag {
            "--tools" => read.tools = flags.next().map(listed),
            "--exclude-tools" => read.exclude = flags.next().map(listed).expect("a list"),
            "--no-tools" => read.no_tools = true,
            "--no-builtin-tools" => read.no_builtin_tools = true,
            other => panic!("{other}"),
        }
    }
    assert_eq!(read.tools.as_deref().and_then(ToolFlags::problem), None);
    let choice = read.with_defaults(setting.map(words));
    let chosen = chosen.filter(|_| !choice.is_made_by_flags()).map(|chosen| {
        let (active, inactive) = chosen.split_once('|').expect("a bar");
        let mut chosen = Chosen { active: words(active), inactive: words(inactive) };
        choice.change(&mut chosen);
        chosen
    });
    let candidates = TOOLS.map(|(name, source, is_shown)| Candidate { name: name.into(), source, is_shown });
    let selected = choice.select(&candidates, chosen.as_ref());
    selected.into_iter().map(|place| TOOLS[place].0).collect::<Vec<_>>().join(" ")
}

#[test]
fn every_way_to_name_tools() {
    let servers = "mcp__git__log mcp__git__push tool_search";
    let others = &format!("greet host {servers}");
    let check = |flags: &str, setting: Option<&str>, chosen: Option<&str>, expected: &str| {
        assert_eq!(selected(flags, setting, chosen), expected, "{flags}; {setting:?}; {chosen:?}");
    };
    check("", None, None, ALL);

    // Flags. The host's own tools need no name.
    check("--tools read", None, None, "read host");
    check("--tools ls,read", None, None, "ls read host");
    check("--tools greet,read", None, None, "greet read host");
    check("--tools read,mcp__git__log", None, None, "read host mcp__git__log");
    check("--tools mcp__git__*,read", None, None, "read host mcp__git__log mcp__git__push");
    check("--tools read,tool_search", None, None, "read host tool_search");
    check("--tools mcp__other__x", None, None, "host");
    check("--tools *e*", None, None, "read edit write grep greet host tool_search");
    check("--tools rea", None, None, "host");
    check("--tools bash --exclude-tools ba*", None, None, "host");
    check("--exclude-tools mcp__*,bash,tool_search,host", None, None, "read edit write greet");
    check("--no-tools", None, None, "host");
    check("--no-tools --tools read", None, None, "read host");
    check("--no-tools --tools +grep,-read", None, None, "grep host");
    check("--no-builtin-tools", None, None, others);
    check("--no-builtin-tools --tools read", None, None, "read host");
    check("--no-builtin-tools --tools +grep", None, None, &format!("grep {others}"));
    check("--tools +grep,-write", None, None, &format!("read bash edit grep {others}"));
    check("--tools -greet,-mcp__git__push", None, None, "read bash edit write host mcp__git__log tool_search");

    // The setting.
    check("", Some(""), None, others);
    check("", Some("ls read mystery"), None, &format!("ls read {others}"));
    check("", Some("+grep -write"), None, &format!("read bash edit grep {others}"));
    check("", Some("-bash +bash"), None, &format!("read edit write bash {others}"));
    check("", Some("read +ls -read"), None, &format!("ls {others}"));
    check("", Some("+grep -write -grep +write"), None, &format!("read bash edit write {others}"));
    check("--tools +ls,-grep", Some("+grep"), None, &format!("read bash edit write ls {others}"));
    check("--tools read", Some("ls"), None, "read host");
    check("--no-builtin-tools", Some("ls"), None, others);
    check("--exclude-tools ls", Some("ls read"), None, &format!("read {others}"));

    // An extension, now or before the session was resumed.
    let read_only = "read | bash edit write grep ls greet host mcp__git__log mcp__git__push tool_search";
    check("", None, Some(read_only), "read");
    check("", Some("ls"), Some(read_only), "read");
    check("--exclude-tools read", None, Some(read_only), "");
    check("--tools +grep", None, Some(read_only), "read grep");
    check("--tools +grep,-read", None, Some(read_only), "grep");
    check("", None, Some("grep read | bash edit write"), &format!("grep read {others}"));
    check("", None, Some("read mcp__other__x | greet host mcp__git__push"), "read mcp__git__log tool_search");
    // Flags that choose win over the session file.
    check("--tools read,bash", None, Some("read | bash"), "read bash host");
    check("--no-builtin-tools", None, Some("bash | read"), others);
    check("--no-tools", None, Some("bash | read"), "host");
}

#[test]
fn no_choice_gets_past_the_flags() {
    let choice = ToolFlags { tools: Some(vec!["read".into(), "g*".into()]), ..ToolFlags::default() };
    let choice = choice.with_defaults(None);
    let candidates = TOOLS.map(|(name, source, is_shown)| Candidate { name: name.into(), source, is_shown });
    let chosen = Chosen { active: TOOLS.map(|(name, ..)| name.to_owned()).into(), inactive: Vec::new() };
    let selected = choice.select(&candidates, Some(&chosen));
    assert_eq!(selected.into_iter().map(|place| TOOLS[place].0).collect::<Vec<_>>(), ["read", "grep", "greet", "host"]);
}

#[test]
fn lists_that_mix_names_and_changes_are_refused() {
    let check = |list: &str, expected: Option<&str>| {
        let entries: Vec<String> = list.split(',').map(str::to_owned).collect();
        assert_eq!(ToolFlags::problem(&entries).as_deref(), expected, "{list}");
    };
    check("read,mcp__*", None);
    check("+grep,-write", None);
    check("read,-write", Some("names cannot be mixed with +name and -name"));
    check("+mcp__*", Some("+name and -name take the name of one tool, not a pattern: +mcp__*"));
}

#[test]
fn a_choice_keeps_the_order_of_tools_that_stay() {
    let known = ["read", "bash", "edit", "ls"];
    let choose = |names: &[&str], selected: &[&str], before: Option<&Chosen>| {
        let selected: Vec<String> = selected.iter().map(|name| (*name).to_owned()).collect();
        let Chosen { active, inactive } = Chosen::new(names, &known, &selected, before);
        format!("{} | {}", active.join(" "), inactive.join(" "))
    };
    assert_eq!(choose(&["edit", "bash", "read"], &["read", "bash", "edit"], None), "read bash edit | ls");
    assert_eq!(choose(&["ls", "ls", "edit", "x"], &["read", "bash", "edit"], None), "edit ls | read bash");
    // What was chosen and is not there yet stays only if nothing is taken away.
    let before = Chosen { active: vec!["read".into(), "mcp__a".into()], inactive: vec!["mcp__b".into()] };
    assert_eq!(choose(&["ls", "read"], &["read"], Some(&before)), "read ls mcp__a | bash edit mcp__b");
    assert_eq!(choose(&["ls"], &["read"], Some(&before)), "ls | read bash edit mcp__b mcp__a");
}
