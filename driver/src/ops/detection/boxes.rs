//! Boxes with sides along the axes: overlap, refinement, and suppression of doubles.

use crate::OpError;
use crate::op::Stop;
use crate::tensor::element_count;

/// Two corners: x1, y1, x2, y2, in this order or with x and y exchanged.
pub(super) type Corners = [f32; 4];

/// Fails for a box whose second corner lies before its first, and for one that is not a number.
pub(super) fn expect_ordered([x1, y1, x2, y2]: Corners) -> Result<(), OpError> {
    if x1 <= x2 && y1 <= y2 {
        return Ok(());
    }
    Err(OpError::Range { what: "a box that ends before it begins" })
}

/// Area of the intersection over area of the union; NaN when both have no area.
pub(super) fn overlap(a: Corners, b: Corners) -> f32 {
    let area = |c: Corners| (c[2] - c[0]) * (c[3] - c[1]);
    let width = (a[2].min(b[2]) - a[0].max(b[0])).max(0.0);
    let height = (a[3].min(b[3]) - a[1].max(b[1])).max(0.0);
    let shared = width * height;
    shared / (area(a) + area(b) - shared)
}

/// Moves the centre by `dx`, `dy` sizes, scales the size by `exp(dw)`, `exp(dh)`, and cuts the box
/// to the image. There is no limit on the deltas.
pub(super) fn refine(corners: Corners, deltas: [f32; 4], image: Image) -> Corners {
    let [x1, y1, x2, y2] = corners;
    let [dx, dy, dw, dh] = deltas;
    let (width, height) = (x2 - x1, y2 - y1);
    let centre = [x1 + width / 2.0 + dx * width, y1 + height / 2.0 + dy * height];
    let half = [dw.exp() * width / 2.0, dh.exp() * height / 2.0];
    let cut = |x: f32, limit: f32| x.max(0.0).min(limit);
    [
        cut(centre[0] - half[0], image.width),
        cut(centre[1] - half[1], image.height),
        cut(centre[0] + half[0], image.width),
        cut(centre[1] + half[1], image.height),
    ]
}

/// The size of an image, in the units of its boxes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Image {
    pub(super) height: f32,
    pub(super) width: f32,
}

/// Orders by score, the best first; of equal ones the lower index.
pub(super) fn best_first(indices: &mut [i32], score: impl Fn(i32) -> f32) {
    // Adding zero makes the two zeros equal, so that they are a tie.
    let key = |index: i32| score(index) + 0.0;
    indices.sort_unstable_by(|a, b| key(*b).total_cmp(&key(*a)).then(a.cmp(b)));
}

/// Keeps of `indices`, the best first, those whose box overlaps none kept before by `threshold` or
/// more, at most `limit`. They come to stand at the front; returns how many they are.
pub(super) fn suppress(
    indices: &mut [i32],
    corners: impl Fn(i32) -> Corners,
    threshold: f32,
    limit: usize,
    stop: &Stop,
) -> Result<usize, OpError> {
    let mut kept = 0;
    for next in 0..indices.len() {
        if kept == limit {
            break;
        }
        stop.check()?;
        let candidate = corners(indices[next]);
        // An overlap that is not a number suppresses nothing.
        let is_double = |other: &i32| overlap(corners(*other), candidate) >= threshold;
        if !indices[..kept].iter().any(is_double) {
            indices[kept] = indices[next];
            kept += 1;
        }
    }
    Ok(kept)
}

/// A limit where a negative number means none.
pub(super) fn limit(count: i32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Most scores that one operation takes: all images, boxes and classes together. Working memory is
/// several times as large as the inputs, and suppression takes time quadratic in their number;
/// detectors have some hundred thousand.
const MAX_SCORES: usize = 1 << 24;

/// Refuses more scores than [`MAX_SCORES`]: the product of these sizes.
pub(super) fn expect_few(sizes: &[u32]) -> Result<(), OpError> {
    match element_count(sizes) {
        Ok(count) if count <= MAX_SCORES => Ok(()),
        _ => Err(OpError::Range { what: "number of scores" }),
    }
}

/// An index as working memory keeps it: in 32 bits.
pub(super) fn index(value: usize) -> Result<i32, OpError> {
    i32::try_from(value).map_err(|_| OpError::Range { what: "number of scores" })
}

/// The position that [`index`] made small.
#[allow(clippy::cast_sign_loss, reason = "made from a usize")]
pub(super) const fn position(index: i32) -> usize {
    index as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlap_is_intersection_over_union_of_plain_areas() {
        let a = [0.0, 0.0, 4.0, 4.0];
        assert_eq!(overlap(a, a), 1.0);
        assert_eq!(overlap(a, [2.0, 0.0, 6.0, 4.0]), 8.0 / 24.0);
        assert_eq!(overlap(a, [5.0, 5.0, 6.0, 6.0]), 0.0);
        assert!(overlap([1.0; 4], [1.0; 4]).is_nan());
    }

    #[test]
    fn there_is_a_limit_on_scores() {
        assert!(expect_few(&[1 << 12, 1 << 12]).is_ok());
        assert!(expect_few(&[1 << 12, (1 << 12) + 1]).is_err());
        assert!(expect_few(&[u32::MAX; 3]).is_err());
        assert!(expect_few(&[0, 5]).is_ok());
    }

    #[test]
    fn refining_moves_scales_and_cuts() {
        let image = Image { height: 10.0, width: 8.0 };
        let refined = refine([2.0, 2.0, 4.0, 6.0], [0.5, -0.25, 0.0, 0.0], image);
        assert_eq!(refined, [3.0, 1.0, 5.0, 5.0]);
        let grown = refine([2.0, 2.0, 4.0, 6.0], [0.0, 0.0, 50.0, 1000.0], image);
        assert_eq!(grown, [0.0, 0.0, 8.0, 10.0]);
    }

    #[test]
    fn equal_scores_keep_their_order_and_not_a_number_does_not_upset_it() {
        let scores = [0.5, 0.9, 0.5, -0.0, 0.0];
        let mut order = [0, 1, 2, 3, 4];
        best_first(&mut order, |i| scores[position(i)]);
        assert_eq!(order, [1, 0, 2, 3, 4]);
        let mut order: Vec<i32> = (0..100).collect();
        best_first(&mut order, |i| if i % 3 == 0 { f32::NAN } else { 1.0 });
        order.sort_unstable();
        assert_eq!(order, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn an_overlap_of_exactly_the_threshold_suppresses() {
        let boxes = [[0.0, 0.0, 4.0, 4.0], [0.0, 0.0, 4.0, 2.0], [0.0, 0.0, 4.0, 1.0]];
        let mut order = [0, 1, 2];
        let stop = Stop::default();
        let kept = suppress(&mut order, |i| boxes[position(i)], 0.5, 9, &stop).unwrap();
        assert_eq!(order[..kept], [0, 2]);
        let mut order = [0, 1, 2];
        let kept = suppress(&mut order, |i| boxes[position(i)], 2.0, 2, &stop).unwrap();
        assert_eq!(order[..kept], [0, 1]);
    }
}
