//! Forks, clones, navigation and views of a session.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use pith_store::{BranchSummaryEntry, CompactionEntry, ForkMessage, Kind, NewSession, Role, SessionStore, StoreError};
use serde_json::{Value, json};
use support::{assistant, entry, header, lines, new_session, resume, texts, user, write_session, write_values};

/// one → two → three, with three's sibling `other`.
fn branched(directory: &Path) -> PathBuf {
    let entries = [
        entry("a", None, "one"),
        entry("b", Some("a"), "two"),
        entry("x", Some("b"), "other"),
        entry("c", Some("b"), "three"),
    ];
    let values: Vec<_> = [header(directory)].into_iter().chain(entries).collect();
    write_values(directory, &values)
}

#[test]
fn a_fork_holds_what_came_before_the_prompt() {
    let directory = tempfile::tempdir().unwrap();
    let path = branched(directory.path());
    let store = resume(&path);
    let (mut fork, text) = store.fork("x").unwrap();
    assert_eq!((texts(&fork), text.as_str()), (vec!["one".to_owned(), "two".to_owned()], "other"));
    let written = lines(fork.path().unwrap());
    assert_eq!(written.len(), 3);
    assert_eq!(written[0]["parentSession"], json!(path));
    assert_ne!(fork.id(), store.id());
    assert_eq!(fork.path().unwrap().parent(), path.parent());
    assert_eq!(written[1..], lines(&path)[1..3]);
    assert!(matches!(store.fork("nowhere"), Err(StoreError::NotForkable)));

    fork.append_message(&user("instead"));
    let fork_path = fork.path().unwrap().to_owned();
    drop(fork);
    assert_eq!(texts(&resume(&fork_path)), ["one", "two", "instead"]);
    assert_eq!(texts(&store), ["one", "two", "three"]);
}

#[test]
fn a_fork_at_the_first_prompt_is_empty_and_leaves_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let store = resume(&branched(directory.path()));
    let (mut fork, text) = store.fork("a").unwrap();
    assert_eq!((fork.messages().len(), text.as_str(), fork.is_saved()), (0, "one", false));
    fork.append_message(&user("new"));
    assert_eq!(lines(fork.path().unwrap())[0]["parentSession"], json!(store.path()));
}

#[test]
fn only_prompts_can_be_forked_at() {
    let mut store = SessionStore::in_memory(Path::new("/p"), None);
    store.append_message(&user("q"));
    let answer = store.append_message(&assistant("a"));
    assert_eq!(store.fork(&answer).err().unwrap().to_string(), "Invalid entry ID for forking");
}

#[test]
fn a_fork_up_to_an_entry_includes_it() {
    let directory = tempfile::tempdir().unwrap();
    let store = resume(&branched(directory.path()));
    let fork = store.fork_at("x").unwrap();
    assert_eq!((texts(&fork), fork.leaf()), (["one", "two", "other"].map(str::to_owned).to_vec(), Some("x")));
    assert!(matches!(store.fork_at("nowhere"), Err(StoreError::NotForkable)));
}

#[test]
fn a_clone_holds_the_branch_and_unknown_bytes_survive() {
    let directory = tempfile::tempdir().unwrap();
    let strange =
        r#"{"type":"hologram","id":"h","parentId":"a","timestamp":"2026-11-15T06:53:00.000Z","x":1.50e1,"s":"\ud83d"}"#;
    let texts_in = [header(directory.path()).to_string(), entry("a", None, "one").to_string(), strange.to_owned()];
    let path = write_session(directory.path(), &texts_in);
    let clone = resume(&path).clone_branch().unwrap();
    let text = fs::read_to_string(clone.path().unwrap()).unwrap();
    assert_eq!(text.lines().skip(1).collect::<Vec<_>>(), [&texts_in[1], strange]);
    assert_eq!((clone.leaf(), clone.messages().len()), (Some("h"), 1));
}

#[test]
fn sessions_without_content_cannot_be_cloned() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = new_session(directory.path());
    assert_eq!(store.clone_branch().err().unwrap().to_string(), "Cannot clone session: no current entry selected");
    store.append_model_change("p", "m");
    let error = store.clone_branch().err().unwrap().to_string();
    assert_eq!(
        error,
        "This session has not been saved yet. Wait for the first assistant response before cloning or forking it."
    );
}

