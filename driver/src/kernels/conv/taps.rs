//! Walks over the pixels of a convolution's output, and over the taps of each that fall onto the image.

use std::ops::Range;

use super::geometry::{Conv, Images};

/// Taps of one output pixel that fall onto the image: for rows of taps, and taps of each row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taps<'a> {
    /// The convolution.
    pub(crate) conv: &'a Conv,
    batch: usize,
    row: usize,
    column: usize,
    /// Rows of taps, from the first to behind the last.
    pub(crate) down: (usize, usize),
    /// Taps of each of these rows.
    pub(crate) right: (usize, usize),
}

// Iterators rather than functions that take closures: a closure is compiled for the instructions of
// the function it stands in, and the bodies here stand in portable ones that are to be compiled for
// whatever their caller is.

impl Taps<'_> {
    /// For each tap the index of the first input value under it, and its number.
    #[inline(always)]
    pub(crate) fn iter(&self) -> TapIter {
        let Conv { input, filter, vertical, horizontal, .. } = self.conv;
        let is_empty = self.down.0 == self.down.1 || self.right.0 == self.right.1;
        let (mut from, mut lines) = (0, 0);
        if !is_empty {
            let y = vertical.position(self.row, self.down.0);
            let x = horizontal.position(self.column, self.right.0);
            from = input.at(self.batch, y, x);
            lines = self.down.1 - self.down.0;
        }
        let first = (from, self.down.0 * filter.width + self.right.0);
        TapIter {
            next: first,
            line: first,
            steps: [vertical.dilation * input.row_step, filter.width],
            step: horizontal.dilation * input.column_step,
            lines,
            width: self.right.1 - self.right.0,
            left: self.right.1 - self.right.0,
        }
    }
}

/// See [`Taps::iter`].
#[derive(Debug)]
pub(crate) struct TapIter {
    next: (usize, usize),
    line: (usize, usize),
    /// From a row of taps to the next: input values, taps.
    steps: [usize; 2],
    /// From a tap to the next: input values.
    step: usize,
    /// Rows not finished.
    lines: usize,
    /// Taps of a row.
    width: usize,
    /// Taps left of this row.
    left: usize,
}

impl Iterator for TapIter {
    type Item = (usize, usize);

    #[inline(always)]
    fn next(&mut self) -> Option<(usize, usize)> {
        if self.lines == 0 {
            return None;
        }
        let item = self.next;
        self.left -= 1;
        if self.left > 0 {
            self.next = (item.0 + self.step, item.1 + 1);
        } else {
            self.lines -= 1;
            self.left = self.width;
            self.line = (self.line.0 + self.steps[0], self.line.1 + self.steps[1]);
            self.next = self.line;
        }
        Some(item)
    }
}

/// The pixels of output rows `rows`, counted over all images.
#[inline(always)]
pub(crate) fn pixels(conv: &Conv, rows: Range<usize>) -> Pixels<'_> {
    pixels_of(conv, rows, 0..conv.output.width)
}

/// The pixels of these columns of output rows `rows`, counted over all images.
#[inline(always)]
pub(crate) fn pixels_of(conv: &Conv, rows: Range<usize>, columns: Range<usize>) -> Pixels<'_> {
    let rows = if columns.is_empty() { 0..0 } else { rows };
    let column = columns.end;
    Pixels { conv, rows, batch: 0, row: 0, down: (0, 0), columns, column }
}

/// See [`pixels`].
#[derive(Debug)]
pub(crate) struct Pixels<'a> {
    conv: &'a Conv,
    /// Rows not begun.
    rows: Range<usize>,
    batch: usize,
    row: usize,
    down: (usize, usize),
    columns: Range<usize>,
    column: usize,
}

impl<'a> Iterator for Pixels<'a> {
    type Item = Taps<'a>;

    #[inline(always)]
    fn next(&mut self) -> Option<Taps<'a>> {
        let conv = self.conv;
        if self.column == self.columns.end {
            let Images { height, .. } = conv.output;
            let line = self.rows.next()?;
            (self.batch, self.row) = (line / height, line % height);
            let down = conv.vertical.taps(self.row, conv.filter.height, conv.input.height);
            self.down = (down.start, down.end);
            self.column = self.columns.start;
        }
        let column = self.column;
        self.column += 1;
        let right = conv.horizontal.taps(column, conv.filter.width, conv.input.width);
        let right = (right.start, right.end);
        Some(Taps { conv, batch: self.batch, row: self.row, column, down: self.down, right })
    }
}
