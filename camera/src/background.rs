//! What stands behind the shape: a pattern of two colours, and clutter.

use crate::colour::{self, Colour};
use crate::math::{Linear, Point, direction, floor, mix};
use crate::rng::Rng;

/// Cells along each side of the cloud pattern's lattice; it repeats after that many.
const LATTICE: usize = 16;

/// Most pieces of clutter in one scene.
const CLUTTER: usize = 14;

/// A pattern without end, in units of the frame's shorter side.
#[derive(Debug)]
pub(crate) struct Background {
    pub(crate) colours: [Colour; 2],
    turn: Linear,
    pattern: Pattern,
}

#[derive(Debug)]
enum Pattern {
    Plain,
    Gradient { steep: f32 },
    Stripes { per_side: f32, sharp: f32 },
    Checks { per_side: f32, sharp: f32 },
    Cloud { per_side: f32, heights: Box<[f32; LATTICE * LATTICE]> },
}

impl Background {
    pub(crate) fn random(rng: &mut Rng) -> Background {
        let colours = colour::pair(rng);
        let turn = Linear::rotation(rng.unit());
        Background { colours, turn, pattern: Pattern::random(rng) }
    }

    /// The colours of points side by side: the first at `start`, each next one `step` to the right.
    pub(crate) fn paint_row(&self, start: Point, step: f32, row: &mut [Colour]) {
        let start = self.turn.apply(start);
        let step = self.turn.apply([step, 0.0]);
        match &self.pattern {
            Pattern::Plain => row.fill(self.colours[0]),
            Pattern::Gradient { steep } => self.fill(row, start, step, |p| gradient(p, *steep)),
            Pattern::Stripes { per_side, sharp } => {
                self.fill(row, start, step, |p| stripes(p, *per_side, *sharp));
            }
            Pattern::Checks { per_side, sharp } => {
                self.fill(row, start, step, |p| checks(p, *per_side, *sharp));
            }
            Pattern::Cloud { per_side, heights } => {
                self.fill(row, start, step, |p| cloud(heights, p.map(|x| x * per_side)));
            }
        }
    }

    /// Paints a row with a pattern that gives each point its share of the second colour.
    fn fill(&self, row: &mut [Colour], start: Point, step: Point, share: impl Fn(Point) -> f32) {
        let [a, b] = self.colours;
        let way = [b[0] - a[0], b[1] - a[1], b[2] - a[2]];
        let mut count = 0.0;
        for pixel in row {
            let t = share([start[0] + step[0] * count, start[1] + step[1] * count]);
            *pixel = [a[0] + way[0] * t, a[1] + way[1] * t, a[2] + way[2] * t];
            count += 1.0;
        }
    }
}

impl Pattern {
    fn random(rng: &mut Rng) -> Pattern {
        match rng.below(5) {
            0 => Pattern::Plain,
            1 => Pattern::Gradient { steep: rng.range(0.4, 1.0) },
            2 => Pattern::Stripes { per_side: rng.range(2.0, 12.0), sharp: rng.range(1.0, 6.0) },
            3 => Pattern::Checks { per_side: rng.range(1.5, 7.0), sharp: rng.range(3.0, 20.0) },
            _ => {
                let mut heights = Box::new([0.0; LATTICE * LATTICE]);
                heights.fill_with(|| rng.unit());
                Pattern::Cloud { per_side: rng.range(3.0, 14.0), heights }
            }
        }
    }
}

// The patterns: each gives a point's share of the second colour, 0 to 1.

fn gradient([x, _]: Point, steep: f32) -> f32 {
    (0.5 + x * steep).clamp(0.0, 1.0)
}

fn stripes([x, _]: Point, per_side: f32, sharp: f32) -> f32 {
    (0.5 + (zigzag(x * per_side) - 0.5) * sharp).clamp(0.0, 1.0)
}

fn checks([x, y]: Point, per_side: f32, sharp: f32) -> f32 {
    let product = (zigzag(x * per_side) - 0.5) * (zigzag(y * per_side) - 0.5);
    (0.5 + product * sharp).clamp(0.0, 1.0)
}

/// Up and down between 0 and 1 once in each unit.
fn zigzag(x: f32) -> f32 {
    (2.0 * (x - floor(x)) - 1.0).abs()
}

/// Smooth hills between the heights at the lattice's corners.
fn cloud(heights: &[f32; LATTICE * LATTICE], [x, y]: Point) -> f32 {
    let (column, across) = cell(x);
    let (row, down) = cell(y);
    let at = |r: usize, c: usize| heights[(r % LATTICE) * LATTICE + c % LATTICE];
    let top = mix(at(row, column), at(row, column + 1), across);
    let bottom = mix(at(row + 1, column), at(row + 1, column + 1), across);
    mix(top, bottom, down)
}

