//! Models for which no trained file is at hand, larger than those that there are: their layers are those of published
//! networks, their weights come from a seed. Written as `.tflite` files, so that LiteRT runs the very same ones.
//!
//! | file | what |
//! |---|---|
//! | `networks.rs` | MobileNet v1, and a network that tells the parts of a picture |
//! | `builder.rs` | layers with weights of a size at which values neither vanish nor saturate |
//! | `random.rs` | numbers from a seed |

mod builder;
mod networks;
mod random;

/// Writes files; the importer's tests have it too.
#[path = "../../../../tflite/tests/support/mod.rs"]
#[expect(clippy::expect_used, reason = "what is written here fits")]
mod support;

use std::path::{Path, PathBuf};

use burst_harness::HarnessError;

pub use builder::Style;

/// A model with weights from a seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seeded {
    /// Its name, which is that of its file too.
    pub name: &'static str,
    network: Network,
    style: Style,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Network {
    MobileNetV1,
    Segmentation,
}

/// How large a network is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Pixels along each side of the picture that it takes.
    pub side: u32,
    /// Its layers have so many 256ths of their channels.
    pub width: u32,
}

/// All channels.
const FULL: u32 = 256;

impl Seeded {
    /// All of them.
    pub const ALL: [Seeded; 5] = [
        Seeded::of("seeded_mobilenet_v1_1.0_224_float", Network::MobileNetV1, Style::Float),
        Seeded::of("seeded_mobilenet_v1_1.0_224_int8", Network::MobileNetV1, Style::Int8),
        Seeded::of("seeded_mobilenet_v1_1.0_224_uint8", Network::MobileNetV1, Style::Uint8),
        Seeded::of("seeded_segmentation_512_float", Network::Segmentation, Style::Float),
        Seeded::of("seeded_segmentation_512_int8", Network::Segmentation, Style::Int8),
    ];

    const fn of(name: &'static str, network: Network, style: Style) -> Seeded {
        Seeded { name, network, style }
    }

    /// The size that its name says.
    #[must_use]
    pub fn size(self) -> Size {
        let side = match self.network {
            Network::MobileNetV1 => 224,
            Network::Segmentation => 512,
        };
        Size { side, width: FULL }
    }

    /// The bytes of its file, in this size.
    #[must_use]
    pub fn file(self, size: Size) -> Vec<u8> {
        match self.network {
            Network::MobileNetV1 => networks::mobilenet_v1(self.style, size),
            Network::Segmentation => networks::segmentation(self.style, size),
        }
    }
}

/// Writes all of them into a folder, which is made where there is none.
///
/// # Errors
/// The folder cannot be written.
pub fn write_all(folder: &Path) -> Result<Vec<PathBuf>, HarnessError> {
    let unwritable = |error| {
        HarnessError::peer(format!("cannot write models into {}: {error}", folder.display()))
    };
    std::fs::create_dir_all(folder).map_err(unwritable)?;
    let write = |model: Seeded| {
        let path = folder.join(format!("{}.tflite", model.name));
        std::fs::write(&path, model.file(model.size())).map_err(unwritable)?;
        Ok(path)
    };
    Seeded::ALL.into_iter().map(write).collect()
}
