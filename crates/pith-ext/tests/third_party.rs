//! Published third-party extensions, with their dependencies.
//!
//! Needs npm and a network; runs when `PITH_EXT_PACKAGES` names a directory in which the packages are, or may be,
//! installed.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, and a table for people")]

mod support;

use std::time::Duration;

use pith_ext::{Limits, Loading};
use pith_testkit::packages::{Expected, Packages, THIRD_PARTY, entries};
use support::Harness;

#[tokio::test]
async fn published_packages_load_and_register_what_they_offer() {
    let Some(packages) = Packages::find() else { return pith_testkit::skip("PITH_EXT_PACKAGES is not set") };
    let mut surprises = Vec::new();
    for (package, expected) in THIRD_PARTY {
        let Some(root) = packages.third_party(package) else {
            println!("{package:44} not installable");
            continue;
        };
        let harness = Harness::with_limits(Limits { slice: Duration::from_secs(20), ..Limits::default() });
        let sources: Vec<_> = entries(&root).iter().map(|path| harness.source(path)).collect();
        let began = std::time::Instant::now();
        let report = harness.handle.load(&sources, Loading::Add, &harness.surroundings).await;
        harness.bind().await;
        harness.handle.session_start("startup", None).await;
        let registry = harness.handle.registry();
        let result = match report.errors.first() {
            None if sources.is_empty() => "no extension files".to_owned(),
            None => format!(
                "ok {:>9.1?} {} tools, {} commands, {} events",
                began.elapsed(),
                registry.tools.len(),
                registry.commands.len(),
                registry.listening.len()
            ),
            Some(error) => format!("FAILED {}", error.error.rsplit("\": ").next().unwrap_or(&error.error)),
        };
        println!("{package:44} {result}");
        for error in harness.errors() {
            println!("{:44}   reports {} ({}) {}", "", error.error, error.event, error.stack.unwrap_or_default());
        }
        let is_loaded = report.errors.is_empty() && !sources.is_empty();
        let is_expected = match expected {
            Expected::Loads => is_loaded,
            Expected::Fails(why) => report.errors.iter().any(|error| error.error.contains(why)),
        };
        if !is_expected {
            surprises.push(format!("{package} ({expected:?}): {result}"));
        }
    }
    assert!(surprises.is_empty(), "not as expected:\n{}", surprises.join("\n"));
}
