//! One block of memory for all intermediate values of a graph: which value lies where, and how several
//! ranges of it are borrowed at once.

use std::ops::Range;

use smallvec::SmallVec;

use crate::OpError;
use crate::aligned::ALIGNMENT;
use crate::stop::Stop;

/// With more values than this, each gets memory of its own instead of sharing it with values of other
/// steps: finding the best range takes time quadratic in their number, which a client's model chooses.
const MAX_SHARED_VALUES: usize = 4096;

/// A value that needs memory for part of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Need {
    /// Bytes.
    pub(crate) size: usize,
    /// First step that touches it.
    pub(crate) first: usize,
    /// Last step that touches it.
    pub(crate) last: usize,
}

impl Need {
    fn overlaps_in_time(&self, other: &Need) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// How many larger values are tried for their middle.
const MIDDLES_MAX: usize = 8;

/// By which part a block may be larger so that values lie in each other's middle.
const ROOM_FOR_MIDDLES: usize = 8;

/// Where a value goes.
#[derive(Debug, Clone, Copy)]
enum Placing {
    /// Behind all others, with memory of its own.
    Behind,
    /// To the lowest free offset.
    Lowest,
    /// Into the middle of a larger value of other steps where that is free, otherwise to the lowest free offset.
    Middle,
}

/// Gives each value a range such that values alive at the same time never overlap.
/// Returns the ranges, in order of `needs`, and the size of the block.
///
/// The largest value gets its range first. Smaller ones lie in the middle of larger ones of other steps, as far as that costs
/// little memory: threads that share operations take parts of every output in the same order, so that each then writes
/// mostly what it has in its own core's cache, and not what another core has to give away first
/// (`docs/decisions/0041-halves-stay-on-their-core.md`).
///
/// # Errors
/// [`OpError::Range`] when the block would not fit the address space; those of `stop`.
pub(crate) fn assign_ranges(
    needs: &[Need],
    stop: Stop<'_>,
) -> Result<(Vec<Range<usize>>, usize), OpError> {
    if needs.len() > MAX_SHARED_VALUES {
        return place(needs, Placing::Behind, stop);
    }
    let lowest = place(needs, Placing::Lowest, stop)?;
    let middle = place(needs, Placing::Middle, stop)?;
    let most = lowest.1.saturating_add(lowest.1 / ROOM_FOR_MIDDLES);
    Ok(if middle.1 <= most { middle } else { lowest })
}

/// Places all values, the largest one first.
fn place(
    needs: &[Need],
    placing: Placing,
    stop: Stop<'_>,
) -> Result<(Vec<Range<usize>>, usize), OpError> {
    let mut checkpoints = stop.checkpoints();
    let mut by_size: Vec<usize> = (0..needs.len()).collect();
    by_size.sort_by_key(|index| (std::cmp::Reverse(needs[*index].size), needs[*index].first));
    let mut block = Block::new(needs);
    for (rank, index) in by_size.iter().copied().enumerate() {
        let need = &needs[index];
        checkpoints.after(rank + 1)?;
        let rounded = need
            .size
            .checked_next_multiple_of(ALIGNMENT)
            .ok_or(OpError::Range { what: "size of a tensor in memory" })?;
        if !matches!(placing, Placing::Behind) {
            block.find_beside(need);
        }
        let offset = match placing {
            Placing::Behind => block.end,
            Placing::Lowest => block.lowest_free(rounded),
            Placing::Middle => {
                checkpoints.after(rank.saturating_mul(MIDDLES_MAX))?;
                let middle = block.free_middle(need, rounded, &by_size[..rank]);
                middle.unwrap_or_else(|| block.lowest_free(rounded))
            }
        };
        block.put(index, offset, rounded)?;
        // Behind all others nobody looks for a place among them, of which there may be many.
        if !matches!(placing, Placing::Behind) {
            block.keep_in_order(index);
        }
    }
    Ok((block.ranges, block.end))
}

/// A value that has its range: side by side with all others, as each further value is held against each.
struct Placed {
    need: Need,
    range: Range<usize>,
}

/// A block of memory while values get their ranges in it.
struct Block<'n> {
    needs: &'n [Need],
    /// In order of `needs`; empty for those that have none so far.
    ranges: Vec<Range<usize>>,
    /// Those that have one, by offset.
    placed: Vec<Placed>,
    /// What [`Block::find_beside`] found.
    beside: Vec<Range<usize>>,
    end: usize,
}

impl<'n> Block<'n> {
    fn new(needs: &'n [Need]) -> Self {
        let ranges = vec![0..0; needs.len()];
        Block { needs, ranges, placed: Vec::new(), beside: Vec::new(), end: 0 }
    }

    /// Finds the ranges of values that are alive together with this one, by offset: most are not, and those that are get
    /// asked several times.
    fn find_beside(&mut self, need: &Need) {
        self.beside.clear();
        let others = self.placed.iter().filter(|other| other.need.overlaps_in_time(need));
        self.beside.extend(others.map(|other| other.range.clone()));
    }

