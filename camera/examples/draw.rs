//! Writes the data that the built-in model is trained and tested on.
//!
//! Each picture takes the way that a frame takes through `burst stream`: drawn at the camera's
//! resolution, cropped to the centred square, resized by an antialiased bicubic filter.
//!
//! `NAME.images.u8` holds the pictures one after the other (rows top to bottom, R G B, one byte
//! each), `NAME.labels.u8` one class per byte, `labels.txt` the classes' names. `--sheet` also
//! writes `NAME.png`, the first pictures side by side, to look at; `--time` says what drawing
//! alone takes.

#![allow(clippy::cast_precision_loss, reason = "sides and counts far below 2^53")]

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use burst_camera::{Camera, Drawing, HEIGHT, LABELS, WIDTH};
use burst_pictures::{Area, Scaler, rgb_bytes};
use clap::Parser;

/// Pictures across and down a contact sheet.
const SHEET: [u32; 2] = [16, 10];

/// Draws labelled pictures.
#[derive(Parser)]
struct Args {
    /// Folder to write to; made when missing.
    #[arg(long)]
    out: PathBuf,
    /// Start of the files' names.
    #[arg(long)]
    name: String,
    /// Seed of the camera.
    #[arg(long)]
    seed: u64,
    /// How many pictures.
    #[arg(long)]
    count: u64,
    /// Side of a picture in pixels.
    #[arg(long, default_value_t = 64)]
    size: u32,
    /// Camera's resolution.
    #[arg(long, default_value_t = WIDTH)]
    width: usize,
    /// Camera's resolution.
    #[arg(long, default_value_t = HEIGHT)]
    height: usize,
    /// The stream's frames in their order instead of independent samples.
    #[arg(long)]
    stream: bool,
    /// Also write a contact sheet.
    #[arg(long)]
    sheet: bool,
    /// Say how long drawing took per frame.
    #[arg(long)]
    time: bool,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    ensure!(args.size > 0, "--size must not be 0");
    fs::create_dir_all(&args.out).with_context(|| format!("make {}", args.out.display()))?;
    fs::write(args.out.join("labels.txt"), LABELS.join("\n") + "\n")?;
    let mut source = Source::new(&args)?;
    let mut images = create(&args.out, &args.name, "images.u8")?;
    let mut labels = create(&args.out, &args.name, "labels.u8")?;
    let mut sheet = Vec::new();
    for index in 0..args.count {
        let drawing = source.draw(index)?;
        let picture = source.picture()?;
        images.write_all(picture)?;
        labels.write_all(&[u8::try_from(drawing.class)?])?;
        if args.sheet && index < u64::from(SHEET[0] * SHEET[1]) {
            sheet.push(picture.to_vec());
        }
    }
    images.flush()?;
    labels.flush()?;
    if args.sheet {
        write_sheet(&args.out.join(format!("{}.png", args.name)), args.size, &sheet)?;
    }
    if args.time {
        println!("{:.1} us per frame", source.spent.as_secs_f64() * 1e6 / args.count as f64);
    }
    Ok(())
}

fn create(folder: &Path, name: &str, kind: &str) -> anyhow::Result<BufWriter<File>> {
    let path = folder.join(format!("{name}.{kind}"));
    Ok(BufWriter::new(File::create(&path).with_context(|| format!("create {}", path.display()))?))
}

/// The camera and the way from its frame to the model's input.
struct Source {
    camera: Camera,
    stream: bool,
    frame: Vec<u8>,
    scaler: Scaler,
    /// The centred square of a frame.
    square: Area,
    size: u32,
    picture: Vec<u8>,
    spent: Duration,
}

impl Source {
    fn new(args: &Args) -> anyhow::Result<Source> {
        let camera = Camera::new(args.seed, args.width, args.height)?;
        let side = args.width.min(args.height);
        let [left, top] = [args.width, args.height].map(|all| (all - side) as f64 / 2.0);
        let square = Area { left, top, width: side as f64, height: side as f64 };
        let bytes = rgb_bytes(args.size, args.size).context("pictures of that size")?;
        Ok(Source {
            frame: vec![0; camera.frame_bytes()],
            camera,
            stream: args.stream,
            scaler: Scaler::new(),
            square,
            size: args.size,
            picture: vec![0; bytes],
            spent: Duration::ZERO,
        })
    }

    fn draw(&mut self, index: u64) -> anyhow::Result<Drawing> {
        let start = Instant::now();
        let drawing = if self.stream {
            self.camera.next_frame(&mut self.frame)?
        } else {
            self.camera.draw_sample(index, &mut self.frame)?
        };
        self.spent += start.elapsed();
        Ok(drawing)
    }

    fn picture(&mut self) -> anyhow::Result<&[u8]> {
        let [width, height] = [self.camera.width(), self.camera.height()].map(u32::try_from);
        let to = (&mut self.picture[..], (self.size, self.size));
        self.scaler.fill((&self.frame, (width?, height?)), self.square, to)?;
        Ok(&self.picture)
    }
}

fn write_sheet(path: &Path, size: u32, pictures: &[Vec<u8>]) -> anyhow::Result<()> {
    let (row, width, height) = (size as usize * 3, size * SHEET[0], size * SHEET[1]);
    let mut sheet = vec![0; rgb_bytes(width, height).context("a contact sheet of that size")?];
    let across = SHEET[0] as usize;
    for (index, picture) in pictures.iter().enumerate() {
        let (column, line) = (index % across, index / across);
        for (y, pixels) in picture.chunks_exact(row).enumerate() {
            let start = ((line * size as usize + y) * across + column) * row;
            sheet[start..][..row].copy_from_slice(pixels);
        }
    }
    burst_pictures::write_png(path, width, height, &sheet)
        .with_context(|| format!("write {}", path.display()))
}
