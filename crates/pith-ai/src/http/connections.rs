//! Counts the connections that are made, so that a request can tell whether it
//! went over one that was kept from before.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tower_layer::Layer;
use tower_service::Service;

/// How many connections were made. Clones count together.
#[derive(Clone, Debug, Default)]
pub(super) struct ConnectionCount(Arc<AtomicUsize>);

impl ConnectionCount {
    pub fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl<S> Layer<S> for ConnectionCount {
    type Service = Counted<S>;

    fn layer(&self, connector: S) -> Counted<S> {
        Counted { connector, count: self.clone() }
    }
}

/// A connector whose calls are counted.
#[derive(Clone)]
pub(super) struct Counted<S> {
    connector: S,
    count: ConnectionCount,
}

impl<S: Service<A>, A> Service<A> for Counted<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.connector.poll_ready(context)
    }

    fn call(&mut self, address: A) -> S::Future {
        self.count.0.fetch_add(1, Ordering::Relaxed);
        self.connector.call(address)
    }
}