#[test]
fn labels_leave_the_chain_and_return_at_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let label = |id: &str, parent: &str, target: &str, label: &str| json!({"type":"label","id":id,"parentId":parent,"timestamp":"2026-11-15T07:00:00.000Z","targetId":target,"label":label});
    let compaction = json!({"type":"compaction","id":"k","parentId":"b","timestamp":"2026-11-15T07:00:01.000Z",
        "summary":"s","firstKeptEntryId":"l1","tokensBefore":1});
    let values = [
        header(directory.path()),
        entry("a", None, "one"),
        label("l1", "a", "a", "start"),
        entry("b", Some("l1"), "two"),
        compaction,
        label("l2", "k", "gone", "nowhere"),
        entry("c", Some("l2"), "three"),
    ];
    let store = resume(&write_values(directory.path(), &values));
    assert_eq!(texts(&store), ["<s>", "two", "three"]);
    let clone = store.clone_branch().unwrap();
    assert_eq!(texts(&clone), ["<s>", "two", "three"]);
    let written = lines(clone.path().unwrap());
    let chain: Vec<_> =
        written[1..].iter().map(|line| (line["id"].as_str().unwrap(), line["parentId"].as_str())).collect();
    assert_eq!(chain[..4], [("a", None), ("b", Some("a")), ("k", Some("b")), ("c", Some("k"))]);
    assert_eq!(written[3]["firstKeptEntryId"], "b");
    assert_eq!(written.len(), 6);
    let again = &written[5];
    assert_eq!((&again["targetId"], &again["label"], &again["parentId"]), (&json!("a"), &json!("start"), &json!("c")));
    assert_eq!(again["timestamp"], "2026-11-15T07:00:00.000Z");
    assert_eq!(clone.tree().label("a").unwrap().text, "start");
    drop(store);
    let path = clone.path().unwrap().to_owned();
    drop(clone);
    assert_eq!(texts(&resume(&path)), ["<s>", "two", "three"]);
}

#[test]
fn a_whole_file_can_be_taken_elsewhere_even_while_in_use() {
    let directory = tempfile::tempdir().unwrap();
    let other = tempfile::tempdir().unwrap();
    let lines_in = [
        header(directory.path()).to_string().replace("\"version\":3", "\"version\":9"),
        entry("a", None, "one").to_string(),
        "damage".to_owned(),
        entry("c", Some("b"), "three").to_string(),
        entry("x", Some("a"), "beside").to_string(),
    ];
    let path = write_session(directory.path(), &lines_in);
    let options =
        NewSession { cwd: other.path().to_owned(), session_dir: other.path().join("s"), ..NewSession::default() };
    let mut fork = SessionStore::fork_file(&path, options).unwrap();
    assert_eq!(fork.take_report().len(), 1);
    assert_eq!(texts(&fork), ["one", "beside"]);
    let written = lines(fork.path().unwrap());
    assert_eq!((&written[0]["version"], &written[0]["cwd"]), (&json!(3), &json!(other.path())));
    assert_eq!(written[0]["parentSession"], json!(path));
    assert_eq!(written[2]["parentId"], "a", "the repair is part of the copy");
    let copy = fork.path().unwrap().to_owned();
    drop(fork);
    let mut again = resume(&copy);
    assert_eq!((again.tree().len(), again.take_report()), (3, vec![]));
}

#[test]
fn a_copy_keeps_parents_that_come_late() {
    let directory = tempfile::tempdir().unwrap();
    let values = [
        header(directory.path()),
        entry("b", Some("a"), "two"),
        entry("a", None, "one"),
        entry("c", Some("b"), "three"),
    ];
    let path = write_values(directory.path(), &values);
    let options =
        NewSession { cwd: directory.path().into(), session_dir: directory.path().into(), ..NewSession::default() };
    assert_eq!(texts(&SessionStore::fork_file(&path, options).unwrap()), ["one", "two", "three"]);
}

