//! `export_html`: where the page goes, and what is refused.

use pith_testkit::{Script, Turn};
use serde_json::json;

use crate::support::{Scene, builder};

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
fn a_page_without_a_name_is_named_after_the_session_and_the_app() {
    for app in ["pi", "xcsh"] {
        let script = Script::of([Turn::text("hi")]);
        let mut scene = Scene::with(script, |builder| builder.args(["--dialect", app]));
        scene.run("go");
        let path = scene.data(json!({"type": "export_html"}))["path"].as_str().expect("a path").to_owned();
        let session = scene.home.sessions().remove(0).path;
        let name = format!("{app}-session-{}.html", session.file_stem().expect("a name").display());
        assert_eq!(path, scene.home.work().join(&name).display().to_string());
        // The command line gives the same name.
        std::fs::remove_file(&path).expect("the page");
        let arguments = ["--dialect", app, "--export", session.to_str().expect("UTF-8")];
        let (_, code) = builder().args(arguments).home(&scene.home).spawn().finish();
        assert_eq!(code, 0);
        assert!(std::path::Path::new(&path).exists(), "{path}");
        scene.finish();
    }
}

#[test]
fn an_export_that_is_not_possible_is_refused_with_a_reason() {
    let mut scene = Scene::new([Turn::text("hi")]);
    let refusal = |scene: &mut Scene, command| scene.ask(command)["error"].as_str().unwrap_or_default().to_owned();
    let nothing = refusal(&mut scene, json!({"type": "export_html"}));
    assert_eq!(nothing, "Nothing to export yet - start a conversation first");
    scene.run("go");
    let missing = refusal(&mut scene, json!({"type": "export_html", "outputPath": "no/such/dir/page.html"}));
    assert!(missing.starts_with("Cannot write ") && missing.contains("no/such/dir/page.html"), "{missing}");
    scene.finish();
    let mut scene = Scene::with(Script::new(), |builder| builder.arg("--no-session"));
    let in_memory = refusal(&mut scene, json!({"type": "export_html"}));
    assert_eq!(in_memory, "Cannot export in-memory session to HTML");
    scene.finish();
}
