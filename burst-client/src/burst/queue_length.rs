//! How long a burst's queues are where the program does not say.

use burst_wire::{DATUM_BYTES, PACKET_MIN};

/// As many datums as lie in one page. A ring so small stays in the first-level caches of both CPUs,
/// of the writer and of the reader; one of 1,024 datums, which the original takes, does not, and
/// an execution then costs a quarter more (`docs/decisions/0010-queues-of-a-page.md`).
pub const PAGE_DATUMS: usize = 4096 / DATUM_BYTES;
/// No queue is made longer than this unless the program asks for it: a quarter of what a service
/// accepts by default. Where fewer packets lie in it than may be under way, a sender waits for
/// room; a packet that is longer itself takes the socket.
const LONGEST_DATUMS: usize = 16 << 10;

/// Datums of a queue in which `depth` packets of that length may be under way, of a service that states
/// a limit or none.
pub(crate) fn queue_datums(longest_packet: usize, depth: u16, stated: Option<u64>) -> usize {
    let fitting = longest_packet.saturating_mul(depth.max(1).into());
    let stated = stated.map_or(usize::MAX, |stated| usize::try_from(stated).unwrap_or(usize::MAX));
    // Where the service takes none at all, its refusal says so.
    fitting.clamp(PAGE_DATUMS, LONGEST_DATUMS).min(stated.max(PACKET_MIN as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_a_page_and_longer_where_the_model_or_the_depth_asks_for_it() {
        assert_eq!(queue_datums(15, 1, None), 170);
        assert_eq!(queue_datums(15, 32, Some(480)), 15 * 32);
        let wide = 5 + 60 * 6;
        assert_eq!(queue_datums(wide, 0, None), wide);
        assert_eq!(queue_datums(wide, u16::MAX, Some(1 << 40)), LONGEST_DATUMS);
        assert_eq!(queue_datums(wide, 1, Some(100)), 100, "no service refuses what it has stated");
        assert_eq!(queue_datums(15, 1, Some(0)), 2, "and this one says why it does");
    }
}
