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

/// Gives each value a range such that values alive at the same time never overlap.
/// Returns the ranges, in order of `needs`, and the size of the block.
///
/// The largest value gets its range first, each at the lowest free offset.
///
/// # Errors
/// [`OpError::Range`] when the block would not fit the address space; those of `stop`.
pub(crate) fn assign_ranges(
    needs: &[Need],
    stop: Stop<'_>,
) -> Result<(Vec<Range<usize>>, usize), OpError> {
    let mut checkpoints = stop.checkpoints();
    let mut by_size: Vec<usize> = (0..needs.len()).collect();
    by_size.sort_by_key(|index| (std::cmp::Reverse(needs[*index].size), needs[*index].first));
    let share = needs.len() <= MAX_SHARED_VALUES;
    let mut ranges: Vec<Range<usize>> = vec![0..0; needs.len()];
    let mut placed: Vec<usize> = Vec::with_capacity(needs.len()); // by offset
    let mut end = 0usize;
    for index in by_size {
        let need = &needs[index];
        checkpoints.after(placed.len() + 1)?;
        let rounded = need
            .size
            .checked_next_multiple_of(ALIGNMENT)
            .ok_or(OpError::Range { what: "size of a tensor in memory" })?;
        let mut offset = if share { 0 } else { end };
        if share {
            for other in placed.iter().filter(|other| needs[**other].overlaps_in_time(need)) {
                let taken = &ranges[*other];
                if offset.saturating_add(rounded) <= taken.start {
                    break;
                }
                offset = offset.max(taken.end.next_multiple_of(ALIGNMENT));
            }
        }
        let stop = offset
            .checked_add(rounded)
            .ok_or(OpError::Range { what: "size of the working memory" })?;
        ranges[index] = offset..offset + need.size;
        end = end.max(stop);
        if share {
            let at = placed.partition_point(|other| ranges[*other].start <= offset);
            placed.insert(at, index);
        }
    }
    Ok((ranges, end))
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

/// Borrows `writes` (ascending, disjoint) mutably and everything between them for reading.
///
/// # Errors
/// [`OpError::Internal`] when the ranges overlap or leave the arena.
pub(crate) fn split<'a>(
    arena: &'a mut [u8],
    writes: impl Iterator<Item = Range<usize>>,
) -> Result<(Written<'a>, Gaps<'a>), OpError> {
    let bad = OpError::Internal { what: "outputs share memory" };
    let mut written = SmallVec::new();
    let mut gaps = SmallVec::new();
    let mut rest = arena;
    let mut at = 0;
    for range in writes {
        let before = range.start.checked_sub(at).ok_or(bad.clone())?;
        let (gap, tail) = rest.split_at_mut_checked(before).ok_or(bad.clone())?;
        let (write, tail) = tail.split_at_mut_checked(range.len()).ok_or(bad.clone())?;
        gaps.push((at, &*gap));
        written.push(write);
        rest = tail;
        at = range.end;
    }
    gaps.push((at, &*rest));
    Ok((written, Gaps(gaps)))
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
    fn empty_values_take_no_bytes() {
        let needs = [Need { size: 0, first: 0, last: 5 }, Need { size: 64, first: 0, last: 5 }];
        let (ranges, size) = assign_ranges(&needs, Stop::default()).unwrap();
        assert_eq!((ranges[0].len(), size), (0, 64));
    }

    #[test]
    fn split_hands_out_disjoint_ranges_and_refuses_others() {
        let mut arena = [0u8, 1, 2, 3, 4, 5, 6, 7];
        let (written, gaps) = split(&mut arena, [1..3, 5..6].into_iter()).unwrap();
        assert_eq!(written[0], [1, 2]);
        assert_eq!(written[1], [5]);
        assert_eq!(gaps.get(&(3..5)).unwrap(), [3, 4]);
        assert_eq!(gaps.get(&(6..8)).unwrap(), [6, 7]);
        assert!(gaps.get(&(2..4)).is_err());
        assert!(gaps.get(&(5..7)).is_err());
        drop((written, gaps));
        assert!(split(&mut arena, [1..3, 2..4].into_iter()).is_err());
        assert!(split(&mut arena, std::iter::once(7..9)).is_err());
    }
}
