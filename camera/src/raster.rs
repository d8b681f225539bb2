//! Filling polygons: how much of each pixel lies inside (0 to 1).
//!
//! Each pixel row is cut into [`SLICES`] lines. On a line the inside is a set of spans between
//! crossings (a point is inside when it has an odd number of crossings to its left), and a span
//! covers its end pixels in part. So edges are smooth in both directions.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "pixel positions, clamped to the frame before they are made whole"
)]

use std::ops::Range;

use crate::math::Point;

/// Lines per pixel row: steps of a quarter are below the noise.
const SLICES: usize = 4;

/// A frame's worth of coverage, filled by one polygon at a time.
#[derive(Debug)]
pub(crate) struct Mask {
    width: usize,
    height: usize,
    cover: Vec<f32>,
    crossings: Vec<f32>,
}

/// The part of the frame that a polygon touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Touched {
    pub(crate) rows: Range<usize>,
    pub(crate) columns: Range<usize>,
}

impl Mask {
    pub(crate) fn new(width: usize, height: usize) -> Mask {
        Mask { width, height, cover: vec![0.0; width * height], crossings: Vec::new() }
    }

    /// Covers the inside of `outlines` (in pixels) and says where to look for it.
    pub(crate) fn fill(&mut self, outlines: &[Vec<Point>]) -> Touched {
        let touched = self.touched(outlines);
        for row in touched.rows.clone() {
            let start = row * self.width;
            self.cover[start + touched.columns.start..start + touched.columns.end].fill(0.0);
            for slice in 0..SLICES {
                let y = row as f32 + (slice as f32 + 0.5) / SLICES as f32;
                self.cross(outlines, y);
                let line = &mut self.cover[start..start + self.width];
                for span in self.crossings.chunks_exact(2) {
                    add_span(line, span[0], span[1]);
                }
            }
        }
        touched
    }

    /// Coverage of the pixels of one row inside `columns`.
    pub(crate) fn row(&self, row: usize, columns: Range<usize>) -> &[f32] {
        let start = row * self.width;
        &self.cover[start + columns.start..start + columns.end]
    }

    fn touched(&self, outlines: &[Vec<Point>]) -> Touched {
        let range = |axis: usize, side: usize| {
            let all = outlines.iter().flatten().map(|p| p[axis]);
            let low = all.clone().fold(f32::INFINITY, f32::min);
            let high = all.fold(f32::NEG_INFINITY, f32::max);
            let start = (low.floor().max(0.0) as usize).min(side);
            let end = (high.ceil().max(0.0) as usize).min(side);
            start..end.max(start)
        };
        Touched { rows: range(1, self.height), columns: range(0, self.width) }
    }

    /// Collects where the outlines cross the line at `y`, from left to right, inside the frame.
    fn cross(&mut self, outlines: &[Vec<Point>], y: f32) {
        self.crossings.clear();
        for outline in outlines {
            let Some(&last) = outline.last() else { continue };
            let mut from = last;
            for &to in outline {
                // Half open, so that a corner on the line counts once.
                if (from[1] <= y) != (to[1] <= y) {
                    let x = from[0] + (y - from[1]) / (to[1] - from[1]) * (to[0] - from[0]);
                    self.crossings.push(x.clamp(0.0, self.width as f32));
                }
                from = to;
            }
        }
        self.crossings.sort_unstable_by(f32::total_cmp);
    }
}

/// Adds one line's share of the pixels between `from` and `to`.
fn add_span(line: &mut [f32], from: f32, to: f32) {
    const SHARE: f32 = 1.0 / SLICES as f32;
    let first = from as usize;
    let last = to as usize;
    if first >= line.len() {
        return;
    }
    if first == last {
        line[first] += (to - from) * SHARE;
        return;
    }
    line[first] += (first as f32 + 1.0 - from) * SHARE;
    for pixel in &mut line[first + 1..last] {
        *pixel += SHARE;
    }
    if let Some(pixel) = line.get_mut(last) {
        *pixel += (to - last as f32) * SHARE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rectangle(left: f32, top: f32, right: f32, bottom: f32) -> Vec<Point> {
        vec![[left, top], [right, top], [right, bottom], [left, bottom]]
    }

    fn picture(mask: &Mask, touched: &Touched) -> Vec<Vec<f32>> {
        touched.rows.clone().map(|r| mask.row(r, touched.columns.clone()).to_vec()).collect()
    }

    #[test]
    fn edges_between_pixels_cover_in_part() {
        let mut mask = Mask::new(8, 8);
        let touched = mask.fill(&[rectangle(1.25, 2.5, 4.5, 4.0)]);
        assert_eq!(touched, Touched { rows: 2..4, columns: 1..5 });
        let want = vec![vec![0.375, 0.5, 0.5, 0.25], vec![0.75, 1.0, 1.0, 0.5]];
        assert_eq!(picture(&mask, &touched), want);
    }

    #[test]
    fn an_outline_inside_another_is_a_hole() {
        let mut mask = Mask::new(8, 8);
        let touched = mask.fill(&[rectangle(0.0, 0.0, 3.0, 3.0), rectangle(1.0, 1.0, 2.0, 2.0)]);
        let want = vec![vec![1.0; 3], vec![1.0, 0.0, 1.0], vec![1.0; 3]];
        assert_eq!(picture(&mask, &touched), want);
    }

    #[test]
    fn what_lies_outside_the_frame_is_cut_off() {
        let mut mask = Mask::new(4, 4);
        let touched = mask.fill(&[rectangle(-9.0, 3.0, 99.0, 99.0)]);
        assert_eq!(touched, Touched { rows: 3..4, columns: 0..4 });
        assert_eq!(picture(&mask, &touched), vec![vec![1.0; 4]]);
        for (name, away) in [
            ("right", rectangle(5.0, 1.0, 7.0, 2.0)),
            ("left", rectangle(-7.0, 1.0, -5.0, 2.0)),
            ("below", rectangle(1.0, 5.0, 2.0, 7.0)),
        ] {
            let touched = mask.fill(&[away]);
            assert!(picture(&mask, &touched).concat().is_empty(), "{name}: {touched:?}");
        }
    }

    #[test]
    fn the_whole_coverage_is_the_area() {
        let mut mask = Mask::new(32, 32);
        let triangle = vec![[3.3, 2.1], [29.7, 11.4], [8.2, 30.9]];
        let touched = mask.fill(&[triangle]);
        let sum: f32 = picture(&mask, &touched).concat().iter().sum();
        // |26.4 * 28.8 - 9.3 * 4.9| / 2, by hand.
        assert!((sum - 357.375).abs() < 0.5, "{sum}");
    }
}
