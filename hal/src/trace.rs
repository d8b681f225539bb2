//! Spans: what was done, and from when to when, for whoever wants to see where the time of a frame goes.
//!
//! A [`Caller`](crate::Caller) lends a device a [`Tracer`]. While nobody wants spans it costs one look per
//! piece of work, and one branch per step; nothing is allocated and no clock is read. Words are those of Android's
//! trace marks: each span belongs to a [`Layer`] and a [`Phase`].
//!
//! ```
//! use burst_hal::trace::{Marks, SpanKind};
//! use burst_hal::Caller;
//!
//! /// Two steps of a driver, one behind the other, and both as a whole.
//! fn work(caller: &Caller) {
//!     let mut marks = Marks::begin(caller.tracing());
//!     // ... copies inputs ...
//!     marks.mark(SpanKind::BringInputs);
//!     // ... computes ...
//!     marks.mark(SpanKind::Device);
//!     marks.whole(SpanKind::Request, 0);
//! }
//! work(&Caller::default()); // nobody wants them
//! ```

use std::fmt;
use std::sync::Arc;

use crate::{OperationType, TimePoint};

/// Who does something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layer {
    /// The program that wants answers.
    Application,
    /// The client library.
    Runtime,
    /// Help for any of the others: waiting for a turn.
    Utility,
    /// The transport between two processes.
    Ipc,
    /// The driver service.
    Driver,
    /// The device that computes on the CPU.
    Cpu,
}

/// What it is done for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Setting up what is needed once.
    Initialization,
    /// Making a model.
    Preparation,
    /// Preparing a model for a device.
    Compilation,
    /// Executing; the next four are parts of it.
    Execution,
    /// Bringing values in or out.
    InputOutput,
    /// Bringing data into another form.
    Transformation,
    /// Computing.
    Computation,
    /// Giving results.
    Results,
}

impl Layer {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Layer::Application => "Application",
            Layer::Runtime => "Runtime",
            Layer::Utility => "Utility",
            Layer::Ipc => "IPC",
            Layer::Driver => "Driver",
            Layer::Cpu => "CPU",
        }
    }

    /// Its letters in a trace mark.
    #[must_use]
    pub fn tag(self) -> &'static str {
        match self {
            Layer::Application => "LA",
            Layer::Runtime => "LR",
            Layer::Utility => "LU",
            Layer::Ipc => "LI",
            Layer::Driver => "LD",
            Layer::Cpu => "LC",
        }
    }
}

impl Phase {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Phase::Initialization => "Initialization",
            Phase::Preparation => "Preparation",
            Phase::Compilation => "Compilation",
            Phase::Execution => "Execution",
            Phase::InputOutput => "Input/Output",
            Phase::Transformation => "Transformation",
            Phase::Computation => "Computation",
            Phase::Results => "Results",
        }
    }

    /// Its letters in a trace mark.
    #[must_use]
    pub fn tag(self) -> &'static str {
        match self {
            Phase::Initialization => "PI",
            Phase::Preparation => "PP",
            Phase::Compilation => "PC",
            Phase::Execution => "PE",
            Phase::InputOutput => "PIO",
            Phase::Transformation => "PTR",
            Phase::Computation => "PCO",
            Phase::Results => "PR",
        }
    }
}

