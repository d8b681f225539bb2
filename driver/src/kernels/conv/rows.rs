//! Rows of a matrix product where they lie: of a matrix, or the input values under the filter of a
//! convolution, without a copy of what lies wholly on the image.

use super::geometry::Conv;
use super::im2col::{Source, fill_row, fill_rows};
use super::walk::{Spot, Walk, inside_before};
use crate::OpError;

/// Most pieces that a row is read in: those of a dilated filter of 5 by 5.
pub(crate) const MAX_SEGMENTS: usize = 25;

/// The pieces of `R` rows, for each piece the rows side by side.
pub(crate) type Segments<'a, T, const R: usize> = [[&'a [T]; R]; MAX_SEGMENTS];

/// Rows of equal length, each in pieces of equal length.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::large_enum_variant, reason = "one lives on the stack, for a tile of rows")]
pub(crate) enum MatrixRows<'a, T> {
    /// Rows of a matrix.
    Matrix {
        /// The values.
        values: &'a [T],
        /// Values of a row.
        depth: usize,
    },
    /// Pixels under a filter.
    Pixels(Pixels<'a, T>),
}

/// Rows that follow each other in even steps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EvenRows<'a, T> {
    /// From the first row's first value to the last row's last.
    pub(crate) values: &'a [T],
    /// From a row's first value to that of the next.
    pub(crate) step: usize,
    /// From a row's first value to its last, with what lies between its pieces.
    pub(crate) span: usize,
}

/// Which row comes next, while the rows are visited in order.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::large_enum_variant, reason = "one lives on the stack, for a tile of rows")]
pub(crate) enum Cursor {
    /// The index of the next row.
    Row(usize),
    /// The next pixel.
    Pixel(Walk),
}

impl<'a, T: Copy> MatrixRows<'a, T> {
    /// How many rows there are.
    #[inline(always)]
    pub(crate) fn count(&self) -> usize {
        match self {
            MatrixRows::Matrix { values, depth } => values.len() / (*depth).max(1),
            MatrixRows::Pixels(pixels) => pixels.count,
        }
    }

    /// Values of a row.
    #[inline(always)]
    pub(crate) fn depth(&self) -> usize {
        match self {
            MatrixRows::Matrix { depth, .. } => *depth,
            MatrixRows::Pixels(pixels) => pixels.conv.depth(),
        }
    }

    /// The values of rows `first..first + count` of a convolution where they lie, or gathered into scratch
    /// memory of the length that `room` is asked for.
    ///
    /// # Errors
    /// [`OpError::Internal`] when sizes do not fit; those of `room`.
    pub(crate) fn of_conv(
        conv: &'a Conv,
        input: Source<'a, T>,
        step: usize,
        (first, count): (usize, usize),
        room: impl FnOnce(usize) -> Result<&'a mut [T], OpError>,
    ) -> Result<Self, OpError> {
        let depth = conv.depth();
        if conv.is_pointwise() {
            let rest =
                (first * depth).checked_sub(input.base).and_then(|at| input.values.get(at..));
            let values = rest.and_then(|rest| rest.get(..count * depth));
            let values = values.ok_or(OpError::Internal { what: "pixels of a convolution" })?;
            return Ok(MatrixRows::Matrix { values, depth });
        }
        let gathered = room(Self::gathered_len(conv, step, (first, count)))?;
        let range = (first, count);
        Pixels::new(conv, input, step, range, gathered).map(MatrixRows::Pixels)
    }

    /// Values of scratch memory that [`MatrixRows::of_conv`] asks for.
    pub(crate) fn gathered_len(conv: &Conv, step: usize, (first, count): (usize, usize)) -> usize {
        if conv.is_pointwise() { 0 } else { Pixels::<T>::gathered_len(conv, step, first, count) }
    }

    /// Whether every piece of a row, or the only one, is of whole steps, but for the last one's end.
    pub(crate) fn has_steps_of(&self, step: usize) -> bool {
        match self {
            MatrixRows::Matrix { .. } => true,
            MatrixRows::Pixels(pixels) => {
                pixels.pieces.as_ref().is_none_or(|pieces| pieces.len.is_multiple_of(step))
            }
        }
    }

    /// Whether there are whole rows only.
    pub(crate) fn is_whole(&self) -> bool {
        match self {
            MatrixRows::Matrix { values, depth } => values.len().is_multiple_of((*depth).max(1)),
            MatrixRows::Pixels(_) => true,
        }
    }

    /// A cursor that stands at the first row.
    #[inline(always)]
    pub(crate) fn start(&self) -> Cursor {
        match self {
            MatrixRows::Matrix { .. } => Cursor::Row(0),
            MatrixRows::Pixels(pixels) => Cursor::Pixel(Walk::new(pixels.conv, pixels.first)),
        }
    }

