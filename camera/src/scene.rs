//! One scene: everything about it is drawn at its start, and a pose follows from the time.

use crate::background::{Background, Clutter};
use crate::colour::{self, Colour};
use crate::light::{Light, Sensor};
use crate::math::{Linear, Point, mix};
use crate::outline::Shape;
use crate::rng::Rng;

/// Frames that one scene lasts.
pub const SCENE_FRAMES: u32 = 20;

/// Smallest and largest radius of a shape, in units of the frame's shorter side.
const RADIUS: [f32; 2] = [0.18, 0.43];

/// What stays free between a shape and the edge of the centred square, in the same unit.
const MARGIN: f32 = 0.02;

/// Where a shape is: lengths in units of the frame's shorter side, the frame's middle at (0, 0).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pose {
    pub(crate) centre: Point,
    pub(crate) radius: f32,
    turns: f32,
}

impl Pose {
    fn random(rng: &mut Rng) -> Pose {
        let radius = rng.range(RADIUS[0], RADIUS[1]);
        let free = 0.5 - MARGIN - radius;
        let centre = [rng.range(-free, free), rng.range(-free, free)];
        Pose { centre, radius, turns: rng.unit() }
    }

    /// A pose to move to: anywhere, a little larger or smaller, turned by a sixth of a turn at most.
    fn next(self, rng: &mut Rng) -> Pose {
        let other = Pose::random(rng);
        let turns = self.turns + rng.range(-0.16, 0.16);
        Pose { turns, ..other }
    }

    /// Between two poses that keep the margin lie only poses that keep it: it is linear in both
    /// centre and radius.
    fn towards(self, end: Pose, time: f32) -> Pose {
        Pose {
            centre: [
                mix(self.centre[0], end.centre[0], time),
                mix(self.centre[1], end.centre[1], time),
            ],
            radius: mix(self.radius, end.radius, time),
            turns: mix(self.turns, end.turns, time),
        }
    }
}

/// All that one scene shows.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) shape: Shape,
    pub(crate) background: Background,
    pub(crate) clutter: Vec<Clutter>,
    pub(crate) light: Light,
    pub(crate) sensor: Sensor,
    /// Where the background moves to until the scene's end.
    drift: Point,
    /// The shape's colour, from its left to its right end.
    paint: [Colour; 2],
    /// Foreshortening: the shape as seen from the side.
    tilt: Linear,
    poses: [Pose; 2],
}

impl Scene {
    /// A scene of `shape`; `reach` is half the frame's width and height in units.
    pub(crate) fn random(mut rng: Rng, shape: Shape, reach: Point) -> Scene {
        let rng = &mut rng;
        let background = Background::random(rng);
        let main = colour::standing_out(rng, background.colours);
        let shade = rng.range(-0.08, 0.08);
        let start = Pose::random(rng);
        let axis = rng.unit();
        let squeeze = Linear::scale(rng.range(0.8, 1.0), 1.0);
        let back = Linear::rotation(-axis);
        Scene {
            shape,
            clutter: Clutter::scatter(rng, reach),
            light: Light::random(rng),
            sensor: Sensor::random(rng),
            drift: [rng.range(-0.2, 0.2), rng.range(-0.2, 0.2)],
            paint: [main.map(|c| c - shade), main.map(|c| c + shade)],
            tilt: Linear::rotation(axis).after(squeeze).after(back),
            poses: [start, start.next(rng)],
            background,
        }
    }

    /// How far the scene has gone at one of its frames: 0 at the first, 1 at the last.
    #[allow(clippy::cast_precision_loss, reason = "numbers below 20")]
    pub(crate) fn time(frame: u32) -> f32 {
        frame as f32 / (SCENE_FRAMES - 1) as f32
    }

    pub(crate) fn pose(&self, time: f32) -> Pose {
        self.poses[0].towards(self.poses[1], time)
    }

    /// How far the background has moved.
    pub(crate) fn drift(&self, time: f32) -> Point {
        self.drift.map(|d| d * time)
    }

    /// The map from the unit circle to the shape's place, without the move to its centre.
    pub(crate) fn place(&self, pose: Pose) -> Linear {
        let size = Linear::scale(pose.radius, pose.radius);
        size.after(self.tilt).after(Linear::rotation(pose.turns))
    }

    /// The shape's colour at `across`, 0 at its left end to 1 at its right.
    pub(crate) fn paint(&self, across: f32) -> Colour {
        let [a, b] = self.paint;
        [mix(a[0], b[0], across), mix(a[1], b[1], across), mix(a[2], b[2], across)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shape_keeps_its_margin_in_every_frame() {
        for seed in 0..400 {
            let shape = Shape::ALL[usize::try_from(seed % 10).unwrap()];
            let scene = Scene::random(Rng::new(seed), shape, [0.7, 0.5]);
            for frame in 0..SCENE_FRAMES {
                let pose = scene.pose(Scene::time(frame));
                let place = scene.place(pose);
                for point in shape.outlines().concat() {
                    let [x, y] = place.apply(point);
                    let far = (x + pose.centre[0]).abs().max((y + pose.centre[1]).abs());
                    assert!(far < 0.5 - MARGIN + 1e-4, "seed {seed}, frame {frame}: {far}");
                }
            }
        }
    }

    #[test]
    fn tilt_only_shrinks_and_never_below_its_bound() {
        for seed in 0..400 {
            let scene = Scene::random(Rng::new(seed), Shape::Square, [0.7, 0.5]);
            for eighth in 0..8u8 {
                let [x, y] = scene.tilt.apply(crate::math::direction(f32::from(eighth) / 8.0));
                let length = (x * x + y * y).sqrt();
                assert!((0.799..1.001).contains(&length), "seed {seed}: {length}");
            }
        }
    }
}
