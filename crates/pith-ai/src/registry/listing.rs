//! The table of `--list-models`.

use std::sync::Arc;

use pith_protocol::Model;

use super::Registry;

/// Returns the usable models as a table, filtered by a search term. Ends without a newline.
pub fn model_table(registry: &Registry, search: Option<&str>) -> String {
    let mut models = registry.available();
    if models.is_empty() {
        return "No models available. Set an API key environment variable, run pith auth set PROVIDER, or add a provider \
                to models.json; --list-models --all lists every model."
            .into();
    }
    if !search_in(&mut models, search) {
        return format!("No models matching \"{}\"", search.unwrap_or_default());
    }
    let head = ["provider", "model", "context", "max-out", "thinking", "images"].map(str::to_owned);
    let rows = std::iter::once(head).chain(models.iter().map(|model| row(model)));
    align(&rows.collect::<Vec<_>>())
}

/// Returns every model of the catalogue and of `models.json` as a table that says what each needs. Ends without a
/// newline.
pub fn model_catalogue(registry: &Registry, search: Option<&str>) -> String {
    let mut models = registry.models();
    if !search_in(&mut models, search) {
        return format!("No models matching \"{}\"", search.unwrap_or_default());
    }
    let head = ["provider", "model", "context", "max-out", "thinking", "images", "key"].map(str::to_owned);
    let rows = models.iter().map(|model| {
        let [provider, id, context, max_out, thinking, images] = row(model);
        [provider, id, context, max_out, thinking, images, need(registry, model)]
    });
    align(&std::iter::once(head).chain(rows).collect::<Vec<_>>())
}

/// What is needed to use a model.
fn need(registry: &Registry, model: &Model) -> String {
    if registry.check_support(model).is_err() {
        return "not supported".to_owned();
    }
    if registry.is_usable(model) {
        return "ready".to_owned();
    }
    super::key_variable(&model.provider).unwrap_or_else(|| "in models.json or auth.json".to_owned())
}

/// Keeps what matches the search and sorts it; `false` if nothing is left.
fn search_in(models: &mut Vec<Arc<Model>>, search: Option<&str>) -> bool {
    if let Some(search) = search {
        let tokens: Vec<String> = search.to_lowercase().split(['/', ' ', '\t', '\n']).map(str::to_owned).collect();
        models.retain(|model| {
            let text = format!("{} {}", model.provider, model.id).to_lowercase();
            tokens.iter().all(|token| is_subsequence(token, &text))
        });
    }
    models.sort_by(|a, b| (&a.provider, &a.id).cmp(&(&b.provider, &b.id)));
    !models.is_empty()
}

fn row(model: &Model) -> [String; 6] {
    let yes_no = |flag| if flag { "yes" } else { "no" }.to_owned();
    [
        model.provider.clone(),
        model.id.clone(),
        tokens(model.context_window),
        tokens(model.max_tokens),
        yes_no(model.reasoning),
        yes_no(model.sees_images()),
    ]
}

fn align<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let lines = rows.iter().map(|row| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Formats a count as `128K`, `65.5K`, `1M` or `1.1M`.
fn tokens(count: u64) -> String {
    let scaled = |unit: u64, letter: char| match count % unit {
        0 => format!("{}{letter}", count / unit),
        _ => format!("{:.1}{letter}", count as f64 / unit as f64),
    };
    match count {
        1_000_000.. => scaled(1_000_000, 'M'),
        1_000.. => scaled(1_000, 'K'),
        _ => count.to_string(),
    }
}

fn is_subsequence(needle: &str, text: &str) -> bool {
    let mut letters = text.chars();
    needle.chars().all(|wanted| letters.any(|letter| letter == wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_counts() {
        let check = |count, expected: &str| assert_eq!(tokens(count), expected);
        check(500, "500");
        check(128_000, "128K");
        check(65_536, "65.5K");
        check(1_000_000, "1M");
        check(1_050_000, "1.1M");
        check(8_192, "8.2K");
    }

    #[test]
    fn subsequences() {
        assert!(is_subsequence("sn4", "anthropic claude-sonnet-4"));
        assert!(!is_subsequence("4sn", "claude-sonnet-4"));
        assert!(is_subsequence("", "x"));
    }
}
