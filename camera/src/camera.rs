use crate::error::CameraError;
use crate::outline::{LABELS, Shape};
use crate::painter::Painter;
use crate::rng::Rng;
use crate::scene::{SCENE_FRAMES, Scene};

/// Below this a shape is a few pixels wide and no human could name it.
const MIN_SIDE: usize = 32;

/// Above this a frame is larger than any model's input by far and slow to draw.
const MAX_SIDE: usize = 4096;

/// Which row of scenes a scene belongs to: the stream's or the samples'. They share none.
#[derive(Debug, Clone, Copy)]
enum Row {
    Stream = 1,
    Samples = 2,
}

/// A camera that looks at drawn scenes; equal seeds give equal frames.
#[derive(Debug)]
pub struct Camera {
    seed: u64,
    width: usize,
    height: usize,
    painter: Painter,
    frame: u64,
    showing: Option<(u64, Scene)>,
}

/// What a frame shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drawing {
    /// Index into [`LABELS`](crate::LABELS).
    pub class: usize,
    /// Number of the scene, from 0.
    pub scene: u64,
    /// Number of the frame within its scene, below [`SCENE_FRAMES`].
    pub frame: u32,
    /// Middle of the shape, in pixels from the frame's left upper corner.
    pub centre: [f32; 2],
    /// No part of the shape is further from its middle than this, in pixels.
    pub radius: f32,
}

impl Drawing {
    /// The name of the shape's class.
    #[must_use]
    pub fn label(&self) -> &'static str {
        LABELS[self.class]
    }
}

impl Camera {
    /// A camera of `width` x `height` pixels.
    ///
    /// # Errors
    /// [`CameraError::Size`] when a side is below 32 or above 4096 pixels.
    pub fn new(seed: u64, width: usize, height: usize) -> Result<Camera, CameraError> {
        let fits = |side: usize| (MIN_SIDE..=MAX_SIDE).contains(&side);
        if !fits(width) || !fits(height) {
            return Err(CameraError::Size { width, height, min: MIN_SIDE, max: MAX_SIDE });
        }
        let painter = Painter::new(width, height);
        Ok(Camera { seed, width, height, painter, frame: 0, showing: None })
    }

    /// Pixels per row.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows.
    #[must_use]
    pub fn height(&self) -> usize {
        self.height
    }

    /// Bytes of one frame: rows top to bottom, then R G B per pixel, one byte each.
    #[must_use]
    pub fn frame_bytes(&self) -> usize {
        self.width * self.height * 3
    }

    /// Draws the stream's next frame into `rgb`.
    ///
    /// Among each ten scenes that follow a multiple of ten, every class occurs once.
    ///
    /// # Errors
    /// [`CameraError::Buffer`] when `rgb` is not [`frame_bytes`](Self::frame_bytes) long; the
    /// stream then stays where it was.
    pub fn next_frame(&mut self, rgb: &mut [u8]) -> Result<Drawing, CameraError> {
        self.check(rgb)?;
        let (number, within) = split(self.frame);
        let scene = match self.showing.take() {
            Some((shown, scene)) if shown == number => scene,
            _ => self.scene(Row::Stream, number),
        };
        let drawing = self.draw(Row::Stream, number, &scene, within, rgb);
        self.showing = Some((number, scene));
        self.frame = self.frame.wrapping_add(1);
        Ok(drawing)
    }

    /// Draws sample `index` into `rgb`: a random frame of a scene that belongs to this index alone
    /// and that the stream never shows. Any order of indices gives the same pictures.
    ///
    /// # Errors
    /// [`CameraError::Buffer`] as for [`next_frame`](Self::next_frame).
    pub fn draw_sample(&mut self, index: u64, rgb: &mut [u8]) -> Result<Drawing, CameraError> {
        self.check(rgb)?;
        let scene = self.scene(Row::Samples, index);
        let moment = Rng::part(self.row_seed(Row::Samples) ^ u64::from(SCENE_FRAMES), index).next();
        let within = u32::try_from(moment % u64::from(SCENE_FRAMES)).unwrap_or(0);
        Ok(self.draw(Row::Samples, index, &scene, within, rgb))
    }

    fn check(&self, rgb: &[u8]) -> Result<(), CameraError> {
        let want = self.frame_bytes();
        if rgb.len() == want { Ok(()) } else { Err(CameraError::Buffer { want, got: rgb.len() }) }
    }

    fn row_seed(&self, row: Row) -> u64 {
        Rng::part(self.seed, row as u64).next()
    }

    fn scene(&self, row: Row, number: u64) -> Scene {
        let seed = self.row_seed(row);
        let classes = Shape::ALL.len() as u64;
        let deck = shuffled(Rng::part(!seed, number / classes));
        let card = usize::try_from(number % classes).unwrap_or(0);
        Scene::random(Rng::part(seed, number), deck[card], self.painter.reach())
    }

    fn draw(
        &mut self,
        row: Row,
        number: u64,
        scene: &Scene,
        within: u32,
        rgb: &mut [u8],
    ) -> Drawing {
        let salt = Rng::part(self.row_seed(row), number).next();
        let mut noise = Rng::part(salt, u64::from(within));
        self.painter.paint(scene, within, &mut noise, rgb);
        let pose = scene.pose(Scene::time(within));
        Drawing {
            class: scene.shape.class(),
            scene: number,
            frame: within,
            centre: self.painter.to_pixels(pose.centre),
            radius: pose.radius * self.painter.side(),
        }
    }
}

/// Scene number of a frame, and the frame's number within it.
fn split(frame: u64) -> (u64, u32) {
    let length = u64::from(SCENE_FRAMES);
    (frame / length, u32::try_from(frame % length).unwrap_or(0))
}

/// All shapes in random order (Fisher and Yates).
fn shuffled(mut rng: Rng) -> [Shape; Shape::ALL.len()] {
    let mut deck = Shape::ALL;
    for i in (1..deck.len()).rev() {
        deck.swap(i, rng.below(i + 1));
    }
    deck
}