/// Declares the kinds once, with number, name, layer and phase.
macro_rules! span_kinds {
    ($($(#[$doc:meta])+ $number:literal $kind:ident $name:literal $layer:ident $phase:ident,)+) => {
        /// What a span is of.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum SpanKind {
            $($(#[$doc])+ $kind,)+
        }

        impl SpanKind {
            /// All of them, by number.
            pub const ALL: &'static [SpanKind] = &[$(SpanKind::$kind,)+];

            /// The number that stands for it on every boundary. It never changes.
            #[must_use]
            pub const fn number(self) -> u32 {
                match self {
                    $(SpanKind::$kind => $number,)+
                }
            }

            /// The kind with this number; `None` for one of a later version.
            #[must_use]
            pub const fn from_number(number: u32) -> Option<Self> {
                match number {
                    $($number => Some(SpanKind::$kind),)+
                    _ => None,
                }
            }

            /// What people call it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(SpanKind::$kind => $name,)+
                }
            }

            /// Who does it.
            #[must_use]
            pub const fn layer(self) -> Layer {
                match self {
                    $(SpanKind::$kind => Layer::$layer,)+
                }
            }

            /// What for.
            #[must_use]
            pub const fn phase(self) -> Phase {
                match self {
                    $(SpanKind::$kind => Phase::$phase,)+
                }
            }
        }
    };
}

span_kinds! {
    /// A frame of an application, from its input to its answer; the index is its number.
    1 Frame "frame" Application Execution,
    /// A frame is written to the model's input.
    2 WriteInputs "write inputs" Application InputOutput,
    /// The application waits for an execution.
    3 Execute "execute" Runtime Execution,
    /// The application reads the outputs, and makes something of them.
    4 ReadOutputs "read outputs" Application InputOutput,
    /// A file becomes a model.
    5 MakeModel "make the model" Application Preparation,
    /// A client finds its service.
    6 Connect "connect" Runtime Initialization,
    /// A client has a model prepared.
    7 Prepare "prepare" Runtime Compilation,
    /// A request becomes a packet or a message.
    8 EncodeRequest "encode request" Ipc Transformation,
    /// A request is put into its queue, or on the socket, and the other end woken.
    9 Publish "publish request" Ipc InputOutput,
    /// A client waits for a result, which lies in its memory at the end.
    10 WaitForResult "wait for result" Ipc Execution,
    /// A packet or a message becomes a result.
    11 DecodeResult "decode result" Ipc Results,
    /// A request is on its way: from publishing it until the driver has it.
    12 RequestQueue "request queue" Ipc InputOutput,
    /// A result is on its way back.
    13 ResultQueue "result queue" Ipc InputOutput,
    /// A service has a request, until just before the result is published; the index is its burst's number, 0
    /// where it came over the socket.
    32 Request "request" Driver Execution,
    /// A request is copied out, decoded, its memories are found, and it is checked.
    33 DecodeRequest "decode request" Ipc Transformation,
    /// An execution waits for fences.
    34 WaitForFences "wait for fences" Utility Execution,
    /// Others compute, and this piece of work waits for its run token.
    35 WaitForTurn "wait for turn" Utility Execution,
    /// The device of a service executes a request.
    36 Device "execute on the device" Driver Execution,
    /// A result becomes a packet or a message.
    37 EncodeResult "encode result" Ipc Results,
    /// Inputs are brought to where operations read them.
    38 BringInputs "bring inputs" Cpu Transformation,
    /// One operation; the index is its position in its graph. IF and WHILE include what they run.
    39 Operation "operation" Cpu Computation,
    /// Outputs are taken to where the client wants them.
    40 TakeOutputs "take outputs" Cpu Results,
    /// A service prepares a model.
    41 PrepareModel "prepare model" Driver Compilation,
    /// A model is read out of the client's memory and checked.
    42 ReceiveModel "receive model" Ipc Compilation,
    /// One operation is planned, its constants packed; the index is its position in its graph.
    43 PlanOperation "plan operation" Cpu Compilation,
    /// A device says which operations of a model it runs.
    44 Survey "supported operations" Driver Compilation,
}

/// Something that was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span<'a> {
    /// What.
    pub kind: SpanKind,
    /// When it began, in nanoseconds of the steady clock ([`TimePoint`]).
    pub begin_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// Which operation, where it is one.
    pub operation: Option<OperationType>,
    /// In which graph: 0 for the main one, the referenced ones from 1 on.
    pub graph: u32,
    /// Which one; see its kind.
    pub index: u32,
    /// More for people, such as the kernel that computes. A sink may cut it.
    pub detail: &'a str,
}

impl Span<'_> {
    /// A span that ends now.
    #[must_use]
    pub fn since(begin_ns: u64, kind: SpanKind) -> Self {
        let (end_ns, operation) = (TimePoint::now().nanos, None);
        Span { kind, begin_ns, end_ns, operation, graph: 0, index: 0, detail: "" }
    }
}

/// Where spans go. They come from any thread, each once it has ended.
pub trait SpanSink: fmt::Debug + Send + Sync {
    /// Whether anybody wants them. Asked once for each piece of work, so it is cheap.
    fn is_on(&self) -> bool;

    /// Takes a span. It neither waits nor fails: what there is no room for is counted and dropped.
    fn record(&self, span: &Span<'_>);
}

/// A sink that several share.
pub type Tracer = Arc<dyn SpanSink>;

/// The tracer, while anybody wants spans.
#[must_use]
pub fn when_on(tracer: &Tracer) -> Option<Tracer> {
    tracer.is_on().then(|| Arc::clone(tracer))
}

/// Marks of one piece of work: each ends a span that began with the mark before it.
#[derive(Debug)]
pub struct Marks<'a> {
    sink: Option<&'a dyn SpanSink>,
    begun: u64,
    since: u64,
}

