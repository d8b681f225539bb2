//! A client's session: its greeting, the threads that read its calls, and everything that the calls created.
//!
//! A call comes in at `readers.rs`, which gives it a permit; `dispatch.rs` finds the function that does
//! it, in the file of its subject; `replies.rs` answers it.

mod buffers;
mod bursts;
mod compilations;
mod devices;
mod dispatch;
mod executions;
mod greeting;
mod host;
mod launches;
mod memories;
mod models;
mod prepare_by;
mod readers;
mod refusal;
mod replies;
mod table;
mod traces;

use std::sync::{Arc, Mutex, MutexGuard};

use burst_hal::Priority;
use burst_wire::{Features, WireError};

use crate::ServerError;
use crate::admission::{Accepted, ClientBudgets};
use crate::burst::BurstHandle;
use crate::client::{ClientLink, ClientSocket, Presence};
use crate::launches::Launches;
use crate::panics::lock;
use crate::running::Running;
use crate::scheduler::{Run, Work};
use greeting::{Greeted, greet};
pub(crate) use host::Host;
use readers::{Readers, count_malformed};
pub(crate) use refusal::refuse;
use replies::Replies;
use table::Table;

/// A connection that was accepted and has not greeted.
pub(crate) struct Connection {
    pub(crate) socket: Arc<ClientSocket>,
    /// The client's number, which names its threads and log lines.
    pub(crate) number: u64,
    pub(crate) accepted: Accepted,
    /// Held until the client is gone.
    pub(crate) running: Running,
}

/// A client that was let in. The threads that read its socket share it; the last of them drops it,
/// and with it all that the client has. Its bursts do not know it.
struct Session {
    host: Arc<Host>,
    /// Additions to HAL 1.2 that both ends know.
    features: Features,
    budgets: Arc<ClientBudgets>,
    socket: Arc<ClientSocket>,
    link: Arc<ClientLink>,
    replies: Arc<Replies>,
    readers: Readers,
    table: Arc<Mutex<Table>>,
    /// Executions that the client does not wait for.
    launches: Launches,
    /// The last field, and so dropped last.
    presence: Arc<Presence>,
}

/// Serves one client until the connection ends. Its bursts may take longer to end: each as long as
/// the execution that is under way on it.
///
/// # Errors
/// The client breaks the protocol.
pub(crate) fn run(host: &Arc<Host>, connection: Connection) -> Result<(), ServerError> {
    let result = serve(host, connection);
    count_malformed(&host.metrics, &result);
    match result {
        Err(ServerError::Wire(WireError::Closed)) => Ok(()),
        other => other,
    }
}

fn serve(host: &Arc<Host>, connection: Connection) -> Result<(), ServerError> {
    let Connection { socket, number, accepted, running } = connection;
    let Greeted { admitted, features, program } = greet(host, &socket, number, accepted)?;
    let _shown = host.metrics.session(number, admitted.peer(), &program);
    let presence = Presence::new(number, admitted, running);
    Arc::new(Session::new(host, socket, features, presence)).read()
}

impl Session {
    fn new(
        host: &Arc<Host>,
        socket: Arc<ClientSocket>,
        features: Features,
        presence: Presence,
    ) -> Self {
        let meters = &host.metrics.limits;
        let budgets = Arc::new(ClientBudgets::new(&host.limits, presence.user(), meters));
        let (uid, scheduler) = (presence.peer().uid, Arc::clone(&host.scheduler));
        let link = ClientLink::new(Arc::clone(&socket), Arc::clone(&budgets), uid, scheduler);
        let replies = Replies::new(Arc::clone(&socket), features, Arc::clone(&host.metrics));
        let (link, presence) = (Arc::new(link), Arc::new(presence));
        Session {
            launches: Launches::new(&host.launches, &link, &budgets, features, &presence),
            host: Arc::clone(host),
            features,
            budgets,
            socket,
            link,
            replies: Arc::new(replies),
            readers: Readers::default(),
            table: Arc::default(),
            presence,
        }
    }

    /// What the client has.
    fn table(&self) -> MutexGuard<'_, Table> {
        lock(&self.table)
    }

    /// A call of the client that is going to compute.
    fn run(&self, work: Work, priority: Priority) -> Arc<Run> {
        let claimant = self.presence.claimant(priority);
        let run = self.host.scheduler.run(claimant, work, self.link.cancel_word());
        run.traced_by(self.link.tracer());
        run
    }

    /// Ends the connection, and with it every thread that reads it and every burst.
    fn close(&self) {
        let bursts: Vec<_> = {
            let mut table = self.table();
            table.is_closed = true;
            table.bursts.values().map(BurstHandle::closers).collect()
        };
        self.socket.hang_up();
        self.link.close();
        self.launches.close();
        for closers in bursts {
            closers.close();
        }
    }
}

impl Drop for Session {
    /// The connection has ended, and no thread reads it any more.
    fn drop(&mut self) {
        let bursts = std::mem::take(&mut self.table().bursts);
        bursts.into_values().for_each(BurstHandle::abandon);
    }
}