#[test]
fn what_killed_processes_left_goes_with_the_next_fork_or_list() {
    let directory = tempfile::tempdir().unwrap();
    let path = branched(directory.path());
    let digits = "0123456789abcdef".repeat(2);
    let leave = |name: &str| {
        let left = directory.path().join(name);
        fs::write(&left, "half a file").unwrap();
        let an_hour_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
        fs::File::options().write(true).open(&left).unwrap().set_modified(an_hour_ago).unwrap();
        left
    };
    let others = [leave("s.jsonl.bak"), leave(&format!("report.tmp-{digits}"))];
    let all = || {
        let names = ["x.jsonl.tmp-", "x.jsonl.leaf.tmp-", ".pith-index.json.tmp-"];
        names.map(|name| leave(&format!("{name}{digits}")))
    };
    let store = resume(&path);
    let check = |act: &dyn Fn()| {
        let left = all();
        act();
        assert_eq!(left.map(|path| path.exists()), [false; 3]);
    };
    check(&|| drop(store.fork("x").unwrap()));
    check(&|| drop(store.clone_branch().unwrap()));
    check(&|| drop(pith_store::list(directory.path(), None)));
    check(&|| drop(pith_store::latest(directory.path(), directory.path())));
    assert!(others.iter().all(|path| path.exists()), "what may belong to others stays");
}

#[test]
fn sessions_in_memory_fork_in_memory() {
    let mut store = SessionStore::in_memory(Path::new("/p"), None);
    store.append_message(&user("one"));
    let second = store.append_message(&user("two"));
    let (fork, text) = store.fork(&second).unwrap();
    assert_eq!((texts(&fork), text.as_str(), fork.path()), (vec!["one".to_owned()], "two", None));
    assert_eq!(texts(&store.clone_branch().unwrap()), ["one", "two"]);
}

#[test]
fn prompts_to_fork_at_are_those_with_text_on_every_branch() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = resume(&branched(directory.path()));
    store.append_message(&user(""));
    store.append_message(&assistant("answer"));
    let expected = [("a", "one"), ("b", "two"), ("x", "other"), ("c", "three")];
    let expected = expected.map(|(id, text)| ForkMessage { entry_id: id.into(), text: text.into() });
    assert_eq!(store.fork_messages(), expected);
}

#[test]
fn navigation_moves_the_leaf_and_writes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = branched(directory.path());
    let before = fs::read(&path).unwrap();
    let mut store = resume(&path);
    let destination = store.destination("x").unwrap();
    assert_eq!((destination.leaf.as_deref(), destination.text.as_deref()), (Some("b"), Some("other")));
    assert_eq!(store.left_behind(Some("x")).unwrap().iter().map(|id| &**id).collect::<Vec<_>>(), ["c"]);
    store.move_leaf(Some("x")).unwrap();
    assert_eq!(texts(&store), ["one", "two", "other"]);
    store.move_leaf(None).unwrap();
    assert_eq!((texts(&store).len(), store.leaf()), (0, None));
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(store.move_leaf(Some("zz")).unwrap_err().to_string(), "Entry not found: zz");

    store.move_leaf(Some("b")).unwrap();
    let summary = BranchSummaryEntry { from_id: Some("c".into()), summary: "went there".into(), ..Default::default() };
    let id = store.append_branch_summary(&summary);
    assert_eq!(store.tree().parent(&id).map(|id| &**id), Some("b"));
    assert_eq!(texts(&store), ["one", "two", "(went there)"]);
}

#[test]
fn a_navigation_survives_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let path = branched(directory.path());
    let mut store = resume(&path);
    assert_eq!(store.save_leaf(), None);
    store.move_leaf(Some("x")).unwrap();
    let mark = store.save_leaf().unwrap();
    assert_eq!(store.save_leaf(), None);
    drop(store);
    let written = lines(&path);
    let last = written.last().unwrap();
    assert_eq!(
        (&last["type"], &last["customType"], &last["parentId"]),
        (&json!("custom"), &json!("pith.leaf"), &json!("x"))
    );
    let store = resume(&path);
    assert_eq!((texts(&store), store.leaf()), (["one", "two", "other"].map(String::from).to_vec(), Some(&*mark)));
}

