//! Who is let in, and with how much.
//!
//! A connection is checked twice. When it is accepted, it reserves one of the service's connections; when
//! it has greeted, its credentials are checked ([`Access`]) and it reserves one of its user's connections.
//! Afterwards each call of the client is charged to its [`ClientBudgets`], and each call that sets
//! something up also to its [`User`], whichever connection it comes over.

mod access;
mod budget;
mod limits;
mod meters;
mod rate;
mod users;

use std::sync::Arc;

use burst_wire::control::Welcome;

pub use access::Access;
pub(crate) use budget::{Budget, Charge, ClientBudgets};
pub(crate) use limits::LimitError;
pub use limits::{Limit, Limits};
pub(crate) use meters::LimitMeters;
pub(crate) use users::User;
use users::Users;

/// Decides over every connection of a service.
#[derive(Debug)]
pub(crate) struct Admission {
    access: Access,
    connections: Arc<Budget>,
    users: Users,
}

/// One of the service's connections, or none where all were in use.
#[derive(Debug)]
pub(crate) struct Accepted(Option<Charge>);

/// What a connection that was let in holds until its client is gone.
#[derive(Debug)]
pub(crate) struct Admitted {
    user: Arc<User>,
    _of_service: Charge,
    _of_user: Charge,
}

impl Admission {
    pub(crate) fn new(access: Access, limits: &Limits, meters: &Arc<LimitMeters>) -> Self {
        Admission {
            access,
            connections: Budget::new(Limit::Clients, limits.clients, meters),
            users: Users::new(limits, meters),
        }
    }

    /// Takes one of the service's connections for a socket that was just accepted. Where there is
    /// none, the client learns so from the answer to its greeting.
    pub(crate) fn accept(&self) -> Accepted {
        Accepted(self.connections.charge(1).ok())
    }

    /// Lets in the client that has greeted with these credentials.
    ///
    /// # Errors
    /// The refusal, in the words of the greeting's answer.
    pub(crate) fn admit(
        &self,
        uid: u32,
        gid: u32,
        accepted: Accepted,
    ) -> Result<Admitted, Welcome> {
        if !self.access.permits(uid, gid) {
            return Err(Welcome::NotPermitted);
        }
        let of_service = accepted.0.ok_or(Welcome::TooManyClients)?;
        let user = self.users.find(uid);
        // Connecting is a set-up call: it starts a thread.
        let of_user = user.set_up().and_then(|()| user.connect());
        let of_user = of_user.map_err(|_| Welcome::TooManyClients)?;
        Ok(Admitted { user, _of_service: of_service, _of_user: of_user })
    }
}

impl Admitted {
    /// Whom the client's set-up calls are charged to.
    pub(crate) fn user(&self) -> &User {
        &self.user
    }
}
