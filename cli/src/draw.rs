//! Results drawn into a picture: boxes with labels, tints, a legend.

use std::convert::Infallible;

use embedded_graphics::Drawable;
use embedded_graphics::Pixel;
use embedded_graphics::draw_target::DrawTarget;
use embedded_graphics::geometry::{OriginDimensions, Point, Size};
use embedded_graphics::mono_font::iso_8859_1::{FONT_6X10, FONT_9X15_BOLD, FONT_10X20};
use embedded_graphics::mono_font::{MonoFont, MonoTextStyle};
use embedded_graphics::pixelcolor::{Rgb888, RgbColor};
use embedded_graphics::primitives::{Primitive, PrimitiveStyleBuilder, Rectangle, StrokeAlignment};
use embedded_graphics::text::{Baseline, Text};

/// Around text, in pixels.
const MARGIN: u32 = 2;
/// Longest text that is drawn, in characters.
const MAX_TEXT: usize = 64;
/// Most lines of a legend.
const MAX_LINES: usize = 12;

/// A picture to draw into.
pub(crate) struct Canvas {
    width: u32,
    height: u32,
    rgb: Vec<u8>,
}

/// A box in pixels; the right and bottom edges lie outside of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rect {
    pub(crate) left: u32,
    pub(crate) top: u32,
    pub(crate) right: u32,
    pub(crate) bottom: u32,
}

impl Rect {
    /// From left, top, right and bottom as parts of a picture; inside of it and at least one pixel
    /// large whatever they are.
    pub(crate) fn of_parts([left, top, right, bottom]: [f32; 4], width: u32, height: u32) -> Self {
        let (left, right) = (pixel(left, width), pixel(right, width));
        let (top, bottom) = (pixel(top, height), pixel(bottom, height));
        let (left, top) = (left.min(width.saturating_sub(1)), top.min(height.saturating_sub(1)));
        Rect { left, top, right: right.max(left + 1), bottom: bottom.max(top + 1) }
    }

    fn rectangle(self) -> Rectangle {
        let size = Size::new(self.right - self.left, self.bottom - self.top);
        Rectangle::new(point(self.left, self.top), size)
    }
}

fn pixel(part: f32, length: u32) -> u32 {
    let exact = (f64::from(part) * f64::from(length)).round().clamp(0.0, f64::from(length));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    let pixel = exact as u32; // not a number becomes 0
    pixel
}

fn point(x: u32, y: u32) -> Point {
    Point::new(i32::try_from(x).unwrap_or(i32::MAX), i32::try_from(y).unwrap_or(i32::MAX))
}

impl Canvas {
    /// # Panics
    /// `rgb` has not three bytes per pixel.
    pub(crate) fn new(width: u32, height: u32, rgb: Vec<u8>) -> Self {
        assert_eq!(rgb.len(), width as usize * height as usize * 3, "three bytes per pixel");
        Canvas { width, height, rgb }
    }

    pub(crate) fn width(&self) -> u32 {
        self.width
    }

    /// Its bytes.
    pub(crate) fn into_rgb(self) -> Vec<u8> {
        self.rgb
    }

    pub(crate) fn height(&self) -> u32 {
        self.height
    }

    /// Rows from top to bottom, red, green, blue.
    pub(crate) fn rgb(&self) -> &[u8] {
        &self.rgb
    }

    /// Boxes in the colours of their classes, each with a label at its top; the best come first, and nothing covers
    /// them. A label moves up or down where another one is; where there is no room at all it is left out.
    pub(crate) fn labelled_boxes(&mut self, boxes: &[(Rect, usize, String)]) {
        let stroke = (self.width.min(self.height) / 150).clamp(1, 6);
        for (rect, class, _) in boxes.iter().rev() {
            let style = PrimitiveStyleBuilder::new()
                .stroke_color(rgb888(colour(*class)))
                .stroke_width(stroke)
                .stroke_alignment(StrokeAlignment::Inside)
                .build();
            let Ok(()) = rect.rectangle().into_styled(style).draw(self);
        }
        let mut taken: Vec<Rectangle> = Vec::new();
        for (rect, class, label) in boxes {
            let size = self.label_size(label);
            let left = rect.left.min(self.width.saturating_sub(size.width));
            // Above the box where there is room, else inside.
            let top = rect.top.checked_sub(size.height).unwrap_or(rect.top);
            if let Some(place) = self.free_place(left, top, size, &taken) {
                taken.push(place);
                let top = u32::try_from(place.top_left.y).unwrap_or(0);
                self.text(left, top, *class, label);
            }
        }
    }

    /// The place for a label nearest to `top` that no other one takes, inside the picture as far as it fits there.
    fn free_place(
        &self,
        left: u32,
        top: u32,
        size: Size,
        taken: &[Rectangle],
    ) -> Option<Rectangle> {
        let lowest = self.height.saturating_sub(size.height);
        let top = top.min(lowest);
        let tops = (0..=self.height).flat_map(|away| {
            let below = top.checked_add(away).filter(|top| *top <= lowest);
            [below, top.checked_sub(away)]
        });
        let places = tops.flatten().map(|top| Rectangle::new(point(left, top), size));
        places
            .into_iter()
            .find(|place| taken.iter().all(|other| place.intersection(other).is_zero_sized()))
    }

