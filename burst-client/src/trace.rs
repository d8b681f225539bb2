//! Memory that a driver service writes its spans to.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use burst_hal::trace::{Span, Tracer};
use burst_shm::{Mapping, Memory, ReadOnlyWord};
use burst_wire::control::{Call, StatedLimit};
use burst_wire::trace::{
    DROPPED_AT, HEADER_BYTES, RECORD_BYTES, TRACE_BYTES_MAX, TRACE_BYTES_MIN, WRITTEN_AT,
    decode_span, records_in,
};
use fmq::Deadline;

use crate::{Client, ClientError};

/// Memory for the spans of a service: made here, lent to the service, and read here at any time, also when
/// the service is gone. The first spans are kept; those for which there is no room are counted.
///
/// ```no_run
/// use burst_client::{Client, TraceBuffer};
///
/// # fn traced(tracer: burst_hal::trace::Tracer) -> Result<(), burst_client::ClientError> {
/// let client = Client::connect("/run/user/1000/burst.sock")?;
/// let buffer = TraceBuffer::create(1 << 20)?;
/// client.begin_trace(&buffer, tracer)?; // spans of this end go to the tracer
/// // ... prepare, execute ...
/// let spans = buffer.read(|span, thread| println!("{thread}: {span:?}"))?;
/// println!("{} spans, {} had no room", spans.read, spans.dropped);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TraceBuffer {
    memory: Memory,
    mapping: Arc<Mapping>,
    written: ReadOnlyWord,
    dropped: ReadOnlyWord,
}

/// What lay in a [`TraceBuffer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TraceCounts {
    /// Spans that were read.
    pub read: u64,
    /// Spans for which there was no room.
    pub dropped: u64,
    /// Records that make no sense here: of a later version, or of a service that writes what it likes.
    pub unknown: u64,
}

impl TraceBuffer {
    /// The shortest: one span.
    pub const BYTES_MIN: u64 = TRACE_BYTES_MIN;
    /// The longest that a service takes.
    pub const BYTES_MAX: u64 = TRACE_BYTES_MAX;

    /// Memory for as many spans as have room in so many bytes, 64 each. Its pages are there once they are
    /// written.
    ///
    /// # Errors
    /// [`ClientError::TraceBytes`]; the system has no memory or descriptor left.
    pub fn create(bytes: u64) -> Result<Self, ClientError> {
        let range = TRACE_BYTES_MIN..=TRACE_BYTES_MAX;
        let length = usize::try_from(bytes).ok().filter(|_| range.contains(&bytes));
        let length = length.ok_or(ClientError::TraceBytes { bytes })?;
        let memory = Memory::create("burst-trace", length)?;
        let mapping = Arc::new(Mapping::map_read_only(&memory)?);
        Ok(TraceBuffer {
            written: ReadOnlyWord::new(Arc::clone(&mapping), WRITTEN_AT)?,
            dropped: ReadOnlyWord::new(Arc::clone(&mapping), DROPPED_AT)?,
            mapping,
            memory,
        })
    }

    /// How many spans have room.
    #[must_use]
    pub fn room(&self) -> u64 {
        records_in(self.memory.len())
    }

    /// How many spans lie here.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written.load_relaxed().min(self.room()) // whatever the service says
    }

    /// Bytes that lie here, those before the first span included.
    #[must_use]
    pub fn bytes_used(&self) -> u64 {
        HEADER_BYTES as u64 + self.written() * RECORD_BYTES as u64
    }

    /// Calls `each` for every span that lies here, with the number of the service's thread, in the order in which
    /// they ended. Each is copied out before it is looked at.
    ///
    /// # Errors
    /// The memory cannot be read.
    pub fn read(&self, mut each: impl FnMut(&Span<'_>, u32)) -> Result<TraceCounts, ClientError> {
        let written = self.written();
        // Acquire: pairs with Release in the service; the records before the word are whole.
        fence(Ordering::Acquire);
        let mut counts = TraceCounts { dropped: self.dropped.load_relaxed(), ..Default::default() };
        let region = self.mapping.region(HEADER_BYTES, self.mapping.len() - HEADER_BYTES)?;
        let mut record = [0; RECORD_BYTES];
        // At most as many as there are bytes in the mapping.
        for at in (0..region.len()).step_by(RECORD_BYTES).zip(0..written).map(|(at, _)| at) {
            region.copy_out(at, &mut record)?;
            match decode_span(&record) {
                Some((span, thread)) => {
                    each(&span, thread);
                    counts.read += 1;
                }
                None => counts.unknown += 1,
            }
        }
        Ok(counts)
    }
}

