//! How a client hears of the end of an execution that it started and did not wait for.
//!
//! Whoever ends an execution may be anybody's thread: the one that watches fences, one that cancels. So
//! the client is told where there is room in its socket just now; where there is none, by a thread of its
//! own, which may wait.

use std::sync::Arc;

use burst_hal::{ErrorStatus, ExecutionResult, HalVersion};
use burst_wire::control::{Executed, ServerMessage, WireShape};
use burst_wire::{Features, WireError};

use super::lane::{Lane, Member, Piece};
use crate::admission::Charge;
use crate::client::{ClientLink, Presence};

/// Tells one client.
pub(super) struct Telling {
    link: Arc<ClientLink>,
    lane: Arc<Lane>,
    features: Features,
}

/// What a client is to be told by a thread of its own, and what it holds until then.
struct Untold {
    message: ServerMessage,
    link: Arc<ClientLink>,
    lane: Arc<Lane>,
    _place: Charge,
    _member: Member,
    _presence: Arc<Presence>,
}

impl Telling {
    pub(super) fn new(link: Arc<ClientLink>, lane: Arc<Lane>, features: Features) -> Self {
        Telling { link, lane, features }
    }

    /// A status as this client knows it.
    pub(super) fn status(&self, status: ErrorStatus) -> ErrorStatus {
        match self.features.contains(Features::STATUS_1_3) {
            true => status,
            false => status.for_version(HalVersion::V1_2),
        }
    }

    /// An asynchronous execution has ended; its number and its place are free again. This does not wait.
    pub(super) fn executed(
        &self,
        execution: u32,
        mut result: ExecutionResult,
        in_driver_ns: Option<u64>,
        (member, presence): (Member, Arc<Presence>),
    ) {
        result.status = self.status(result.status);
        let message = |result: &ExecutionResult| {
            let executed = Executed::new(result, in_driver_ns);
            ServerMessage::Executed { execution, executed }
        };
        let mut said = message(&result);
        let mut told = self.link.tell_now(&said);
        if matches!(told, Err(WireError::Malformed { .. } | WireError::MessageTooLong { .. })) {
            // The device's answer is too large for a message.
            said = message(&ExecutionResult::of(ErrorStatus::GeneralFailure));
            told = self.link.tell_now(&said);
        }
        match told {
            Ok(true) => {}
            Ok(false) => self.tell_later(said, member, presence),
            Err(error) => tracing::debug!(%error, execution, "client already disconnected"),
        }
    }

    fn tell_later(&self, message: ServerMessage, member: Member, presence: Arc<Presence>) {
        let link = Arc::clone(&self.link);
        // It takes a place again, and room for what is said, so that who does not read cannot pile up what it is to
        // be told.
        let Ok(place) = link.pending_message(held_bytes(&message)) else { return link.hang_up() };
        let lane = Arc::clone(&self.lane);
        let (_place, _member, _presence) = (place, member, presence);
        self.lane.enter(Arc::new(Untold { message, link, lane, _place, _member, _presence }));
    }
}

/// What a message keeps that waits to be told.
fn held_bytes(message: &ServerMessage) -> u64 {
    let shapes: &[WireShape] = match message {
        ServerMessage::Executed { executed, .. } => &executed.shapes.0,
        _ => &[],
    };
    let sizes: usize = shapes.iter().map(|shape| shape.dimensions.0.capacity()).sum();
    (size_of::<Untold>() + size_of_val(shapes) + sizes * size_of::<u32>()) as u64
}

impl Piece for Untold {
    fn admitted(self: Arc<Self>) {
        let lane = Arc::clone(&self.lane);
        lane.dispatch(self);
    }

    fn work(self: Arc<Self>) {
        self.link.tell(&self.message);
    }

    fn no_thread(self: Arc<Self>) {
        self.link.hang_up();
    }
}