/// The names in the directory of a session that are not the session's own, sorted.
fn side_files(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
    let others = entries.filter(|other| other != path);
    let mut names: Vec<_> = others.map(|other| other.file_name().unwrap().to_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_navigation_survives_a_process_that_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let path = branched(directory.path());
    let before = fs::read(&path).unwrap();
    let mut store = resume(&path);
    for leaf in [Some("x"), None, Some("a"), Some("b")] {
        store.move_leaf(leaf).unwrap();
        // Nothing is done before the store goes away, as when the process is killed.
        let again = resume(&path);
        assert_eq!(again.leaf(), leaf);
        assert_eq!(side_files(&path), ["s.jsonl.leaf"], "however many moves");
    }
    assert_eq!(fs::read(&path).unwrap(), before, "others continue at the last entry");
    drop(store);

    let mut store = resume(&path);
    assert_eq!((store.leaf(), texts(&store)), (Some("b"), vec!["one".to_owned(), "two".to_owned()]));
    let next = store.append_message(&user("next"));
    assert_eq!(store.tree().parent(&next).map(|id| &**id), Some("b"));
    assert_eq!(side_files(&path), Vec::<String>::new());
    assert_eq!(resume(&path).leaf(), Some(&*next));
    assert_eq!(store.save_leaf(), None);
}

#[test]
fn moving_back_to_the_end_is_no_move() {
    let directory = tempfile::tempdir().unwrap();
    let path = branched(directory.path());
    let mut store = resume(&path);
    store.move_leaf(Some("x")).unwrap();
    store.move_leaf(Some("c")).unwrap();
    assert_eq!((side_files(&path), store.save_leaf()), (vec![], None));
    assert_eq!(resume(&path).leaf(), Some("c"));
}

#[test]
fn a_session_that_has_gone_on_since_a_move_is_continued_at_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let path = branched(directory.path());
    let mut moved = resume(&path);
    moved.move_leaf(Some("x")).unwrap();
    let mut other = resume(&path);
    assert_eq!(other.leaf(), Some("x"), "until then it is where it was left");
    let text = fs::read_to_string(&path).unwrap() + &entry("d", Some("c"), "of pi").to_string() + "\n";
    fs::write(&path, text).unwrap();
    let mut third = resume(&path);
    assert_eq!(third.leaf(), Some("d"));
    let last = third.append_message(&user("next"));
    assert_eq!(side_files(&path), Vec::<String>::new());
    // Those who have not gone on themselves do not move it back when they end.
    assert_eq!((moved.save_leaf(), other.save_leaf()), (None, None));
    assert_eq!(resume(&path).leaf(), Some(&*last));
    // Their own next entry still goes where they are.
    let own = moved.append_message(&user("after all"));
    assert_eq!(moved.tree().parent(&own).map(|id| &**id), Some("x"));
}

#[test]
fn a_damaged_note_of_a_move_is_ignored() {
    let directory = tempfile::tempdir().unwrap();
    let path = branched(directory.path());
    for text in ["", "{", "[]", "\u{0}", r#"{"leafId":"nowhere","lastId":"c"}"#, r#"{"leafId":"x"}"#] {
        fs::write(directory.path().join("s.jsonl.leaf"), text).unwrap();
        let mut store = resume(&path);
        assert_eq!((store.take_report(), store.leaf()), (vec![], Some("c")), "{text}");
    }
    resume(&path).append_message(&user("next"));
    assert_eq!(side_files(&path), Vec::<String>::new());
}

#[test]
fn a_copy_of_a_file_is_where_the_file_was() {
    let directory = tempfile::tempdir().unwrap();
    let path = branched(directory.path());
    resume(&path).move_leaf(Some("x")).unwrap();
    let options =
        NewSession { cwd: directory.path().into(), session_dir: directory.path().join("f"), ..NewSession::default() };
    let fork = SessionStore::fork_file(&path, options).unwrap();
    assert_eq!((fork.leaf(), fork.tree().len()), (Some("x"), 4));
}

#[test]
fn where_no_note_can_be_made_a_move_is_an_entry() {
    let directory = tempfile::tempdir().unwrap();
    let path = branched(directory.path());
    fs::create_dir(directory.path().join("s.jsonl.leaf")).unwrap();
    let mut store = resume(&path);
    store.move_leaf(Some("x")).unwrap();
    assert_eq!(lines(&path).last().unwrap()["customType"], "pith.leaf");
    assert_eq!(texts(&resume(&path)), ["one", "two", "other"]);
}

