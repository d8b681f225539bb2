//! iceoryx2, both of its patterns, polling and with its events.

use burst_harness::transport::case::ANSWER_BYTES;
use burst_harness::transport::case::FRAME_BYTES;
use burst_harness::transport::names;
use burst_harness::transport::session::{Measured, Served};
use burst_harness::transport::work::AnswerBytes;
use burst_harness::{
    Case, ClientEnd, ClientSession, HarnessError, Link, Peer, Placement, ServerSession, WaitKind,
};
use iceoryx2::pending_response::PendingResponse;
use iceoryx2::port::client::Client;
use iceoryx2::port::listener::Listener;
use iceoryx2::port::notifier::Notifier;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::*;

use super::{has_size, sized, with_size};

type Answer = [u8; ANSWER_BYTES];
type Pending<const N: usize> = PendingResponse<ipc::Service, [u8; N], (), Answer, ()>;

/// Whether iceoryx2 can be measured so: it polls, or it waits for its events; it has no policy in
/// between.
fn supports(case: &Case) -> bool {
    has_size(case.request_bytes)
        && case.in_flight == 1
        && case.wait != WaitKind::Adaptive
        && !case.spins_in_vain()
}

/// The client says under which name both meet; its process id makes it unique.
fn name_for(link: &Link) -> Result<String, HarnessError> {
    let name = format!("burst-bench-{}", std::process::id());
    link.send(&name, &[])?;
    Ok(name)
}

fn node() -> Result<Node<ipc::Service>, HarnessError> {
    set_log_level(LogLevel::Error);
    NodeBuilder::new().create::<ipc::Service>().map_err(HarnessError::peer)
}

fn service_name(base: &str, part: &str) -> Result<ServiceName, HarnessError> {
    format!("{base}/{part}").as_str().try_into().map_err(HarnessError::peer)
}

/// The events of one end: it waits for its own and rings the other's. Absent where it polls.
struct Bell {
    own: Listener<ipc::Service>,
    other: Notifier<ipc::Service>,
}

impl Bell {
    fn new(
        node: &Node<ipc::Service>,
        base: &str,
        case: &Case,
        [own, other]: [&str; 2],
    ) -> Result<Option<Bell>, HarnessError> {
        if case.wait == WaitKind::Spin {
            return Ok(None);
        }
        let event = |part| {
            let builder = node.service_builder(&service_name(base, part)?).event();
            builder.open_or_create().map_err(HarnessError::peer)
        };
        let own = event(own)?.listener_builder().create().map_err(HarnessError::peer)?;
        let other = event(other)?.notifier_builder().create().map_err(HarnessError::peer)?;
        Ok(Some(Bell { own, other }))
    }
}

fn ring(bell: Option<&Bell>) -> Result<(), HarnessError> {
    if let Some(bell) = bell {
        bell.other.notify().map_err(HarnessError::peer)?;
    }
    Ok(())
}

/// Looks until there is something: at once again, or after the bell has rung.
fn wait_for<T>(
    bell: Option<&Bell>,
    mut look: impl FnMut() -> Result<Option<T>, HarnessError>,
) -> Result<T, HarnessError> {
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        if let Some(bell) = bell {
            bell.own.blocking_wait(|_| {}).map_err(HarnessError::peer)?;
        }
    }
}

const CLIENT_BELLS: [&str; 2] = ["client", "server"];
const SERVER_BELLS: [&str; 2] = ["server", "client"];

/// One service of requests and responses.
#[derive(Debug)]
pub struct RequestResponse;

impl Peer for RequestResponse {
    fn name(&self) -> &'static str {
        names::ICEORYX_REQUEST
    }

    fn supports(&self, case: &Case) -> bool {
        supports(case)
    }

    fn client(&self, session: ClientSession<'_>) -> Result<Measured, HarnessError> {
        with_size!(session.case().request_bytes, request_client::<N>(session))
    }

    fn server(&self, session: ServerSession<'_>) -> Result<Served, HarnessError> {
        with_size!(session.case().request_bytes, request_server::<N>(session))
    }
}

struct RequestEnd<const N: usize> {
    client: Client<ipc::Service, [u8; N], (), Answer, ()>,
    pending: Option<Pending<N>>,
    bell: Option<Bell>,
}

