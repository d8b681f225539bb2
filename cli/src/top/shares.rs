//! Who computed how much of all that was computed, and who had more of it than its share.

use std::collections::{BTreeMap, BTreeSet};

use super::look::as_f64;

/// A client has more than its share of the computing where it has so much more than that, as a part of all.
const SHARE_MARGIN: f64 = 0.1;

/// What was computed for a client, on a burst or over the socket, and how long that waited for its turn.
pub(super) struct Work {
    pub(super) client: u64,
    pub(super) uid: u32,
    pub(super) computed_ns: u64,
    pub(super) waited_ns: u64,
}

/// Who computed how much.
pub(super) struct Shares {
    /// By client: its user, and what was computed for it.
    clients: BTreeMap<u64, (u32, u64)>,
    all: u64,
    /// Clients that waited for their turn.
    waited: BTreeSet<u64>,
}

impl Shares {
    pub(super) fn of(works: impl Iterator<Item = Work>) -> Shares {
        let mut clients = BTreeMap::new();
        let mut waited = BTreeSet::new();
        for work in works {
            let entry = clients.entry(work.client).or_insert((work.uid, 0_u64));
            entry.1 = entry.1.saturating_add(work.computed_ns);
            if work.waited_ns > 0 {
                waited.insert(work.client);
            }
        }
        let all = clients.values().fold(0_u64, |sum, (_, ns)| sum.saturating_add(*ns));
        Shares { clients, all, waited }
    }

    pub(super) fn part(&self, ns: u64) -> f64 {
        if self.all == 0 { 0.0 } else { as_f64(ns) / as_f64(self.all) }
    }

    pub(super) fn of_client(&self, client: u64) -> f64 {
        self.clients.get(&client).map_or(0.0, |(_, ns)| self.part(*ns))
    }

    /// What a client would have if users had equal shares, and a user's clients too, of those that want any.
    fn fair(&self, client: u64) -> f64 {
        let wants = |one: &u64, ns: u64| ns > 0 || self.waited.contains(one) || *one == client;
        let wanting = || self.clients.iter().filter(|(one, (_, ns))| wants(one, *ns));
        let Some((own, _)) = self.clients.get(&client) else { return 1.0 };
        let users: BTreeSet<u32> = wanting().map(|(_, (uid, _))| *uid).collect();
        let own_clients = wanting().filter(|(_, (uid, _))| uid == own).count();
        1.0 / as_f64((users.len() * own_clients).max(1) as u64)
    }

    /// It has a good deal more than its fair share, while somebody else waited for it.
    pub(super) fn is_over(&self, client: u64) -> bool {
        let somebody_waited = self.waited.iter().any(|one| *one != client);
        somebody_waited && self.of_client(client) > self.fair(client) + SHARE_MARGIN
    }
}