    /// How large a label is with its ground.
    fn label_size(&self, text: &str) -> Size {
        let letters = text.chars().take(MAX_TEXT).count();
        let letters = u32::try_from(letters).unwrap_or(u32::MAX);
        let letter = self.font().character_size;
        Size::new(letters * letter.width + 2 * MARGIN, letter.height + 2 * MARGIN)
    }

    /// Lines in the top left corner, each on the colour of its class.
    pub(crate) fn legend(&mut self, lines: &[(usize, String)]) {
        let height = self.font().character_size.height + 2 * MARGIN;
        for (number, (class, line)) in (0..).zip(lines.iter().take(MAX_LINES)) {
            self.text(0, number * height, *class, line);
        }
    }

    /// Mixes the class's colour into a pixel.
    pub(crate) fn tint(&mut self, x: u32, y: u32, class: usize) {
        let colour = colour(class);
        if let Some(pixel) = self.pixel_mut(point(x, y)) {
            for (channel, tint) in pixel.iter_mut().zip(colour) {
                *channel = channel.midpoint(tint);
            }
        }
    }

    /// Text on a ground of the class's colour, moved left as far as it needs to be whole.
    fn text(&mut self, left: u32, top: u32, class: usize, text: &str) {
        let ground = colour(class);
        let dark = ground.iter().map(|channel| u32::from(*channel)).sum::<u32>() < 3 * 110;
        let ink = if dark { Rgb888::WHITE } else { Rgb888::BLACK };
        let text: String = text.chars().take(MAX_TEXT).collect();
        let style = MonoTextStyle::new(self.font(), ink);
        let at = |left: u32| point(left + MARGIN, top + MARGIN);
        let size = self.label_size(&text);
        let left = left.min(self.width.saturating_sub(size.width));
        let fill = PrimitiveStyleBuilder::new().fill_color(rgb888(ground)).build();
        let Ok(()) = Rectangle::new(point(left, top), size).into_styled(fill).draw(self);
        let Ok(_) = Text::with_baseline(&text, at(left), style, Baseline::Top).draw(self);
    }

    /// Letters that can be read in a picture of this size.
    fn font(&self) -> &'static MonoFont<'static> {
        match self.width.min(self.height) {
            0..256 => &FONT_6X10,
            256..480 => &FONT_9X15_BOLD,
            _ => &FONT_10X20,
        }
    }

    fn pixel_mut(&mut self, at: Point) -> Option<&mut [u8]> {
        let (x, y) = (u32::try_from(at.x).ok()?, u32::try_from(at.y).ok()?);
        if x >= self.width || y >= self.height {
            return None;
        }
        let index = (y as usize * self.width as usize + x as usize) * 3;
        self.rgb.get_mut(index..index + 3)
    }

    #[cfg(test)]
    pub(crate) fn pixel(&self, x: usize, y: usize) -> [u8; 3] {
        let index = (y * self.width as usize + x) * 3;
        [self.rgb[index], self.rgb[index + 1], self.rgb[index + 2]]
    }
}

impl OriginDimensions for Canvas {
    fn size(&self) -> Size {
        Size::new(self.width, self.height)
    }
}

impl DrawTarget for Canvas {
    type Color = Rgb888;
    type Error = Infallible;

    fn draw_iter<I: IntoIterator<Item = Pixel<Rgb888>>>(
        &mut self,
        pixels: I,
    ) -> Result<(), Infallible> {
        for Pixel(at, colour) in pixels {
            if let Some(pixel) = self.pixel_mut(at) {
                pixel.copy_from_slice(&[colour.r(), colour.g(), colour.b()]);
            }
        }
        Ok(())
    }
}

fn rgb888([red, green, blue]: [u8; 3]) -> Rgb888 {
    Rgb888::new(red, green, blue)
}

