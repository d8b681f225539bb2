//! What scripts of both flavours' queues share: how one begins, what is done with a claim, and
//! how their seeds are put together.

use fmq::QueueError;

use crate::words::{Arena, expected, payload};
use crate::{Input, Script, Seed, seed};

/// Times that the attacker may act before anybody attaches.
const EARLY_ATTACKS: usize = 3;

/// A queue of the script's shape, what the script says about its ends, and the attacker's first
/// deeds.
pub(crate) fn begin(input: &mut Input<'_>, flags: u32) -> (Arena, u8) {
    let arena = Arena::new(input, flags);
    let ends = input.u8();
    for _ in 0..input.below(EARLY_ATTACKS + 1) {
        arena.attack(input);
    }
    (arena, ends)
}

/// An end, unless the counters were impossible from the beginning.
pub(crate) fn attached<E>(result: Result<E, QueueError>) -> Option<E> {
    match result {
        Ok(end) => Some(end),
        Err(QueueError::Corrupt { .. }) => None,
        Err(other) => panic!("the descriptor is legal: {other}"),
    }
}

/// Copies at an offset of the script's choice: right where it lies inside of `len` bytes.
pub(crate) fn copy_somewhere(
    input: &mut Input<'_>,
    len: usize,
    copy: impl FnOnce(usize, usize) -> Result<(), QueueError>,
) {
    let (at, count) = (usize::from(input.u16()), input.below(64));
    let result = copy(at, count);
    assert_eq!(result.is_ok(), at + count <= len, "{at}+{count} of {len}");
}

/// Ends a claim: abandoned, committed in part or whole, or asked for more than it has, which is
/// refused.
pub(crate) fn end_claim(
    input: &mut Input<'_>,
    items: usize,
    commit: impl FnOnce(usize, &mut Input<'_>) -> Result<(), QueueError>,
) -> Result<(), QueueError> {
    match input.below(items + 2) {
        0 => Ok(()),
        count if count <= items => commit(count, input),
        more => {
            refused_as_too_large(commit(more, input));
            Ok(())
        }
    }
}

/// What does not fit into the ring at all is refused, whatever the counters say.
pub(crate) fn refused_as_too_large<T>(result: Result<T, QueueError>) {
    assert!(matches!(result, Err(QueueError::TooLarge { .. })));
}

/// As many bytes as the ring has, and an item more.
pub(crate) fn too_many(arena: &Arena) -> Vec<u8> {
    payload((arena.capacity + 1) * arena.quantum)
}

/// An answer that a peer may cause, handed on.
pub(crate) fn answered(result: Result<(), QueueError>) -> Result<(), QueueError> {
    expected(result);
    result
}

/// What the seeds of a flavour are made of.
pub(crate) struct Scripts<'a> {
    /// Size of the items less one, items of the ring less one, for honest traffic.
    pub(crate) size: [u8; 2],
    /// Shapes of queues, by name.
    pub(crate) shapes: &'a [(u8, &'a str)],
    /// Calls of honest ends.
    pub(crate) traffic: &'a [u8],
    /// What the attacker does between two of them, by name.
    pub(crate) attacks: &'a [(&'a str, &'a [u8])],
    /// A queue that begins in the middle of its life.
    pub(crate) history: (&'a str, &'a [u8]),
}

impl Scripts<'_> {
    /// Each shape with honest traffic, each attack, and the history.
    pub(crate) fn seeds(&self) -> Vec<Seed> {
        let mut seeds = Vec::new();
        let mut add = |name: String, parts: &[&[u8]]| {
            let script = parts.iter().fold(Script::new(), |script, part| script.bytes(part));
            seeds.push(seed(&name, script));
        };
        for ends in 0..3 {
            for (shape, name) in self.shapes {
                let head = [self.size[0], self.size[1], *shape, ends, 0];
                add(format!("honest_{name}_{ends}"), &[&head, self.traffic, self.traffic]);
            }
            for (name, attack) in self.attacks {
                let head = [7, 4, 0, ends, 0];
                add(format!("{name}_{ends}"), &[&head, self.traffic, attack, self.traffic]);
            }
        }
        let (name, head) = self.history;
        add(name.to_owned(), &[head, self.traffic]);
        seeds
    }
}
