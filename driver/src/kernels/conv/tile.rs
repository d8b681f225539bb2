//! Tiles of rows whose sums stay in registers.
//!
//! The compiler keeps an array of sums in registers where every one of them is named by a constant. Of an array of more
//! than eight rows that a loop walks over, it writes all to memory after every piece of a row. So kernels write rows out,
//! by [`each_row`].

use std::marker::PhantomData;

use super::rows::EvenRows;

/// Does something for each of `R` rows of a tile, at most 12, with a row number that is a constant each time.
macro_rules! each_row {
    ($rows:ident, $row:ident => $body:block) => {
        const { assert!($rows <= 12, "rows of a tile") };
        each_row!(@ $rows, $row, $body, 0 1 2 3 4 5 6 7 8 9 10 11);
    };
    (@ $rows:ident, $row:ident, $body:block, $($number:literal)*) => {
        $(if $number < $rows {
            let $row = $number;
            $body
        })*
    };
}

pub(crate) use each_row;

/// A piece of each of `R` rows, all of one length. Where each begins, so many values can be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece<'a, T, const R: usize> {
    rows: [*const T; R],
    len: usize,
    values: PhantomData<&'a [T]>,
}

impl<'a, T, const R: usize> Piece<'a, T, R> {
    /// The `len` values of each row from `offset` on; `rows` are as many as `R`.
    #[inline(always)]
    pub(crate) fn even(rows: EvenRows<'a, T>, offset: usize, len: usize) -> Self {
        // From the begin of every row on so many values are there, as there are from that of the last.
        let span = rows.values.len().checked_sub(rows.step.saturating_mul(R - 1));
        let room = span.and_then(|span| span.checked_sub(offset));
        assert!(room.is_some_and(|room| len <= room), "a piece of the rows of a tile");
        let first = rows.values.as_ptr().wrapping_add(offset);
        let mut piece = Piece { rows: [first; R], len, values: PhantomData };
        each_row!(R, row => {
            piece.rows[row] = first.wrapping_add(row * rows.step);
        });
        piece
    }

    /// These values of each row.
    #[inline(always)]
    pub(crate) fn listed(rows: &[&'a [T]; R]) -> Self {
        let len = rows[0].len();
        let mut piece = Piece { rows: [rows[0].as_ptr(); R], len, values: PhantomData };
        each_row!(R, row => {
            assert_eq!(rows[row].len(), len, "rows of a tile");
            piece.rows[row] = rows[row].as_ptr();
        });
        piece
    }

    /// Values of each row.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Where the values of a row begin.
    #[inline(always)]
    pub(crate) fn row(&self, row: usize) -> *const T {
        self.rows[row]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_even_rows_lie_a_step_apart() {
        let values: Vec<u8> = (0..23).collect();
        let rows = EvenRows { values: &values, step: 5, span: 8 };
        let piece = Piece::<u8, 4>::even(rows, 6, 2);
        assert_eq!(piece.len(), 2);
        for row in 0..4 {
            assert_eq!(piece.row(row), &raw const values[6 + 5 * row]);
        }
    }

    #[test]
    fn a_piece_that_some_row_does_not_have_is_refused() {
        let values = [0_u8; 23];
        for (step, offset, len) in [(5, 6, 3), (5, 9, 0), (8, 0, 0), (usize::MAX / 2, 0, 0)] {
            let rows = EvenRows { values: &values, step, span: 8 };
            std::panic::catch_unwind(|| Piece::<u8, 4>::even(rows, offset, len)).unwrap_err();
        }
        std::panic::catch_unwind(|| Piece::listed(&[&values[..2], &values[..3]])).unwrap_err();
    }
}
