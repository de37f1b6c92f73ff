//! What belongs to others, where there are no namespaces.

use pith_testkit::{has, skip};
use serde_json::json;

use crate::ground::{Ground, Rights, Who, everybody, is_ready, on_thread_of};
use crate::rows::{Gap, ROWS, Row, Victim, WORK, filled_in, program};

/// Whether a script of a row has its effect, held to settings if there are some.
fn has_effect(who: Who, script: &str, effect: &str, profile: Option<&str>) -> bool {
    let mut ground = Ground::new(who);
    let root = ground.root.clone();
    let victim = on_thread_of(who, move || Victim::start(&root));
    let variables = victim.variables(&ground.root);
    let policy = profile.map(|profile| ground.policy(&json!({ "profile": profile })));
    let succeeded = ground.run(&filled_in(script, &variables), policy.as_ref());
    if effect.is_empty() {
        return succeeded;
    }
    ground.shell(&filled_in(effect, &variables)).status().expect("sh").success()
}

fn is_everything_here() -> bool {
    is_ready() && has(program().map(drop))
}

#[test]
fn what_belongs_to_others_is_out_of_reach() {
    if !is_everything_here() {
        return;
    }
    let mut wrong = Vec::new();
    for Row { name, script, effect, gap } in ROWS {
        for who in everybody(Rights::Any) {
            let by = format!("{who:?}").to_lowercase();
            if !has_effect(who, script, effect, None) {
                println!("{name:<56} {:<16} {by:<5} skipped", "any");
                skip(&format!("{name} ({by}): has no effect here without the sandbox either"));
                continue;
            }
            for profile in ["workspace-write", "read-only"] {
                let is_open = has_effect(who, script, effect, Some(profile));
                println!("{name:<56} {profile:<16} {by:<5} {}", if is_open { "open" } else { "closed" });
                if is_open != (*gap != Gap::None) {
                    wrong.push(format!("{name} ({by}, {profile})"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "not as expected: {wrong:#?}");
}

#[test]
fn work_with_what_is_ones_own_goes_on() {
    if !is_everything_here() {
        return;
    }
    for (name, script) in WORK {
        for who in everybody(Rights::Any) {
            if !has_effect(who, script, "", None) {
                skip(&format!("{name} ({who:?}): does not work here without the sandbox either"));
                continue;
            }
            assert!(has_effect(who, script, "", Some("workspace-write")), "{name} ({who:?})");
        }
    }
}