/// The lattice cell of a coordinate and the eased position inside it.
fn cell(x: f32) -> (usize, f32) {
    #[allow(clippy::cast_precision_loss, reason = "16")]
    const SIDE: f32 = LATTICE as f32;
    let x = x - floor(x / SIDE) * SIDE;
    let whole = floor(x);
    let inside = x - whole;
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "0 to 16, brought into the lattice by the remainder"
    )]
    let index = whole as usize;
    (index % LATTICE, inside * inside * (3.0 - 2.0 * inside))
}

/// A small thing that lies about: a blob, a box or a line.
#[derive(Debug)]
pub(crate) struct Clutter {
    pub(crate) outline: Vec<Point>,
    pub(crate) colour: Colour,
}

impl Clutter {
    /// Some pieces, strewn over `reach` units left, right, up and down of the middle.
    pub(crate) fn scatter(rng: &mut Rng, reach: Point) -> Vec<Clutter> {
        let pieces = rng.below(CLUTTER + 1);
        (0..pieces).map(|_| Clutter::random(rng, reach)).collect()
    }

    fn random(rng: &mut Rng, reach: Point) -> Clutter {
        let (corners, size) = match rng.below(3) {
            0 => (12u8, [rng.range(0.012, 0.045), rng.range(0.012, 0.045)]),
            1 => (4u8, [rng.range(0.015, 0.05), rng.range(0.015, 0.05)]),
            _ => (4u8, [rng.range(0.1, 0.45), rng.range(0.005, 0.012)]),
        };
        let centre = [rng.range(-reach[0], reach[0]), rng.range(-reach[1], reach[1])];
        let place = Linear::rotation(rng.unit()).after(Linear::scale(size[0], size[1]));
        // An eighth of a turn on, so that four corners make an upright box, not a diamond.
        let corner = |i: u8| direction(f32::from(i) / f32::from(corners) + 0.125);
        let outline = (0..corners)
            .map(|i| {
                let [x, y] = place.apply(corner(i));
                [x + centre[0], y + centre[1]]
            })
            .collect();
        Clutter { outline, colour: colour::any(rng) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_stay_between_their_two_colours() {
        for seed in 0..300 {
            let mut rng = Rng::new(seed);
            let background = Background::random(&mut rng);
            let [a, b] = background.colours;
            let mut row = [[-1.0; 3]; 200];
            background.paint_row([rng.range(-3.0, 3.0), rng.range(-3.0, 3.0)], 0.01, &mut row);
            for pixel in row {
                for k in 0..3 {
                    let between = a[k].min(b[k]) - 1e-5..=a[k].max(b[k]) + 1e-5;
                    assert!(between.contains(&pixel[k]), "seed {seed}: {pixel:?}");
                }
            }
        }
    }

    #[test]
    fn patterns_are_what_their_names_say() {
        assert_eq!(gradient([0.25, 9.0], 1.0), 0.75);
        assert_eq!(gradient([7.0, 9.0], 1.0), 1.0);
        // Two stripes per side: one begins light at 0, is dark at 1/4 and light again at 1/2.
        for (x, want) in [(0.0, 1.0), (0.125, 0.5), (0.25, 0.0), (0.5, 1.0), (-0.25, 0.0)] {
            assert_eq!(stripes([x, 3.0], 2.0, 1.0), want, "{x}");
        }
        // One check per side, without smooth edges: neighbours differ, diagonals agree.
        let sharp = 1e6;
        for (x, y, want) in [(0.1, 0.1, 1.0), (0.5, 0.1, 0.0), (0.5, 0.5, 1.0), (0.1, 0.5, 0.0)] {
            assert_eq!(checks([x, y], 1.0, sharp), want, "{x} {y}");
        }
    }

    #[test]
    fn clouds_pass_through_their_lattice_and_repeat() {
        let mut heights = [0.0; LATTICE * LATTICE];
        heights[3 * LATTICE + 5] = 1.0;
        assert_eq!(cloud(&heights, [5.0, 3.0]), 1.0);
        assert_eq!(cloud(&heights, [5.0 + 16.0, 3.0 - 32.0]), 1.0);
        // Half way to a corner of height 0 the easing is one half.
        assert_eq!(cloud(&heights, [5.5, 3.0]), 0.5);
        assert_eq!(cloud(&heights, [6.0, 3.0]), 0.0);
    }

    #[test]
    fn clutter_is_much_smaller_than_a_shape_or_thin() {
        let mut rng = Rng::new(4);
        for piece in (0..200).flat_map(|_| Clutter::scatter(&mut rng, [0.7, 0.5])) {
            let twice: f32 = piece
                .outline
                .iter()
                .zip(piece.outline.iter().cycle().skip(1))
                .map(|(p, q)| p[0] * q[1] - q[0] * p[1])
                .sum();
            // The smallest shape, a crescent of radius 0.18, covers about 0.04.
            assert!(twice.abs() / 2.0 < 0.012, "{piece:?}");
        }
    }
}
