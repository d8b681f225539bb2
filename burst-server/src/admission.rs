//! Who is let in, and with how much.
//!
//! A connection is checked when it is accepted, before it costs anything: the kernel tells whose it is
//! ([`Peer`]), [`Access`] whether that user may use the service, and the user's account whether there
//! is a place, a thread and a descriptor for it ([`Admission::accept`]). Each user has one account
//! ([`Users`]), within that of the whole service; each client's calls are charged to its
//! [`ClientBudgets`], which are within its user's account.

mod access;
mod account;
mod budget;
mod client;
mod limit;
mod limits;
mod machine;
mod meters;
mod model;
mod peer;
mod users;

use std::sync::Arc;

use burst_wire::control::Welcome;

pub use access::Access;
pub(crate) use account::Balance;
#[cfg(test)]
pub(crate) use budget::Budget;
pub(crate) use budget::Charge;
pub(crate) use client::ClientBudgets;
pub use limit::Limit;
pub(crate) use limit::LimitError;
pub use limits::Limits;
pub use machine::Machine;
pub(crate) use meters::LimitMeters;
pub(crate) use model::ModelAccount;
pub(crate) use peer::Peer;
pub(crate) use users::{User, Users};

/// Decides over every connection of a service.
#[derive(Debug)]
pub(crate) struct Admission {
    access: Access,
    users: Arc<Users>,
}

/// A connection of a user who is let in, before its greeting.
#[derive(Debug)]
pub(crate) struct Accepted {
    /// `None` where the greeting had come with the connection. First, as fields are dropped in this order: when the connection is
    /// not counted any more, its place among those that have not greeted is free.
    ungreeted: Option<Charge>,
    admitted: Admitted,
}

/// What a connection that was let in holds until its client is gone.
#[derive(Debug)]
pub(crate) struct Admitted {
    peer: Peer,
    user: Arc<User>,
    _connection: Charge,
}

/// Why a connection is not taken in.
#[derive(Debug)]
pub(crate) struct NotAccepted {
    pub(crate) welcome: Welcome,
    /// The limit that leaves no place for it.
    limit: Option<LimitError>,
}

impl NotAccepted {
    /// What the client is told besides: who may not come in learns nothing but that.
    pub(crate) fn detail(&self) -> String {
        self.limit.map_or_else(String::new, |limit| limit.to_string())
    }
}

impl Admission {
    pub(crate) fn new(access: Access, users: &Arc<Users>) -> Self {
        Admission { access, users: Arc::clone(users) }
    }

    /// Takes in a connection of this peer, whose greeting lies in the socket already or is still to
    /// come. Nothing here waits, and a refused connection holds nothing.
    ///
    /// # Errors
    /// The refusal, in the words of the greeting's answer.
    pub(crate) fn accept(&self, peer: Peer, has_greeted: bool) -> Result<Accepted, NotAccepted> {
        if !self.access.permits(peer.uid, peer.gid) {
            self.users.meters().stranger();
            return Err(NotAccepted { welcome: Welcome::NotPermitted, limit: None });
        }
        let user = self.users.find(peer.uid);
        let take = || -> Result<_, LimitError> {
            let ungreeted = if has_greeted { None } else { Some(user.wait_for_greeting()?) };
            Ok((ungreeted, user.connect()?))
        };
        let (ungreeted, connection) = take().map_err(|error| {
            tracing::debug!(uid = peer.uid, %error, "no place");
            NotAccepted { welcome: Welcome::TooManyClients, limit: Some(error) }
        })?;
        Ok(Accepted { admitted: Admitted { peer, user, _connection: connection }, ungreeted })
    }
}

impl Accepted {
    /// Whose connection it is.
    pub(crate) fn user(&self) -> &Arc<User> {
        &self.admitted.user
    }

    /// The client has greeted.
    pub(crate) fn greeted(self) -> Admitted {
        drop(self.ungreeted);
        self.admitted
    }
}

impl Admitted {
    /// The process that connected.
    pub(crate) fn peer(&self) -> Peer {
        self.peer
    }

    /// Whom everything is charged to that the client has.
    pub(crate) fn user(&self) -> &Arc<User> {
        &self.user
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(set: impl FnOnce(&mut Limits)) -> (Admission, Arc<Users>) {
        let mut limits = Limits { setup_rate: 0, ..Limits::default() };
        set(&mut limits);
        let users = Arc::new(Users::new(&limits));
        let access = Access { uids: vec![7, 8], ..Access::default() };
        (Admission::new(access, &users), users)
    }

    fn peer(uid: u32) -> Peer {
        Peer { pid: None, uid, gid: uid }
    }

    #[test]
    fn a_stranger_costs_nothing_and_is_counted() {
        let (admission, users) = admission(|_| {});
        for count in 1..=1000 {
            let refused = admission.accept(peer(9), false).unwrap_err();
            assert_eq!((refused.welcome, refused.detail().as_str()), (Welcome::NotPermitted, ""));
            assert_eq!(users.meters().strangers(), count);
        }
        assert!(users.all().is_empty());
        assert!(Limit::ALL.iter().all(|limit| users.meters().used(*limit) == 0));
    }

    #[test]
    fn silent_connections_of_one_user_reach_their_quota_and_leave_the_others_theirs() {
        let (admission, users) = admission(|limits| limits.ungreeted_per_user = 2);
        let accept = |uid, has_greeted| admission.accept(peer(uid), has_greeted);
        let silent = [accept(7, false).unwrap(), accept(7, false).unwrap()];
        let refused = accept(7, false).unwrap_err();
        assert_eq!(refused.welcome, Welcome::TooManyClients);
        let detail = "the limit of 2 on connections of one user that have not greeted is reached";
        assert_eq!(refused.detail(), detail);
        assert_eq!(users.meters().refusals(Limit::UngreetedPerUser), 1);
        let greeted = accept(7, true).expect("whose greeting is there waits for nothing");
        let other = accept(8, false).expect("another user's quota is untouched");
        let admitted = silent.map(Accepted::greeted);
        let next = accept(7, false).expect("who has greeted is not silent any more");
        assert_eq!(users.service().balances()[0].used, 5);
        drop((greeted, other, admitted, next));
        assert!(users.all().is_empty());
    }

    #[test]
    fn a_refused_connection_gives_back_what_it_had_taken() {
        for set in [
            (|limits| limits.clients_per_user = 0) as fn(&mut Limits),
            |limits| limits.threads_per_user = 0,
            |limits| limits.descriptors = 0,
            |limits| limits.clients = 0,
        ] {
            let (admission, users) = admission(set);
            let refused = admission.accept(peer(7), false).unwrap_err();
            assert_eq!(refused.welcome, Welcome::TooManyClients);
            assert!(Limit::ALL.iter().all(|limit| users.meters().used(*limit) == 0));
            assert!(users.all().is_empty());
        }
    }
}
