//! Requests under way on one burst, and results that wait until their caller takes them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use burst_hal::Pool;
use burst_wire::DecodedResult;

use crate::ClientError;
use crate::connection::RemoteToken;

/// A request that was [submitted](crate::Burst::submit). Dropping it drops interest in the result,
/// not the request: it is executed all the same.
#[derive(Debug)]
pub struct Ticket {
    number: u64,
    claim: Arc<()>,
}

/// Requests in the order in which they were sent. Results come in the same order, so the first
/// `ready` entries have theirs, and the others have not.
///
/// Entries are used again: from the second round on nothing is allocated.
#[derive(Debug)]
pub(crate) struct Pipeline {
    entries: VecDeque<Entry>,
    spare: Vec<Entry>,
    ready: usize,
    next: u64,
    depth: usize,
    /// Datums that the results still to come may take.
    reserved: usize,
}

/// One request.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) number: u64,
    holder: Holder,
    /// Shared with the ticket; alone here when that is gone.
    claim: Arc<()>,
    /// How many outputs the request has.
    pub(crate) outputs: usize,
    pub(crate) measured: bool,
    reserved: usize,
    /// The request's memories, which must keep their slots until it was executed. A caller that waits holds them
    /// itself; those of any other request are here.
    pub(crate) pools: Vec<Pool>,
    /// Its buffers of the driver, which must not be released until then.
    pub(crate) buffers: Vec<Arc<RemoteToken>>,
    pub(crate) result: DecodedResult,
    pub(crate) driver_time: Option<Duration>,
    pub(crate) fell_back: bool,
}

/// Who wants a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holder {
    /// A call of `execute` that is under way.
    Caller,
    /// The holder of the ticket.
    Ticket,
    /// No one: the caller gave up.
    Nobody,
}

impl Entry {
    fn new() -> Self {
        Entry {
            number: 0,
            holder: Holder::Nobody,
            claim: Arc::default(),
            outputs: 0,
            measured: false,
            reserved: 0,
            pools: Vec::new(),
            buffers: Vec::new(),
            result: DecodedResult::default(),
            driver_time: None,
            fell_back: false,
        }
    }

    fn is_wanted(&self) -> bool {
        match self.holder {
            Holder::Caller => true,
            Holder::Ticket => Arc::strong_count(&self.claim) > 1,
            Holder::Nobody => false,
        }
    }
}

impl Pipeline {
    pub(crate) fn new(depth: usize) -> Self {
        Pipeline {
            entries: VecDeque::with_capacity(depth),
            spare: Vec::with_capacity(depth),
            ready: 0,
            next: 0,
            depth,
            reserved: 0,
        }
    }

    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// Requests whose results are still to come.
    pub(crate) fn outstanding(&self) -> usize {
        self.entries.len() - self.ready
    }

    /// Whether results still to come and one more of so many datums fit a queue of `capacity`.
    /// The first one is let through whatever it may need: the service answers it somehow.
    pub(crate) fn has_room(&self, datums: usize, capacity: usize) -> bool {
        self.outstanding() == 0 || self.reserved + datums <= capacity
    }

    /// Makes sure that one more request may be under way. `Ok(false)`: only after the next
    /// result, whose caller gave up, was taken.
    ///
    /// # Errors
    /// [`ClientError::PipelineFull`]: the program holds tickets for all of them.
    pub(crate) fn admit(&mut self) -> Result<bool, ClientError> {
        self.forget_unwanted();
        if self.entries.len() < self.depth {
            return Ok(true);
        }
        if self.entries.iter().skip(self.ready).any(|entry| !entry.is_wanted()) {
            return Ok(false);
        }
        Err(ClientError::PipelineFull { depth: self.depth })
    }

    /// The number of the next request.
    pub(crate) fn next_number(&self) -> u64 {
        self.next
    }