    /// Whether all rows follow each other in even steps and in one piece each, so that [`MatrixRows::slices`] always
    /// has them.
    pub(crate) fn are_whole(&self) -> bool {
        match self {
            MatrixRows::Matrix { .. } => true,
            MatrixRows::Pixels(pixels) => pixels.pieces.is_none(),
        }
    }

    /// Where the pieces of a row of [`MatrixRows::slices`] begin, and how long they are.
    #[inline(always)]
    pub(crate) fn pieces(&self) -> (&[usize], usize) {
        match self {
            MatrixRows::Pixels(Pixels { pieces: Some(pieces), .. }) => {
                (&pieces.offsets[..pieces.count], pieces.len)
            }
            _ => (&[0], self.depth()),
        }
    }

    /// The next `rows` rows where they follow each other in even steps: what lies from the first one's first value to the
    /// last one's last, the step, and from a row's first value to its last. `None`, and the cursor stays, where some of
    /// them reach over an edge or into another line of the image.
    #[inline(always)]
    pub(crate) fn even(&self, cursor: &mut Cursor, rows: usize) -> Option<EvenRows<'a, T>> {
        let (values, from, step, span) = match (self, cursor) {
            (MatrixRows::Matrix { values, depth }, Cursor::Row(next)) => {
                *next += rows;
                (*values, (*next - rows) * depth, *depth, *depth)
            }
            (MatrixRows::Pixels(pixels), Cursor::Pixel(walk)) => pixels.run(walk, rows)?,
            _ => return None,
        };
        Some(EvenRows { values: &values[from..from + (rows - 1) * step + span], step, span })
    }

    /// The next `rows` rows, of at most `R`, where [`MatrixRows::even`] has them: of each what lies from its first value to
    /// its last one, and for what is left of `R` the last row.
    #[inline(always)]
    pub(crate) fn slices<const R: usize>(
        &self,
        cursor: &mut Cursor,
        rows: usize,
    ) -> Option<[&'a [T]; R]> {
        let EvenRows { values: mut rest, step, span } = self.even(cursor, rows)?;
        let mut slices: [&[T]; R] = [&[]; R];
        for (index, slice) in slices.iter_mut().enumerate() {
            *slice = &rest[..span];
            if index + 1 < rows {
                rest = &rest[step..];
            }
        }
        Some(slices)
    }

    /// Lists the pieces of the next `rows` rows, of at most `R`, and says how many pieces there
    /// are. What is left of the list is filled with the last row.
    #[inline(always)]
    pub(crate) fn list<const R: usize>(
        &self,
        cursor: &mut Cursor,
        rows: usize,
        list: &mut Segments<'a, T, R>,
    ) -> usize {
        match (self, cursor) {
            (MatrixRows::Matrix { values, depth }, Cursor::Row(next)) => {
                for (index, slot) in list[0].iter_mut().enumerate() {
                    let row = *next + index.min(rows - 1);
                    *slot = &values[row * depth..(row + 1) * depth];
                }
                *next += rows;
                1
            }
            (MatrixRows::Pixels(pixels), Cursor::Pixel(walk)) => pixels.list(walk, rows, list),
            // A cursor is of the rows that it was made by.
            _ => 0,
        }
    }
}

/// How the row of a pixel that lies wholly on the image is cut into pieces.
#[derive(Debug, Clone, Copy)]
struct Pieces {
    count: usize,
    len: usize,
    /// Where each begins, from the first on.
    offsets: [usize; MAX_SEGMENTS],
}

impl Pieces {
    /// Lines of taps where these lie side by side, else single taps; `None` when there are too
    /// many, or they are not of whole steps.
    fn of(conv: &Conv, step: usize) -> Option<Self> {
        let (filter, input) = (&conv.filter, &conv.input);
        let across = if conv.horizontal.dilation == 1 { 1 } else { filter.width };
        let count = filter.height * across;
        let len = conv.depth() / count.max(1);
        if count > MAX_SEGMENTS || !input.is_nhwc() || !len.is_multiple_of(step) {
            return None;
        }
        let mut offsets = [0; MAX_SEGMENTS];
        for (index, offset) in offsets[..count].iter_mut().enumerate() {
            *offset = index / across * conv.vertical.dilation * input.row_step
                + index % across * conv.horizontal.dilation * input.column_step;
        }
        Some(Pieces { count, len, offsets })
    }
}

/// Output pixels of a convolution. Those that the filter reaches over the edge for are gathered
/// beforehand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pixels<'a, T> {
    conv: &'a Conv,
    input: Source<'a, T>,
    /// The rows that were gathered.
    gathered: &'a [T],
    first: usize,
    count: usize,
    /// `None` where all rows were gathered.
    pieces: Option<Pieces>,
}

