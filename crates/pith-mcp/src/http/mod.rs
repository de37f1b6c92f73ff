//! Servers at an address: streamable HTTP of both eras, and the SSE transport of 2024-11-05. The transport is not
//! rmcp's, because its strict types lose what odd servers send; see `frames.rs`.

mod events;
mod headers;
mod streams;
mod target;
mod transport;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rmcp::service::{ClientInitializeError, ClientLifecycleMode, serve_client_with_lifecycle};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::config::{Protocol, ServerConfig};
use crate::handler::Handler;
use crate::handshake::{Era, Refusal, Service, is_unknown_method, known_version, modern_era, said};
use crate::state::{Failure, State};

pub use target::{Fault, Target, TargetRequest, challenge};
use transport::{HttpTransport, Shared};

/// How long a server may take to take note of the end of a session.
const END_GRACE: Duration = Duration::from_secs(1);

/// The far end of a connection.
pub struct Session {
    shared: Arc<Shared>,
    /// How the server said that it wants a sign-in after the session had begun.
    sign_in_wanted: OnceLock<String>,
    /// Cancelled when it has said so: nothing more is asked in this session.
    left: CancellationToken,
}

impl Session {
    fn new(shared: Arc<Shared>) -> Self {
        Session { shared, sign_in_wanted: OnceLock::new(), left: CancellationToken::new() }
    }

    /// Leaves a session in which the server wants a sign-in. Requests that are under way may still be answered.
    pub fn want_sign_in(&self, fault: &Fault) {
        let _ = self.sign_in_wanted.set(fault.to_string());
        self.left.cancel();
    }

    /// Why the session has ended, if that is for want of a sign-in.
    pub fn sign_in_wanted(&self, config: &ServerConfig) -> Option<Failure> {
        let why = self.sign_in_wanted.get()?;
        Some(Failure::needs_auth(with_advice(why, config)))
    }

    /// Whether it uses the transport of 2024-11-05.
    pub fn is_sse(&self) -> bool {
        self.shared.state().endpoint.is_some()
    }

    /// Waits until the session has ended or was left; it may never be.
    pub async fn ended(&self) {
        tokio::select! {
            () = self.shared.closed.cancelled() => {}
            () = self.left.cancelled() => {}
        }
    }

    /// Says what became of a session that does not answer.
    pub fn fate(&self) -> String {
        self.shared.take_fault().map_or_else(|| "closed the connection".to_owned(), |fault| fault.to_string())
    }

    /// Tells the server that the session has ended, if it has one.
    pub async fn end(&self) {
        self.shared.closed.cancel();
        let _ = timeout(END_GRACE, self.shared.delete()).await;
    }
}

/// How a connection is opened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Modern,
    Legacy,
    /// The transport of 2024-11-05.
    Sse,
}

/// Connects to the server of an address and shakes hands, in the ways its entry allows, one after the other.
pub async fn connect(
    target: Target,
    config: &ServerConfig,
    is_sse: bool,
    last: Option<Era>,
    handler: impl Fn() -> Handler,
) -> Result<(Service, Session), Failure> {
    let ways: &[Way] = match config.protocol {
        _ if is_sse => &[Way::Sse],
        Protocol::Modern => &[Way::Modern],
        Protocol::Legacy if last == Some(Era::Sse) => &[Way::Sse, Way::Legacy],
        Protocol::Legacy => &[Way::Legacy, Way::Sse],
        Protocol::Auto if last == Some(Era::Sse) => &[Way::Sse, Way::Modern, Way::Legacy],
        Protocol::Auto if last == Some(Era::Older) => &[Way::Legacy, Way::Modern, Way::Sse],
        // A server of the older era refuses the newer one at once over HTTP.
        Protocol::Auto => &[Way::Modern, Way::Legacy, Way::Sse],
    };
    let target = Arc::new(target);
    let began = Instant::now();
    let trying = async {
        let mut refusal: Option<Attempt> = None;
        for way in ways {
            let is_guess = match way {
                Way::Modern => last != Some(Era::Newer),
                Way::Sse => true,
                Way::Legacy => false,
            };
            let share = config.startup_timeout.saturating_sub(began.elapsed()) / 2;
            let opening = open(*way, &target, handler());
            // A server that knows nothing of a way may not even refuse it; time is left for the next one.
            let opened = match ways.last() {
                Some(last_way) if is_guess && last_way != way => {
                    timeout(share, opening).await.unwrap_or_else(|_| Err(Attempt::silent(*way, share)))
                }
                _ => opening.await,
            };
            let attempt = match opened {
                Ok(connected) => return Ok(connected),
                Err(attempt) => attempt,
            };
            // A server that has learned the newer era may have forgotten the older one.
            let is_other_era = *way == Way::Legacy && ways.contains(&Way::Modern) && attempt.was_answered();
            let leaves = is_other_era || attempt.leaves(*way);
            refusal = match refusal {
                // What the older transport says to a server that never had it explains nothing.
                Some(earlier) if *way == Way::Sse && leaves => Some(earlier),
                Some(earlier) if attempt.says_less_than(&earlier) => Some(earlier),
                _ => Some(attempt),
            };
            if !leaves {
                break;
            }
        }
        Err(refusal.map_or_else(|| Failure::failed("cannot be reached in any way"), |attempt| attempt.failure))
    };
    let tried = timeout(config.startup_timeout, trying).await;
    let limit = config.startup_timeout.as_secs_f64();
    let connected = tried.unwrap_or_else(|_| Err(Failure::failed(format!("did not answer within {limit} s"))));
    connected.map_err(|failure| {
        let why = target.remarks.masked(&failure.why);
        let why = if failure.state == State::NeedsAuth { with_advice(&why, config) } else { why };
        Failure { why, ..failure }
    })
}