    /// The lowest free offset beside those that were found.
    fn lowest_free(&self, rounded: usize) -> usize {
        let mut offset = 0usize;
        for taken in &self.beside {
            if offset.saturating_add(rounded) <= taken.start {
                break;
            }
            offset = offset.max(taken.end.next_multiple_of(ALIGNMENT));
        }
        offset
    }

    /// Where the middle of one of these larger values is that of this one, too, and that is free beside those that were
    /// found.
    fn free_middle(&self, need: &Need, rounded: usize, larger: &[usize]) -> Option<usize> {
        let over = larger.iter().filter(|other| !self.needs[**other].overlaps_in_time(need));
        let mut middles = over.take(MIDDLES_MAX).map(|other| {
            let over = &self.ranges[*other];
            (over.start + (over.len() - need.size) / 2) / ALIGNMENT * ALIGNMENT
        });
        let is_free = |at: usize| {
            self.beside.iter().all(|taken| taken.end <= at || at + rounded <= taken.start)
        };
        middles.find(|at| is_free(*at))
    }

    fn put(&mut self, index: usize, offset: usize, rounded: usize) -> Result<(), OpError> {
        let end = offset
            .checked_add(rounded)
            .ok_or(OpError::Range { what: "size of the working memory" })?;
        let need = self.needs[index];
        self.ranges[index] = offset..offset + need.size;
        self.end = self.end.max(end);
        Ok(())
    }

    /// Lets a value that has its range be found by those that follow.
    fn keep_in_order(&mut self, index: usize) {
        let (need, range) = (self.needs[index], self.ranges[index].clone());
        let at = self.placed.partition_point(|other| other.range.start <= range.start);
        self.placed.insert(at, Placed { need, range });
    }
}

/// The offsets of ranges as bytes, for [`kept_ranges`].
pub(crate) fn offsets(ranges: &[Range<usize>]) -> Vec<u8> {
    ranges.iter().flat_map(|range| (range.start as u64).to_le_bytes()).collect()
}

/// The ranges that [`assign_ranges`] once gave to the same values, by their [`offsets`], and the size of the
/// block.
///
/// # Errors
/// [`OpError::Internal`] for those of other values. That ranges overlap is not looked for: whoever says where
/// they lie has to be believed that they were assigned so.
pub(crate) fn kept_ranges(
    needs: &[Need],
    offsets: &[u8],
) -> Result<(Vec<Range<usize>>, usize), OpError> {
    let other = OpError::Internal { what: "what was kept of a graph's ranges" };
    let (offsets, rest) = offsets.as_chunks::<8>();
    if offsets.len() != needs.len() || !rest.is_empty() {
        return Err(other);
    }
    let mut ranges = Vec::with_capacity(needs.len());
    let mut end = 0;
    for (need, offset) in needs.iter().zip(offsets) {
        let offset = usize::try_from(u64::from_le_bytes(*offset)).ok();
        let stop = offset
            .and_then(|offset| offset.checked_add(need.size)?.checked_next_multiple_of(ALIGNMENT));
        let (Some(offset), Some(stop)) = (offset, stop) else { return Err(other) };
        if !offset.is_multiple_of(ALIGNMENT) {
            return Err(other);
        }
        ranges.push(offset..offset + need.size);
        end = end.max(stop);
    }
    Ok((ranges, end))
}

/// The parts of an arena between the ranges that are being written: free to read.
#[derive(Default)]
pub(crate) struct Gaps<'a>(SmallVec<[(usize, &'a [u8]); 4]>);

impl<'a> Gaps<'a> {
    /// The bytes of `range`, which must not touch a range that is being written.
    pub(crate) fn get(&self, range: &Range<usize>) -> Result<&'a [u8], OpError> {
        self.0
            .iter()
            .find_map(|(start, bytes)| {
                let from = range.start.checked_sub(*start)?;
                bytes.get(from..from + range.len())
            })
            .ok_or(OpError::Internal { what: "an input shares memory with an output" })
    }
}

/// Ranges of an arena that are being written, in the order they were asked for.
pub(crate) type Written<'a> = SmallVec<[&'a mut [u8]; 2]>;

/// An arena of which some ranges are being written and all others can be read. It is filled where it lies: every
/// step of an execution has one.
#[derive(Default)]
pub(crate) struct Split<'a> {
    pub(crate) written: Written<'a>,
    pub(crate) gaps: Gaps<'a>,
}

