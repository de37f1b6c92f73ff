//! What command lines mean.

use pith_protocol::permissions::PermissionMode;

use super::flags::{self, Takes};
use super::*;

fn parse(line: &str) -> Result<Cli, String> {
    Cli::parse(line.split_whitespace().map(str::to_owned))
}

#[test]
fn flags_reach_their_fields() {
    let cli = parse("--mode rpc --provider p --model=m -t read,,bash --no-session -n x --stream-updates delta")
        .expect("parses");
    assert_eq!((cli.mode, cli.provider.as_deref(), cli.model.as_deref()), (Some(Mode::Rpc), Some("p"), Some("m")));
    assert_eq!(cli.tools, Some(vec!["read".to_owned(), "bash".to_owned()]));
    assert!(
        cli.sessions.is_unsaved && cli.name.as_deref() == Some("x") && cli.stream_updates == Some(StreamUpdates::Delta)
    );
}

#[test]
fn refusals_say_what_is_wrong() {
    let check = |line: &str, text: &str| assert_eq!(parse(line).expect_err(line), text);
    check("--mode", "--mode requires text, json, rpc, or acp");
    check("--mode bogus", "Invalid mode \"bogus\". Valid values: text, json, rpc, acp");
    check("-z", "Unknown option: -z");
    check("--extension-errors maybe", "Invalid --extension-errors \"maybe\". Valid values: warn, fatal");
    check("--mode rpc @x", "@file arguments are not supported in RPC mode");
    check("--host-tool-timeout-ms 0", "Invalid --host-tool-timeout-ms \"0\": expected a positive number");
    check("--name", "--name requires a value");
    check("--mode rpc --output x", "--output has no meaning in rpc mode; use it with -p or --json");
    check("--mode text --json x", "--json cannot be combined with --mode text");
    check("--mode rpc --fork a -c", "--fork cannot be combined with --continue");
}

#[test]
fn durations_have_units() {
    let check = |text: &str, wanted: Option<u64>| {
        let parsed = duration("--timeout", text).ok();
        assert_eq!(parsed, wanted.map(std::time::Duration::from_millis), "{text}");
    };
    check("90", Some(90_000));
    check("90s", Some(90_000));
    check("1.5h", Some(5_400_000));
    check("30m", Some(1_800_000));
    check("250ms", Some(250));
    for wrong in ["", "s", "soon", "-1", "1e9", "inf", "1h30m", "99999999999999999999h"] {
        check(wrong, None);
    }
}

#[test]
fn rpc_hosts_may_pass_flags_of_other_versions() {
    let cli = parse("--mode rpc --frobnicate yes --no-lsp --model m").expect("parses");
    assert_eq!(cli.extension_flags, parse("--frobnicate=yes").expect("parses").extension_flags);
    assert_eq!(cli.model.as_deref(), Some("m"));
    let cli = parse("--mode rpc --thinking silly hello").expect("parses");
    assert_eq!(cli.warnings.len(), 2);
}

#[test]
fn help_lists_what_works() {
    let help = help(&[], true);
    assert!(help.contains("--stream-updates <full|delta>") && !help.contains("--tui-mode"));
    let too_wide = help.lines().filter(|line| line.chars().count() > 108).map(str::to_owned).collect::<Vec<_>>();
    assert!(too_wide.is_empty(), "{too_wide:#?}");
}

#[test]
fn the_mode_for_tool_calls_has_two_flags_that_must_agree() {
    let mode = |line: &str| parse(line).map(|cli| cli.permissions.mode);
    assert_eq!(mode("--approval-mode full"), Ok(Some(PermissionMode::Allow)));
    assert_eq!(mode("--approval-mode ask --approval-mode read-only"), Ok(Some(PermissionMode::ReadOnly)));
    assert_eq!(mode("--permission-mode ask --approval-mode ask"), Ok(Some(PermissionMode::Ask)));
    let contradiction = |first: &str, second: &str| Err(format!("{first} and {second} contradict each other"));
    let found = mode("--permission-mode deny --approval-mode full");
    assert_eq!(found, contradiction("--approval-mode", "--permission-mode"));
    let found = mode("--approval-mode ask --permission-mode write");
    assert_eq!(found, contradiction("--permission-mode", "--approval-mode"));
    let unknown = "Invalid approval mode \"allow\". Valid values: full, write, ask, read-only";
    assert_eq!(mode("--approval-mode allow"), Err(unknown.to_owned()));
}

#[test]
fn print_takes_the_next_argument_as_its_message() {
    let check = |line: &[&str], messages: &[&str], files: &[&str]| {
        let cli = Cli::parse(line.iter().map(|word| (*word).to_owned())).expect("parses");
        assert!(cli.print && cli.messages == messages && cli.files == files, "{line:?}: {cli:?}");
    };
    check(&["-p", "hello", "again"], &["hello", "again"], &[]);
    check(&["-p", "---\nname: x\n---"], &["---\nname: x\n---"], &[]);
    check(&["-p", "@file", "text"], &["text"], &["file"]);
    check(&["-p", "--model", "m", "text"], &["text"], &[]);
    check(&["-p"], &[], &[]);
    check(&["-p", "--", "-x", "@y", "--model"], &["-x", "--model"], &["y"]);
}

#[test]
fn subcommands_are_recognised_in_first_position() {
    let action = |line: &str| parse(line).expect(line).action;
    assert_eq!(action("rpc --model m"), Action::Serve);
    assert_eq!(parse("rpc").expect("parses").mode, Some(Mode::Rpc));
    assert_eq!(parse("acp").expect("parses").mode, Some(Mode::Acp));
    assert_eq!(action("config check"), Action::ConfigCheck);
    assert_eq!(action("completions fish"), Action::Completions(Shell::Fish));
    assert_eq!(
        action("auth check --provider x"),
        Action::Auth(["check", "--provider", "x"].map(str::to_owned).to_vec())
    );
    assert_eq!(action("uninstall x"), Action::Packages(PackageVerb::Remove, vec!["x".to_owned()]));
    assert!(matches!(action("config"), Action::Refuse(_)));
    assert_eq!(action("-p install it"), Action::Serve);
    assert_eq!(parse("man page").expect_err("too much"), "unexpected argument: page");
}

#[test]
fn a_search_term_is_optional() {
    let search = |line: &str| parse(line).map(|cli| (cli.action == Action::ListModels, cli.search)).expect(line);
    assert_eq!(search("--list-models"), (true, None));
    assert_eq!(search("--list-models sonnet"), (true, Some("sonnet".to_owned())));
    assert_eq!(search("--list-models --offline"), (true, None));
    assert_eq!(search("--list-models --all sonnet"), (true, Some("sonnet".to_owned())));
    assert_eq!(search("--list-models sonnet --all"), (true, Some("sonnet".to_owned())));
}

#[test]
fn every_flag_changes_something() {
    let untouched = format!("{:?}", Cli::default());
    for flag in flags::all() {
        // A value that any flag takes: a choice where there are some, a number everywhere else.
        let value = match flag.takes {
            Takes::Value("NAME=VALUE") => "turns=7",
            _ => flag.choices().last().map_or("7", |choice| *choice),
        };
        let line = match flag.takes {
            Takes::Nothing => vec![flag.long.to_owned()],
            Takes::Value(_) | Takes::Optional(_) => vec![flag.long.to_owned(), value.to_owned()],
        };
        let cli = Cli::parse(line).expect(flag.long);
        assert_ne!(format!("{cli:?}"), untouched, "{} has no effect", flag.long);
        assert!(cli.messages.is_empty() && cli.extension_flags.is_empty(), "{} takes no value", flag.long);
    }
}