/// Adds what can be done about a server that wants a sign-in.
fn with_advice(why: &str, config: &ServerConfig) -> String {
    match config.login_command() {
        Some(command) => format!("{why}: {command}"),
        None => format!("{why}: the credentials of its entry were refused"),
    }
}

/// An attempt that failed.
struct Attempt {
    failure: Failure,
    fault: Option<Fault>,
    answer: Answer,
}

/// What a server has answered to a handshake that failed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// That it does not know this kind of handshake.
    UnknownMethod,
    /// Versions that pith does not know.
    OtherVersions,
    /// Something else, or nothing.
    Other,
}

impl Answer {
    fn of(error: &ClientInitializeError) -> Self {
        match error {
            error if is_unknown_method(error) => Answer::UnknownMethod,
            ClientInitializeError::NoCompatibleProtocolVersion { .. } => Answer::OtherVersions,
            _ => Answer::Other,
        }
    }
}

impl Attempt {
    /// An attempt that got no answer in its share of the time.
    fn silent(way: Way, share: Duration) -> Self {
        let what = if way == Way::Modern { "server/discover" } else { "with a stream" };
        let failure = Failure::failed(format!("did not answer {what} within {:.0} s", share.as_secs_f64()));
        Attempt { failure, fault: None, answer: Answer::Other }
    }

    /// Whether an earlier attempt explains better why the server cannot be used.
    fn says_less_than(&self, earlier: &Attempt) -> bool {
        let is_answer = self.failure.state != State::NeedsAuth;
        is_answer && (self.answer == Answer::UnknownMethod || earlier.answer == Answer::OtherVersions)
    }

    /// Whether the server has said no, which it may not say to the other era.
    fn was_answered(&self) -> bool {
        self.fault.is_none() && self.failure.state != State::NeedsAuth
    }

    /// Whether another way may still lead to the server.
    fn leaves(&self, way: Way) -> bool {
        match (&self.fault, way) {
            _ if self.failure.state == State::NeedsAuth => false,
            // It has answered, in another way than this one has it.
            (None, Way::Modern) => true,
            (Some(Fault::Status { status, .. }), Way::Modern) => (400..500).contains(status),
            (Some(Fault::Unusable(_)), Way::Modern) => true,
            (Some(Fault::Status { status, .. }), Way::Legacy) => [400, 404, 405].contains(status),
            _ => way == Way::Sse,
        }
    }
}

async fn open(way: Way, target: &Arc<Target>, handler: Handler) -> Result<(Service, Session), Attempt> {
    let transport = HttpTransport::new(target.clone());
    let shared = transport.shared();
    if way == Way::Sse
        && let Err(fault) = shared.listen_for_endpoint().await
    {
        return Err(Attempt { failure: failure(&fault), fault: Some(fault), answer: Answer::Other });
    }
    let mode = if way == Way::Modern { modern_era() } else { ClientLifecycleMode::Initialize };
    let served = serve_client_with_lifecycle(handler, transport, mode).await;
    let failed = match served {
        Ok(service) => match known_version(service) {
            Ok(service) => return Ok((service, Session::new(shared))),
            Err(Refusal::Said(why) | Refusal::Lost(why)) => {
                Attempt { failure: Failure::failed(why), fault: None, answer: Answer::OtherVersions }
            }
        },
        Err(error) => {
            let fault = shared.take_fault();
            let failure = match (&fault, &error) {
                (Some(fault), ClientInitializeError::TransportError { .. }) => failure(fault),
                _ => Failure::failed(said(&error)),
            };
            Attempt { failure, fault, answer: Answer::of(&error) }
        }
    };
    shared.closed.cancel();
    let _ = timeout(END_GRACE, shared.delete()).await;
    Err(failed)
}

fn failure(fault: &Fault) -> Failure {
    match fault {
        Fault::NeedsAuth(_) => Failure::needs_auth(fault.to_string()),
        _ => Failure::failed(fault.to_string()),
    }
}
