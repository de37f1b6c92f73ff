//! The assembled system prompt.

use std::path::Path;

use pith_resources::{ActiveTool, ContextFile, ListedSkill, PromptParts, Section, is_section_name};

use crate::world::World;

const READ: ActiveTool =
    ActiveTool { name: "read", snippet: Some("read file contents"), rules: &["Use read, not cat", "Shared"] };
const BASH: ActiveTool = ActiveTool { name: "bash", snippet: Some("run bash commands"), rules: &["Shared"] };
const QUIET: ActiveTool = ActiveTool { name: "quiet", snippet: None, rules: &[] };

fn parts<'a>(tools: &'a [ActiveTool<'a>]) -> PromptParts<'a> {
    PromptParts { tools, cwd: Path::new("/work/app"), ..PromptParts::default() }
}

/// The body of a section.
fn section(prompt: &str, name: &str) -> Option<String> {
    let (_, rest) = prompt.split_once(&format!("\n\n<{name}>\n"))?;
    let (body, _) = rest.split_once(&format!("\n</{name}>")).expect("closed");
    Some(body.to_owned())
}

/// The names of the sections, in order.
fn sections(prompt: &str) -> Vec<&str> {
    let open = |block: &'_ str| -> Option<usize> { block.strip_prefix('<')?.find(">\n") };
    let names = ["tools", "rules", "addendum", "project_context", "skills", "cwd", "mine", "other"];
    prompt
        .split("\n\n")
        .filter_map(|block| Some(&block[1..=open(block)?]))
        .filter(|name| names.contains(name))
        .collect()
}

#[test]
fn the_whole_prompt() {
    let world = World::new();
    world.write("./AGENTS.md", "Say please.\n").write("@/skills/s/SKILL.md", "---\nname: s\ndescription: d\n---\n");
    world.write("@/APPEND_SYSTEM.md", "Appended.\n");
    let resources = world.load();
    let tools = [READ, BASH, QUIET];
    let cwd = world.path("~/work/app");
    let mut parts = resources.prompt_parts(&tools, &cwd);
    let ours: Vec<ContextFile> =
        parts.context_files.iter().filter(|file| file.path.starts_with(world.path("~"))).cloned().collect();
    parts.context_files = &ours;
    let expected = format!(
        "You are an expert coding assistant working inside pith, a coding agent. You help by reading files, running \
         commands, and editing and writing files.\n\n\
         <tools>\n- read: read file contents\n- bash: run bash commands\n\
         Other tools may be available; their descriptions come with them.\n</tools>\n\n\
         <rules>\n- Use bash for listing and searching files (ls, rg, find)\n- Use read, not cat\n- Shared\n\
         - Be concise\n- Show file paths clearly when you work with files\n</rules>\n\n\
         <addendum>\nAppended.\n</addendum>\n\n\
         <project_context>\nInstructions of the user and of this project. Where two of them disagree, the later one \
         applies.\n\n<project_instructions path=\"{cwd}/AGENTS.md\">\nSay please.\n\n</project_instructions>\n\
         </project_context>\n\n\
         <skills>\nSkills are instructions for particular kinds of work. When a task fits the description of a skill, \
         first load its file with the read tool. Relative paths in a skill file start from the directory of that \
         file.\n\n<available_skills>\n  <skill>\n    <name>s</name>\n    <description>d</description>\n    \
         <location>{skill}</location>\n  </skill>\n</available_skills>\n</skills>\n\n\
         <cwd>\n{cwd}\n</cwd>",
        cwd = cwd.display(),
        skill = world.text("@/skills/s/SKILL.md"),
    );
    assert_eq!(parts.assemble(), expected);
    // A fresh look at the same files gives the same bytes.
    let again = world.load();
    let mut parts = again.prompt_parts(&tools, &cwd);
    parts.context_files = &ours;
    assert_eq!(parts.assemble(), expected);
}

#[test]
fn a_custom_prompt_drops_tools_and_rules_only() {
    let tools = [READ];
    let (append, files) = (["a".to_owned()], [ContextFile { path: "/x".into(), content: "c".into() }]);
    let skills = vec![ListedSkill { name: "n", description: "d", location: "/l".into() }];
    let full = PromptParts { append: &append, context_files: &files, skills, ..parts(&tools) };
    let prompt = full.assemble();
    assert_eq!(sections(&prompt), ["tools", "rules", "addendum", "project_context", "skills", "cwd"]);
    let prompt = PromptParts { custom: Some("Mine."), ..full }.assemble();
    assert!(prompt.starts_with("Mine.\n\n<addendum>\na\n</addendum>\n\n"), "{prompt}");
    assert_eq!(sections(&prompt), ["addendum", "project_context", "skills", "cwd"]);
}

#[test]
fn tools() {
    let check = |tools: &[ActiveTool], expected: &str| {
        let body = section(&parts(tools).assemble(), "tools").unwrap();
        let (list, _) = body.rsplit_once("\nOther tools may be available").unwrap();
        assert_eq!(list, expected);
    };
    check(&[], "(none)");
    check(&[QUIET], "(none)");
    check(&[BASH, READ], "- bash: run bash commands\n- read: read file contents");
}

#[test]
fn rules() {
    let check = |tools: &[ActiveTool], extra: &[&str], expected: &[&str]| {
        let extra_rules: Vec<String> = extra.iter().map(|rule| (*rule).to_owned()).collect();
        let prompt = PromptParts { extra_rules: &extra_rules, ..parts(tools) }.assemble();
        let rules = section(&prompt, "rules").unwrap();
        assert_eq!(rules.lines().collect::<Vec<_>>(), expected);
    };
    let last = ["- Be concise", "- Show file paths clearly when you work with files"];
    let shell = "- Use bash for listing and searching files (ls, rg, find)";
    check(&[], &[], &last);
    check(&[BASH], &[], &[shell, "- Shared", last[0], last[1]]);
    for name in ["grep", "find", "ls"] {
        let search = ActiveTool { name, snippet: None, rules: &[] };
        check(&[BASH, search], &[], &["- Shared", last[0], last[1]]);
    }
    // Extensions come after tools, duplicates go, and the last rules stay last.
    check(
        &[READ],
        &["Shared", " Mine ", "", "Be concise"],
        &["- Use read, not cat", "- Shared", "- Mine", last[0], last[1]],
    );
}

#[test]
fn skills_need_a_tool_to_load_them() {
    let check = |tools: &[ActiveTool], skills: Vec<ListedSkill>, expected: Option<&str>| {
        let body = section(&PromptParts { skills, ..parts(tools) }.assemble(), "skills");
        assert_eq!(body.is_some(), expected.is_some());
        if let (Some(body), Some(expected)) = (body, expected) {
            assert!(body.contains(expected), "{body}");
        }
    };
    let skill = || vec![ListedSkill { name: "n", description: "d", location: "/l".into() }];
    check(&[READ, BASH], skill(), Some("load its file with the read tool."));
    check(&[BASH], skill(), Some("load its file with the bash tool."));
    check(&[QUIET], skill(), None);
    check(&[READ], vec![], None);
}

#[test]
fn skills_are_escaped_and_hidden_ones_left_out() {
    let world = World::new();
    world.write("@/skills/a/SKILL.md", "---\ndescription: \"<a> & 'b' \\\"c\\\"\"\n---\n");
    world.write("@/skills/b/SKILL.md", "---\ndescription: d\ndisable-model-invocation: true\n---\n");
    let resources = world.load();
    let tools = [READ];
    let prompt = resources.prompt_parts(&tools, Path::new("/")).assemble();
    assert!(prompt.contains("<description>&lt;a&gt; &amp; &apos;b&apos; &quot;c&quot;</description>"), "{prompt}");
    assert!(!prompt.contains("<name>b</name>"));
}

#[test]
fn a_language_is_one_more_line() {
    let append = ["One.".to_owned(), "Two.".to_owned()];
    let check = |append: &[String], locale: Option<&str>, expected: Option<&str>| {
        let body = section(&PromptParts { append, locale, ..parts(&[]) }.assemble(), "addendum");
        assert_eq!(body.as_deref(), expected);
    };
    check(&append, None, Some("One.\n\nTwo."));
    check(&append, Some("de-DE"), Some("One.\n\nTwo.\n\nAnswer in the language with the tag de-DE."));
    check(&[], Some("fr"), Some("Answer in the language with the tag fr."));
    check(&[], None, None);
}

#[test]
fn sections_of_extensions() {
    let make = |sections: &[(&str, &str)]| {
        let sections: Vec<Section> =
            sections.iter().map(|(name, body)| Section { name: (*name).into(), body: (*body).into() }).collect();
        PromptParts { sections: &sections, ..parts(&[READ]) }.assemble()
    };
    let prompt = make(&[("other", "2"), ("mine", "1"), ("other", "3")]);
    assert_eq!(sections(&prompt), ["tools", "rules", "cwd", "other", "mine"]);
    assert!(prompt.ends_with("</cwd>\n\n<other>\n3\n</other>\n\n<mine>\n1\n</mine>"), "{prompt}");
    // A built-in name replaces in place, and an empty text removes.
    let prompt = make(&[("rules", "mine"), ("cwd", ""), ("addendum", "added")]);
    assert_eq!(sections(&prompt), ["tools", "rules", "addendum"]);
    assert_eq!(section(&prompt, "rules").as_deref(), Some("mine"));
    // Names that would break the prompt are left out.
    assert_eq!(make(&[("preamble", "x"), ("Bad", "x"), ("a b", "x"), ("", "x")]), make(&[]));
}

#[test]
fn section_names() {
    for name in ["a", "git-state", "x_1"] {
        assert!(is_section_name(name), "{name}");
    }
    for name in ["", "preamble", "1a", "-a", "A", "a b", "a>b", "é"] {
        assert!(!is_section_name(name), "{name}");
    }
}
