//! The shapes, as polygons that fit into the unit circle.

use crate::math::{Point, direction, turn_cos, turn_sin};

/// Names of the classes; the index is the class.
pub const LABELS: [&str; 10] = [
    "circle",
    "triangle",
    "square",
    "star",
    "cross",
    "ring",
    "heart",
    "crescent",
    "arrow",
    "half disc",
];

/// What a scene shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    /// A filled circle (an ellipse when the camera looks at it from the side).
    Circle,
    /// A triangle with equal sides.
    Triangle,
    /// A square.
    Square,
    /// A star with five points.
    Star,
    /// A cross with four equal arms.
    Cross,
    /// A circle with a round hole.
    Ring,
    /// A heart.
    Heart,
    /// A moon: a circle without the part another circle covers.
    Crescent,
    /// A thick arrow.
    Arrow,
    /// Half a filled circle.
    HalfDisc,
}

/// Corners of the polygon that stands for a full circle: at 60 pixels radius its sides are off the
/// circle by a fifteenth of a pixel.
const ROUND: u16 = 64;

impl Shape {
    /// All shapes, in the order of their classes.
    pub const ALL: [Shape; LABELS.len()] = [
        Shape::Circle,
        Shape::Triangle,
        Shape::Square,
        Shape::Star,
        Shape::Cross,
        Shape::Ring,
        Shape::Heart,
        Shape::Crescent,
        Shape::Arrow,
        Shape::HalfDisc,
    ];

    /// Index into [`LABELS`].
    #[must_use]
    pub fn class(self) -> usize {
        self as usize
    }

    /// The name of this shape's class.
    #[must_use]
    pub fn label(self) -> &'static str {
        LABELS[self.class()]
    }

    /// The closed outlines of this shape inside the unit circle; where two overlap is a hole.
    pub(crate) fn outlines(self) -> Vec<Vec<Point>> {
        match self {
            Shape::Circle => vec![circle(0.92)],
            Shape::Triangle => vec![regular(3, 1.0)],
            Shape::Square => vec![regular(4, 1.0)],
            Shape::Star => vec![star()],
            Shape::Cross => vec![cross()],
            Shape::Ring => vec![circle(0.95), circle(0.52)],
            Shape::Heart => vec![heart()],
            Shape::Crescent => vec![crescent()],
            Shape::Arrow => vec![arrow()],
            Shape::HalfDisc => vec![half_disc()],
        }
    }
}

/// `corners` points evenly around a circle.
fn regular(corners: u16, radius: f32) -> Vec<Point> {
    (0..corners).map(|i| on_circle(radius, f32::from(i) / f32::from(corners))).collect()
}

fn circle(radius: f32) -> Vec<Point> {
    regular(ROUND, radius)
}

fn on_circle(radius: f32, turns: f32) -> Point {
    direction(turns).map(|x| x * radius)
}

/// Points from angle `from` to angle `to` (in turns, either way round), both included.
fn arc(centre: Point, radius: f32, from: f32, to: f32, steps: u16) -> impl Iterator<Item = Point> {
    (0..=steps).map(move |i| {
        let [x, y] = on_circle(radius, from + (to - from) * f32::from(i) / f32::from(steps));
        [centre[0] + x, centre[1] + y]
    })
}

fn star() -> Vec<Point> {
    (0..10u8).map(|i| on_circle(if i % 2 == 0 { 1.0 } else { 0.42 }, f32::from(i) / 10.0)).collect()
}

fn cross() -> Vec<Point> {
    const LONG: f32 = 0.95;
    const HALF: f32 = 0.28;
    let arm = [[LONG, -HALF], [LONG, HALF], [HALF, HALF]];
    let quarter_turn = |[x, y]: Point| [-y, x];
    let mut points = Vec::new();
    let mut turned = arm;
    for _ in 0..4 {
        points.extend(turned);
        turned = turned.map(quarter_turn);
    }
    points
}

