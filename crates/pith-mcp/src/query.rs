//! Requests that change nothing, which may therefore be sent a second time.

use rmcp::model::{
    ClientRequest, GetPromptRequest, GetPromptRequestParams, ListResourceTemplatesRequest, ListResourcesRequest,
    PaginatedRequestParams, ReadResourceRequest, ReadResourceRequestParams,
};
use serde_json::{Map, Value};

use crate::inputs::Given;

/// What is asked for.
#[derive(Debug)]
pub enum Query<'a> {
    /// A page of the resources.
    Resources {
        cursor: Option<&'a str>,
    },
    /// A page of the templates of their addresses.
    Templates {
        cursor: Option<&'a str>,
    },
    Resource {
        uri: &'a str,
    },
    Prompt {
        name: &'a str,
        arguments: Map<String, Value>,
    },
}

impl Query<'_> {
    /// Returns the request, with what the server wanted to know before.
    pub fn request(&self, given: Option<Given>) -> ClientRequest {
        let page = |cursor: &Option<&str>| PaginatedRequestParams::default().with_cursor(cursor.map(str::to_owned));
        match self {
            Query::Resources { cursor } => {
                ClientRequest::ListResourcesRequest(ListResourcesRequest::with_param(page(cursor)))
            }
            Query::Templates { cursor } => {
                ClientRequest::ListResourceTemplatesRequest(ListResourceTemplatesRequest::with_param(page(cursor)))
            }
            Query::Resource { uri } => {
                let mut params = ReadResourceRequestParams::new(*uri);
                (params.input_responses, params.request_state) = Given::parts(given);
                ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params))
            }
            Query::Prompt { name, arguments } => {
                let mut params = GetPromptRequestParams::new(*name);
                params.arguments = Some(arguments.clone()).filter(|arguments| !arguments.is_empty());
                (params.input_responses, params.request_state) = Given::parts(given);
                ClientRequest::GetPromptRequest(GetPromptRequest::new(params))
            }
        }
    }
}