    /// Takes note of a request that was sent; its result may take `reserved` datums.
    pub(crate) fn sent(&mut self, holder: Holder, reserved: usize) -> &mut Entry {
        let mut entry = self.spare.pop().unwrap_or_else(Entry::new);
        if Arc::strong_count(&entry.claim) > 1 {
            entry.claim = Arc::default(); // the program still holds the last ticket of this entry
        }
        entry.number = self.next;
        entry.holder = holder;
        entry.reserved = reserved;
        entry.driver_time = None;
        entry.fell_back = false;
        entry.pools.clear();
        entry.buffers.clear();
        self.next += 1;
        self.reserved += reserved;
        let at = self.entries.len();
        self.entries.push_back(entry);
        &mut self.entries[at]
    }

    /// The earliest request that has no result yet.
    pub(crate) fn next_pending(&mut self) -> Option<&mut Entry> {
        self.entries.get_mut(self.ready)
    }

    /// Marks that request ready: its result is there.
    pub(crate) fn mark_ready(&mut self) {
        if let Some(entry) = self.entries.get_mut(self.ready) {
            entry.pools.clear();
            entry.buffers.clear();
            self.reserved -= entry.reserved;
            self.ready += 1;
        }
    }

    /// The ticket of the request sent last.
    pub(crate) fn ticket(&self) -> Option<Ticket> {
        let entry = self.entries.back()?;
        Some(Ticket { number: entry.number, claim: Arc::clone(&entry.claim) })
    }

    /// The number of a ticket's request, where its result was not collected yet.
    ///
    /// # Errors
    /// [`ClientError::UnknownTicket`].
    pub(crate) fn number_of(&self, ticket: &Ticket) -> Result<u64, ClientError> {
        let at = self.position(ticket.number).ok_or(ClientError::UnknownTicket)?;
        let same = Arc::ptr_eq(&self.entries[at].claim, &ticket.claim);
        if same { Ok(ticket.number) } else { Err(ClientError::UnknownTicket) }
    }

    /// Whether the result of this request is there.
    pub(crate) fn is_ready(&self, number: u64) -> bool {
        self.position(number).is_some_and(|at| at < self.ready)
    }

    /// The caller of this request gave up. The service goes on with it, and with its memories.
    pub(crate) fn abandon(&mut self, number: u64) -> Option<&mut Entry> {
        let at = self.position(number)?;
        let entry = &mut self.entries[at];
        entry.holder = Holder::Nobody;
        Some(entry)
    }

    /// Whether the service has not answered a request whose caller gave up.
    pub(crate) fn is_late(&self) -> bool {
        self.entries.iter().skip(self.ready).any(|entry| entry.holder == Holder::Nobody)
    }

    /// Hands out the entry of a request whose result is there; give it back with
    /// [`Pipeline::reuse`].
    pub(crate) fn collect(&mut self, number: u64) -> Option<Entry> {
        let at = self.position(number).filter(|at| *at < self.ready)?;
        self.ready -= 1;
        self.entries.remove(at)
    }

    pub(crate) fn reuse(&mut self, mut entry: Entry) {
        entry.holder = Holder::Nobody;
        self.spare.push(entry);
    }

    /// Whether a request under way uses this memory.
    pub(crate) fn uses(&self, memory: &Pool) -> bool {
        let mut outstanding = self.entries.iter().skip(self.ready);
        outstanding.any(|entry| entry.pools.iter().any(|pool| Arc::ptr_eq(pool, memory)))
    }

    /// Drops results whose callers gave up or dropped their tickets.
    fn forget_unwanted(&mut self) {
        let mut at = 0;
        while at < self.ready {
            if self.entries[at].is_wanted() {
                at += 1;
            } else if let Some(entry) = self.entries.remove(at) {
                self.ready -= 1;
                self.reuse(entry);
            }
        }
    }

