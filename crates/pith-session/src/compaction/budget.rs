//! How a model's window is divided between the answer, what is kept, and what is summarised.

use pith_config::Settings;
use pith_protocol::Model;

/// How a model's window is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WindowBudget {
    /// The whole window; zero if unknown.
    pub window: u64,
    /// Kept free for the answer.
    pub reserve: u64,
    /// Kept as it is by a compaction.
    pub keep: u64,
}

impl WindowBudget {
    /// Divides by the settings for this model, within what its window allows.
    pub fn of(model: &Model, window: u64, settings: &Settings) -> Self {
        let (reserve, keep) = settings.compaction.tokens_for(&model.provider, &model.id);
        WindowBudget::new(window, reserve, keep)
    }

    fn new(window: u64, reserve: u64, keep: u64) -> Self {
        if window == 0 {
            return WindowBudget { window, reserve, keep };
        }
        let reserve = reserve.min(window / 4);
        WindowBudget { window, reserve, keep: keep.min((window - reserve) / 2) }
    }

    /// The size above which a compaction is due; `None` without a known window.
    pub fn threshold(&self) -> Option<u64> {
        (self.window > 0).then(|| self.window - self.reserve)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_windows_are_divided_in_proportion() {
        let check = |window, expected| {
            let budget = WindowBudget::new(window, 16384, 20000);
            assert_eq!((budget.reserve, budget.keep, budget.threshold()), expected, "window {window}");
        };
        check(200_000, (16384, 20000, Some(183_616)));
        check(8000, (2000, 3000, Some(6000)));
        check(1, (0, 0, Some(1)));
        check(0, (16384, 20000, None));
    }
}
