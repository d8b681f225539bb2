//! Where a packet ends, where several may lie in a queue one behind the other.
//!
//! Only where pipelining was negotiated: HAL 1.2 takes everything there is for one packet.

use crate::datum::{self, DatumBytes, PacketHead};
use crate::{Features, WireError};

/// Datums of the shortest packet of either kind that comes as a whole: its packet information, and one more.
pub const PACKET_MIN: u32 = 2;
/// The same of one that comes as differences, of which there may be none.
const AS_BEFORE_MIN: u32 = 1;

/// Requests that may be under way on one burst, where the service's own limit is not lower. More
/// than a few gain nothing: the service runs one at a time.
pub const PIPELINE_DEPTH_MAX: u16 = 64;

/// Which of the two queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketKind {
    /// From a client.
    Request,
    /// From a service.
    Result,
}

/// How many datums the packet has that begins with `first`, of which `available` are there.
///
/// A writer publishes a packet as a whole, so one that is not complete is broken, and with it
/// everything behind: the reader cannot tell where the next one begins.
///
/// # Errors
/// [`WireError::NoPacketInformation`], or [`WireError::PacketSize`] for a length that cannot be.
pub fn packet_datums(
    kind: PacketKind,
    features: Features,
    first: &DatumBytes,
    available: usize,
) -> Result<usize, WireError> {
    let head = match kind {
        PacketKind::Request => PacketHead::REQUEST,
        PacketKind::Result => PacketHead::RESULT,
    };
    let least = if first[0] == head.information {
        PACKET_MIN
    } else if first[0] == head.as_before && features.contains(Features::DIFFERENCES) {
        AS_BEFORE_MIN
    } else {
        return Err(WireError::NoPacketInformation);
    };
    let said = datum::u32_at(first, head.length_at);
    usize::try_from(said)
        .ok()
        .filter(|datums| said >= least && *datums <= available)
        .ok_or(WireError::PacketSize { said, received: available })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{InformationDatum, RequestDatum, ResultDatum};

    #[test]
    fn a_packet_ends_where_it_says_and_never_behind_what_is_there() {
        let request = |packet_size| {
            let information = InformationDatum { packet_size, ..InformationDatum::default() };
            RequestDatum::PacketInformation(information).encode()
        };
        let result = |packet_size| {
            ResultDatum::PacketInformation { packet_size, error_status: 0, number_of_operands: 0 }
                .encode()
        };
        for (said, available, want) in [
            (2, 2, true),
            (3, 9, true),
            (0, 9, false),
            (1, 9, false),
            (4, 3, false),
            (u32::MAX, 9, false),
        ] {
            let wanted = if want {
                Ok(said as usize)
            } else {
                Err(WireError::PacketSize { said, received: available })
            };
            assert_eq!(
                packet_datums(PacketKind::Request, Features::NONE, &request(said), available),
                wanted
            );
            assert_eq!(
                packet_datums(PacketKind::Result, Features::NONE, &result(said), available),
                wanted
            );
        }
        let slot = RequestDatum::PoolIdentifier(3).encode();
        let refused = Err(WireError::NoPacketInformation);
        assert_eq!(packet_datums(PacketKind::Request, Features::NONE, &slot, 9), refused);
        assert_eq!(packet_datums(PacketKind::Result, Features::NONE, &slot, 9), refused);
    }
}
