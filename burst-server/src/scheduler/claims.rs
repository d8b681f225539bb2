//! Whose turn it is: fair between users; of a user the most urgent first, then fair between its connections,
//! then in the order of arrival. Values in, values out: no clock, no thread.
//!
//! Start-time fair queuing on two levels, with priorities between them. Each user has a *virtual time*: how long was computed for it
//! while somebody waited. The user with the least is served next, and so are the connections of a
//! user. The virtual time of the one that was served last is the *floor*. A member that comes (back)
//! starts no more than [`QUANTUM_NS`] before the floor, so that hours of idleness are no credit; and
//! what is computed while nobody waits is not counted, so that nobody pays later for time that no one
//! else wanted. A priority orders the runs of one user alone: it neither adds to the user's share nor takes
//! from that of others.

use std::cmp::Ordering;
use std::collections::VecDeque;

use burst_hal::Priority;

/// How long a run may compute while somebody with as good a claim waits, and how far a user may be ahead of
/// one that waits, in nanoseconds. A hand-over costs two switches of threads and cold caches, some ten
/// microseconds: under a percent of it.
pub(super) const QUANTUM_NS: u64 = 2_000_000;

/// For whom a run computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claimant {
    /// The user id of the client.
    pub(crate) user: u32,
    /// The number of the client's connection.
    pub(crate) connection: u64,
    /// How urgent it is to this user.
    pub(crate) priority: Priority,
}

/// Who waits, and for whom how much was computed.
#[derive(Debug)]
pub(super) struct Claims<T> {
    users: Fair<u32, Priorities<T>>,
    waiting: usize,
}

/// A user's waiting runs: by priority, the least urgent first.
#[derive(Debug)]
struct Priorities<T>([Connections<T>; PRIORITIES]);

const PRIORITIES: usize = 3;

/// Connections of a user with their waiting runs of one priority.
type Connections<T> = Fair<u64, VecDeque<T>>;

/// Members that have equal shares.
#[derive(Debug)]
struct Fair<K, W> {
    /// The virtual time of the member that was served last.
    floor: u64,
    /// How often a member was served.
    served: u64,
    members: Vec<Member<K, W>>,
}

#[derive(Debug)]
struct Member<K, W> {
    key: K,
    /// Its virtual time.
    computed_ns: u64,
    /// When it was served last, by the count of [`Fair::served`].
    last_served: u64,
    waiting: W,
}

/// What of a member waits.
trait Waiting: Default {
    fn is_empty(&self) -> bool;
}

impl<T> Waiting for VecDeque<T> {
    fn is_empty(&self) -> bool {
        VecDeque::is_empty(self)
    }
}

impl<T> Waiting for Priorities<T> {
    fn is_empty(&self) -> bool {
        self.0.iter().all(Waiting::is_empty)
    }
}

impl<T> Default for Priorities<T> {
    fn default() -> Self {
        Priorities(std::array::from_fn(|_| Fair::default()))
    }
}

impl<T> Waiting for Connections<T> {
    fn is_empty(&self) -> bool {
        self.members.iter().all(|member| member.waiting.is_empty())
    }
}

impl<K, W> Default for Fair<K, W> {
    fn default() -> Self {
        Fair { floor: QUANTUM_NS, served: 0, members: Vec::new() }
    }
}

impl<K: Copy + Eq, W: Waiting> Fair<K, W> {
    /// Where a member starts that waits for nothing so far.
    fn start(&self) -> u64 {
        self.floor.saturating_sub(QUANTUM_NS)
    }

    fn member(&mut self, key: K) -> &mut Member<K, W> {
        let start = self.start();
        let at = self.members.iter().position(|member| member.key == key).unwrap_or_else(|| {
            let waiting = W::default();
            self.members.push(Member { key, computed_ns: start, last_served: 0, waiting });
            self.members.len() - 1
        });
        let member = &mut self.members[at];
        if member.waiting.is_empty() {
            member.computed_ns = member.computed_ns.max(start);
        }
        member
    }

    /// The virtual time of a member, also of one that is not there.
    fn computed(&self, key: K) -> u64 {
        let member = self.members.iter().find(|member| member.key == key);
        member.map_or(self.start(), |member| member.computed_ns)
    }

    /// Whose turn it is: the least virtual time; among equals, who was not served for longest.
    fn best(&self) -> Option<usize> {
        self.best_of(|_| true)
    }

    /// The same among some.
    fn best_of(&self, may: impl Fn(K) -> bool) -> Option<usize> {
        let waits = |one: &Member<K, W>| !one.waiting.is_empty() && may(one.key);
        let waiting = self.members.iter().enumerate().filter(|(_, one)| waits(one));
        waiting.min_by_key(|(_, one)| (one.computed_ns, one.last_served)).map(|(at, _)| at)
    }

    fn serve(&mut self, at: usize) -> &mut Member<K, W> {
        self.served += 1;
        let member = &mut self.members[at];
        member.last_served = self.served;
        self.floor = self.floor.max(member.computed_ns);
        member
    }