    /// Entries are in the order of their numbers.
    fn position(&self, number: u64) -> Option<usize> {
        self.entries.binary_search_by_key(&number, |entry| entry.number).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn submit(pipeline: &mut Pipeline) -> Ticket {
        assert!(pipeline.admit().unwrap());
        pipeline.sent(Holder::Ticket, 10);
        pipeline.ticket().unwrap()
    }

    #[test]
    fn results_come_in_order_and_are_collected_in_any() {
        let mut pipeline = Pipeline::new(3);
        let tickets = [(); 3].map(|()| submit(&mut pipeline));
        assert!(matches!(pipeline.admit(), Err(ClientError::PipelineFull { depth: 3 })));
        assert_eq!(pipeline.outstanding(), 3);
        let numbers = tickets.each_ref().map(|ticket| pipeline.number_of(ticket).unwrap());
        for (at, number) in numbers.iter().enumerate() {
            assert!(!pipeline.is_ready(*number));
            assert_eq!(pipeline.next_pending().unwrap().number, *number);
            pipeline.mark_ready();
            assert!(pipeline.is_ready(*number));
            assert_eq!(pipeline.outstanding(), 2 - at);
        }
        for number in [numbers[1], numbers[0], numbers[2]] {
            let entry = pipeline.collect(number).unwrap();
            assert_eq!(entry.number, number);
            pipeline.reuse(entry);
            assert!(pipeline.collect(number).is_none(), "collected twice");
        }
        let spent = pipeline.number_of(&tickets[0]);
        assert!(matches!(spent, Err(ClientError::UnknownTicket)));
        assert!(pipeline.next_pending().is_none());
    }

    #[test]
    fn a_dropped_ticket_makes_room_when_its_result_has_come() {
        let mut pipeline = Pipeline::new(2);
        let (first, second) = (submit(&mut pipeline), submit(&mut pipeline));
        drop(first);
        assert!(!pipeline.admit().unwrap(), "its result has to come first");
        pipeline.mark_ready();
        let third = submit(&mut pipeline);
        drop(second);
        pipeline.mark_ready();
        let fourth = submit(&mut pipeline);
        assert!(matches!(pipeline.admit(), Err(ClientError::PipelineFull { .. })));
        assert_eq!([third.number, fourth.number], [2, 3]);
        assert_eq!(pipeline.outstanding(), 2);
    }

    #[test]
    fn a_ticket_of_another_burst_or_round_is_unknown() {
        let (mut one, mut other) = (Pipeline::new(1), Pipeline::new(1));
        let ticket = submit(&mut one);
        let theirs = submit(&mut other);
        assert_eq!(ticket.number, theirs.number);
        assert!(matches!(one.number_of(&theirs), Err(ClientError::UnknownTicket)));
        one.mark_ready();
        let entry = one.collect(ticket.number).unwrap();
        one.reuse(entry);
        let next = submit(&mut one); // while the old ticket is still held
        assert!(matches!(one.number_of(&ticket), Err(ClientError::UnknownTicket)));
        assert_eq!(one.number_of(&next).unwrap(), 1);
    }

    #[test]
    fn results_still_to_come_keep_their_room() {
        let mut pipeline = Pipeline::new(4);
        assert!(pipeline.has_room(1000, 16), "the first may be as long as it likes");
        let _first = submit(&mut pipeline);
        assert!(pipeline.has_room(6, 16) && !pipeline.has_room(7, 16));
        pipeline.mark_ready();
        assert!(pipeline.has_room(1000, 16));
    }

    #[test]
    fn memories_are_in_use_until_the_result_has_come() {
        let mut pipeline = Pipeline::new(2);
        let pool: Pool = Arc::new(burst_hal::HeapMemory::new(vec![1]));
        pipeline.sent(Holder::Ticket, 1).pools.push(Pool::clone(&pool));
        assert!(pipeline.uses(&pool));
        pipeline.mark_ready();
        assert!(!pipeline.uses(&pool));
        // Of a request whose caller has given up, too.
        let number = pipeline.next_number();
        pipeline.sent(Holder::Caller, 1);
        assert!(!pipeline.is_late());
        pipeline.abandon(number).unwrap().pools.push(Pool::clone(&pool));
        assert!(pipeline.is_late() && pipeline.uses(&pool));
        pipeline.mark_ready();
        assert!(!pipeline.is_late() && !pipeline.uses(&pool));
    }
}
