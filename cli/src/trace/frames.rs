//! The spans of all processes, frame by frame: which frame each belongs to, how long requests and results were on
//! their way, and which frames are whole.

use burst_client::{ClientError, TraceBuffer};
use burst_hal::OperationType;
use burst_hal::trace::{Span, SpanKind};

/// Threads of the kernel have smaller numbers (2^22 at most): these are the two queues.
pub(super) const REQUEST_QUEUE: u32 = (1 << 22) + 1;
pub(super) const RESULT_QUEUE: u32 = (1 << 22) + 2;

/// A span that was copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OwnedSpan {
    pub(super) kind: SpanKind,
    pub(super) begin: u64,
    pub(super) end: u64,
    pub(super) thread: u32,
    pub(super) operation: Option<OperationType>,
    pub(super) graph: u32,
    pub(super) index: u32,
    pub(super) detail: Box<str>,
    /// The number of the frame that it belongs to.
    pub(super) frame: Option<u32>,
}

/// The spans of one process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) spans: Vec<OwnedSpan>,
    /// Spans that had no room.
    pub(super) dropped: u64,
    /// Records that make no sense.
    pub(super) unknown: u64,
}

/// What goes into the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Arranged {
    /// This process first, then drivers in the order in which they came. Spans by thread, those that
    /// contain others before them.
    pub(super) processes: Vec<Process>,
    /// Frames that are whole.
    pub(super) frames: u64,
    /// Spans that had no room, or whose frame is not whole.
    pub(super) dropped: u64,
    pub(super) unknown: u64,
}

impl OwnedSpan {
    pub(super) fn new(span: &Span<'_>, thread: u32) -> Self {
        let Span { kind, begin_ns, end_ns, operation, graph, index, detail } = *span;
        let (begin, end, detail) = (begin_ns, end_ns, detail.into());
        OwnedSpan { kind, begin, end, thread, operation, graph, index, detail, frame: None }
    }

    /// The way between two ends, on a track of its own.
    fn way(kind: SpanKind, thread: u32, begin: u64, end: u64) -> Self {
        let span = Span { begin_ns: begin, end_ns: end, ..Span::since(begin, kind) };
        OwnedSpan::new(&span, thread)
    }

    fn contains(&self, other: &OwnedSpan) -> bool {
        self.begin <= other.begin && other.end <= self.end
    }
}

impl Process {
    /// What a driver has written so far.
    pub(super) fn read(pid: u32, buffer: &TraceBuffer) -> Result<Self, ClientError> {
        let mut spans = Vec::new();
        let counts = buffer.read(|span, thread| spans.push(OwnedSpan::new(span, thread)))?;
        Ok(Process { pid, spans, dropped: counts.dropped, unknown: counts.unknown })
    }

    fn of_kind(&self, kind: SpanKind) -> Vec<OwnedSpan> {
        let mut found: Vec<_> =
            self.spans.iter().filter(|span| span.kind == kind).cloned().collect();
        found.sort_unstable_by_key(|span| (span.begin, span.end));
        found
    }
}

/// Puts the spans of this process and of drivers together. Where somewhere there was no room, the file ends with the last
/// frame of which everything is there.
pub(super) fn arrange(own: Process, drivers: Vec<Process>) -> Arranged {
    let frames = own.of_kind(SpanKind::Frame);
    let whole = last_whole(&own, &frames, &drivers);
    let ways: Vec<OwnedSpan> = {
        let own = Answers {
            published: own.of_kind(SpanKind::Publish),
            waited: own.of_kind(SpanKind::WaitForResult),
            decoded: own.of_kind(SpanKind::DecodeResult),
        };
        let requests = drivers.iter().flat_map(|driver| driver.of_kind(SpanKind::Request));
        requests.flat_map(|request| own.ways(&request)).collect()
    };
    let mut arranged = Arranged::default();
    let is_short = own.dropped > 0 || drivers.iter().any(|driver| driver.dropped > 0);
    let mut own = own;
    own.spans.extend(ways);
    for mut process in std::iter::once(own).chain(drivers) {
        let before = process.spans.len();
        if let Some(end) = whole {
            process.spans.retain(|span| span.end <= end);
        }
        arranged.dropped += (before - process.spans.len()) as u64;
        arranged.dropped = arranged.dropped.saturating_add(process.dropped);
        arranged.unknown += process.unknown;
        for span in &mut process.spans {
            span.frame = containing(&frames, span).map(|frame| frame.index);
        }
        process.spans.sort_by_key(|span| (span.thread, span.begin, u64::MAX - span.end));
        arranged.processes.push(process);
    }
    arranged.frames = match whole {
        Some(end) => frames.iter().filter(|frame| frame.end <= end).count() as u64,
        None if is_short => 0,
        None => frames.len() as u64,
    };
    arranged
}