    /// Forgets those that would start at the same virtual time if they came anew.
    fn forget_the_absent(&mut self) {
        let start = self.start();
        self.members.retain(|one| !one.waiting.is_empty() || one.computed_ns > start);
    }
}

impl<T> Priorities<T> {
    fn of(&mut self, priority: Priority) -> &mut Connections<T> {
        &mut self.0[level(priority)]
    }

    /// The level of the most urgent run that waits.
    fn most_urgent(&self) -> Option<usize> {
        self.0.iter().rposition(|connections| !connections.is_empty())
    }

    /// Takes the run of this user that is served next.
    fn next(&mut self) -> Option<T> {
        let level = self.most_urgent()?;
        self.0[level].next()
    }
}

fn level(priority: Priority) -> usize {
    match priority {
        Priority::Low => 0,
        Priority::Medium => 1,
        Priority::High => 2,
    }
}

impl<T> Connections<T> {
    /// Takes the run of these that is served next.
    fn next(&mut self) -> Option<T> {
        let at = self.best()?;
        let next = self.serve(at).waiting.pop_front();
        self.forget_the_absent();
        next
    }
}

impl<T> Connections<T> {
    /// The same between connections, and within one.
    fn is_due(&self, connection: u64, slice_ns: u64) -> bool {
        let Some(at) = self.best() else { return false };
        let best = &self.members[at];
        let ahead = if best.key == connection {
            slice_ns
        } else {
            self.computed(connection).saturating_sub(best.computed_ns)
        };
        ahead >= QUANTUM_NS
    }
}

impl<T: PartialEq> Claims<T> {
    pub(super) fn new() -> Self {
        Claims { users: Fair::default(), waiting: 0 }
    }

    /// How many runs wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// All that wait, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        let levels = self.users.members.iter().flat_map(|user| &user.waiting.0);
        let connections = levels.flat_map(|level| &level.members);
        connections.flat_map(|connection| &connection.waiting)
    }

    /// A run waits, behind those of its connection that wait already.
    pub(super) fn join(&mut self, of: Claimant, run: T) {
        let user = self.users.member(of.user);
        let connections = user.waiting.of(of.priority);
        connections.member(of.connection).waiting.push_back(run);
        self.waiting += 1;
    }

    /// A run waits no more; gives whether it did.
    pub(super) fn leave(&mut self, of: Claimant, run: &T) -> bool {
        let connections = self.users.member(of.user).waiting.of(of.priority);
        let waiting = &mut connections.member(of.connection).waiting;
        let Some(at) = waiting.iter().position(|one| one == run) else { return false };
        waiting.remove(at);
        self.waiting -= 1;
        true
    }

    /// So long was computed for somebody while others waited.
    pub(super) fn charge(&mut self, of: Claimant, nanos: u64) {
        let user = self.users.member(of.user);
        user.computed_ns = user.computed_ns.saturating_add(nanos);
        // Between connections it matters only where a run of as great a priority waits.
        let connections = user.waiting.of(of.priority);
        if !connections.is_empty() {
            let connection = connections.member(of.connection);
            connection.computed_ns = connection.computed_ns.saturating_add(nanos);
        }
    }

    /// Takes the run whose turn it is.
    pub(super) fn next(&mut self) -> Option<T> {
        self.next_of(|_| true).map(|(_, next)| next)
    }

    /// Takes the run whose turn it is among those of some users; gives whose it was.
    pub(super) fn next_of(&mut self, may: impl Fn(u32) -> bool) -> Option<(u32, T)> {
        let at = self.users.best_of(may)?;
        let member = self.users.serve(at);
        let (user, next) = (member.key, member.waiting.next()?);
        self.users.forget_the_absent();
        self.waiting -= 1;
        Some((user, next))
    }

    /// Whether a run that has computed for `slice_ns` has to hand its token over: it is a quantum ahead of
    /// the one whose turn it is, or that one is of its own user and more urgent. Between users it counts
    /// how much was computed for each of them, between connections of a user likewise, within a
    /// connection this run alone.
    pub(super) fn is_due(&self, of: Claimant, slice_ns: u64) -> bool {
        let Some(at) = self.users.best() else { return false };
        let user = &self.users.members[at];
        if user.key != of.user {
            return self.users.computed(of.user).saturating_sub(user.computed_ns) >= QUANTUM_NS;
        }
        let Some(urgent) = user.waiting.most_urgent() else { return false };
        match urgent.cmp(&level(of.priority)) {
            Ordering::Greater => true,
            Ordering::Less => false,
            Ordering::Equal => user.waiting.0[urgent].is_due(of.connection, slice_ns),
        }
    }

    /// Whether somebody of such a user waits.
    #[cfg(test)]
    pub(super) fn waits_any_of(&self, is_meant: impl Fn(u32) -> bool) -> bool {
        self.users.best_of(is_meant).is_some()
    }

    /// The virtual time of a user.
    #[cfg(test)]
    pub(super) fn computed(&self, user: u32) -> u64 {
        self.users.computed(user)
    }

    /// Forgets who has computed how much. Nobody waits.
    pub(super) fn forget(&mut self) {
        self.users = Fair::default();
    }
}

#[cfg(test)]
#[path = "claims_tests.rs"]
mod tests;
