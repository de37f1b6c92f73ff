//! `export_html`: where the page goes, and what is refused.

use pith_testkit::Turn;
use serde_json::json;

use crate::support::Scene;

#[test]
fn a_session_becomes_a_page() {
    let mut scene = Scene::new([Turn::text("An answer <script>alert(1)</script>")]);
    scene.run("a question");
    let path = scene.data(json!({"type": "export_html", "outputPath": "page.html"}))["path"].clone();
    let path = path.as_str().expect("a path").to_owned();
    assert!(path.starts_with('/') && path.ends_with("/page.html"), "{path}");
    let page = std::fs::read_to_string(&path).expect("the page");
    assert!(page.contains("a question") && page.contains("Content-Security-Policy"));
    assert!(!page.contains("<script>alert(1)"), "what the model says is text");
    scene.finish();
}

#[test]
fn what_cannot_be_exported_is_said() {
    let mut scene = Scene::new([Turn::text("hi")]);
    let refusal = |scene: &mut Scene, command| scene.ask(command)["error"].as_str().unwrap_or_default().to_owned();
    let nothing = refusal(&mut scene, json!({"type": "export_html"}));
    assert_eq!(nothing, "Nothing to export yet - start a conversation first");
    scene.run("go");
    let missing = refusal(&mut scene, json!({"type": "export_html", "outputPath": "no/such/dir/page.html"}));
    assert!(missing.starts_with("Cannot write ") && missing.contains("no/such/dir/page.html"), "{missing}");
    scene.finish();
}
