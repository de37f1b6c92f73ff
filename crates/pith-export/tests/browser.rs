//! Pages in a real browser: what runs, what is loaded, what can be seen.
//! Skipped, and said so, where there is no browser.

#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

#[path = "support/browser.rs"]
mod browser;
mod support;

use std::fs;
use std::path::PathBuf;

use browser::{Browser, Lure};
use serde_json::{Value, json};
use support::hostile::hostile_session;
use support::*;

struct Directory(tempfile::TempDir);

impl Directory {
    fn new() -> Self {
        Directory(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, content).unwrap();
        path
    }
}

/// Runs a script in a copy of the page that allows it, and returns what it reports.
fn drive(browser: &Browser, page: &str, fragment: &str, script: &str) -> Value {
    let directory = Directory::new();
    let policy = between(page, "<meta http-equiv=", ">");
    let page = page.replacen(&format!("<meta http-equiv={policy}>"), "", 1);
    let driver = format!(
        "<script>addEventListener('load', async () => {{
           const report = document.createElement('pre');
           report.id = 'report';
           try {{ report.textContent = JSON.stringify(await (async () => {{ {script} }})()); }}
           catch (error) {{ report.textContent = JSON.stringify(String(error)); }}
           document.body.append(report);
         }});</script></body>"
    );
    let page = page.replacen("</body>", &driver, 1);
    let dom = browser.dom(&directory.file("driven.html", &page), fragment);
    let report = between(&dom, "<pre id=\"report\">", "</pre>");
    let report = report.replace("&lt;", "<").replace("&gt;", ">").replace("&nbsp;", "\u{a0}").replace("&amp;", "&");
    serde_json::from_str(&report).unwrap_or_else(|error| panic!("{error}: {report}"))
}

#[test]
fn hostile_content_neither_runs_nor_calls_out() {
    let Some(browser) = Browser::find() else { return };
    let lure = Lure::start();
    let directory = Directory::new();
    let session = write_session(directory.0.path(), &hostile_session(&lure.address));
    let page = directory.file("hostile.html", &page_of(&session));
    let dom = browser.dom(&page, "");
    assert!(!dom.contains("data-owned"), "a script of the session has run");
    assert!(dom.contains("<html lang=\"en\" class=\"js\">"), "the page's own script has run");
    assert_harmless(&dom);

    // The branch the script shows on demand is no safer a place.
    let other = tags(&dom).into_iter().find(|tag| tag.name == "a" && tag.get("class") == Some("u d1")).unwrap();
    let dom = browser.dom(&page, other.get("href").unwrap());
    assert!(between(&dom, "<main id=\"stream\">", "</main>").contains("elsewhere"));
    assert!(!dom.contains("data-owned"));
    assert_harmless(&dom);

    // The same browser does run and load such things where nothing prevents it.
    let bait = format!(
        "<body><img src=\"{}/control\"><script>document.body.setAttribute('data-'+'owned',1)</script>",
        lure.address
    );
    let dom = browser.dom(&directory.file("control.html", &bait), "");
    assert!(dom.contains("data-owned"));
    assert_eq!(lure.requests_until("/control"), [""; 0], "the page has asked for something");
}

/// Looks at a page in a frame that runs no script, and returns what the expression says about `page`.
fn without_scripts(browser: &Browser, page: &str, expression: &str) -> Value {
    let directory = Directory::new();
    let page = page.replace('&', "&amp;").replace('"', "&quot;");
    let frame = format!(
        "<body><iframe sandbox=allow-same-origin width=1400 height=900 srcdoc=\"{page}\"></iframe><script>
         addEventListener('load', () => {{
           const page = document.querySelector('iframe').contentDocument;
           const isSeen = (element) => element.checkVisibility();
           const report = document.createElement('pre');
           report.id = 'report';
           report.textContent = JSON.stringify({expression});
           document.body.append(report);
         }});</script>"
    );
    let dom = browser.dom(&directory.file("frame.html", &frame), "");
    serde_json::from_str(between(&dom, "<pre id=\"report\">", "</pre>")).unwrap()
}

