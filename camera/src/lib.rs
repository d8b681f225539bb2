//! A synthetic camera: it draws RGB frames of one moving shape before a busy background.
//!
//! The stream is a row of *scenes*. A scene shows one shape of one class that glides, turns and
//! grows or shrinks for [`SCENE_FRAMES`] frames; then the next scene starts with another class.
//! Position, size, rotation, foreshortening, colours, light, blur, sensor noise and background
//! are random, and no colour belongs to a class. The shape always lies wholly inside the centred
//! square of the frame, so that cropping to a square loses nothing of it.
//!
//! Everything follows from the seed: drawing uses only operations that IEEE 754 defines exactly
//! (no `sin` of the platform's library), so the same seed gives the same bytes on every machine.
//!
//! ```
//! use burst_camera::{Camera, HEIGHT, LABELS, WIDTH};
//!
//! let mut camera = Camera::new(7, WIDTH, HEIGHT)?;
//! let mut rgb = vec![0; camera.frame_bytes()];
//! let drawing = camera.next_frame(&mut rgb)?;
//! println!("frame shows a {}", LABELS[drawing.class]);
//! # Ok::<(), burst_camera::CameraError>(())
//! ```

mod background;
mod camera;
mod colour;
mod error;
mod light;
mod math;
mod outline;
mod painter;
mod raster;
mod rng;
mod scene;

pub use camera::{Camera, Drawing};
pub use error::CameraError;
pub use outline::{LABELS, Shape};
pub use scene::SCENE_FRAMES;

/// Width of the frame that the built-in model was trained on.
pub const WIDTH: usize = 160;
/// Height of the frame that the built-in model was trained on.
pub const HEIGHT: usize = 120;
