//! A walk over the output pixels of a convolution, which tells those whose filter lies wholly on the image from
//! those at an edge.

use super::geometry::Conv;

/// How many of the output pixels before this one have their filter wholly on the image: worked out by lines, as
/// there are many pixels and few of them lie at an edge.
pub(super) fn inside_before(conv: &Conv, pixel: usize) -> usize {
    let Conv { input, filter, output, .. } = conv;
    let columns = conv.horizontal.whole(filter.width, input.width, output.width);
    let rows = conv.vertical.whole(filter.height, input.height, output.height);
    let Place { batch, row, column } = Place::of(conv, pixel);
    let of_line =
        if rows.contains(&row) { column.clamp(columns.start, columns.end) } else { columns.start };
    let lines = batch * rows.len() + (row.clamp(rows.start, rows.end) - rows.start);
    lines * columns.len() + (of_line - columns.start)
}

/// Where the values under a filter are.
#[derive(Debug, Clone, Copy)]
pub(super) enum Spot {
    /// All on the image, from this value on.
    Inside(usize),
    /// Some of them beyond the edge; how many such pixels came before.
    Edge(usize),
}

/// Where an output pixel lies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) batch: usize,
    pub(super) row: usize,
    pub(super) column: usize,
}

impl Place {
    fn of(conv: &Conv, pixel: usize) -> Self {
        let (line, column) = (pixel / conv.output.width, pixel % conv.output.width);
        Place { batch: line / conv.output.height, row: line % conv.output.height, column }
    }
}

/// A walk over output pixels in order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Walk {
    /// The pixel that comes next.
    place: Place,
    /// Columns, and rows, of pixels whose filter lies on the image.
    columns: (usize, usize),
    rows: (usize, usize),
    /// Where the values under column 0 of this row would begin, plus the padding on the left;
    /// `None` in rows over the edge.
    line: Option<usize>,
    pub(super) edges: usize,
}

impl Walk {
    pub(super) fn new(conv: &Conv, first: usize) -> Self {
        let Conv { input, filter, output, .. } = conv;
        let columns = conv.horizontal.whole(filter.width, input.width, output.width);
        let rows = conv.vertical.whole(filter.height, input.height, output.height);
        let mut walk = Walk {
            place: Place::of(conv, first),
            columns: (columns.start, columns.end),
            rows: (rows.start, rows.end),
            line: None,
            edges: 0,
        };
        walk.find_line(conv);
        walk
    }

    /// The pixel that comes next.
    #[inline(always)]
    pub(super) fn place(&self) -> Place {
        self.place
    }

    fn find_line(&mut self, conv: &Conv) {
        let is_inside = self.place.row >= self.rows.0 && self.place.row < self.rows.1;
        self.line = is_inside.then(|| {
            let row = conv.vertical.position(self.place.row, 0);
            self.place.batch * conv.input.batch_step + row * conv.input.row_step
        });
    }

    /// Goes on to the last of the pixels of this line that lie on the image, where it stands before it at one of
    /// them; that one is left to [`Walk::next`], which knows where a line ends. How many it passed.
    pub(super) fn skip_inside(&mut self) -> usize {
        let passed = self.inside().saturating_sub(1);
        self.place.column += passed;
        passed
    }

    /// How many pixels of this line have their filter wholly on the image, from this one on.
    #[inline(always)]
    pub(super) fn inside(&self) -> usize {
        let (start, end) = self.columns;
        let column = self.place.column;
        if self.line.is_some() && column >= start { end.saturating_sub(column) } else { 0 }
    }

    /// Where the values of this pixel begin; goes on to the pixel `count` further on. Only where the filter of all of
    /// them lies on the image and they are in one line.
    #[inline(always)]
    pub(super) fn run(&mut self, conv: &Conv, count: usize) -> Option<usize> {
        let (start, end) = self.columns;
        let line =
            self.line.filter(|_| self.place.column >= start && self.place.column + count <= end)?;
        let across = self.place.column * conv.horizontal.stride - conv.horizontal.pad;
        self.place.column += count;
        if self.place.column == conv.output.width {
            self.next_line(conv);
        }
        Some(line + across * conv.input.column_step)
    }

    /// This pixel's values; goes on to the next pixel.
    #[inline(always)]
    pub(super) fn next(&mut self, conv: &Conv) -> Spot {
        let column = self.place.column;
        let spot = match self.line {
            Some(line) if column >= self.columns.0 && column < self.columns.1 => {
                let across = column * conv.horizontal.stride - conv.horizontal.pad;
                Spot::Inside(line + across * conv.input.column_step)
            }
            _ => {
                self.edges += 1;
                Spot::Edge(self.edges - 1)
            }
        };
        self.place.column += 1;
        if self.place.column == conv.output.width {
            self.next_line(conv);
        }
        spot
    }

    #[cold]
    fn next_line(&mut self, conv: &Conv) {
        self.place.column = 0;
        self.place.row += 1;
        if self.place.row == conv.output.height {
            self.place.row = 0;
            self.place.batch += 1;
        }
        self.find_line(conv);
    }
}
