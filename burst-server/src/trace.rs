//! Spans of what is done for a client, written to a memory that the client lends.
//!
//! The memory is the client's, and so is all that may be in it: nothing of it is ever read here. Where the next
//! record goes, and how many had no room, is known in this process; the words in the memory only tell the client.
//! What lies there is the client's own business, so it may read while more is written.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use burst_hal::trace::{Span, SpanSink};
use burst_shm::{Mapping, Memory, Shared, SharedRegion, mapped_bytes};
use burst_wire::trace::{
    DROPPED_AT, HEADER_BYTES, RECORD_BYTES, TRACE_BYTES_MAX, TRACE_BYTES_MIN, WRITTEN_AT,
    encode_span, records_in,
};

use crate::ServerError;
use crate::admission::{Charge, ClientBudgets, Limit, LimitMeters};
use crate::panics::lock;

/// Where the spans of one client go, while it wants them.
#[derive(Debug, Default)]
pub(crate) struct ClientTrace {
    is_on: AtomicBool,
    /// Under a lock, so that records are whole in their order whichever threads of the client's they come from.
    /// Other clients have others.
    area: Mutex<Option<Area>>,
}

/// The memory, and how far it is written.
#[derive(Debug)]
struct Area {
    records: SharedRegion,
    written_word: Shared<AtomicU64>,
    dropped_word: Shared<AtomicU64>,
    written: u64,
    dropped: u64,
    room: u64,
    _charge: Charge,
}

impl ClientTrace {
    /// Writes spans to the first `length` bytes of this memory from now on. The client pays for them, as
    /// address space and as memory: each page may be written here first.
    ///
    /// # Errors
    /// [`ServerError::AlreadyTracing`]; a limit; a memory that is shorter, can still be shrunk or cannot be
    /// written.
    pub(crate) fn begin(
        &self,
        descriptor: OwnedFd,
        length: u64,
        budgets: &ClientBudgets,
        meters: &LimitMeters,
    ) -> Result<(), ServerError> {
        if length < TRACE_BYTES_MIN {
            return Err(ServerError::TraceTooShort { length });
        }
        meters.within(Limit::TraceBytes, length, TRACE_BYTES_MAX)?;
        if self.is_on() {
            return Err(ServerError::AlreadyTracing);
        }
        let charge = budgets.trace(mapped_bytes(length))?;
        // Without the lock: a file on a file system of the client's own may take its time.
        let mapped = Area::map(descriptor, length, charge)?;
        let mut area = lock(&self.area);
        if area.is_some() {
            return Err(ServerError::AlreadyTracing);
        }
        *area = Some(mapped);
        // Relaxed: who sees it takes the lock before it looks at the area.
        self.is_on.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Writes nothing any more, and gives the memory back.
    pub(crate) fn end(&self) {
        self.is_on.store(false, Ordering::Relaxed);
        let area = lock(&self.area).take();
        drop(area); // the lock is let go of by now
    }
}

impl Area {
    fn map(descriptor: OwnedFd, length: u64, charge: Charge) -> Result<Self, ServerError> {
        let memory = Memory::from_fd(descriptor)?;
        let mapping = Arc::new(Mapping::map_first(&memory, length)?);
        let records = mapping.len() - HEADER_BYTES;
        let area = Area {
            records: SharedRegion::new(Arc::clone(&mapping), HEADER_BYTES, records)?,
            written_word: Shared::new(Arc::clone(&mapping), WRITTEN_AT)?,
            dropped_word: Shared::new(mapping, DROPPED_AT)?,
            written: 0,
            dropped: 0,
            room: records_in(length),
            _charge: charge,
        };
        area.publish();
        Ok(area)
    }

    fn record(&mut self, span: &Span<'_>) {
        let at = usize::try_from(self.written).map(|written| written * RECORD_BYTES);
        let record = encode_span(span, own_thread());
        let written = self.written < self.room
            && at.is_ok_and(|at| self.records.region().copy_in(at, &record).is_ok());
        match written {
            true => self.written += 1,
            false => self.dropped += 1,
        }
        self.publish();
    }

