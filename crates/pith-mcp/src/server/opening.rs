//! How a server comes to be ready: a connection, and what it offers.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::timeout;
use tracing::debug;

use super::Server;
use crate::connection::Connection;
use crate::offer::Offer;
use crate::state::Failure;

/// A server that can be used.
pub(super) struct Opened {
    pub connection: Arc<Connection>,
    /// Tells of every change since its lists were asked for.
    pub changes: watch::Receiver<u64>,
    pub offer: Offer,
    /// What was wrong with single tools.
    pub problems: Vec<String>,
}

/// Why a server cannot be used.
enum Obstacle {
    Failed(Failure),
    /// The connection was lost while the lists were asked for, which changes nothing and may be done again.
    Lost(Failure),
}

impl Server {
    /// Connects to the server and asks for its lists; once more if the connection is lost meanwhile.
    pub(super) async fn open(&self) -> Result<Opened, Failure> {
        match self.try_to_open().await {
            Err(Obstacle::Lost(failure)) => {
                debug!(target: "pith::mcp", server = self.config.name, why = failure.why, "is started once more");
                self.inner().n_starts += 1;
            }
            Err(Obstacle::Failed(failure)) => return Err(failure),
            Ok(opened) => return Ok(opened),
        }
        self.try_to_open().await.map_err(|(Obstacle::Failed(failure) | Obstacle::Lost(failure))| failure)
    }

    async fn try_to_open(&self) -> Result<Opened, Obstacle> {
        let last = self.inner().offer.as_ref().map(|offer| offer.era());
        let opening = Connection::open(&self.config, &self.launch, self.inputs.clone(), last);
        let connection = opening.await.map_err(Obstacle::Failed)?;
        let changes = connection.changes();
        let limit = self.config.startup_timeout;
        let (why, is_lost) = match timeout(limit, connection.offer()).await {
            Ok(Ok((offer, problems))) => return Ok(Opened { connection, changes, offer, problems }),
            Ok(Err(error)) => {
                (format!("its tools cannot be listed: {error}"), error.is_passing() && connection.is_closed())
            }
            Err(_) => (format!("its tools cannot be listed within {} s", limit.as_secs_f64()), false),
        };
        let wanted = connection.sign_in_wanted(&self.config);
        connection.close(&self.inputs).await;
        Err(match wanted {
            Some(failure) => Obstacle::Failed(failure),
            None if is_lost => Obstacle::Lost(Failure::failed(why)),
            None => Obstacle::Failed(Failure::failed(why)),
        })
    }
}