impl AsFd for TraceBuffer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.memory.as_fd()
    }
}

impl Client {
    /// From now on the service writes the spans of all that it does for this connection to `buffer`, which its
    /// user pays for there; those of this end go to `own`.
    ///
    /// # Errors
    /// [`ClientError::UnknownCall`] from a service that is older than this; the service refuses it, as where it
    /// does so already.
    pub fn begin_trace(&self, buffer: &TraceBuffer, own: Tracer) -> Result<(), ClientError> {
        let link = self.link();
        let length = buffer.memory.len();
        if let Some(limit) = link.peer.limits.get(StatedLimit::TraceBytes)
            && length > limit
        {
            return Err(ClientError::TraceTooLong { bytes: length, limit });
        }
        let call = Call::BeginTrace { length };
        link.call_acknowledged(call, &[buffer.as_fd()], Deadline::never())?;
        link.trace_to(Some(own));
        Ok(())
    }

    /// Neither end records spans of this connection any more, and the service has let go of the buffer.
    ///
    /// # Errors
    /// The service is gone, or older than this.
    pub fn end_trace(&self) -> Result<(), ClientError> {
        self.link().trace_to(None);
        self.link().call_acknowledged(Call::EndTrace, &[], Deadline::never())
    }
}

#[cfg(test)]
mod tests {
    use burst_hal::trace::SpanKind;
    use burst_wire::trace::encode_span;

    use super::*;

    fn span(index: u32) -> Span<'static> {
        Span { index, ..Span::since(1, SpanKind::Device) }
    }

    /// What a service would write.
    fn write(buffer: &TraceBuffer, at: usize, bytes: &[u8]) {
        let mapping = Mapping::map(&buffer.memory).unwrap();
        mapping.region(at, bytes.len()).unwrap().copy_in(0, bytes).unwrap();
    }

    fn read(buffer: &TraceBuffer) -> (Vec<u32>, TraceCounts) {
        let mut seen = Vec::new();
        let counts = buffer.read(|span, _| seen.push(span.index)).unwrap();
        (seen, counts)
    }

    #[test]
    fn what_the_service_has_written_is_read_and_no_more() {
        let buffer = TraceBuffer::create(4096).unwrap();
        assert_eq!((buffer.room(), buffer.written()), (63, 0));
        assert_eq!(read(&buffer), (vec![], TraceCounts::default()));
        for index in 0..3 {
            let at = HEADER_BYTES + index as usize * RECORD_BYTES;
            write(&buffer, at, &encode_span(&span(index), 9));
        }
        write(&buffer, WRITTEN_AT, &2_u64.to_le_bytes());
        write(&buffer, DROPPED_AT, &5_u64.to_le_bytes());
        assert_eq!(read(&buffer), (vec![0, 1], TraceCounts { read: 2, dropped: 5, unknown: 0 }));
    }

    #[test]
    fn a_service_that_writes_what_it_likes_is_read_within_the_memory_and_counted() {
        let buffer = TraceBuffer::create(HEADER_BYTES as u64 + 3 * RECORD_BYTES as u64).unwrap();
        write(&buffer, 0, &[0xFF; HEADER_BYTES + 3 * RECORD_BYTES]);
        write(&buffer, HEADER_BYTES + RECORD_BYTES, &encode_span(&span(7), 9));
        let counts = TraceCounts { read: 1, dropped: u64::MAX, unknown: 2 };
        assert_eq!(read(&buffer), (vec![7], counts));
    }

    #[test]
    fn a_length_that_no_service_takes_is_refused_here() {
        for bytes in [0, TraceBuffer::BYTES_MIN - 1, TraceBuffer::BYTES_MAX + 1, u64::MAX] {
            let refused = TraceBuffer::create(bytes).unwrap_err().to_string();
            assert!(refused.contains(&format!("{bytes} bytes")), "{refused}");
        }
        assert_eq!(TraceBuffer::create(TraceBuffer::BYTES_MIN).unwrap().room(), 1);
    }
}