    fn publish(&self) {
        self.dropped_word.store(self.dropped, Ordering::Relaxed);
        // Release: pairs with Acquire in the client, for which the records before this word are whole.
        self.written_word.store(self.written, Ordering::Release);
    }
}

impl SpanSink for ClientTrace {
    fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    fn record(&self, span: &Span<'_>) {
        if let Some(area) = lock(&self.area).as_mut() {
            area.record(span);
        }
    }
}

/// The calling thread, as the kernel numbers it.
fn own_thread() -> u32 {
    thread_local! {
        static NUMBER: u32 = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
    }
    NUMBER.with(|number| *number)
}

#[cfg(test)]
mod tests {
    use burst_hal::trace::SpanKind;
    use burst_wire::trace::decode_span;
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};

    use super::*;
    use crate::admission::{Limits, Users};

    const SPAN: Span<'static> = Span {
        kind: SpanKind::Device,
        begin_ns: 5,
        end_ns: 6,
        operation: None,
        graph: 0,
        index: 0,
        detail: "",
    };
    const TWO_RECORDS: usize = HEADER_BYTES + 2 * RECORD_BYTES;

    struct Client {
        users: Users,
        budgets: ClientBudgets,
        trace: ClientTrace,
    }

    impl Client {
        fn new(set: impl FnOnce(&mut Limits)) -> Self {
            let mut limits = Limits::default();
            set(&mut limits);
            let users = Users::new(&limits);
            let budgets = ClientBudgets::new(&limits, &users.find(7), users.meters());
            Client { users, budgets, trace: ClientTrace::default() }
        }

        fn begin(&self, memory: impl Into<OwnedFd>, length: usize) -> Result<(), ServerError> {
            let meters = self.users.meters();
            self.trace.begin(memory.into(), length as u64, &self.budgets, meters)
        }

        /// Bytes of memory and of address space that are charged for it.
        fn charged(&self) -> [u64; 2] {
            let used = |limit| self.users.meters().used(limit);
            [used(Limit::MemoryBytesPerUser), used(Limit::AddressSpaceBytesPerUser)]
        }
    }

    /// The words of a memory for spans.
    fn words(memory: &Memory) -> [u64; 2] {
        let mapping = Mapping::map(memory).unwrap();
        let region = mapping.region(0, HEADER_BYTES).unwrap();
        [WRITTEN_AT, DROPPED_AT]
            .map(|at| region.atomic::<AtomicU64>(at).unwrap().load(Ordering::Acquire))
    }

    fn record(memory: &Memory, index: usize) -> [u8; RECORD_BYTES] {
        let mut record = [0; RECORD_BYTES];
        let at = HEADER_BYTES + index * RECORD_BYTES;
        let mapping = Mapping::map(memory).unwrap();
        mapping.region(at, RECORD_BYTES).unwrap().copy_out(0, &mut record).unwrap();
        record
    }

    #[test]
    fn spans_are_written_in_order_and_those_without_room_are_counted() {
        let client = Client::new(|_| ());
        let memory = Memory::create("trace", TWO_RECORDS).unwrap();
        client.trace.record(&SPAN); // nobody wants it
        assert!(!client.trace.is_on());
        client.begin(memory.duplicate_fd().unwrap(), TWO_RECORDS).unwrap();
        assert!(client.trace.is_on());
        assert_eq!(words(&memory), [0, 0]);
        for index in 0..5 {
            client.trace.record(&Span { index, ..SPAN });
        }
        assert_eq!(words(&memory), [2, 3]);
        for index in [0, 1] {
            let bytes = record(&memory, index);
            let (span, thread) = decode_span(&bytes).unwrap();
            assert_eq!((span.index as usize, thread), (index, own_thread()));
        }
    }

    #[test]
    fn it_is_charged_while_it_is_on_and_nothing_is_written_afterwards() {
        let client = Client::new(|_| ());
        let memory = Memory::create("trace", 3 * 4096).unwrap();
        client.begin(memory.duplicate_fd().unwrap(), 2 * 4096 + 1).unwrap();
        assert_eq!(client.charged(), [3 * 4096; 2], "whole pages");
        let again = client.begin(memory.duplicate_fd().unwrap(), 4096);
        assert!(matches!(again, Err(ServerError::AlreadyTracing)), "{again:?}");
        client.trace.record(&SPAN);
        client.trace.end();
        assert_eq!(client.charged(), [0; 2]);
        client.trace.record(&SPAN);
        assert!(!client.trace.is_on());
        assert_eq!(words(&memory), [1, 0]);
        // And again, from the beginning.
        client.begin(memory.duplicate_fd().unwrap(), 4096).unwrap();
        assert_eq!(words(&memory), [0, 0]);
        drop(client.trace);
        let used = |limit| client.users.meters().used(limit);
        assert_eq!(used(Limit::MemoryBytesPerUser), 0);
    }

    #[test]
    fn a_memory_that_cannot_be_used_is_refused_and_costs_nothing() {
        let client = Client::new(|limits| limits.memory_bytes_per_user = 1 << 20);
        let memory = |bytes| Memory::create("trace", bytes).unwrap();
        let unsealed = || {
            let fd = memfd_create("unsealed", MemfdFlags::CLOEXEC).unwrap();
            ftruncate(&fd, 4096).unwrap();
            fd
        };
        let sealed = || {
            let fd = memfd_create("sealed", MemfdFlags::ALLOW_SEALING).unwrap();
            ftruncate(&fd, 4096).unwrap();
            fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::WRITE).unwrap();
            fd
        };
        let (pipe, _write) = std::io::pipe().unwrap();
        let most = usize::try_from(TRACE_BYTES_MAX).unwrap();
        for (what, memory, length, said) in [
            ("no record", memory(4096).into(), 127, "127 bytes"),
            ("nothing", memory(4096).into(), 0, "0 bytes"),
            ("shorter than it says", memory(4096).into(), 4097, "4096 bytes"),
            ("over the limit", memory(4096).into(), most + 1, "over the limit of 67108864"),
            ("as much as can be said", memory(4096).into(), usize::MAX, "over the limit"),
            ("sparse, and more than the user has", memory(most).into(), most, "of memory for one"),
            ("not sealed", unsealed(), 4096, "not sealed against shrinking"),
            ("not writable", sealed(), 4096, "mmap"),
            ("a pipe", pipe.into(), 4096, "not a regular file"),
        ] {
            let memory: OwnedFd = memory;
            let refused = client.begin(memory, length).expect_err(what).to_string();
            assert!(refused.contains(said), "{what}: {refused}");
            assert_eq!(client.charged(), [0; 2], "{what}");
            assert!(!client.trace.is_on(), "{what}");
        }
        client.begin(memory(4096), 4096).expect("it may be tried again");
    }

    #[test]
    fn what_a_client_scribbles_over_its_memory_changes_nothing_here() {
        let client = Client::new(|_| ());
        let memory = Memory::create("trace", TWO_RECORDS).unwrap();
        client.begin(memory.duplicate_fd().unwrap(), TWO_RECORDS).unwrap();
        let mapping = Mapping::map(&memory).unwrap();
        let scribble = || {
            mapping.region(0, TWO_RECORDS).unwrap().copy_in(0, &[0xFF; TWO_RECORDS]).unwrap();
        };
        scribble();
        client.trace.record(&SPAN);
        assert_eq!(words(&memory), [1, 0], "the counts are ours");
        assert!(decode_span(&record(&memory, 0)).is_some());
        scribble();
        client.trace.record(&SPAN);
        client.trace.record(&SPAN);
        assert_eq!(words(&memory), [2, 1]);
        assert!(decode_span(&record(&memory, 0)).is_none(), "its own business");
        assert!(decode_span(&record(&memory, 1)).is_some());
    }

    #[test]
    fn threads_of_one_client_write_whole_records_one_after_the_other() {
        const EACH: u32 = 500;
        let client = Client::new(|_| ());
        let bytes = HEADER_BYTES + 4 * EACH as usize * RECORD_BYTES;
        let memory = Memory::create("trace", bytes).unwrap();
        client.begin(memory.duplicate_fd().unwrap(), bytes).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let trace = &client.trace;
                scope.spawn(move || {
                    for index in 0..EACH {
                        trace.record(&Span { graph: thread, index, ..SPAN });
                    }
                });
            }
        });
        assert_eq!(words(&memory), [4 * u64::from(EACH), 0]);
        let mut next = [0; 4];
        for index in 0..4 * EACH as usize {
            let bytes = record(&memory, index);
            let (span, _) = decode_span(&bytes).unwrap();
            assert_eq!(span.index, next[span.graph as usize], "in the order of its thread");
            next[span.graph as usize] += 1;
        }
        assert_eq!(next, [EACH; 4]);
    }
}