#[test]
fn without_scripts_the_active_branch_can_be_read() {
    let Some(browser) = Browser::find() else { return };
    let report = without_scripts(
        &browser,
        &page_of(&ledger()),
        "{
          script: page.documentElement.className,
          text: page.getElementById('stream').textContent.includes('has no callers left'),
          entries: [...page.querySelectorAll('#stream .entry')].filter(isSeen).length,
          elsewhere: page.getElementById('page').textContent.includes('the error per month'),
          lines: [...page.querySelectorAll('#rows a')].filter(isSeen).length,
          controls: [...page.querySelectorAll('button, #search')].filter(isSeen).length,
          diff: getComputedStyle(page.querySelector('.diff .in')).backgroundColor,
        }",
    );
    assert_eq!(
        report,
        json!({"script":"","text":true,"entries":21,"elsewhere":false,"lines":18,"controls":0,"diff":"rgb(229, 244, 232)"})
    );
}

/// A conversation of 250 prompts; the last one tries to leave the place where a browser keeps it as text.
fn long_session() -> String {
    let escape = "</noscript><script>document.title = 'owned'</script> last words";
    let text = |n: usize| if n == 249 { escape.to_owned() } else { format!("prompt {n}") };
    let id = |n: usize| format!("p{n}");
    let prompts: Vec<_> = (0..250).map(|n| user(&id(n), n.checked_sub(1).map(id).as_deref(), &text(n))).collect();
    page_of_entries(&prompts)
}

#[test]
fn a_long_session_is_whole_without_scripts() {
    let Some(browser) = Browser::find() else { return };
    let report = without_scripts(
        &browser,
        &long_session(),
        "[page.querySelectorAll('#stream .entry').length, page.querySelectorAll('#stream script').length,
          page.getElementById('e-p249').textContent.includes('last words')]",
    );
    assert_eq!(report, json!([250, 0, true]));
}

#[test]
fn a_long_session_is_opened_part_by_part_and_found_whole() {
    let Some(browser) = Browser::find() else { return };
    // The browser's clock runs ahead of a busy machine, which is never idle; here every moment is.
    let idle = "<head><script>requestIdleCallback = (then) => setTimeout(then, 1);</script>";
    let page = long_session().replacen("<head>", idle, 1);
    let look = |fragment: &str, script: &str| drive(&browser, &page, fragment, script);
    // Nothing was waited for: a link opens the part it leads to.
    let target = "
        const target = document.querySelector('.target'), box = target.getBoundingClientRect();
        return [target.id, target.textContent.includes('last words'), box.bottom > 0 && box.top < innerHeight, document.title];";
    assert_eq!(look("#e-p249", target), json!(["e-p249", true, true, "prompt 0"]));
    let search = "
        const search = document.getElementById('search'), found = document.getElementById('found');
        search.value = 'last words';
        search.dispatchEvent(new Event('input'));
        while (!found.textContent) await new Promise((done) => setTimeout(done, 20));
        const ids = [...document.querySelectorAll('#stream .entry')].map((entry) => entry.id);
        return [found.textContent, ids.length, ids.every((id, n) => id === 'e-p' + n), document.title];";
    assert_eq!(look("", search), json!(["1 entry", 250, true, "prompt 0"]));
    let idle = "
        while (document.querySelector('#stream noscript')) await new Promise((done) => setTimeout(done, 20));
        return document.querySelectorAll('#stream .entry').length;";
    assert_eq!(look("", idle), json!(250));
}