/// The curve x = 16 sin^3 t, y = 13 cos t - 5 cos 2t - 2 cos 3t - cos 4t, moved by 1.5 and shrunk.
fn heart() -> Vec<Point> {
    (0..ROUND)
        .map(|i| {
            let t = f32::from(i) / f32::from(ROUND);
            let s = turn_sin(t);
            let y = 13.0 * turn_cos(t)
                - 5.0 * turn_cos(2.0 * t)
                - 2.0 * turn_cos(3.0 * t)
                - turn_cos(4.0 * t);
            [16.0 * s * s * s / 17.7, -(y + 1.5) / 17.7]
        })
        .collect()
}

/// The circle of radius 0.95 about the origin without the circle of radius 0.78 about (0.42, 0).
///
/// They meet where x = (0.42^2 + 0.95^2 - 0.78^2) / (2 * 0.42) = 0.5601 and y = 0.7673: at
/// 0.14964 turns as seen from the first centre, 0.22125 as seen from the second.
fn crescent() -> Vec<Point> {
    const OUTER: f32 = 0.149_64;
    const INNER: f32 = 0.221_25;
    let outer = arc([0.0, 0.0], 0.95, OUTER, 1.0 - OUTER, ROUND / 2);
    let inner = arc([0.42, 0.0], 0.78, 1.0 - INNER, INNER, ROUND / 2);
    outer.chain(inner).collect()
}

fn arrow() -> Vec<Point> {
    let half = [[0.98, 0.0], [0.2, 0.8], [0.2, 0.27], [-0.94, 0.27]];
    let mirrored = half.iter().rev().map(|&[x, y]| [x, -y]);
    half.iter().copied().chain(mirrored.take(3)).collect()
}

/// Half of a circle of radius 0.95, moved so that its middle lies near the origin.
fn half_disc() -> Vec<Point> {
    arc([-0.3, 0.0], 0.95, -0.25, 0.25, ROUND / 2).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Area by the shoelace formula.
    fn area(points: &[Point]) -> f32 {
        let next = points.iter().cycle().skip(1);
        let twice: f32 = points.iter().zip(next).map(|(p, q)| p[0] * q[1] - q[0] * p[1]).sum();
        (twice / 2.0).abs()
    }

    #[test]
    fn every_shape_fits_into_the_unit_circle() {
        for shape in Shape::ALL {
            for [x, y] in shape.outlines().concat() {
                let far = (x * x + y * y).sqrt();
                assert!(far <= 1.0001, "{}: corner at {far}", shape.label());
            }
        }
    }

    #[test]
    fn areas_are_those_of_school_geometry() {
        // Worked by hand. Crescent: circle minus lens, the lens being two circular segments:
        // 0.95^2 (a - sin a cos a) at a = 0.94023 rad and 0.78^2 (b - sin b cos b) at
        // b = pi - 1.39018 rad, together 0.41878 + 1.17308.
        let pi = std::f32::consts::PI;
        let cases = [
            (Shape::Circle, pi * 0.92 * 0.92),
            (Shape::Triangle, 3.0 * 3.0f32.sqrt() / 4.0),
            (Shape::Square, 2.0),
            (Shape::Star, 5.0 * 0.42 * (0.2 * pi).sin()),
            (Shape::Cross, 2.0 * 1.9 * 0.56 - 0.56 * 0.56),
            (Shape::Ring, pi * (0.95 * 0.95 - 0.52 * 0.52)),
            (Shape::Heart, pi * 180.0 / (17.7 * 17.7)),
            (Shape::Crescent, pi * 0.95 * 0.95 - 1.591_86),
            (Shape::Arrow, 0.8 * 0.78 + 0.54 * 1.14),
            (Shape::HalfDisc, pi * 0.95 * 0.95 / 2.0),
        ];
        for (shape, want) in cases {
            let outlines = shape.outlines();
            let hole: f32 = outlines.iter().skip(1).map(|o| area(o)).sum();
            let got = area(&outlines[0]) - hole;
            // Polygons of 64 corners lose about a six-hundredth of a circle.
            assert!((got - want).abs() < 0.02, "{}: {got} for {want}", shape.label());
        }
    }

    #[test]
    fn classes_and_labels_are_in_one_order() {
        for (class, shape) in Shape::ALL.into_iter().enumerate() {
            assert_eq!(shape.class(), class);
        }
        let mut names = LABELS.to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), LABELS.len());
    }
}
