//! `node:vm`: what a script declares.

use std::rc::Rc;

use rquickjs::Object;
use rquickjs::function::Func;
use serde_json::json;

use super::text::Text;
use crate::engine::State;
use crate::modules::scope::scoped;

pub(super) fn install<'js>(group: &Object<'js>, state: &Rc<State>) -> rquickjs::Result<()> {
    let here = state.clone();
    group.set(
        "scoped",
        Func::from(move |source: Text| {
            // Reading the script is pith's work and does not count as the extension's.
            let answer = match here.block(|| scoped(&source.0)) {
                Ok(script) => {
                    json!({ "code": script.code, "declared": script.declared, "assigned": script.assigned })
                }
                Err(error) => json!({ "error": error.message }),
            };
            answer.to_string()
        }),
    )
}
