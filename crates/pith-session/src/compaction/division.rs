//! How a model's window is divided between the answer, what stays, and what is summarised.

use pith_config::Settings;
use pith_protocol::Model;

/// How a model's window is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Division {
    /// The whole window; zero if nobody knows.
    pub window: u64,
    /// Kept free for the answer.
    pub reserve: u64,
    /// What stays as it is.
    pub keep: u64,
}

impl Division {
    /// By the settings for this model, within what its window allows.
    pub fn of(model: &Model, window: u64, settings: &Settings) -> Self {
        let (reserve, keep) = settings.compaction.tokens_for(&model.provider, &model.id);
        Division::new(window, reserve, keep)
    }

    fn new(window: u64, reserve: u64, keep: u64) -> Self {
        if window == 0 {
            return Division { window, reserve, keep };
        }
        let reserve = reserve.min(window / 4);
        Division { window, reserve, keep: keep.min((window - reserve) / 2) }
    }

    /// Compaction is due above this size; `None` without a window.
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
            let division = Division::new(window, 16384, 20000);
            assert_eq!((division.reserve, division.keep, division.threshold()), expected, "window {window}");
        };
        check(200_000, (16384, 20000, Some(183_616)));
        check(8000, (2000, 3000, Some(6000)));
        check(1, (0, 0, Some(1)));
        check(0, (16384, 20000, None));
    }
}