/// The colour of a class: hues a golden angle apart, so that near numbers look different.
fn colour(class: usize) -> [u8; 3] {
    const HUES: u32 = 6 * 256;
    let class = u32::try_from(class % 4096).unwrap_or(0);
    let hue = class * 587 % HUES; // 587 : 1536 is the golden angle's part of a turn
    let (sector, rise) = (hue / 256, hue % 256);
    let up = u8::try_from(rise).unwrap_or(u8::MAX);
    let down = u8::MAX - up;
    match sector {
        0 => [255, up, 40],
        1 => [down, 255, 40],
        2 => [40, 255, up],
        3 => [40, down, 255],
        4 => [up, 40, 255],
        _ => [255, 40, down],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grey(width: u32, height: u32) -> Canvas {
        Canvas::new(width, height, vec![100; width as usize * height as usize * 3])
    }

    #[test]
    fn a_box_is_a_frame_and_a_label() {
        let mut canvas = grey(300, 300);
        let rect = Rect { left: 50, top: 100, right: 200, bottom: 250 };
        canvas.labelled_boxes(&[(rect, 3, "cat 0.98".into())]);
        let line = colour(3);
        for (x, y) in [(50, 150), (199, 150), (120, 100), (120, 249), (51, 249)] {
            assert_eq!(canvas.pixel(x, y), line, "{x}, {y}");
        }
        for (x, y) in [(49, 150), (200, 150), (120, 250), (120, 170)] {
            assert_eq!(canvas.pixel(x, y), [100; 3], "{x}, {y}");
        }
        // The label lies on the box, and its letters are of another colour than its ground.
        let above: Vec<[u8; 3]> = (50..110).map(|x| canvas.pixel(x, 90)).collect();
        assert!(above.contains(&line) && above.contains(&[0; 3]), "{above:?}");
    }

    #[test]
    fn labels_say_different_things_and_stay_inside() {
        let drawn = |label: &str| {
            let mut canvas = grey(120, 80);
            let rect = Rect { left: 100, top: 0, right: 120, bottom: 80 };
            canvas.labelled_boxes(&[(rect, 1, label.into())]);
            canvas.rgb
        };
        assert_ne!(drawn("cat"), drawn("car"));
        // At the right edge it moves to the left, and is whole.
        let mut canvas = grey(120, 80);
        canvas.legend(&[(1, "cat".into())]);
        let width = 3 * 6 + 2 * 2;
        let legend: Vec<[u8; 3]> = (0..width).map(|x| canvas.pixel(x, 5)).collect();
        let mut canvas = grey(120, 80);
        let rect = Rect { left: 119, top: 40, right: 120, bottom: 80 };
        canvas.labelled_boxes(&[(rect, 1, "cat".into())]);
        let row = 40 - 14 + 5;
        let label: Vec<[u8; 3]> = (120 - width..120).map(|x| canvas.pixel(x, row)).collect();
        assert_eq!(label, legend);
    }

    #[test]
    fn labels_of_boxes_that_lie_on_each_other_do_not() {
        let rect = |left, top| Rect { left, top, right: left + 40, bottom: top + 30 };
        // Three of the four begin at nearly the same place of a small picture.
        let places = [rect(10, 40), rect(12, 42), rect(14, 38), rect(60, 60)];
        let labels = places.map(|rect| (rect, 1, "cat 0.98".to_owned()));
        let canvas = grey(120, 80);
        let mut taken: Vec<Rectangle> = Vec::new();
        for (rect, _, label) in &labels {
            let size = canvas.label_size(label);
            let place = canvas.free_place(rect.left, rect.top - size.height, size, &taken).unwrap();
            assert!(place.bottom_right().unwrap().y < 80, "{place:?}");
            taken.push(place);
        }
        for (at, one) in taken.iter().enumerate() {
            for other in &taken[at + 1..] {
                assert!(one.intersection(other).is_zero_sized(), "{one:?} {other:?}");
            }
        }
        // Drawn, every one of them is whole: as many pixels have the label's ground and letters as in a legend.
        let drawn = |labels: &[(Rect, usize, String)]| {
            let mut canvas = grey(120, 80);
            canvas.labelled_boxes(labels);
            canvas.rgb.chunks_exact(3).filter(|pixel| *pixel == [0; 3]).count()
        };
        assert_eq!(drawn(&labels), 4 * drawn(&labels[..1]), "black letters");
        // In a picture with room for one line there is one label, that of the best.
        let mut canvas = grey(60, 14);
        let flat = Rect { left: 0, top: 0, right: 60, bottom: 14 };
        canvas.labelled_boxes(&[(flat, 1, "cat 0.9".into()), (flat, 2, "dog 0.8".into())]);
        assert_eq!(canvas.pixel(1, 1), colour(1));
    }

    #[test]
    fn parts_become_pixels_inside_the_picture() {
        let all = Rect { left: 0, top: 0, right: 200, bottom: 100 };
        assert_eq!(Rect::of_parts([0.0, 0.0, 1.0, 1.0], 200, 100), all);
        assert_eq!(Rect::of_parts([-5.0, f32::NEG_INFINITY, 7.0, f32::INFINITY], 200, 100), all);
        let least = Rect { left: 199, top: 99, right: 200, bottom: 100 };
        assert_eq!(Rect::of_parts([1.0, 1.0, 0.0, f32::NAN], 200, 100), least);
    }

    #[test]
    fn near_classes_have_different_colours() {
        for class in 0..90 {
            for other in class + 1..class + 5 {
                let apart: u32 = colour(class)
                    .iter()
                    .zip(colour(other))
                    .map(|(a, b)| u32::from(a.abs_diff(b)))
                    .sum();
                assert!(apart > 90, "{class} and {other}");
            }
        }
    }

    #[test]
    fn drawing_outside_is_cut_off() {
        let mut canvas = grey(4, 3);
        canvas.legend(&vec![(0, "a much longer line than fits".into()); 40]);
        canvas.tint(9, 9, 1);
        let outside = Rect { left: 3, top: 2, right: 90, bottom: 90 };
        canvas.labelled_boxes(&[(outside, 0, "x".into()), (outside, 1, "y".into())]);
        assert_eq!(canvas.rgb.len(), 36);
    }
}
