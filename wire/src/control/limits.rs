//! The limits that hold for a client, as the service states them in its greeting.

use bincode::{Decode, Encode};

use super::bounded::List;

/// Limits that one greeting may state: those of this version, and room for later ones.
const STATED_MAX: usize = 256;

/// What a service can state a limit of. Each has a number, which never changes; a client skips
/// numbers that it does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StatedLimit {
    /// Bytes of a message, in either direction.
    MessageBytes,
    /// Descriptors that go with one message.
    Descriptors,
    /// Calls that may take long under way at once: [`Call::is_slow`](super::Call::is_slow).
    SlowCalls,
    /// Prepared models.
    Models,
    /// Bursts.
    Bursts,
    /// Memories: shared ones, those in slots, those of models.
    Memories,
    /// Bytes of all these memories together.
    MappedBytes,
    /// Bytes that the service allocates for outputs, in all.
    AllocatedBytes,
    /// Bytes of one model, constants included.
    ModelBytes,
    /// Datums of a queue, and so of a packet.
    QueueDatums,
    /// Requests under way on one burst.
    PipelineDepth,
    /// Set-up calls per second, over time; 0 for as many as the client likes.
    SetupRate,
    /// Set-up calls that may come at once after a pause.
    SetupBurst,
    /// Executions that were started and are not waited for; fenced ones until they are released.
    PendingExecutions,
    /// Milliseconds that an execution waits for its fences.
    FenceWaitMs,
    /// Fences that one execution may wait for.
    Fences,
    /// Buffers of the driver.
    Buffers,
    /// Bytes of a memory for spans.
    TraceBytes,
}

impl StatedLimit {
    /// All of them.
    pub const ALL: [StatedLimit; 18] = [
        StatedLimit::MessageBytes,
        StatedLimit::Descriptors,
        StatedLimit::SlowCalls,
        StatedLimit::Models,
        StatedLimit::Bursts,
        StatedLimit::Memories,
        StatedLimit::MappedBytes,
        StatedLimit::AllocatedBytes,
        StatedLimit::ModelBytes,
        StatedLimit::QueueDatums,
        StatedLimit::PipelineDepth,
        StatedLimit::SetupRate,
        StatedLimit::SetupBurst,
        StatedLimit::PendingExecutions,
        StatedLimit::FenceWaitMs,
        StatedLimit::Fences,
        StatedLimit::Buffers,
        StatedLimit::TraceBytes,
    ];

    /// Its number in a greeting.
    #[must_use]
    pub fn number(self) -> u32 {
        match self {
            StatedLimit::MessageBytes => 1,
            StatedLimit::Descriptors => 2,
            StatedLimit::SlowCalls => 3,
            StatedLimit::Models => 4,
            StatedLimit::Bursts => 5,
            StatedLimit::Memories => 6,
            StatedLimit::MappedBytes => 7,
            StatedLimit::AllocatedBytes => 8,
            StatedLimit::ModelBytes => 9,
            StatedLimit::QueueDatums => 10,
            StatedLimit::PipelineDepth => 11,
            StatedLimit::SetupRate => 12,
            StatedLimit::SetupBurst => 13,
            StatedLimit::PendingExecutions => 14,
            StatedLimit::FenceWaitMs => 15,
            StatedLimit::Fences => 16,
            StatedLimit::Buffers => 17,
            StatedLimit::TraceBytes => 18,
        }
    }
}

/// Limits by number. Of a number that comes twice the first one holds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode)]
pub struct StatedLimits(List<(u32, u64), STATED_MAX>);

impl StatedLimits {
    /// The limit, where the service states it.
    #[must_use]
    pub fn get(&self, what: StatedLimit) -> Option<u64> {
        let of = |(number, _): &&(u32, u64)| *number == what.number();
        self.0.0.iter().find(of).map(|(_, limit)| *limit)
    }
}

impl FromIterator<(StatedLimit, u64)> for StatedLimits {
    fn from_iter<I: IntoIterator<Item = (StatedLimit, u64)>>(limits: I) -> Self {
        StatedLimits(limits.into_iter().map(|(what, limit)| (what.number(), limit)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_has_a_number_of_its_own() {
        let mut numbers: Vec<_> = StatedLimit::ALL.iter().map(|limit| limit.number()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), StatedLimit::ALL.len());
    }

    #[test]
    fn numbers_that_nobody_knows_are_skipped_and_the_first_of_two_holds() {
        let slow = StatedLimit::SlowCalls;
        let limits =
            StatedLimits(List(vec![(9999, 1), (slow.number(), 2), (slow.number(), 3), (0, 4)]));
        assert_eq!(limits.get(slow), Some(2));
        assert_eq!(limits.get(StatedLimit::Models), None);
        let stated: StatedLimits = [(slow, 7)].into_iter().collect();
        assert_eq!(stated.get(slow), Some(7));
    }
}