impl<'a> Split<'a> {
    /// Borrows `writes` (ascending, disjoint) mutably and everything between them for reading.
    ///
    /// # Errors
    /// [`OpError::Internal`] when the ranges overlap or leave the arena.
    pub(crate) fn fill(
        &mut self,
        arena: &'a mut [u8],
        writes: impl Iterator<Item = Range<usize>>,
    ) -> Result<(), OpError> {
        let bad = || OpError::Internal { what: "outputs share memory" };
        let mut rest = arena;
        let mut at = 0;
        for range in writes {
            let before = range.start.checked_sub(at).ok_or_else(bad)?;
            let (gap, tail) = rest.split_at_mut_checked(before).ok_or_else(bad)?;
            let (write, tail) = tail.split_at_mut_checked(range.len()).ok_or_else(bad)?;
            self.gaps.0.push((at, &*gap));
            self.written.push(write);
            rest = tail;
            at = range.end;
        }
        self.gaps.0.push((at, &*rest));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_alive_together_never_overlap_and_memory_is_shared() {
        // A chain: each value lives from the step that makes it to the next one.
        let needs: Vec<Need> =
            (0..10).map(|i| Need { size: 100 + i * 7, first: i, last: i + 1 }).collect();
        let (ranges, size) = assign_ranges(&needs, Stop::default()).unwrap();
        for (i, a) in needs.iter().enumerate() {
            for (j, b) in needs.iter().enumerate().skip(i + 1) {
                if a.overlaps_in_time(b) {
                    assert!(
                        ranges[i].end <= ranges[j].start || ranges[j].end <= ranges[i].start,
                        "{i} {j}: {:?} {:?}",
                        ranges[i],
                        ranges[j]
                    );
                }
            }
            assert_eq!(ranges[i].start % ALIGNMENT, 0);
            assert_eq!(ranges[i].len(), a.size);
        }
        // Two at a time, each at most 192 bytes when rounded up.
        assert!(size <= 3 * 192, "{size}");
    }

    #[test]
    fn ranges_that_were_kept_are_the_same_again_and_those_of_others_are_refused() {
        let needs: Vec<Need> =
            (0..10).map(|i| Need { size: 100 + i * 7, first: i, last: i + 1 }).collect();
        let assigned = assign_ranges(&needs, Stop::default()).unwrap();
        let mut kept = offsets(&assigned.0);
        assert_eq!(kept_ranges(&needs, &kept), Ok(assigned));
        assert!(kept_ranges(&needs[1..], &kept).is_err());
        assert!(kept_ranges(&needs, &kept[1..]).is_err());
        kept[0] ^= 1;
        assert!(kept_ranges(&needs, &kept).is_err(), "not aligned");
        kept[..8].fill(0xFF);
        assert!(kept_ranges(&needs, &kept).is_err(), "beyond all memory");
    }

    #[test]
    fn a_smaller_value_lies_in_the_middle_of_a_larger_one_of_other_steps() {
        let need = |size, first, last| Need { size, first, last };
        // A chain that becomes smaller.
        let needs = [need(4096, 0, 1), need(4096, 1, 2), need(2048, 2, 3), need(1024, 3, 4)];
        let (ranges, size) = assign_ranges(&needs, Stop::default()).unwrap();
        assert_eq!(ranges, [0..4096, 4096..8192, 1024..3072, 5632..6656]);
        assert_eq!(size, 8192);
    }

    #[test]
    fn middles_that_would_cost_much_memory_are_not_taken() {
        let need = |size, first, last| Need { size, first, last };
        // Two values fill the large one's memory together; with one in its middle the other one finds no room there.
        let needs = [need(4096, 0, 1), need(2048, 2, 3), need(2048, 2, 3)];
        let (ranges, size) = assign_ranges(&needs, Stop::default()).unwrap();
        assert_eq!(ranges, [0..4096, 0..2048, 2048..4096]);
        assert_eq!(size, 4096);
    }

    #[test]
    fn empty_values_take_no_bytes() {
        let needs = [Need { size: 0, first: 0, last: 5 }, Need { size: 64, first: 0, last: 5 }];
        let (ranges, size) = assign_ranges(&needs, Stop::default()).unwrap();
        assert_eq!((ranges[0].len(), size), (0, 64));
    }

    #[test]
    fn split_hands_out_disjoint_ranges_and_refuses_others() {
        let mut arena = [0u8, 1, 2, 3, 4, 5, 6, 7];
        {
            let mut split = Split::default();
            split.fill(&mut arena, [1..3, 5..6].into_iter()).unwrap();
            let Split { written, gaps } = &split;
            assert_eq!(*written[0], [1, 2]);
            assert_eq!(*written[1], [5]);
            assert_eq!(gaps.get(&(3..5)).unwrap(), [3, 4]);
            assert_eq!(gaps.get(&(6..8)).unwrap(), [6, 7]);
            assert!(gaps.get(&(2..4)).is_err());
            assert!(gaps.get(&(5..7)).is_err());
        }
        for refused in [[1..3, 2..4], [0..0, 7..9]] {
            assert!(Split::default().fill(&mut arena, refused.into_iter()).is_err());
        }
    }
}
