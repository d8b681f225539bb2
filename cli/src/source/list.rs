//! `burst stream --list-sources`: what `--source` can name on this machine beside files.

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use burst_capture::{CaptureError, Device, Mode, Sizes, candidates};
use burst_harness::report::listed;
use serde::Serialize;

use super::DEMO;

/// What `--list-sources` finds.
#[derive(Debug, Serialize)]
pub(crate) struct Listed {
    sources: Vec<Listing>,
}

/// A source: the synthetic camera, or a device file.
#[derive(Debug, Serialize)]
struct Listing {
    source: String,
    name: Option<String>,
    driver: Option<String>,
    bus: Option<String>,
    formats: Vec<Offer>,
    /// Why it cannot be used.
    error: Option<String>,
}

/// A format that a camera has.
#[derive(Debug, Serialize)]
struct Offer {
    format: String,
    is_read: bool,
    sizes: Vec<Offered>,
}

/// A size of frames, or the smallest and the largest of a range.
#[derive(Debug, Serialize)]
struct Offered {
    width: u32,
    height: u32,
    most_width: u32,
    most_height: u32,
    fps: Vec<f64>,
}

/// Looks which cameras there are.
pub(crate) fn list() -> Listed {
    let demo = Listing::named(DEMO, "the synthetic camera");
    let cameras = candidates().filter_map(|path| look(&path));
    Listed { sources: std::iter::once(demo).chain(cameras).collect() }
}

/// What is behind a device file; `None` where there is none, or nothing that gives pictures.
fn look(path: &Path) -> Option<Listing> {
    let source = path.display().to_string();
    let described = Device::open(path).and_then(|device| {
        let formats = device.modes()?.iter().map(Offer::of).collect();
        Ok(Listing {
            driver: Some(device.driver().into()),
            bus: Some(device.bus().into()),
            formats,
            ..Listing::named(&source, device.name())
        })
    });
    match described {
        Ok(listing) => Some(listing),
        // A camera has further files, for what it says beside its pictures.
        Err(CaptureError::NoDevice | CaptureError::NotVideo | CaptureError::NoCapture { .. }) => {
            None
        }
        Err(error) => Some(Listing {
            source,
            name: None,
            driver: None,
            bus: None,
            formats: Vec::new(),
            error: Some(error.to_string()),
        }),
    }
}

impl Listing {
    fn named(source: &str, name: &str) -> Self {
        let (source, name) = (source.to_owned(), Some(name.to_owned()));
        Listing { source, name, driver: None, bus: None, formats: Vec::new(), error: None }
    }
}

impl Offer {
    fn of(mode: &Mode) -> Self {
        let sizes = mode.sizes.iter().map(Offered::of).collect();
        Offer { format: mode.code.to_string(), is_read: mode.pixels.is_some(), sizes }
    }
}

impl Offered {
    fn of(sizes: &Sizes) -> Self {
        let ((width, height), (most_width, most_height), fps) = match sizes {
            Sizes::One { width, height, rates } => {
                ((*width, *height), (*width, *height), rates.clone())
            }
            Sizes::Range { least, greatest } => (*least, *greatest, Vec::new()),
        };
        Offered { width, height, most_width, most_height, fps }
    }

    /// Such as `640x480 (30, 15)`, or `16x16 to 640x480`.
    fn text(&self) -> String {
        let Offered { width, height, most_width, most_height, ref fps } = *self;
        let mut text = format!("{width}x{height}");
        if (width, height) != (most_width, most_height) {
            text.push_str(&format!(" to {most_width}x{most_height}"));
        }
        if !fps.is_empty() {
            let rates: Vec<String> = fps.iter().map(|rate| tidy(*rate)).collect();
            text.push_str(&format!(" ({})", rates.join(", ")));
        }
        text
    }
}

/// A rate with no more digits than it needs.
fn tidy(rate: f64) -> String {
    let text = format!("{rate:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl Listed {
    /// For people, in so many columns where these are known.
    pub(crate) fn write_text(&self, to: &mut impl Write, columns: Option<u16>) -> Result<()> {
        for listing in &self.sources {
            let Listing { source, name, driver, bus, formats, error } = listing;
            let mut heading = format!("{source}  {}", name.as_deref().unwrap_or_default());
            if let (Some(driver), Some(bus)) = (driver, bus) {
                heading += &format!(" ({driver}, {bus})");
            }
            if let Some(error) = error {
                heading += &format!("cannot be used: {error}");
            }
            if fits(&heading, columns) {
                writeln!(to, "{heading}")?;
            } else {
                lines_of(to, &[heading], "", columns)?;
            }
            for offer in formats {
                let sizes: Vec<String> = offer.sizes.iter().map(Offered::text).collect();
                let note = if offer.is_read { "" } else { " (not read)" };
                let format = format!("  {}{note}", offer.format);
                let line = format!("{format}  {}", sizes.join(", "));
                if fits(&line, columns) {
                    writeln!(to, "{line}")?;
                } else {
                    writeln!(to, "{format}")?;
                    lines_of(to, &sizes, "    ", columns)?;
                }
            }
        }
        if self.sources.len() == 1 {
            writeln!(to, "no camera: there is no /dev/video* that gives pictures")?;
        }
        Ok(())
    }
}

fn fits(line: &str, columns: Option<u16>) -> bool {
    columns.is_none_or(|columns| line.chars().count() <= columns.into())
}

/// Things with commas between them, in as many lines as it takes.
fn lines_of(
    to: &mut impl Write,
    things: &[String],
    indent: &str,
    columns: Option<u16>,
) -> Result<()> {
    for line in listed(things, indent, columns.map_or(usize::MAX, usize::from)) {
        writeln!(to, "{line}")?;
    }
    Ok(())
}
