//! Every relative link leads somewhere, and `docs/README.md` leads to every page.

use crate::pages::{docs, prose, read, root};

/// The name under which a heading can be linked to.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase().chars().filter(|char| char.is_alphanumeric() || " -_".contains(*char)).collect();
    let kept: String = kept;
    kept.replace(' ', "-")
}

fn anchors(page: &str) -> Vec<String> {
    let headings = prose(page);
    let headings = headings.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#').trim())).collect()
}

/// The targets of a page's links, without those that lead out of the repository.
fn targets(page: &str) -> Vec<String> {
    let text = prose(page);
    let links = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    links.filter(|target| !target.contains("://") && !target.starts_with("mailto:")).map(str::to_owned).collect()
}

#[test]
fn every_relative_link_leads_somewhere() {
    let own = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"];
    let pages = own.iter().map(|name| (*name).to_owned()).chain(docs().into_iter().map(|name| format!("docs/{name}")));
    let (mut n_links, mut broken) = (0, Vec::new());
    for page in pages {
        let text = read(&page);
        for target in targets(&text) {
            n_links += 1;
            let (path, fragment) = target.split_once('#').unwrap_or((&target, ""));
            let directory = root().join(&page).parent().expect("a page is in a directory").to_owned();
            let file = if path.is_empty() { root().join(&page) } else { directory.join(path) };
            let is_there = match (file.exists(), fragment) {
                (is_there, "") => is_there,
                (true, fragment) => {
                    std::fs::read_to_string(&file).is_ok_and(|text| anchors(&text).iter().any(|name| name == fragment))
                }
                (false, _) => false,
            };
            if !is_there {
                broken.push(format!("{page}: {target}"));
            }
        }
    }
    assert!(n_links > 60 && broken.is_empty(), "{n_links} links; broken: {broken:#?}");
}

#[test]
fn the_map_has_every_page() {
    let map = targets(&read("docs/README.md"));
    let missing: Vec<_> = docs().into_iter().filter(|name| name != "README.md" && !map.contains(name)).collect();
    assert!(missing.is_empty(), "docs/README.md does not lead to {missing:?}");
}
