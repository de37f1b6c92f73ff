//! The streams of a session: answers to requests, notices, and the one stream of the transport of 2024-11-05. Those of the
//! older era go on where they were cut, if the server numbers its events.

use std::sync::Arc;
use std::time::Duration;

use pith_ai::WebResponse;
use tokio::time::{sleep, timeout};

use super::events::{Events, Place};
use super::target::{Fault, TargetRequest, header, read_refusal};
use super::transport::Shared;

/// Before a stream is opened again; doubled each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How often in a row a server may refuse to go on with a stream that was cut.
const MAX_RESUMES: u32 = 5;
/// How long the end of an answered stream is waited for, so that its connection can be used again.
const DRAIN: Duration = Duration::from_secs(1);
const LAST_EVENT: &str = "Last-Event-ID";

impl Shared {
    /// Reads the stream that answers a request. One that is cut goes on where the server can say what came after its
    /// last event; the request itself is never sent again.
    pub(super) async fn follow(self: &Arc<Self>, id: i64, response: WebResponse) -> Result<(), Fault> {
        let mut events = Events::of(response, Place::default());
        loop {
            let cut = match events.next().await {
                Ok(Some(event)) => {
                    self.deliver_text(&event.data).await;
                    if !self.state().requests.is_pending(id) {
                        tokio::spawn(timeout(DRAIN, async move { while let Ok(Some(_)) = events.next().await {} }));
                        return Ok(());
                    }
                    continue;
                }
                Ok(None) => events.end("the answer", &self.target),
                Err(fault @ Fault::Unreachable(_)) => fault,
                Err(fault) => return Err(fault),
            };
            let is_legacy = self.state().legacy_version.is_some();
            if !is_legacy || events.place().last_id.is_none() {
                return Err(cut);
            }
            events = self.resume(events.place().clone()).await.ok_or(cut)?;
        }
    }

    /// Opens a stream again where it was cut; nothing if the server does not let it go on.
    async fn resume(&self, place: Place) -> Option<Events> {
        let mut pause = place.pause.unwrap_or(FIRST_PAUSE);
        for _ in 0..MAX_RESUMES {
            sleep(pause).await;
            match self.get(place.clone()).await {
                Ok(events) => return Some(events),
                Err(fault) if fault.is_passing() => pause = (pause * 2).min(LONGEST_PAUSE),
                Err(_) => return None,
            }
        }
        None
    }

    /// Reads the notices a server of the older era sends by itself, if it has a stream for them.
    pub(super) async fn listen(self: Arc<Self>) {
        let listening = async {
            let (mut place, mut pause) = (Place::default(), FIRST_PAUSE);
            loop {
                match self.get(place.clone()).await {
                    Ok(mut events) => {
                        while let Ok(Some(event)) = events.next().await {
                            self.deliver_text(&event.data).await;
                            pause = FIRST_PAUSE;
                        }
                        place = events.place().clone();
                    }
                    Err(fault) if fault.is_passing() => {}
                    // A server that does not know the place any more may have a new stream.
                    Err(_) if place.last_id.take().is_some() => {}
                    Err(_) => return,
                }
                // Nobody waits for notices; a server that ends each stream at once is not asked all the time.
                sleep(place.pause.unwrap_or_default().max(pause)).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        };
        tokio::select! {
            biased;
            () = self.closed.cancelled() => {}
            () = listening => {}
        }
    }

    async fn get(&self, place: Place) -> Result<Events, Fault> {
        let mut headers = self.state().legacy_headers();
        headers.extend(place.last_id.clone().map(|id| (LAST_EVENT.to_owned(), id)));
        headers.push(("Accept".to_owned(), "text/event-stream".to_owned()));
        let request = TargetRequest { method: "GET", url: &self.target.url, headers, body: None };
        let mut response = self.target.send(&request).await?;
        let kind = header(&response, "content-type").unwrap_or_default().to_ascii_lowercase();
        if response.status != 200 || !kind.starts_with("text/event-stream") {
            let body = read_refusal(&mut response).await;
            return Err(self.fault(&response, &body));
        }
        Ok(Events::of(response, place))
    }

    /// Opens the stream of the transport of 2024-11-05, which begins with the address for messages.
    pub async fn listen_for_endpoint(self: &Arc<Self>) -> Result<(), Fault> {
        let mut events = self.get(Place::default()).await?;
        loop {
            match events.next().await? {
                Some(event) if event.name == "endpoint" => {
                    let endpoint = self.target.url.join(event.data.trim());
                    let endpoint = endpoint.map_err(|error| Fault::Unusable(format!("its endpoint: {error}")))?;
                    if endpoint.origin() != self.target.url.origin() {
                        return Err(Fault::Unusable("wants messages to be sent to another server".to_owned()));
                    }
                    self.state().endpoint = Some(endpoint);
                    break;
                }
                Some(_) => {}
                None => return Err(events.end("it named an endpoint", &self.target)),
            }
        }
        let shared = self.clone();
        tokio::spawn(async move {
            let reading = async {
                while let Ok(Some(event)) = events.next().await {
                    shared.deliver_text(&event.data).await;
                }
            };
            tokio::select! {
                biased;
                () = shared.closed.cancelled() => {}
                () = reading => shared.closed.cancel(),
            }
        });
        Ok(())
    }
}