impl<'a, T: Copy> Pixels<'a, T> {
    /// Working memory for pixels `first..first + count`, in values, where pieces have to be of whole steps of
    /// so many values.
    pub(crate) fn gathered_len(conv: &Conv, step: usize, first: usize, count: usize) -> usize {
        if Pieces::of(conv, step).is_none() {
            return count * conv.depth();
        }
        let inside = inside_before(conv, first + count) - inside_before(conv, first);
        (count - inside) * conv.depth()
    }

    /// Pixels `first..first + count` of the convolution of `input`, in pieces of whole steps, with working memory of
    /// [`Pixels::gathered_len`].
    ///
    /// # Errors
    /// [`OpError::Internal`] when sizes do not fit.
    pub(crate) fn new(
        conv: &'a Conv,
        input: Source<'a, T>,
        step: usize,
        (first, count): (usize, usize),
        gathered: &'a mut [T],
    ) -> Result<Self, OpError> {
        let reach = conv.reach(first, count);
        let fits = reach.end <= conv.input.values()
            && reach.start >= input.base
            && reach.end <= input.base + input.values.len()
            && first + count <= conv.output.pixels()
            && gathered.len() == Self::gathered_len(conv, step, first, count);
        if !fits {
            return Err(OpError::Internal { what: "pixels of a convolution" });
        }
        let pieces = Pieces::of(conv, step);
        let depth = conv.depth();
        if pieces.is_none() {
            fill_rows(conv, input, first, gathered);
        } else {
            let mut walk = Walk::new(conv, first);
            let mut pixel = first;
            while pixel < first + count {
                pixel += walk.skip_inside();
                let place = walk.place();
                // Past the range only where there is nothing to gather.
                if let Spot::Edge(index) = walk.next(conv) {
                    fill_row(conv, input, place, &mut gathered[index * depth..]);
                }
                pixel += 1;
            }
        }
        Ok(Pixels { conv, input, gathered, first, count, pieces })
    }

    /// The values in which the next `rows` pixels lie in even steps, where the first one begins, the step, and
    /// from the first value of a pixel to its last.
    #[inline(always)]
    fn run(&self, walk: &mut Walk, rows: usize) -> Option<(&'a [T], usize, usize, usize)> {
        let Some(Pieces { count, len, offsets }) = &self.pieces else {
            let depth = self.conv.depth();
            walk.edges += rows;
            return Some((self.gathered, (walk.edges - rows) * depth, depth, depth));
        };
        let from = walk.run(self.conv, rows)? - self.input.base;
        let step = self.conv.horizontal.stride * self.conv.input.column_step;
        Some((self.input.values, from, step, offsets[count - 1] + len))
    }

