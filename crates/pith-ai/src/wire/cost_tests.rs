//! What an answer has cost: as billed, else as the catalogue says.

use pith_protocol::{Cost, Model, ModelCost};
use serde_json::{Value, json};

use super::Wire;
use super::anthropic::Anthropic;
use super::completions::Completions;
use super::responses::Responses;
use crate::testing::show;

fn model(provider: &str, id: &str) -> Model {
    let cost = ModelCost { input: 1.0, output: 2.0, ..ModelCost::default() };
    Model { id: id.into(), provider: provider.into(), base_url: "http://127.0.0.1:9".into(), cost, ..Model::default() }
}

fn cost(wire: &dyn Wire, model: &Model, events: &[Value]) -> Cost {
    let stream: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let message = show(wire, model, &stream).1;
    assert_eq!(message.error_message, None, "{stream}");
    message.usage.cost
}

/// The cost of a million tokens of input with these fields in the usage, in every API that may be behind OpenRouter.
fn costs(provider: &str, bill: &Value) -> Vec<Cost> {
    let with = |counts: Value| {
        let mut counts = counts.as_object().expect("an object").clone();
        counts.extend(bill.as_object().expect("an object").clone());
        Value::Object(counts)
    };
    let model = model(provider, "m");
    let chat = [
        json!({"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}),
        json!({"choices":[],"usage":with(json!({"prompt_tokens":1_000_000,"completion_tokens":0}))}),
    ];
    let messages = [
        json!({"type":"message_start","message":{"usage":{"input_tokens":1_000_000}}}),
        json!({"type":"content_block_start","index":0,"content_block":{"type":"text","text":"hi"}}),
        json!({"type":"content_block_stop","index":0}),
        json!({"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":with(json!({"output_tokens":0}))}),
        json!({"type":"message_stop"}),
    ];
    let response = [json!({"type":"response.completed","response":{"status":"completed",
        "usage":with(json!({"input_tokens":1_000_000,"output_tokens":0}))}})];
    vec![cost(&Completions, &model, &chat), cost(&Anthropic, &model, &messages), cost(&Responses, &model, &response)]
}

#[test]
fn what_openrouter_has_billed_counts() {
    let check = |bill: Value, total: f64, from_provider: Option<bool>| {
        for cost in costs("openrouter", &bill) {
            assert_eq!((cost.total, cost.total_from_provider, cost.input), (total, from_provider, 1.0), "{bill}");
        }
    };
    let details = |upstream: Value, prompt: Value| {
        json!({"upstream_inference_cost":upstream,"upstream_inference_prompt_cost":prompt,
            "upstream_inference_completions_cost":0.25})
    };
    check(json!({"cost":0.5,"is_byok":false}), 0.5, Some(true));
    check(json!({"cost":0,"is_byok":false}), 0.0, Some(true));
    check(json!({"cost":0.5,"is_byok":true,"cost_details":details(json!(3), json!(9))}), 3.5, Some(true));
    check(json!({"cost":0.5,"is_byok":true,"cost_details":details(json!(null), json!(1))}), 1.75, Some(true));
    for odd in [
        json!({}),
        json!({"cost":0.5}),
        json!({"cost":-1,"is_byok":false}),
        json!({"cost":"0.5","is_byok":false}),
        json!({"cost":{"total":1},"is_byok":false,"cost_details":[]}),
        json!({"cost":null,"is_byok":null,"cost_details":null}),
        json!({"cost":0.5,"is_byok":"no","cost_details":7}),
        json!({"cost":0.5,"is_byok":true}),
        json!({"cost":0.5,"is_byok":true,"cost_details":{}}),
        json!({"cost":0.5,"is_byok":true,"cost_details":details(json!(-3), json!(1))}),
        json!({"cost":0.5,"is_byok":true,"cost_details":details(json!(null), json!(null))}),
    ] {
        check(odd, 1.0, None);
    }
    for cost in costs("elsewhere", &json!({"cost":0.5,"is_byok":false})) {
        assert_eq!((cost.total, cost.total_from_provider), (1.0, None));
    }
}

#[test]
fn service_tiers_have_their_prices() {
    let total = |id: &str, tier: &str| {
        let event = json!({"type":"response.completed","response":{"status":"completed","service_tier":tier,
            "usage":{"input_tokens":1_000_000,"output_tokens":0}}});
        cost(&Responses, &model("openai", id), &[event]).total
    };
    for (tier, factor) in [("default", 1.0), ("flex", 0.5), ("priority", 2.0), ("fast", 2.0), ("unheard_of", 1.0)] {
        assert_eq!(total("gpt-6.1-sol", tier), factor, "{tier}");
    }
    assert_eq!((total("gpt-5.5", "fast"), total("gpt-5.5", "priority")), (2.5, 2.5));
}

#[test]
fn a_model_that_stands_in_has_its_own_price() {
    let cost = |answered: &str| {
        let mut model = model("anthropic", "claude-a");
        let known = json!({"allowedFallbackModels":["claude-plain",
            {"provider":"anthropic","model":"claude-b","cost":{"input":7,"output":9,"cacheRead":0,"cacheWrite":0}}]});
        model.compat = known.as_object().cloned();
        let events = [
            json!({"type":"message_start","message":{"model":answered,"usage":{"input_tokens":1_000_000}}}),
            json!({"type":"content_block_start","index":0,"content_block":{"type":"text","text":"hi"}}),
            json!({"type":"content_block_stop","index":0}),
            json!({"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":0}}),
            json!({"type":"message_stop"}),
        ];
        cost(&Anthropic, &model, &events).total
    };
    assert_eq!([cost("claude-a"), cost("claude-b"), cost("claude-plain"), cost("other")], [1.0, 7.0, 1.0, 1.0]);
}