fn request_client<const N: usize>(
    mut session: ClientSession<'_>,
) -> Result<Measured, HarnessError> {
    let name = name_for(&session.link)?;
    let node = node()?;
    let bell = Bell::new(&node, &name, session.case(), CLIENT_BELLS)?;
    let service = node
        .service_builder(&service_name(&name, "calls")?)
        .request_response::<[u8; N], Answer>()
        .open_or_create()
        .map_err(HarnessError::peer)?;
    let client = service.client_builder().create().map_err(HarnessError::peer)?;
    // The server is there before the first request.
    session.link.meet()?;
    session.run(&mut RequestEnd { client, pending: None, bell })
}

impl<const N: usize> ClientEnd for RequestEnd<N> {
    fn send(&mut self, request: &[u8]) -> Result<(), HarnessError> {
        let loan = self.client.loan_uninit().map_err(HarnessError::peer)?;
        let loan = loan.write_payload(*sized(request)?);
        self.pending = Some(loan.send().map_err(HarnessError::peer)?);
        ring(self.bell.as_ref())
    }

    fn receive(&mut self, answer: &mut AnswerBytes) -> Result<(), HarnessError> {
        let Some(pending) = self.pending.take() else {
            return Err(HarnessError::Handshake { expected: "an answer to a request" });
        };
        let response =
            wait_for(self.bell.as_ref(), || pending.receive().map_err(HarnessError::peer))?;
        answer.copy_from_slice(response.payload());
        Ok(())
    }
}

fn request_server<const N: usize>(mut session: ServerSession<'_>) -> Result<Served, HarnessError> {
    let (name, _): (String, _) = session.link.receive()?;
    let node = node()?;
    let bell = Bell::new(&node, &name, session.case(), SERVER_BELLS)?;
    let service = node
        .service_builder(&service_name(&name, "calls")?)
        .request_response::<[u8; N], Answer>()
        .open_or_create()
        .map_err(HarnessError::peer)?;
    let server = service.server_builder().create().map_err(HarnessError::peer)?;
    session.link.meet()?;
    session.run(|work| {
        let request = wait_for(bell.as_ref(), || server.receive().map_err(HarnessError::peer))?;
        let answer = work.answer(request.payload());
        let loan = request.loan_uninit().map_err(HarnessError::peer)?;
        loan.write_payload(answer).send().map_err(HarnessError::peer)?;
        ring(bell.as_ref())
    })
}

/// Two services of samples, one each way.
#[derive(Debug)]
pub struct PublishSubscribe;

impl Peer for PublishSubscribe {
    fn name(&self) -> &'static str {
        names::ICEORYX_PUBLISH
    }

    fn supports(&self, case: &Case) -> bool {
        supports(case)
    }

    fn client(&self, session: ClientSession<'_>) -> Result<Measured, HarnessError> {
        with_size!(session.case().request_bytes, publish_client::<N>(session))
    }

    fn server(&self, session: ServerSession<'_>) -> Result<Served, HarnessError> {
        with_size!(session.case().request_bytes, publish_server::<N>(session))
    }
}

struct PublishEnd<const N: usize> {
    requests: Publisher<ipc::Service, [u8; N], ()>,
    answers: Subscriber<ipc::Service, Answer, ()>,
    bell: Option<Bell>,
}

macro_rules! topic {
    ($node:expr, $base:expr, $part:literal, $payload:ty) => {
        $node
            .service_builder(&service_name($base, $part)?)
            .publish_subscribe::<$payload>()
            .open_or_create()
            .map_err(HarnessError::peer)?
    };
}

fn publish_client<const N: usize>(
    mut session: ClientSession<'_>,
) -> Result<Measured, HarnessError> {
    let name = name_for(&session.link)?;
    let node = node()?;
    let bell = Bell::new(&node, &name, session.case(), CLIENT_BELLS)?;
    let requests = topic!(node, &name, "requests", [u8; N]);
    let answers = topic!(node, &name, "answers", Answer);
    let requests = requests.publisher_builder().create().map_err(HarnessError::peer)?;
    let answers = answers.subscriber_builder().create().map_err(HarnessError::peer)?;
    // Both subscribers are there before the first sample.
    session.link.meet()?;
    session.run(&mut PublishEnd { requests, answers, bell })
}

