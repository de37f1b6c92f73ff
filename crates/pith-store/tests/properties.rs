//! What holds for every session, not only for those we thought of.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod support;

use std::fs;

use pith_protocol::{Content, ThinkingLevel};
use pith_store::{BranchSummaryEntry, CompactionEntry, EntryTree, SessionStore, fuzz_load};
use proptest::prelude::*;
use support::{assistant, lines, new_session, resume, texts, user};

/// Something done to a session. Positions are taken modulo the number of entries.
#[derive(Clone, Debug)]
enum Step {
    Ask(String),
    Answer(String),
    Level,
    Label(usize, bool),
    Name(String),
    Hide(usize),
    Replace(usize, String),
    Compact(Option<usize>),
    Move(Option<usize>),
    Summarise(String),
}

fn step() -> impl Strategy<Value = Step> {
    let text = || "[ -~é\u{2028}😀\n]{0,12}";
    prop_oneof![
        4 => text().prop_map(Step::Ask),
        4 => text().prop_map(Step::Answer),
        1 => Just(Step::Level),
        1 => (any::<usize>(), any::<bool>()).prop_map(|(at, set)| Step::Label(at, set)),
        1 => text().prop_map(Step::Name),
        1 => any::<usize>().prop_map(Step::Hide),
        1 => (any::<usize>(), text()).prop_map(|(at, text)| Step::Replace(at, text)),
        1 => any::<Option<usize>>().prop_map(Step::Compact),
        1 => any::<Option<usize>>().prop_map(Step::Move),
        1 => text().prop_map(Step::Summarise),
    ]
}