impl<'a> Marks<'a> {
    /// The work begins now. Without a sink nothing here does anything, and no clock is read.
    #[must_use]
    pub fn begin(sink: Option<&'a dyn SpanSink>) -> Self {
        let now = if sink.is_some() { TimePoint::now().nanos } else { 0 };
        Marks { sink, begun: now, since: now }
    }

    /// What was done since the last mark was this.
    #[inline]
    pub fn mark(&mut self, kind: SpanKind) {
        if let Some(sink) = self.sink {
            let span = Span::since(self.since, kind);
            self.since = span.end_ns;
            sink.record(&span);
        }
    }

    /// What was done since the last mark is of no interest, or has spans of its own.
    #[inline]
    pub fn skip(&mut self) {
        if self.sink.is_some() {
            self.since = TimePoint::now().nanos;
        }
    }

    /// All that was done from the beginning to the last mark was this.
    #[inline]
    pub fn whole(&self, kind: SpanKind, index: u32) {
        if let Some(sink) = self.sink {
            let (begin_ns, end_ns) = (self.begun, self.since);
            let span = Span { begin_ns, end_ns, index, ..Span::since(begin_ns, kind) };
            sink.record(&span);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::Caller;

    #[derive(Debug, Default)]
    struct Kept {
        is_off: AtomicBool,
        spans: Mutex<Vec<(SpanKind, u64, u64, u32)>>,
    }

    impl SpanSink for Kept {
        fn is_on(&self) -> bool {
            !self.is_off.load(Ordering::Relaxed)
        }

        fn record(&self, span: &Span<'_>) {
            let Span { kind, begin_ns, end_ns, index, .. } = *span;
            self.spans.lock().unwrap().push((kind, begin_ns, end_ns, index));
        }
    }

    #[test]
    fn every_kind_has_a_number_of_its_own_and_is_found_by_it() {
        let mut numbers: Vec<u32> = SpanKind::ALL.iter().map(|kind| kind.number()).collect();
        for kind in SpanKind::ALL {
            assert_eq!(SpanKind::from_number(kind.number()), Some(*kind));
        }
        assert!(numbers.is_sorted(), "by number");
        numbers.dedup();
        assert_eq!(numbers.len(), SpanKind::ALL.len());
        assert_eq!(SpanKind::from_number(0), None);
        assert_eq!(SpanKind::from_number(u32::MAX), None);
    }

    #[test]
    fn marks_follow_each_other_within_the_whole_and_what_is_skipped_leaves_a_gap() {
        let kept = Kept::default();
        let before = TimePoint::now().nanos;
        let mut marks = Marks::begin(Some(&kept));
        marks.mark(SpanKind::DecodeRequest);
        marks.skip();
        marks.mark(SpanKind::Device);
        marks.whole(SpanKind::Request, 7);
        let after = TimePoint::now().nanos;
        let spans = kept.spans.into_inner().unwrap();
        let [(first, a, b, _), (second, c, d, _), (whole, from, to, index)] = spans[..] else {
            panic!("three: {spans:?}")
        };
        let kinds = [first, second, whole];
        assert_eq!(kinds, [SpanKind::DecodeRequest, SpanKind::Device, SpanKind::Request]);
        assert_eq!((from, to, index), (a, d, 7));
        assert!([before, a, b, c, d, after].is_sorted(), "{spans:?}");
    }

    #[test]
    fn where_nobody_wants_spans_nothing_is_recorded_and_no_clock_is_read() {
        let kept = Arc::new(Kept::default());
        let caller = Caller::default().with_tracer(Arc::clone(&kept) as Tracer);
        kept.is_off.store(true, Ordering::Relaxed);
        assert!(caller.tracing().is_none() && Caller::default().tracing().is_none());
        let mut marks = Marks::begin(caller.tracing());
        marks.mark(SpanKind::Device);
        marks.skip();
        marks.whole(SpanKind::Request, 0);
        assert_eq!((marks.begun, marks.since), (0, 0), "no clock");
        assert!(kept.spans.lock().unwrap().is_empty());
        // The same caller, once somebody does.
        kept.is_off.store(false, Ordering::Relaxed);
        Marks::begin(caller.tracing()).mark(SpanKind::Device);
        assert_eq!(kept.spans.lock().unwrap().len(), 1);
        assert!(caller.untraced().tracing().is_none());
    }
}
