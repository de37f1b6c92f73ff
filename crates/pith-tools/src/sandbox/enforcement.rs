//! What enforces a policy, made of the files that are there when it is made.

use std::sync::Arc;

use pith_sandbox::confine::{ConfineError, Restrictions};
use pith_sandbox::namespaces::View;
use pith_sandbox::{Policy, Worker};

/// How a policy is enforced on the files that are there now.
#[derive(Clone, Debug)]
pub(super) struct Enforcement {
    /// For commands.
    pub restrictions: Arc<Restrictions>,
    /// For file tools.
    pub worker: Worker,
    /// What commands in namespaces see of homes.
    pub view: Arc<View>,
}

impl Enforcement {
    pub fn new(policy: &Policy) -> Result<Enforcement, ConfineError> {
        let restrictions = Arc::new(Restrictions::new(policy)?);
        // Without namespaces nothing would be shown anywhere.
        let view = if policy.namespaces { View::of(policy) } else { View::default() };
        Ok(Enforcement { worker: Worker::start(Arc::clone(&restrictions))?, restrictions, view: Arc::new(view) })
    }
}
