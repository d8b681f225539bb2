//! The spans of this process.

use std::sync::{Mutex, MutexGuard, PoisonError};

use burst_hal::trace::{Span, SpanSink};

use super::frames::{OwnedSpan, Process};

/// Keeps the first spans that come, as many as have room.
#[derive(Debug)]
pub(super) struct Recorder {
    room: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    spans: Vec<OwnedSpan>,
    dropped: u64,
}

/// Bytes of one span, as in the memory that a driver writes.
const SPAN_BYTES: u64 = 64;

impl Recorder {
    /// Room for spans in so many bytes.
    pub(super) fn new(bytes: u64) -> Self {
        let room = usize::try_from(bytes / SPAN_BYTES).unwrap_or(usize::MAX);
        Recorder { room, kept: Mutex::default() }
    }

    /// What was kept.
    pub(super) fn process(&self) -> Process {
        let Kept { spans, dropped } = std::mem::take(&mut *self.lock());
        Process { pid: std::process::id(), spans, dropped, unknown: 0 }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SpanSink for Recorder {
    fn is_on(&self) -> bool {
        true
    }

    fn record(&self, span: &Span<'_>) {
        let span = OwnedSpan::new(span, own_thread());
        let mut kept = self.lock();
        match kept.spans.len() < self.room {
            true => kept.spans.push(span),
            false => kept.dropped += 1,
        }
    }
}

/// The calling thread, as the kernel numbers it.
fn own_thread() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

#[cfg(test)]
mod tests {
    use burst_hal::trace::SpanKind;

    use super::*;

    #[test]
    fn the_first_spans_are_kept_and_those_without_room_counted() {
        let recorder = Recorder::new(2 * SPAN_BYTES + 63);
        for index in 0..5 {
            recorder.record(&Span { index, ..Span::since(1, SpanKind::Frame) });
        }
        let Process { spans, dropped, .. } = recorder.process();
        let kept: Vec<u32> = spans.iter().map(|span| span.index).collect();
        assert_eq!((kept, dropped), (vec![0, 1], 3));
        assert!(spans.iter().all(|span| span.thread == own_thread()));
    }
}
