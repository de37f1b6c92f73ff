//! Loading must not be felt at start-up.

use std::time::{Duration, Instant};

use crate::world::World;

/// The best of several tries: the others only measure the machine.
fn best(work: impl Fn()) -> Duration {
    let time = |_| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    (0..20).map(time).min().unwrap()
}

#[test]
fn a_hundred_skills_and_fifty_templates() {
    let world = World::new();
    let body = "word ".repeat(4000);
    for n in 0..100 {
        let head =
            format!("---\nname: skill-{n}\ndescription: What this skill is good for, in a sentence or two. {n}\n---\n");
        world.write(&format!("@/skills/skill-{n}/SKILL.md"), format!("{head}{body}"));
    }
    for n in 0..50 {
        world.write(&format!("@/prompts/p{n}.md"), format!("---\ndescription: Template {n}\n---\n{body}"));
    }
    let resources = world.load();
    assert_eq!((resources.skills().len(), resources.templates().len()), (100, 50));
    let time = best(|| drop(world.load()));
    // Without optimisation the same work takes about eight times as long.
    let limit = Duration::from_millis(if cfg!(debug_assertions) { 60 } else { 5 });
    assert!(time < limit, "{time:?}");
    let time = best(|| assert!(!resources.is_stale()));
    assert!(time < limit, "{time:?}");
}

#[test]
fn nothing_to_load() {
    let world = World::new();
    let time = best(|| drop(world.load()));
    assert!(time < Duration::from_millis(2), "{time:?}");
}