impl<const N: usize> ClientEnd for PublishEnd<N> {
    fn send(&mut self, request: &[u8]) -> Result<(), HarnessError> {
        let loan = self.requests.loan_uninit().map_err(HarnessError::peer)?;
        loan.write_payload(*sized(request)?).send().map_err(HarnessError::peer)?;
        ring(self.bell.as_ref())
    }

    fn receive(&mut self, answer: &mut AnswerBytes) -> Result<(), HarnessError> {
        let sample =
            wait_for(self.bell.as_ref(), || self.answers.receive().map_err(HarnessError::peer))?;
        answer.copy_from_slice(sample.payload());
        Ok(())
    }
}

fn publish_server<const N: usize>(mut session: ServerSession<'_>) -> Result<Served, HarnessError> {
    let (name, _): (String, _) = session.link.receive()?;
    let node = node()?;
    let bell = Bell::new(&node, &name, session.case(), SERVER_BELLS)?;
    let requests = topic!(node, &name, "requests", [u8; N]);
    let answers = topic!(node, &name, "answers", Answer);
    let requests = requests.subscriber_builder().create().map_err(HarnessError::peer)?;
    let answers = answers.publisher_builder().create().map_err(HarnessError::peer)?;
    session.link.meet()?;
    session.run(|work| {
        let request = wait_for(bell.as_ref(), || requests.receive().map_err(HarnessError::peer))?;
        let answer = work.answer(request.payload());
        drop(request);
        let loan = answers.loan_uninit().map_err(HarnessError::peer)?;
        loan.write_payload(answer).send().map_err(HarnessError::peer)?;
        ring(bell.as_ref())
    })
}

/// A frame loaned from the publisher, written in place, read in place.
#[derive(Debug)]
pub struct Frame;

impl Peer for Frame {
    fn name(&self) -> &'static str {
        names::ICEORYX_FRAME
    }

    fn supports(&self, case: &Case) -> bool {
        FRAME_BYTES.contains(&case.request_bytes)
            && case.wait == WaitKind::Spin
            && case.placement == Placement::PinnedApart
            && case.in_flight == 1
    }

    fn client(&self, mut session: ClientSession<'_>) -> Result<Measured, HarnessError> {
        let name = name_for(&session.link)?;
        let node = node()?;
        let frames = topic!(node, &name, "frames", [u8]);
        let answers = topic!(node, &name, "answers", Answer);
        let frames = frames.publisher_builder().initial_max_slice_len(session.case().request_bytes);
        let frames = frames.create().map_err(HarnessError::peer)?;
        let answers = answers.subscriber_builder().create().map_err(HarnessError::peer)?;
        session.link.meet()?;
        session.run(&mut FrameEnd { frames, answers })
    }

    fn server(&self, mut session: ServerSession<'_>) -> Result<Served, HarnessError> {
        let (name, _): (String, _) = session.link.receive()?;
        let node = node()?;
        let frames = topic!(node, &name, "frames", [u8]);
        let answers = topic!(node, &name, "answers", Answer);
        let frames = frames.subscriber_builder().create().map_err(HarnessError::peer)?;
        let answers = answers.publisher_builder().create().map_err(HarnessError::peer)?;
        session.link.meet()?;
        session.run(|work| {
            let frame = wait_for(None, || frames.receive().map_err(HarnessError::peer))?;
            let answer = work.answer(frame.payload());
            drop(frame);
            let loan = answers.loan_uninit().map_err(HarnessError::peer)?;
            loan.write_payload(answer).send().map_err(HarnessError::peer)?;
            Ok(())
        })
    }
}

struct FrameEnd {
    frames: Publisher<ipc::Service, [u8], ()>,
    answers: Subscriber<ipc::Service, Answer, ()>,
}

impl ClientEnd for FrameEnd {
    fn send(&mut self, request: &[u8]) -> Result<(), HarnessError> {
        let loan = self.frames.loan_slice_uninit(request.len()).map_err(HarnessError::peer)?;
        loan.write_from_slice(request).send().map_err(HarnessError::peer)?;
        Ok(())
    }

    fn receive(&mut self, answer: &mut AnswerBytes) -> Result<(), HarnessError> {
        let look = || self.answers.receive().map_err(HarnessError::peer);
        answer.copy_from_slice(wait_for(None, look)?.payload());
        Ok(())
    }
}