    #[inline(always)]
    fn list<const R: usize>(
        &self,
        walk: &mut Walk,
        rows: usize,
        list: &mut Segments<'a, T, R>,
    ) -> usize {
        let depth = self.conv.depth();
        let Some(pieces) = &self.pieces else {
            for (index, slot) in list[0].iter_mut().enumerate() {
                let row = walk.edges + index.min(rows - 1);
                *slot = &self.gathered[row * depth..(row + 1) * depth];
            }
            walk.edges += rows;
            return 1;
        };
        let list = &mut list[..pieces.count];
        // Nearly all rows: side by side, all on the image.
        if let Some((values, from, step, _)) = self.run(walk, rows) {
            for (slots, offset) in list.iter_mut().zip(&pieces.offsets) {
                let mut rest = &values[from + offset..];
                for (index, slot) in slots.iter_mut().enumerate() {
                    *slot = &rest[..pieces.len];
                    if index + 1 < rows {
                        rest = &rest[step..];
                    }
                }
            }
            return pieces.count;
        }
        let mut spot = Spot::Edge(0);
        for index in 0..R {
            if index < rows {
                spot = walk.next(self.conv);
            }
            match spot {
                Spot::Inside(from) => {
                    let from = from - self.input.base;
                    for (slots, offset) in list.iter_mut().zip(&pieces.offsets) {
                        slots[index] = &self.input.values[from + offset..][..pieces.len];
                    }
                }
                Spot::Edge(edge) => {
                    let row = &self.gathered[edge * depth..(edge + 1) * depth];
                    for (slots, piece) in list.iter_mut().zip(row.chunks_exact(pieces.len)) {
                        slots[index] = piece;
                    }
                }
            }
        }
        pieces.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::conv::{Axis, Filter, Images};

    /// The rows as [`fill_rows`] writes them, and as they are listed, in pieces put together.
    /// How many tiles came as slices.
    fn compare(conv: &Conv, step: usize, first: usize, count: usize) -> usize {
        #[allow(clippy::cast_precision_loss, reason = "few values")]
        let input: Vec<f32> = (1..=conv.input.values()).map(|value| value as f32).collect();
        let mut want = vec![f32::NAN; count * conv.depth()];
        let source = Source::whole(&input, -7.0);
        fill_rows(conv, source, first, &mut want);
        let mut gathered = vec![f32::NAN; Pixels::<f32>::gathered_len(conv, step, first, count)];
        // Of all values, or of no more than are needed.
        let reach = conv.reach(first, count);
        let part = Source { values: &input[reach.clone()], base: reach.start, zero: -7.0 };
        let given = if first == 0 { source } else { part };
        let pixels = Pixels::new(conv, given, step, (first, count), &mut gathered).unwrap();
        let rows = MatrixRows::Pixels(pixels);
        assert!(rows.has_steps_of(step));
        assert_eq!((rows.count(), rows.depth()), (count, conv.depth()));
        assert_eq!(values(&rows, false).0, want, "{conv:?} from {first}");
        let (got, slices) = values(&rows, true);
        assert!(!rows.are_whole() || slices == count.div_ceil(4), "{conv:?} from {first}");
        assert_eq!(got, want, "{conv:?} from {first}");
        slices
    }

    /// The values of all rows, taken as slices where they can be or never; how many tiles came as slices.
    fn values(rows: &MatrixRows<'_, f32>, with_slices: bool) -> (Vec<f32>, usize) {
        let (mut cursor, mut got, mut slices) = (rows.start(), Vec::new(), 0);
        for row in (0..rows.count()).step_by(4) {
            let taken = (rows.count() - row).min(4);
            let (offsets, len) = rows.pieces();
            let tile = if with_slices { rows.slices::<4>(&mut cursor, taken) } else { None };
            if let Some(tile) = tile {
                slices += 1;
                for row in &tile[..taken] {
                    let pieces = offsets.iter().map(|offset| &row[*offset..offset + len]);
                    got.extend(pieces.flatten());
                }
                assert_eq!(tile[3], tile[taken - 1], "what is left over is the last row");
                continue;
            }
            let mut list: Segments<'_, f32, 4> = [[&[]; 4]; MAX_SEGMENTS];
            let pieces = rows.list(&mut cursor, taken, &mut list);
            for index in 0..taken {
                got.extend(list[..pieces].iter().flat_map(|rows| rows[index]));
            }
            let last = |index: usize| list[..pieces].iter().map(move |rows| rows[index]);
            assert!(last(3).eq(last(taken - 1)), "slots left over hold the last row");
        }
        (got, slices)
    }

    #[test]
    fn listed_rows_are_the_gathered_ones() {
        let mut slices = 0;
        for (stride, dilation, pad, taps) in [
            (1, 1, 1, 3),
            (2, 1, 0, 3),
            (2, 1, 1, 2),
            (1, 2, 2, 3),
            (1, 1, 9, 3),
            (3, 1, 5, 1),
            (1, 1, 3, 6),
        ] {
            let size = 7usize;
            let span = (taps - 1) * dilation + 1;
            let out = (size + 2 * pad).saturating_sub(span) / stride + 1;
            let axis = Axis { stride, dilation, pad };
            let conv = Conv {
                input: Images::nhwc([2, size, size, 3]),
                filter: Filter::dense([1, taps, taps, 3]),
                output: Images::nhwc([2, out, out, 1]),
                vertical: axis,
                horizontal: axis,
                groups: 1,
            };
            let all = conv.output.pixels();
            for step in [1, 2, 3, 4] {
                slices += compare(&conv, step, 0, all);
                slices += compare(&conv, step, all / 3, all / 2);
            }
        }
        assert!(slices > 100, "{slices} tiles of pixels side by side");
    }

    #[test]
    fn a_matrix_is_listed_row_by_row() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let rows = MatrixRows::Matrix { values: &values, depth: 2 };
        let mut cursor = rows.start();
        let mut list: Segments<'_, f32, 2> = [[&[]; 2]; MAX_SEGMENTS];
        assert_eq!(rows.list(&mut cursor, 2, &mut list), 1);
        assert_eq!(list[0], [&[1.0, 2.0], &[3.0, 4.0]]);
        assert_eq!(rows.list(&mut cursor, 1, &mut list), 1);
        assert_eq!(list[0], [&[5.0, 6.0]; 2]);
        let mut cursor = rows.start();
        assert_eq!(rows.slices(&mut cursor, 2), Some([&[1.0, 2.0][..], &[3.0, 4.0]]));
        assert_eq!(rows.slices(&mut cursor, 1), Some([&[5.0, 6.0][..]; 2]));
    }
}