fn take(store: &mut SessionStore, ids: &mut Vec<std::sync::Arc<str>>, step: &Step) {
    let at = |position: usize| (!ids.is_empty()).then(|| ids[position % ids.len()].clone());
    let id = match step {
        Step::Ask(text) => Some(store.append_message(&user(text))),
        Step::Answer(text) => Some(store.append_message(&assistant(text))),
        Step::Level => Some(store.append_thinking_level(ThinkingLevel::High)),
        Step::Label(target, set) => {
            at(*target).and_then(|target| store.append_label(&target, set.then_some("mark")).ok())
        }
        Step::Name(name) => Some(store.append_session_info(name)),
        Step::Hide(target) => at(*target).and_then(|target| store.append_context_edit(&target, None).ok()),
        Step::Replace(target, text) => {
            let content = Some(Content::Text(text.clone()));
            at(*target).and_then(|target| store.append_context_edit(&target, content).ok())
        }
        Step::Compact(kept) => Some(store.append_compaction(&CompactionEntry {
            summary: "s".into(),
            first_kept_entry_id: kept.and_then(at),
            ..CompactionEntry::default()
        })),
        Step::Move(target) => {
            store.move_leaf(target.and_then(at).as_deref()).unwrap();
            None
        }
        Step::Summarise(summary) => {
            let summary = BranchSummaryEntry { summary: summary.clone(), ..BranchSummaryEntry::default() };
            Some(store.append_branch_summary(&summary))
        }
    };
    ids.extend(id);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// The conversation kept up step by step is the one a restart finds.
    #[test]
    fn a_restart_changes_nothing(steps in prop::collection::vec(step(), 1..40)) {
        let directory = tempfile::tempdir().unwrap();
        let mut store = new_session(directory.path());
        let mut ids = Vec::new();
        for step in &steps {
            take(&mut store, &mut ids, step);
        }
        store.save_leaf();
        prop_assert_eq!(store.take_report(), vec![]);
        if !store.is_saved() {
            return Ok(());
        }
        let path = store.path().unwrap().to_owned();
        let clone = store.clone_branch();
        if let Ok(clone) = &clone {
            prop_assert_eq!(clone.messages(), store.messages());
        }
        let before = (
            store.messages().to_vec(), store.tree().tally().clone(), store.leaf().map(str::to_owned),
            store.rewritten_to(), store.settings().clone(), store.name().map(str::to_owned),
        );
        drop(store);
        let mut again = resume(&path);
        prop_assert_eq!(again.take_report(), vec![]);
        let outline: Vec<_> = again.message_entries().map(str::to_owned).collect();
        prop_assert_eq!(outline.len(), again.messages().len());
        prop_assert_eq!(outline, again.message_entries().collect::<Vec<_>>());
        let after = (
            again.messages().to_vec(), again.tree().tally().clone(), again.leaf().map(str::to_owned),
            again.rewritten_to(), again.settings().clone(), again.name().map(str::to_owned),
        );
        prop_assert_eq!(before, after);
        for id in &ids {
            prop_assert!(again.tree().contains(id));
        }
    }

    /// It makes no difference whether the messages were read before something is done to them.
    #[test]
    fn when_messages_are_read_does_not_matter(old in prop::collection::vec(step(), 1..20), new in prop::collection::vec((step(), any::<bool>()), 1..20)) {
        let directory = tempfile::tempdir().unwrap();
        let mut store = new_session(directory.path());
        let mut ids = vec![store.append_message(&user("first"))];
        for step in &old {
            take(&mut store, &mut ids, step);
        }
        store.save_leaf();
        let path = store.path().unwrap().to_owned();
        drop(store);
        let copy = path.with_extension("copy.jsonl");
        fs::copy(&path, &copy).unwrap();
        let (mut early, mut late) = (resume(&path), resume(&copy));
        let (mut early_ids, mut late_ids) = (ids.clone(), ids);
        for (step, is_read) in &new {
            early.messages();
            take(&mut early, &mut early_ids, step);
            take(&mut late, &mut late_ids, step);
            prop_assert_eq!((early.n_messages(), early.rewritten_to()), (late.n_messages(), late.rewritten_to()));
            if *is_read {
                prop_assert_eq!(texts(&early), texts(&late));
            }
        }
        prop_assert_eq!(texts(&early), texts(&late));
        prop_assert_eq!(late.take_report(), vec![]);
    }

    /// A file cut anywhere is the file of an earlier moment.
    #[test]
    fn every_beginning_of_a_file_is_a_session(steps in prop::collection::vec(step(), 1..20), cut in any::<prop::sample::Index>()) {
        let directory = tempfile::tempdir().unwrap();
        let mut store = new_session(directory.path());
        store.append_message(&user("first"));
        let mut ids = Vec::new();
        for step in &steps {
            take(&mut store, &mut ids, step);
        }
        let path = store.path().unwrap().to_owned();
        drop(store);
        let whole = fs::read(&path).unwrap();
        let n_kept = cut.index(whole.len() + 1);
        let kept = &whole[..n_kept];
        fs::write(&path, kept).unwrap();
        // A line counts when its last brace is there, with or without its newline.
        let n_complete = kept.split(|&byte| byte == b'\n').filter(|line| line.ends_with(b"}") && serde_json::from_slice::<serde_json::Value>(line).is_ok()).count();
        match EntryTree::open(&path) {
            Ok((tree, _)) => prop_assert_eq!(tree.len() + 1, n_complete),
            Err(error) => {
                prop_assert_eq!(n_complete, 0, "{}", error);
                return Ok(());
            }
        }
        prop_assert_eq!(fs::read(&path).unwrap(), kept);
        let mut store = resume(&path);
        store.append_message(&user("after"));
        drop(store);
        prop_assert_eq!(lines(&path).len(), n_complete + 1);
        prop_assert_eq!(resume(&path).take_report(), vec![]);
    }

    /// No bytes, and no damage to a real file, can do harm.
    #[test]
    fn damage_is_survived(bytes in prop::collection::vec(any::<u8>(), 0..200), places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        fuzz_load(&bytes);
        for golden in ["example-v3", "v1", "v2"] {
            let mut file = fs::read(format!("tests/files/{golden}.jsonl")).unwrap();
            for (place, byte) in &places {
                let at = place.index(file.len());
                file[at] = *byte;
            }
            file.splice(0..0, bytes.iter().copied().take(bytes.len() % 3));
            fuzz_load(&file);
        }
    }
}