#[test]
fn edits_do_not_follow_to_other_branches() {
    let mut store = SessionStore::in_memory(Path::new("/p"), None);
    let one = store.append_message(&user("one"));
    let two = store.append_message(&assistant("two"));
    store.append_context_edit(&one, Some(pith_protocol::Content::Text("uno".into()))).unwrap();
    store.append_context_edit(&two, None).unwrap();
    assert_eq!(texts(&store), ["uno"]);
    store.move_leaf(Some(&two)).unwrap();
    assert_eq!(texts(&store), ["one", "two"]);
    let three = store.append_message(&user("three"));
    store.append_context_edit(&two, Some(pith_protocol::Content::Text("zwei".into()))).unwrap();
    assert_eq!(texts(&store), ["one", "zwei", "three"]);
    assert!(store.append_context_edit(&three, None).is_ok());
    store.append_context_edit(&three, Some(pith_protocol::Content::Text("tre".into()))).unwrap();
    assert_eq!(texts(&store), ["one", "zwei", "tre"], "the last edit counts, even of a hidden message");
}

#[test]
fn entries_are_shown_as_they_are_used() {
    let directory = tempfile::tempdir().unwrap();
    let lines_in = [
        header(directory.path()).to_string(),
        entry("a", None, "sep\u{2028}arated").to_string(),
        "damage".to_owned(),
        entry("c", Some("b"), "three").to_string(),
    ];
    let store = resume(&write_session(directory.path(), &lines_in));
    let all = store.tree().entries_json(None).unwrap();
    assert!(all.contains("sep\\u2028arated"));
    let all: Value = serde_json::from_str(&all).unwrap();
    assert_eq!((&all[0], &all[1]["parentId"]), (&entry("a", None, "sep\u{2028}arated"), &json!("a")));
    let since: Value = serde_json::from_str(&store.tree().entries_json(Some("a")).unwrap()).unwrap();
    assert_eq!((since.as_array().unwrap().len(), &since[0]["id"]), (1, &json!("c")));
    assert_eq!(store.tree().entries_json(Some("q")).unwrap_err().to_string(), "Entry not found: q");
    assert_eq!(store.tree().entry("c").unwrap()["id"], "c");
    assert_eq!(store.tree().branch(store.leaf()).iter().map(|id| &**id).collect::<Vec<_>>(), ["a", "c"]);
}

#[test]
fn the_tree_is_nested_by_parent_and_ordered_by_time() {
    let directory = tempfile::tempdir().unwrap();
    let mut early = entry("x", Some("b"), "other");
    early["timestamp"] = json!("2026-11-15T06:00:00.000Z");
    let values = [
        header(directory.path()),
        entry("a", None, "1"),
        entry("b", Some("a"), "2"),
        entry("c", Some("b"), "3"),
        early,
    ];
    let mut store = resume(&write_values(directory.path(), &values));
    store.append_label("b", Some("mark")).unwrap();
    let tree: Value = serde_json::from_str(&store.tree().tree_json()).unwrap();
    assert_eq!(tree.as_array().unwrap().len(), 1);
    let b = &tree[0]["children"][0];
    assert_eq!((&b["entry"]["id"], &b["label"]), (&json!("b"), &json!("mark")));
    assert!(b["labelTimestamp"].as_str().unwrap().ends_with('Z'));
    assert_eq!((&b["children"][0]["entry"]["id"], &b["children"][1]["entry"]["id"]), (&json!("x"), &json!("c")));
    assert_eq!(tree[0].get("label"), None);
}

#[test]
fn the_flat_tree_has_the_same_nodes_in_file_order() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = resume(&branched(directory.path()));
    store.append_label("b", Some("mark")).unwrap();
    let nodes: Value = serde_json::from_str(&store.tree().flat_tree_json()).unwrap();
    let nodes = nodes.as_array().unwrap();
    let shape: Vec<_> = nodes[..4].iter().map(|node| (node["id"].clone(), node["parentId"].clone())).collect();
    let expected = [("a", None), ("b", Some("a")), ("x", Some("b")), ("c", Some("b"))];
    assert_eq!(shape, expected.map(|(id, parent)| (json!(id), json!(parent))));
    assert_eq!((nodes.len(), &nodes[2]["entry"]), (5, &entry("x", Some("b"), "other")));
    assert_eq!((&nodes[1]["label"], nodes[0].get("label")), (&json!("mark"), None));
    assert!(nodes[1]["labelTimestamp"].as_str().unwrap().ends_with('Z'));
}

