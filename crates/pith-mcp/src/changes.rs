//! Changed lists of a server of the newer era, which tells only those who ask (`subscriptions/listen`).

use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ServerCapabilities, SubscriptionFilter};
use rmcp::service::{Peer, ServiceError, SubscriptionEnd};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::handshake::Era;

/// Before a server is asked again after the connection was cut; doubled each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Counts changes of what the server offers, for everybody who uses it.
pub type Changes = watch::Sender<u64>;

/// Notes a change.
pub fn note(changes: &Changes) {
    changes.send_modify(|n_changes| *n_changes += 1);
}

/// Listens as long as the server lets itself be listened to. Servers of the older era tell by themselves.
pub async fn listen(peer: Peer<RoleClient>, changes: Changes) {
    let Some(info) = peer.peer_info() else { return };
    if Era::of(info.protocol_version.as_str()) == Era::Older {
        return;
    }
    let Some(filter) = told(&info.capabilities) else { return };
    let (mut pause, mut is_first) = (FIRST_PAUSE, true);
    loop {
        match peer.listen(filter.clone()).await {
            Ok(mut subscription) => {
                if !is_first {
                    // Nobody has told what changed meanwhile.
                    note(&changes);
                }
                is_first = false;
                let ended = loop {
                    match subscription.next().await {
                        Ok(Some(_)) => note(&changes),
                        ended => break ended,
                    }
                    pause = FIRST_PAUSE;
                };
                // An answer, which stays raw JSON here and is therefore unexpected, ends it for good.
                let is_over = matches!(ended, Err(ServiceError::UnexpectedResponse | ServiceError::McpError(_)));
                if is_over || matches!(subscription.end(), Some(SubscriptionEnd::Cancelled)) {
                    return;
                }
            }
            // It does not do that, or not as it should.
            Err(ServiceError::McpError(_) | ServiceError::UnexpectedResponse) => return,
            Err(_) if peer.is_transport_closed() => return,
            Err(_) => {}
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// The lists whose changes a server tells; `None` if it tells of none.
fn told(capabilities: &ServerCapabilities) -> Option<SubscriptionFilter> {
    let mut filter = SubscriptionFilter::new();
    let is_told = |list_changed: Option<bool>| (list_changed == Some(true)).then_some(true);
    filter.tools_list_changed = capabilities.tools.as_ref().and_then(|tools| is_told(tools.list_changed));
    filter.prompts_list_changed = capabilities.prompts.as_ref().and_then(|prompts| is_told(prompts.list_changed));
    filter.resources_list_changed =
        capabilities.resources.as_ref().and_then(|resources| is_told(resources.list_changed));
    (filter != SubscriptionFilter::new()).then_some(filter)
}
