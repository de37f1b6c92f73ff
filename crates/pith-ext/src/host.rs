//! Starts the engine thread.

use std::sync::Arc;
use std::sync::mpsc as sync_mpsc;

use tokio::sync::mpsc;

use crate::config::ExtensionConfig;
use crate::engine::{Engine, THREAD_STACK};
use crate::handle::ExtensionHandle;
use crate::shared::{Requests, Shared};

/// The extension host: one engine on one thread, serving one session at a time.
pub struct ExtensionHost;

impl ExtensionHost {
    /// Starts the thread. Nothing is loaded yet; see [`ExtensionHandle::load`].
    ///
    /// The receiver yields the requests of extensions. It must be drained at all times, also while a call on the handle
    /// is awaited: extension code may need an answer before it can give one.
    pub fn start(config: ExtensionConfig) -> (ExtensionHandle, Requests) {
        let (outgoing, requests) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared::new(outgoing));
        let (sender, inbox) = sync_mpsc::channel();
        let handle = ExtensionHandle::new(shared.clone(), sender.clone(), &config);
        let ending = Ending(shared.clone());
        let builder = std::thread::Builder::new().name("pith-ext".to_owned()).stack_size(THREAD_STACK);
        let spawned = builder.spawn(move || {
            // Also dropped when the engine panics, so that no call waits for a dead thread.
            let ending = ending;
            match Engine::new(&config, ending.0.clone(), sender, inbox) {
                Ok(engine) => engine.run(),
                Err(why) => ending.0.report("<runtime>", "load", why),
            }
        });
        if let Err(error) = spawned {
            shared.report("<runtime>", "load", format!("the extension thread cannot be started: {error}"));
            shared.end();
        }
        (handle, Requests::new(requests, shared))
    }
}

/// Tells all waiting calls that the thread has ended.
struct Ending(Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        let is_first = self.0.end();
        if is_first && std::thread::panicking() {
            self.0.report("<runtime>", "disabled", "Extensions are off for this session: internal error");
        }
    }
}
