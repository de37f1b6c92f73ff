//! Every request and response in the log: where to, what came of it, and the names of headers. Values may be secrets.

use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Method, Response, Url};
use tracing::trace;

use crate::network;

/// Logs a request that is about to be sent.
pub(super) fn request(method: &Method, url: &Url, headers: &HeaderMap) {
    trace!(target: "pith::http", %method, url = network::place(url.as_str()), headers = ?Names(headers), "request");
}

/// Logs the head of a response.
pub(super) fn response(response: &Response, took: Duration) {
    let (status, headers) = (response.status().as_u16(), Names(response.headers()));
    trace!(target: "pith::http", status, ?headers, ?took, "response");
}

struct Names<'a>(&'a HeaderMap);

impl std::fmt::Debug for Names<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_list().entries(self.0.keys().map(|name| name.as_str())).finish()
    }
}
