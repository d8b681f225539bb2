//! How a burst ends: its client closes it, and its server lets go of it, in either order.

use std::sync::{Arc, Mutex};

use crate::admission::Charge;
use crate::client::Presence;
use crate::panics::lock;

/// Tells the client that its burst has ended.
pub(crate) type Reply = Box<dyn FnOnce() + Send>;

/// Joins the two sides of a burst's end: the client closes the burst, and the burst's server releases
/// it. The side that comes last gives the burst's charge back and then replies to the client. Neither
/// side waits for the other.
///
/// The charge outlasts each side alone: a client that breaks its bursts and never closes them must not
/// heap up handles, and one that closes bursts in the middle of an execution must not heap up threads.
pub(super) struct Ending(Mutex<State>);

enum State {
    /// Not closed, and served.
    Running { _charge: Charge },
    /// Closed; what was under way is still served.
    Closing { charge: Charge, reply: Reply },
    /// No longer served; the client has not closed it.
    Unserved { charge: Charge },
    /// Both.
    Ended,
}

impl Ending {
    pub(super) fn new(charge: Charge) -> Arc<Self> {
        Arc::new(Ending(Mutex::new(State::Running { _charge: charge })))
    }

    /// The client closes the burst; `reply` is called when it has ended.
    pub(super) fn close(&self, reply: Reply) {
        self.step(|state| match state {
            State::Running { _charge: charge } => (State::Closing { charge, reply }, None),
            State::Unserved { charge } => (State::Ended, Some((charge, reply))),
            // Closing consumes the handle, so a burst is closed only once.
            state @ (State::Closing { .. } | State::Ended) => (state, None),
        });
    }

    /// The burst's server has let go of all of it.
    fn unserved(&self) {
        self.step(|state| match state {
            State::Running { _charge: charge } => (State::Unserved { charge }, None),
            State::Closing { charge, reply } => (State::Ended, Some((charge, reply))),
            state @ (State::Unserved { .. } | State::Ended) => (state, None),
        });
    }

    fn step(&self, step: impl FnOnce(State) -> (State, Option<(Charge, Reply)>)) {
        let mut state = lock(&self.0);
        let (next, ended) = step(std::mem::replace(&mut *state, State::Ended));
        *state = next;
        drop(state);
        if let Some((charge, reply)) = ended {
            drop(charge); // a client that has the reply finds room for its next burst
            reply();
        }
    }
}

/// Held by the server of a burst, which drops it after everything else of the burst. The client counts as
/// present until then.
pub(super) struct Served {
    ending: Arc<Ending>,
    _presence: Arc<Presence>,
}

impl Served {
    pub(super) fn new(ending: &Arc<Ending>, presence: Arc<Presence>) -> Self {
        Served { ending: Arc::clone(ending), _presence: presence }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.ending.unserved();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;
    use crate::admission::{Budget, Limit, LimitError, LimitMeters};

    fn one() -> Arc<Budget> {
        Budget::new(Limit::Bursts, 1, &Arc::new(LimitMeters::default()))
    }

    /// Says whether the next burst may start at the time of the reply.
    fn reply(budget: &Arc<Budget>, said: &Sender<bool>) -> Reply {
        let (budget, said) = (Arc::clone(budget), said.clone());
        Box::new(move || said.send(budget.charge(1).is_ok()).unwrap())
    }

    #[test]
    fn the_reply_and_the_charge_wait_for_both_sides_in_either_order() {
        let (said, replies) = channel();
        for close_first in [true, false] {
            let budget = one();
            let ending = Ending::new(budget.charge(1).unwrap());
            let sides: [&dyn Fn(); 2] =
                [&|| ending.close(reply(&budget, &said)), &|| ending.unserved()];
            let (first, last) = if close_first { (0, 1) } else { (1, 0) };
            sides[first]();
            assert!(replies.try_recv().is_err(), "close first: {close_first}");
            assert!(matches!(budget.charge(1), Err(LimitError::Exhausted { .. })));
            sides[last]();
            assert_eq!(replies.try_recv(), Ok(true), "close first: {close_first}");
        }
    }

    #[test]
    fn a_burst_that_is_never_closed_gives_its_charge_back_with_its_handle() {
        let budget = one();
        let ending = Ending::new(budget.charge(1).unwrap());
        ending.unserved();
        assert!(budget.charge(1).is_err());
        drop(ending);
        assert!(budget.charge(1).is_ok());
    }
}
