//! Shows requests to models to extensions, which may change them.

use pith_protocol::{Hooked, RequestHooks, RequestPart};
use serde_json::{Map, Value, json};

use crate::events::EventName;
use crate::handle::ExtensionHandle;

impl RequestHooks for ExtensionHandle {
    fn sees(&self, part: RequestPart) -> bool {
        self.listens(match part {
            RequestPart::Headers => EventName::BeforeProviderHeaders,
            RequestPart::Payload => EventName::BeforeProviderRequest,
            RequestPart::Response => EventName::AfterProviderResponse,
        })
    }

    fn headers(&self, headers: Map<String, Value>) -> Hooked<'_, Map<String, Value>> {
        Box::pin(self.before_provider_headers(headers))
    }

    fn payload(&self, payload: Value) -> Hooked<'_, Value> {
        Box::pin(self.before_provider_request(payload))
    }

    fn response(&self, status: u16, headers: Map<String, Value>) -> Hooked<'_, ()> {
        let payload = json!({ "status": status, "headers": headers });
        Box::pin(self.notify(EventName::AfterProviderResponse, payload))
    }
}