/// The end of the last frame of which everything is there; `None` where nothing had to be left out, or no
/// frame is whole. A driver's span of a whole request comes behind all that it contains, and so does a frame.
fn last_whole(own: &Process, frames: &[OwnedSpan], drivers: &[Process]) -> Option<u64> {
    let of_own = (own.dropped > 0).then(|| frames.last().map(|frame| frame.end));
    let of_drivers = drivers.iter().filter(|driver| driver.dropped > 0).map(|driver| {
        let answered = driver.of_kind(SpanKind::Request);
        let whole = answered.iter().rev().find_map(|request| containing(frames, request));
        whole.map(|frame| frame.end)
    });
    of_drivers.chain(of_own).flatten().min()
}

/// The frame that contains a span.
fn containing<'f>(frames: &'f [OwnedSpan], span: &OwnedSpan) -> Option<&'f OwnedSpan> {
    let after = frames.partition_point(|frame| frame.begin <= span.begin);
    let frame = &frames[after.checked_sub(1)?];
    frame.contains(span).then_some(frame)
}

/// What this process did for its requests, each in its order.
struct Answers {
    published: Vec<OwnedSpan>,
    waited: Vec<OwnedSpan>,
    decoded: Vec<OwnedSpan>,
}

impl Answers {
    /// How long a request was on its way, from the moment on at which it was published, or its message sent, and its
    /// result on its way back, until it is decoded. None where this process did not see it through.
    fn ways(&self, request: &OwnedSpan) -> Vec<OwnedSpan> {
        let Answers { published, waited, decoded } = self;
        // One at a time: the first wait that ends behind the request is for its result.
        let at = waited.partition_point(|wait| wait.end < request.end);
        let Some(wait) = waited.get(at) else { return Vec::new() };
        let wait_before = at.checked_sub(1).map_or(0, |before| waited[before].end);
        let after = published.partition_point(|publish| publish.begin <= wait.begin);
        let publish = after.checked_sub(1).map(|last| &published[last]);
        // Over the socket a request that is waited for is sent within the wait.
        let sent = publish.filter(|publish| publish.begin >= wait_before).unwrap_or(wait).begin;
        if sent > request.begin {
            return Vec::new(); // of another client of the same driver process
        }
        // Where somebody calls back, it is decoded within the wait.
        let decode = decoded.get(decoded.partition_point(|decode| decode.begin < request.end));
        let there = decode.map_or(wait.end, |decode| decode.begin.min(wait.end));
        vec![
            OwnedSpan::way(SpanKind::RequestQueue, REQUEST_QUEUE, sent, request.begin),
            OwnedSpan::way(SpanKind::ResultQueue, RESULT_QUEUE, request.end, there),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(kind: SpanKind, begin: u64, end: u64) -> OwnedSpan {
        OwnedSpan::way(kind, 1, begin, end)
    }

    /// Frame `index`, a hundred long: what this process and the driver do in it.
    fn frame(index: u32) -> (Vec<OwnedSpan>, Vec<OwnedSpan>) {
        let at = u64::from(index) * 1000;
        let whole = OwnedSpan { index, ..span(SpanKind::Frame, at, at + 100) };
        let own = vec![
            span(SpanKind::Publish, at + 20, at + 25),
            span(SpanKind::WaitForResult, at + 25, at + 90),
            whole,
        ];
        let driver = vec![
            span(SpanKind::Operation, at + 40, at + 60),
            span(SpanKind::Request, at + 22, at + 80),
        ];
        (own, driver)
    }

    fn processes(frames: u32) -> (Process, Process) {
        let (mut own, mut driver) = (Vec::new(), Vec::new());
        for index in 0..frames {
            let (of_client, of_driver) = frame(index);
            own.extend(of_client);
            driver.extend(of_driver);
        }
        let process = |pid, spans| Process { pid, spans, ..Process::default() };
        (process(1, own), process(2, driver))
    }

    fn found(process: &Process, kind: SpanKind) -> Vec<(Option<u32>, u64, u64)> {
        let spans = process.spans.iter().filter(|span| span.kind == kind);
        spans.map(|span| (span.frame, span.begin, span.end)).collect()
    }

    #[test]
    fn every_span_gets_its_frame_and_every_request_its_ways() {
        let (own, driver) = processes(3);
        let arranged = arrange(own, vec![driver]);
        assert_eq!((arranged.frames, arranged.dropped), (3, 0));
        let [own, driver] = &arranged.processes[..] else { panic!("two processes") };
        let there =
            [0, 1, 2].map(|n: u32| (Some(n), u64::from(n) * 1000 + 20, u64::from(n) * 1000 + 22));
        assert_eq!(found(own, SpanKind::RequestQueue), there);
        let back =
            [0, 1, 2].map(|n: u32| (Some(n), u64::from(n) * 1000 + 80, u64::from(n) * 1000 + 90));
        assert_eq!(found(own, SpanKind::ResultQueue), back);
        let operations = found(driver, SpanKind::Operation);
        assert_eq!(operations.iter().map(|one| one.0).collect::<Vec<_>>(), [0, 1, 2].map(Some));
        // What contains another one comes before it.
        let kinds: Vec<SpanKind> = driver.spans.iter().map(|span| span.kind).collect();
        assert_eq!(kinds[..2], [SpanKind::Request, SpanKind::Operation]);
    }

    #[test]
    fn a_request_within_a_wait_is_on_its_way_from_the_beginning_of_the_wait() {
        let own = vec![
            span(SpanKind::Publish, 1, 2), // of an earlier one
            span(SpanKind::WaitForResult, 2, 9),
            span(SpanKind::WaitForResult, 20, 90),
        ];
        let own = Process { pid: 1, spans: own, ..Process::default() };
        let requests = vec![span(SpanKind::Request, 3, 8), span(SpanKind::Request, 30, 80)];
        let driver = Process { pid: 2, spans: requests, ..Process::default() };
        let arranged = arrange(own, vec![driver]);
        let there = found(&arranged.processes[0], SpanKind::RequestQueue);
        assert_eq!(there, [(None, 1, 3), (None, 20, 30)]);
    }

    #[test]
    fn a_driver_without_room_ends_the_file_with_its_last_whole_frame() {
        let (own, mut driver) = processes(5);
        // The last two requests had no room, nor had the operation of the last one.
        driver.spans.truncate(7);
        driver.dropped = 3;
        let arranged = arrange(own, vec![driver]);
        assert_eq!(arranged.frames, 3);
        let [own, driver] = &arranged.processes[..] else { panic!("two processes") };
        assert!(own.spans.iter().chain(&driver.spans).all(|span| span.end <= 2100));
        assert_eq!((own.spans.len(), driver.spans.len()), (3 * 3 + 2 * 3, 3 * 2));
        // Two frames here, one operation there, and what was dropped.
        assert_eq!(arranged.dropped, 2 * 3 + 1 + 3);
    }

    #[test]
    fn this_process_without_room_ends_the_file_with_its_last_frame() {
        let (mut own, driver) = processes(4);
        own.spans.truncate(3 * 3 + 1);
        own.dropped = 2;
        let arranged = arrange(own, vec![driver]);
        assert_eq!(arranged.frames, 3);
        let [_, driver] = &arranged.processes[..] else { panic!("two processes") };
        assert_eq!(driver.spans.len(), 3 * 2);
    }

    #[test]
    fn what_a_driver_did_until_it_died_is_there_although_the_frame_is_not() {
        let (mut own, mut driver) = processes(2);
        own.spans.truncate(4); // the wait had no end
        driver.spans.truncate(3);
        let arranged = arrange(own, vec![driver]);
        assert_eq!((arranged.frames, arranged.dropped), (1, 0));
        let operations = found(&arranged.processes[1], SpanKind::Operation);
        assert_eq!(operations, [(Some(0), 40, 60), (None, 1040, 1060)]);
    }

    #[test]
    fn without_a_frame_everything_is_kept() {
        let own = Process { pid: 1, dropped: 1, ..Process::default() };
        let spans = vec![span(SpanKind::PlanOperation, 1, 2)];
        let driver = Process { pid: 2, spans, dropped: 9, unknown: 4 };
        let arranged = arrange(own, vec![driver]);
        assert_eq!((arranged.frames, arranged.dropped, arranged.unknown), (0, 10, 4));
        assert_eq!(arranged.processes[1].spans.len(), 1);
    }
}
