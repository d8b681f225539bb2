//! Puts a scene's frame on a canvas and the canvas into bytes.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "pixel positions of small frames, and colours clamped to a byte's range"
)]

use crate::colour::Colour;
use crate::light::{GRAIN_DEVIATION, grain, tent};
use crate::math::{Linear, Point};
use crate::outline::Shape;
use crate::raster::Mask;
use crate::rng::Rng;
use crate::scene::Scene;

/// A canvas of a certain size and what is needed again for each frame.
#[derive(Debug)]
pub(crate) struct Painter {
    width: usize,
    height: usize,
    /// Pixels per unit: the shorter side.
    side: f32,
    /// Units per pixel.
    pixel: f32,
    canvas: Vec<Colour>,
    spare: Vec<Colour>,
    mask: Mask,
    outlines: Vec<Vec<Vec<Point>>>,
    placed: Vec<Vec<Point>>,
}

impl Painter {
    pub(crate) fn new(width: usize, height: usize) -> Painter {
        let side = width.min(height) as f32;
        Painter {
            width,
            height,
            side,
            pixel: 1.0 / side,
            canvas: vec![[0.0; 3]; width * height],
            spare: vec![[0.0; 3]; width * height],
            mask: Mask::new(width, height),
            outlines: Shape::ALL.map(Shape::outlines).to_vec(),
            placed: Vec::new(),
        }
    }

    /// Half the width and height in units.
    pub(crate) fn reach(&self) -> Point {
        [self.width as f32 / self.side / 2.0, self.height as f32 / self.side / 2.0]
    }

    /// Paints `frame` of `scene`; `noise` makes the sensor's grain.
    pub(crate) fn paint(&mut self, scene: &Scene, frame: u32, noise: &mut Rng, rgb: &mut [u8]) {
        let time = Scene::time(frame);
        self.paint_background(scene, time);
        self.paint_clutter(scene, time);
        self.paint_shape(scene, time);
        self.blur(scene.sensor.blur * self.side);
        self.expose(scene, time, noise, rgb);
    }

    /// A point in pixels from one in units.
    pub(crate) fn to_pixels(&self, [x, y]: Point) -> Point {
        [x * self.side + self.width as f32 / 2.0, y * self.side + self.height as f32 / 2.0]
    }

    /// The length of one unit in pixels.
    pub(crate) fn side(&self) -> f32 {
        self.side
    }

    /// The middle of a pixel in units.
    fn to_units(&self, column: usize, row: usize) -> Point {
        let x = column as f32 + 0.5 - self.width as f32 / 2.0;
        let y = row as f32 + 0.5 - self.height as f32 / 2.0;
        [x * self.pixel, y * self.pixel]
    }

    fn paint_background(&mut self, scene: &Scene, time: f32) {
        let [dx, dy] = scene.drift(time);
        for row in 0..self.height {
            let [x, y] = self.to_units(0, row);
            let line = &mut self.canvas[row * self.width..(row + 1) * self.width];
            scene.background.paint_row([x - dx, y - dy], self.pixel, line);
        }
    }

    fn paint_clutter(&mut self, scene: &Scene, time: f32) {
        let [dx, dy] = scene.drift(time);
        for piece in &scene.clutter {
            let outline =
                piece.outline.iter().map(|&[x, y]| self.to_pixels([x + dx, y + dy])).collect();
            self.placed.clear();
            self.placed.push(outline);
            self.blend(|_| piece.colour);
        }
    }

    fn paint_shape(&mut self, scene: &Scene, time: f32) {
        let pose = scene.pose(time);
        let place: Linear = scene.place(pose);
        let [cx, cy] = pose.centre;
        self.placed = self.outlines[scene.shape.class()]
            .iter()
            .map(|outline| {
                let put = |&p: &Point| {
                    let [x, y] = place.apply(p);
                    self.to_pixels([x + cx, y + cy])
                };
                outline.iter().map(put).collect()
            })
            .collect();
        let left = self.to_pixels([cx - pose.radius, cy])[0];
        let span = 2.0 * pose.radius * self.side;
        self.blend(|column| scene.paint((column as f32 + 0.5 - left) / span));
    }

