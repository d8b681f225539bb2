//! A stream that goes on after the service was started again.

use super::{
    Arc, ClientError, Deadline, Duration, ExecutionResult, Instant, Model, ReconnectingModel,
    Stream, StreamOptions,
};

/// A [`Stream`] that survives the death of its service.
///
/// The frame that is under way when the service dies is lost: [`run`](ReconnectingStream::run)
/// says so at once with [`ClientError::PeerDied`]. The next run makes everything again first.
/// What was written to the inputs stays.
#[derive(Debug)]
pub struct ReconnectingStream {
    model: Arc<ReconnectingModel>,
    stream: Stream,
    lost: bool,
    /// When it was last known to work.
    answered: Instant,
    /// Since when nothing was answered, while something is lost.
    silent_since: Option<Instant>,
    outages: Outages,
}

/// What was lost so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outages {
    /// How often everything was made again.
    pub reconnects: u64,
    /// Requests that were under way and got no answer.
    pub lost: u64,
    /// Longest time from the last answer before an outage to the first one after it.
    pub longest_gap: Duration,
    /// The last such time.
    pub last_gap: Duration,
}

impl ReconnectingStream {
    pub(super) fn new(
        prepared: Arc<ReconnectingModel>,
        model: &Model,
        options: &StreamOptions,
    ) -> Result<Self, ClientError> {
        let stream = Stream::new(&prepared.current(), model, options)?;
        Ok(ReconnectingStream {
            model: prepared,
            stream,
            lost: false,
            answered: Instant::now(),
            silent_since: None,
            outages: Outages::default(),
        })
    }

    /// The stream below, for its inputs and outputs.
    #[must_use]
    pub fn stream(&mut self) -> &mut Stream {
        &mut self.stream
    }

    /// The same, to look at.
    #[must_use]
    pub fn current(&self) -> &Stream {
        &self.stream
    }

    /// Runs on what was written to the first frame's inputs.
    ///
    /// # Errors
    /// As [`Stream::run`]; [`ClientError::is_loss`] tells that the request was lost with its
    /// service, or that it was not sent as the service did not come back in time.
    pub fn run(&mut self, deadline: Deadline) -> Result<&ExecutionResult, ClientError> {
        self.run_frame(0, deadline)
    }

    /// Runs on what was written to one of the frames.
    ///
    /// # Errors
    /// As [`ReconnectingStream::run`].
    ///
    /// # Panics
    /// There is no such frame.
    pub fn run_frame(
        &mut self,
        frame: usize,
        deadline: Deadline,
    ) -> Result<&ExecutionResult, ClientError> {
        self.reconnect(deadline)?;
        match self.stream.run_frame(frame, deadline).map(|_| ()) {
            Err(error) if error.is_loss() => {
                self.note_loss();
                self.outages.lost += 1;
                Err(error)
            }
            Err(error @ ClientError::Execution { .. }) => {
                self.note_answer(Instant::now());
                Err(error)
            }
            Err(error) => Err(error),
            Ok(()) => {
                self.note_answer(Instant::now());
                Ok(self.stream.result())
            }
        }
    }

    /// Makes everything again that is lost: connection, prepared model, burst, memory for the
    /// outputs. Nothing, where nothing is.
    ///
    /// # Errors
    /// The last attempt's.
    pub fn reconnect(&mut self, deadline: Deadline) -> Result<(), ClientError> {
        if !self.lost && self.stream.is_alive() {
            return Ok(());
        }
        self.note_loss(); // it may have died while nobody asked anything of it
        let (model, stream) = (&self.model, &mut self.stream);
        model.device.again(deadline, || stream.move_to(&model.ready(deadline.into())?))?;
        self.lost = false;
        self.outages.reconnects += 1;
        Ok(())
    }

    /// What was lost so far.
    #[must_use]
    pub fn outages(&self) -> Outages {
        self.outages
    }

    fn note_loss(&mut self) {
        self.lost = true;
        self.silent_since.get_or_insert(self.answered);
    }

    fn note_answer(&mut self, now: Instant) {
        self.answered = now;
        if let Some(since) = self.silent_since.take() {
            let gap = now.duration_since(since);
            self.outages.last_gap = gap;
            self.outages.longest_gap = self.outages.longest_gap.max(gap);
        }
    }
}
