//! The networks, layer by layer.

use super::builder::{Activation, Builder, Style, Value, Window};
use super::{FULL, Size};

/// Where the weights of each network come from.
const SEED: u64 = 0x19;

/// A picture's values have about a quarter of the mean square of one; behind the first layer it is about one.
const FIRST_GAIN: f32 = 2.0;

/// Values behind layers without a ReLU lie within this.
const LINEAR: (Activation, f32) = (Activation::None(8.0), 0.8);
const RELU6: (Activation, f32) = (Activation::Relu6, 1.0);

/// Stride and channels behind each pair of layers of MobileNet v1 (Howard and others, 2017, table 1).
const MOBILENET_V1: [(u32, u32); 13] = [
    (1, 64),
    (2, 128),
    (1, 128),
    (2, 256),
    (1, 256),
    (2, 512),
    (1, 512),
    (1, 512),
    (1, 512),
    (1, 512),
    (1, 512),
    (2, 1024),
    (1, 1024),
];

/// Classes of MobileNet, with the one for none.
const CLASSES: u32 = 1001;

impl Size {
    /// Channels of a layer that has so many at full width.
    fn channels(self, full: u32) -> u32 {
        (full * self.width / FULL).next_multiple_of(8).max(8)
    }
}

/// MobileNet v1: depthwise and pointwise layers in turn, then the mean of all pixels, and classes.
pub(super) fn mobilenet_v1(style: Style, size: Size) -> Vec<u8> {
    let mut b = Builder::new(style, SEED);
    let picture = b.picture(size.side);
    let first = (Activation::Relu6, FIRST_GAIN);
    let mut value = b.conv(picture, Window::three(2), size.channels(32), first);
    for (stride, channels) in MOBILENET_V1 {
        value = b.depthwise(value, Window::three(stride));
        value = b.conv(value, Window::POINT, size.channels(channels), RELU6);
    }
    let mean = b.average_pool(value);
    // Far enough apart that some classes win.
    let classes = b.conv(mean, Window::POINT, CLASSES, (Activation::None(16.0), 7.0));
    let scores = b.softmax(classes);
    b.finish(picture, scores)
}

/// A stage of inverted residuals, as MobileNet v2 has them.
struct Stage {
    /// The middle of a block has so many times the channels of its input.
    expansion: u32,
    channels: u32,
    blocks: u32,
    stride: u32,
    dilation: u32,
}

const fn stage(expansion: u32, channels: u32, blocks: u32, stride: u32, dilation: u32) -> Stage {
    Stage { expansion, channels, blocks, stride, dilation }
}

/// MobileNet v2 at half width as a segmentation has it (Sandler and others, 2018, table 2): from the stage on that
/// would leave a 32nd of the side, pixels stay and filters are spread.
const BACKBONE: [Stage; 7] = [
    stage(1, 8, 1, 1, 1),
    stage(6, 16, 2, 2, 1),
    stage(6, 16, 3, 2, 1),
    stage(6, 32, 4, 2, 1),
    stage(6, 48, 3, 1, 1),
    stage(6, 80, 3, 1, 2),
    stage(6, 160, 1, 1, 2),
];
/// Behind this stage pixels are a quarter of the side: the details that the decoder takes.
const DETAILS_BEHIND: usize = 1;
/// Channels of the branches between backbone and decoder, and of the decoder.
const BRANCH: u32 = 128;
const DECODER: u32 = 64;
/// Background, hair, skin of body and face, clothes, others.
const PARTS: u32 = 6;

/// The parts of a picture: an encoder with two branches at its end (each pixel, and the mean of all), and a decoder
/// that takes details of an early stage, after DeepLab v3+ (Chen and others, 2018).
pub(super) fn segmentation(style: Style, size: Size) -> Vec<u8> {
    let mut b = Builder::new(style, SEED);
    let picture = b.picture(size.side);
    let first = (Activation::Relu6, FIRST_GAIN);
    let mut value = b.conv(picture, Window::three(2), size.channels(16), first);
    let mut details = value;
    for (at, stage) in BACKBONE.iter().enumerate() {
        for block in 0..stage.blocks {
            let stride = if block == 0 { stage.stride } else { 1 };
            value = residual(&mut b, value, stage, (stride, size.channels(stage.channels)));
        }
        if at == DETAILS_BEHIND {
            details = value;
        }
    }
    let (branch, decoder) = (size.channels(BRANCH), size.channels(DECODER));
    let each = b.conv(value, Window::POINT, branch, RELU6);
    let mean = b.mean(value);
    let mean = b.conv(mean, Window::POINT, branch, RELU6);
    let mean = b.resize(mean, each.side);
    let both = b.concatenate(each, mean);
    let encoded = b.conv(both, Window::POINT, decoder, RELU6);
    let encoded = b.resize(encoded, details.side);
    let details = b.conv(details, Window::POINT, size.channels(16), RELU6);
    let both = b.concatenate(encoded, details);
    let decoded = b.depthwise(both, Window::three(1));
    let decoded = b.conv(decoded, Window::POINT, decoder, RELU6);
    // Far enough apart that each part wins somewhere.
    let parts = b.conv(decoded, Window::POINT, PARTS, (Activation::None(16.0), 6.0));
    let parts = b.resize(parts, size.side);
    b.finish(picture, parts)
}

/// More channels, a filter for each of them, fewer channels; and the input again, where that has as many.
fn residual(b: &mut Builder, input: Value, stage: &Stage, (stride, channels): (u32, u32)) -> Value {
    let mut value = input;
    if stage.expansion > 1 {
        value = b.conv(value, Window::POINT, input.channels * stage.expansion, RELU6);
    }
    let window = Window { dilation: stage.dilation, ..Window::three(stride) };
    value = b.depthwise(value, window);
    value = b.conv(value, Window::POINT, channels, LINEAR);
    if stride == 1 && input.channels == channels { b.add(value, input, 8.0) } else { value }
}