#[test]
fn a_long_chain_is_no_danger() {
    let mut store = SessionStore::in_memory(Path::new("/p"), None);
    let message = user("x");
    for _ in 0..20_000 {
        store.append_message(&message);
    }
    assert!(store.tree().tree_json().ends_with("]}]}]"));
    let flat = store.tree().flat_tree_json();
    let depth = flat.bytes().fold((0_i32, 0), |(depth, deepest), byte| {
        let depth = depth + i32::from(b"[{".contains(&byte)) - i32::from(b"]}".contains(&byte));
        (depth, deepest.max(depth))
    });
    assert_eq!(depth, (0, 6), "a message's content blocks are the deepest");
}

#[test]
fn context_entries_include_what_contributes_nothing() {
    let mut store = SessionStore::in_memory(Path::new("/p"), None);
    let one = store.append_message(&user("one"));
    let model = store.append_model_change("p", "m");
    let two = store.append_message(&assistant("two"));
    let hide = store.append_context_edit(&two, None).unwrap();
    let shape = |store: &SessionStore| -> Vec<_> {
        store.context_entries().into_iter().map(|entry| (entry.id, entry.kind, entry.message.is_some())).collect()
    };
    assert_eq!(
        shape(&store),
        [
            (one.clone(), Kind::Message(Role::User), true),
            (model, Kind::ModelChange, false),
            (two.clone(), Kind::Message(Role::Assistant), false),
            (hide.clone(), Kind::ContextEdit, false),
        ]
    );
    let compaction =
        CompactionEntry { summary: "s".into(), first_kept_entry_id: Some(hide.clone()), ..Default::default() };
    let compaction = store.append_compaction(&compaction);
    assert_eq!(shape(&store), [(compaction, Kind::Compaction, true), (hide, Kind::ContextEdit, false)]);
}

#[test]
fn the_last_answer_is_the_last_that_said_something() {
    let mut store = SessionStore::in_memory(Path::new("/p"), None);
    assert_eq!(store.last_assistant_text(), None);
    store.append_message(&assistant(" yes\n"));
    let aborted =
        pith_protocol::AssistantMessage { stop_reason: pith_protocol::StopReason::Aborted, ..Default::default() };
    store.append_message(&std::sync::Arc::new(pith_protocol::Message::Assistant(aborted)));
    assert_eq!(store.last_assistant_text().as_deref(), Some("yes"));
}

#[test]
fn stats_count_every_branch_and_every_summary() {
    let mut store = SessionStore::in_memory(Path::new("/p"), None);
    store.append_message(&user("one"));
    let two = store.append_message(&assistant("two"));
    store.append_message(&assistant("three"));
    store.move_leaf(Some(&two)).unwrap();
    let usage = Some(pith_protocol::Usage { input: 100, output: 1, ..Default::default() });
    store.append_compaction(&CompactionEntry { summary: "s".into(), usage, ..CompactionEntry::default() });
    let tally = store.tree().tally();
    assert_eq!((tally.user_messages, tally.assistant_messages, tally.total_messages), (1, 2, 3));
    assert_eq!((tally.input, tally.output, tally.total_tokens()), (120, 11, 131));
}

#[test]
fn the_last_label_counts_and_an_empty_one_removes() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = resume(&branched(directory.path()));
    let label = |store: &SessionStore| store.tree().label("a").map(|label| label.text.clone());
    store.append_label("a", Some("first")).unwrap();
    store.append_label("a", Some("second")).unwrap();
    assert_eq!(label(&store).as_deref(), Some("second"));
    store.append_label("a", Some("")).unwrap();
    assert_eq!(label(&store), None);
    store.append_label("a", Some("third")).unwrap();
    store.append_label("a", None).unwrap();
    let path = store.path().unwrap().to_owned();
    drop(store);
    assert_eq!(label(&resume(&path)), None);
    assert_eq!(resume(&path).append_label("zz", None).unwrap_err().to_string(), "Entry not found: zz");
}

#[test]
fn the_last_name_counts_and_an_empty_one_removes() {
    let mut store = SessionStore::in_memory(Path::new("/p"), None);
    store.append_session_info("one\r\n\r\ntwo");
    assert_eq!(store.name(), Some("one two"));
    store.append_session_info("");
    assert_eq!(store.name(), None);
}
