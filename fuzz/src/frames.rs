//! Where one packet ends and the next begins, for packets that may lie one behind the other.

use burst_wire::{DATUM_BYTES, Features, PACKET_MIN, PacketKind, packet_datums};

/// Most packets that are looked at in one input.
const PACKETS_MAX: usize = 16;

/// The packets in `bytes` as the receiving end takes them: all of it where nothing was negotiated,
/// framed by their own length with pipelining. What comes behind a broken frame is no packet.
pub(crate) fn packets(kind: PacketKind, bytes: &[u8], features: Features) -> Vec<&[u8]> {
    if !features.contains(Features::PIPELINING) {
        return vec![bytes];
    }
    let mut rest = bytes;
    let mut packets = Vec::new();
    while packets.len() < PACKETS_MAX {
        let (datums, _) = rest.as_chunks::<DATUM_BYTES>();
        let Some(first) = datums.first() else { break };
        let Ok(count) = packet_datums(kind, features, first, datums.len()) else { break };
        let least = if features.contains(Features::DIFFERENCES) { 1 } else { PACKET_MIN as usize };
        assert!((least..=datums.len()).contains(&count));
        let (packet, behind) = rest.split_at(count * DATUM_BYTES);
        packets.push(packet);
        rest = behind;
    }
    packets
}