    /// Lays a colour, which may change from column to column, over the inside of `placed`.
    fn blend(&mut self, colour: impl Fn(usize) -> Colour) {
        let touched = self.mask.fill(&self.placed);
        for row in touched.rows {
            let cover = self.mask.row(row, touched.columns.clone());
            let start = row * self.width + touched.columns.start;
            let pixels = &mut self.canvas[start..start + cover.len()];
            for ((pixel, &share), column) in
                pixels.iter_mut().zip(cover).zip(touched.columns.clone())
            {
                if share > 0.0 {
                    let over = colour(column);
                    for (old, new) in pixel.iter_mut().zip(over) {
                        *old += (new - *old) * share;
                    }
                }
            }
        }
    }

    /// Blurs the canvas in both directions with a tent of `half` pixels half width.
    fn blur(&mut self, half: f32) {
        let weights = tent(half);
        if weights.len() == 1 {
            return;
        }
        for row in 0..self.height {
            let line = row * self.width;
            let source = &self.canvas[line..line + self.width];
            blur_line(source, &mut self.spare[line..line + self.width], &weights);
        }
        for row in 0..self.height {
            blur_rows(&self.spare, &mut self.canvas, row, self.width, &weights);
        }
    }

    fn expose(&self, scene: &Scene, time: f32, noise: &mut Rng, rgb: &mut [u8]) {
        let amount = scene.sensor.noise * 255.0 / GRAIN_DEVIATION;
        let pixels = self.canvas.chunks_exact(self.width).enumerate();
        let bytes = rgb.chunks_exact_mut(3 * self.width);
        for ((row, line), out) in pixels.zip(bytes) {
            for (column, (pixel, out)) in line.iter().zip(out.as_chunks_mut().0).enumerate() {
                let light = scene.light.at(self.to_units(column, row), time);
                let grain = grain(noise);
                let byte = |k: usize| {
                    let value = pixel[k] * light[k] * 255.0 + grain[k] * amount;
                    (value + 0.5).clamp(0.0, 255.0) as u8
                };
                *out = [byte(0), byte(1), byte(2)];
            }
        }
    }
}

/// Blurs along one line; beyond its ends the last pixel goes on.
fn blur_line(source: &[Colour], out: &mut [Colour], weights: &[f32]) {
    let last = source.len() - 1;
    for (column, pixel) in out.iter_mut().enumerate() {
        *pixel = source[column].map(|c| c * weights[0]);
        for (distance, &weight) in weights.iter().enumerate().skip(1) {
            let before = source[column.saturating_sub(distance)];
            let after = source[(column + distance).min(last)];
            for k in 0..3 {
                pixel[k] += (before[k] + after[k]) * weight;
            }
        }
    }
}

/// Blurs one row of a canvas across its neighbour rows; beyond the edge the last row goes on.
fn blur_rows(source: &[Colour], out: &mut [Colour], row: usize, width: usize, weights: &[f32]) {
    let line = |row: usize| &source[row * width..(row + 1) * width];
    let last = source.len() / width - 1;
    let out = &mut out[row * width..(row + 1) * width];
    for (pixel, &middle) in out.iter_mut().zip(line(row)) {
        *pixel = middle.map(|c| c * weights[0]);
    }
    for (distance, &weight) in weights.iter().enumerate().skip(1) {
        let before = line(row.saturating_sub(distance));
        let after = line((row + distance).min(last));
        for ((pixel, before), after) in out.iter_mut().zip(before).zip(after) {
            for k in 0..3 {
                pixel[k] += (before[k] + after[k]) * weight;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blur_spreads_one_bright_pixel_and_loses_nothing() {
        let mut painter = Painter::new(32, 32);
        painter.canvas[10 * 32 + 20] = [16.0, 0.0, 0.0];
        painter.blur(2.0);
        // The product of two tents 1 2 1, in sixteenths.
        let want = [[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]];
        for (r, row) in want.iter().enumerate() {
            for (c, &value) in row.iter().enumerate() {
                assert_eq!(painter.canvas[(9 + r) * 32 + 19 + c], [value, 0.0, 0.0], "{r} {c}");
            }
        }
        let sum: f32 = painter.canvas.iter().map(|p| p[0]).sum();
        assert_eq!(sum, 16.0);
    }

    #[test]
    fn blur_keeps_an_even_canvas_even_up_to_its_edges() {
        let mut painter = Painter::new(33, 40);
        painter.canvas.fill([0.5, 0.25, 0.75]);
        painter.blur(2.6);
        for pixel in &painter.canvas {
            assert!((pixel[0] - 0.5).abs() < 1e-5 && (pixel[2] - 0.75).abs() < 1e-5, "{pixel:?}");
        }
    }
}
