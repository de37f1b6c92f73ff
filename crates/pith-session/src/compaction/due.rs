//! Decides from an answer whether a compaction is due.

use pith_ai::is_overflow;
use pith_protocol::{AssistantMessage, Model, StopReason};

use super::WindowBudget;

/// What an answer says about the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Nothing,
    /// The window is filled beyond the threshold.
    Threshold,
    /// The window was exceeded, but the answer is complete.
    Overflow,
    /// The window was exceeded and the answer is unusable.
    FailedOverflow,
}

/// Decides by an answer of the current model. `estimate` is called if the answer has no token count.
pub(crate) fn due(
    answer: &AssistantMessage,
    model: &Model,
    budget: WindowBudget,
    estimate: impl FnOnce() -> u64,
) -> Due {
    let is_own = answer.provider == model.provider && answer.model == model.id;
    let counted = answer.usage.context_tokens();
    let Some(threshold) = budget.threshold() else {
        return if is_own && is_overflow(answer, 0) { Due::FailedOverflow } else { Due::Nothing };
    };
    if is_own && is_overflow(answer, budget.window) {
        return if answer.stop_reason == StopReason::Stop { Due::Overflow } else { Due::FailedOverflow };
    }
    // The answer was cut off before the model's own limit, so the window was full. Far below the threshold there was
    // room, and the provider had other reasons.
    let is_squeezed = answer.stop_reason == StopReason::Length && answer.usage.output < model.max_tokens;
    if is_own && is_squeezed && counted > threshold / 2 {
        return Due::FailedOverflow;
    }
    let tokens = if answer.failed() || counted == 0 { estimate() } else { counted };
    if tokens > threshold { Due::Threshold } else { Due::Nothing }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pith_protocol::Usage;

    fn check(stop_reason: StopReason, error: Option<&str>, input: u64, output: u64, estimate: u64, expected: Due) {
        let model = Model {
            provider: "p".into(),
            id: "m".into(),
            context_window: 20_000,
            max_tokens: 4000,
            ..Model::default()
        };
        let budget = WindowBudget { window: 20_000, reserve: 5000, keep: 1000 };
        let answer = AssistantMessage {
            provider: "p".into(),
            model: "m".into(),
            stop_reason,
            error_message: error.map(str::to_owned),
            usage: Usage { input, output, ..Usage::default() },
            ..AssistantMessage::default()
        };
        assert_eq!(due(&answer, &model, budget, || estimate), expected, "{answer:?}");
        let other = AssistantMessage { model: "other".into(), ..answer };
        let elsewhere = due(&other, &model, budget, || estimate);
        assert!(matches!(elsewhere, Due::Nothing | Due::Threshold), "another model's window: {elsewhere:?}");
    }

    #[test]
    fn answers_show_how_full_the_window_is() {
        use StopReason::{Aborted, Error, Length, Stop, ToolUse};
        check(Stop, None, 14_000, 1000, 0, Due::Nothing);
        check(ToolUse, None, 14_001, 1000, 0, Due::Threshold);
        check(Stop, None, 20_001, 10, 0, Due::Overflow);
        check(Error, Some("prompt is too long: 9 tokens"), 0, 0, 0, Due::FailedOverflow);
        check(Error, Some("bad request"), 0, 0, 15_001, Due::Threshold);
        check(Aborted, None, 0, 0, 15_000, Due::Nothing);
        check(Length, None, 19_900, 0, 0, Due::FailedOverflow);
        check(Length, None, 10_000, 500, 0, Due::FailedOverflow);
        check(Length, None, 900, 50, 0, Due::Nothing); // the provider's choice, not a full window
        check(Length, None, 9000, 4000, 0, Due::Nothing); // the model's own limit
    }
}