#[test]
fn the_navigator_filters_searches_and_shows_other_branches() {
    let Some(browser) = Browser::find() else { return };
    let report = drive(
        &browser,
        &page_of(&ledger()),
        "",
        "
        const seen = () => [...document.querySelectorAll('#rows a')].filter((line) => line.checkVisibility()).length;
        const wait = (test) => new Promise((done) => { const look = () => test() ? done() : setTimeout(look, 20); look(); });
        const stream = () => document.getElementById('stream').textContent;
        const report = { filters: {} };
        for (const button of document.querySelectorAll('.filters button')) {
          button.click();
          report.filters[button.dataset.filter] = seen();
        }
        const search = document.getElementById('search'), found = document.getElementById('found');
        search.value = 'CENTS  accessor';
        search.dispatchEvent(new Event('input'));
        await wait(() => found.textContent);
        report.found = [found.textContent, seen()];
        search.value = '';
        search.dispatchEvent(new Event('input'));
        await wait(() => !found.textContent);

        const note = document.getElementById('elsewhere-note');
        report.before = [note.hidden, stream().includes('the error per month')];
        document.querySelector('#rows [href=\"#e-a7f773ad\"]').click();
        await wait(() => !note.hidden);
        report.other = [stream().includes('the error per month'), stream().includes('convert the report'),
          document.querySelector('.target').id, document.querySelectorAll('#rows .on').length];
        const isMinorSeen = () => document.querySelector('#stream .minor').checkVisibility();
        report.minor = [isMinorSeen()];
        document.querySelector('[data-filter=notools]').click();
        report.minor.push(isMinorSeen());
        document.getElementById('back').click();
        report.back = [note.hidden, stream().includes('the error per month'), stream().includes('convert the report')];

        document.getElementById('fold').click();
        report.folded = document.querySelectorAll('#stream details[open]').length;
        document.getElementById('unfold').click();
        report.unfolded = document.querySelectorAll('#stream details:not([open])').length;

        let blob, name;
        URL.createObjectURL = (object) => { blob = object; return '#'; };
        HTMLAnchorElement.prototype.click = function () { name = this.download; };
        document.getElementById('download').click();
        await wait(() => name);
        report.download = [name, await blob.text()];
        return report;
        ",
    );
    let raw = fs::read_to_string(ledger()).unwrap();
    let n_entries = raw.lines().count() - 1;
    let expected = json!({
        "filters": {"default":23,"notools":14,"user":3,"labelled":1,"all":n_entries},
        "minor": [true, false],
        "found": ["3 entries", 3],
        "before": [true, false],
        "other": [true, false, "e-a7f773ad", 22],
        "back": [true, false, true],
        "folded": 0,
        "unfolded": 0,
        "download": ["01a1ddfa-f8d7-76a9-a3c8-c75ac8adcc1e.jsonl", raw],
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&report[name], value, "{name}");
    }
}

#[test]
fn links_lead_to_entries_of_any_branch() {
    let Some(browser) = Browser::find() else { return };
    let report = drive(
        &browser,
        &page_of(&ledger()),
        "#e-a6f773ac",
        "
        const look = () => {
          const target = document.querySelector('.target');
          const box = target.getBoundingClientRect();
          return [target.id, target.closest('main') !== null, box.bottom > 0 && box.top < innerHeight,
            target.querySelector('details').open];
        };
        const go = (fragment) => new Promise((done) => {
          addEventListener('hashchange', () => done(look()), { once: true });
          location.hash = fragment;
        });
        return [look(), await go('#e-14f773a1'), await go('#nowhere')];
        ",
    );
    let at = |id: &str| json!([id, true, true, true]);
    assert_eq!(report, json!([at("e-a6f773ac"), at("e-14f773a1"), at("e-14f773a1")]));
}

#[test]
fn the_reader_chooses_between_light_and_dark() {
    let Some(browser) = Browser::find() else { return };
    let report = drive(
        &browser,
        &page_of(&ledger()),
        "",
        "
        const paper = () => getComputedStyle(document.body).backgroundColor;
        const click = () => { document.getElementById('theme').click(); return paper(); };
        return [paper(), click(), click()];
        ",
    );
    let (light, dark) = ("rgb(252, 252, 251)", "rgb(23, 24, 27)");
    let starts_dark = report[0] == dark;
    assert_eq!(report, if starts_dark { json!([dark, light, dark]) } else { json!([light, dark, light]) });
}
