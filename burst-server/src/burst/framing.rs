//! Where the packets in a request queue end, and how many there are.
//!
//! Without pipelining there is nothing to tell apart: everything that is readable at once is one packet,
//! so that no second request can lie behind it. With it each packet says its length in its first datum.
//! The worker looks at the first datum of every packet once, when the packet has arrived, and keeps the
//! lengths of those that it has not taken: as many as the agreed depth at most. That is as much work per request as
//! looking at each packet when it is taken, and it tells how many requests there are.

use std::collections::VecDeque;

use burst_wire::{DATUM_BYTES, Features, PacketKind, packet_datums};
use fmq::{Consumer, QueueError};

use super::end_reason::EndReason;

/// The packets that lie in a request queue.
#[derive(Debug)]
pub(super) struct Framing {
    features: Features,
    depth: usize,
    /// Lengths of the packets that were seen and not taken, in datums.
    seen: VecDeque<usize>,
    /// Their sum.
    seen_datums: usize,
}

impl Framing {
    pub(super) fn new(features: Features, depth: u16) -> Self {
        let (is_pipelined, depth) = (features.contains(Features::PIPELINING), usize::from(depth));
        let seen = VecDeque::with_capacity(if is_pipelined { depth + 1 } else { 0 });
        Framing { features, depth, seen, seen_datums: 0 }
    }

    /// How many of the available datums are the next packet.
    ///
    /// # Errors
    /// More requests than were agreed on; a packet of which nobody knows where it ends, once it is the
    /// next.
    pub(super) fn next_packet(
        &mut self,
        requests: &mut Consumer,
        available: usize,
    ) -> Result<usize, EndReason> {
        if !self.features.contains(Features::PIPELINING) {
            return Ok(available);
        }
        while self.seen_datums < available {
            match self.look_at_next(requests, available) {
                Ok(datums) => {
                    self.seen.push_back(datums);
                    self.seen_datums += datums;
                }
                // Those before it are executed and answered.
                Err(_) if !self.seen.is_empty() => break,
                Err(reason) => return Err(reason),
            }
            if self.seen.len() > self.depth {
                return Err(EndReason::DepthExceeded { depth: self.depth });
            }
        }
        // The packet is copied as a whole afterwards. Should the client have changed its length by
        // then, decoding finds it malformed.
        let datums = self.seen.pop_front().ok_or(EndReason::Queue(QueueError::Empty {
            wanted: DATUM_BYTES as u64,
            available: 0,
        }))?;
        self.seen_datums -= datums;
        Ok(datums)
    }

    /// The length of the first packet that was not seen so far.
    fn look_at_next(&self, requests: &mut Consumer, available: usize) -> Result<usize, EndReason> {
        let mut first = [0; DATUM_BYTES];
        let at = self.seen_datums;
        requests.peek(at + 1)?.copy_out(at * DATUM_BYTES, &mut first)?;
        packet_datums(PacketKind::Request, self.features, &first, available - at)
            .map_err(EndReason::Framing)
    }
}
