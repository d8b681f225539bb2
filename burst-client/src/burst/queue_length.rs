//! How long a burst's queues are where the program does not say.

use burst_hal::{Model, Subgraph};
use burst_wire::{DATUM_BYTES, PACKET_MIN};

/// As many datums as lie in one page. A ring so small stays in the first-level caches of both CPUs,
/// of the writer and of the reader; one of 1,024 datums, which the original takes, does not, and
/// an execution then costs a quarter more (`docs/decisions/0010-queues-of-a-page.md`).
pub const PAGE_DATUMS: usize = 4096 / DATUM_BYTES;
/// No queue is made longer than this unless the program asks for it: a quarter of what a service
/// accepts by default. Where fewer packets lie in it than may be under way, a sender waits for
/// room; a packet that is longer itself takes the socket.
const LONGEST_DATUMS: usize = 16 << 10;

/// Datums of a packet beside its arguments: its size, whether to measure, and three additions.
const FIXED_DATUMS: usize = 5;
/// Dimensions that a request may give for an argument whose rank the model leaves open.
const UNKNOWN_RANK: usize = 8;

/// Datums of the longest packet that a request for the model takes when each argument lies in a
/// memory of its own and says all its dimensions. Results are shorter.
pub(crate) fn longest_packet(model: &Model) -> usize {
    let Subgraph { operands, input_indexes, output_indexes, .. } = &model.main;
    let arguments = input_indexes.iter().chain(output_indexes).map(|index| {
        let known = usize::try_from(*index).ok().and_then(|index| operands.get(index));
        let rank = known.map_or(0, |operand| operand.dimensions.len());
        let rank = if rank == 0 { UNKNOWN_RANK } else { rank };
        2 + rank // the argument and its memory
    });
    FIXED_DATUMS + arguments.sum::<usize>()
}

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
    use burst_hal::{Operand, OperandLifeTime, OperandType};

    use super::*;

    fn model(ranks: &[usize]) -> Model {
        let operand = |rank: &usize| {
            let lifetime = OperandLifeTime::SubgraphInput;
            let mut operand = Operand::new(OperandType::TensorFloat32, lifetime);
            operand.dimensions.resize(*rank, 1);
            operand
        };
        let mut model = Model::default();
        model.main.operands = ranks.iter().map(operand).collect();
        model.main.input_indexes = (0..).take(ranks.len() - 1).collect();
        model.main.output_indexes = vec![u32::try_from(ranks.len() - 1).unwrap()];
        model
    }

    #[test]
    fn a_queue_is_a_page_and_longer_where_the_model_or_the_depth_asks_for_it() {
        let small = longest_packet(&model(&[4, 2]));
        assert_eq!(small, 5 + (2 + 4) + (2 + 2));
        assert_eq!(queue_datums(small, 1, None), 170);
        assert_eq!(queue_datums(small, 32, Some(480)), 15 * 32);
        let open = longest_packet(&model(&[0, 1]));
        assert_eq!(open, 5 + (2 + 8) + (2 + 1));
        let wide = longest_packet(&model(&[4; 60]));
        assert_eq!(queue_datums(wide, 0, None), 5 + 60 * 6);
        assert_eq!(queue_datums(wide, u16::MAX, Some(1 << 40)), LONGEST_DATUMS);
        assert_eq!(queue_datums(wide, 1, Some(100)), 100, "no service refuses what it has stated");
        assert_eq!(queue_datums(small, 1, Some(0)), 2, "and this one says why it does");
        let mut broken = model(&[1]);
        broken.main.output_indexes = vec![u32::MAX];
        assert_eq!(longest_packet(&broken), 5 + 10);
    }
}
